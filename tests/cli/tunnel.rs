//! `gpustack tunnel`: what it prints and how it ends.

use crate::process::{gpustack, run, stderr, stdout};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A home with a key, which hosts without an `identity` take.
fn home() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let ssh = folder.path().join(".ssh");
    std::fs::create_dir(&ssh).unwrap();
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(ssh.join("id_ed25519")).status();
    assert!(made.unwrap().success());
    let file = folder.path().join("tunnels.yaml");
    (folder, file)
}

fn plan(home: &Path, file: &Path, form: &[&str]) -> Output {
    let args = ["tunnel", "plan", "--config", file.to_str().unwrap()];
    run(&[&args, form].concat(), &[("HOME", home.to_str().unwrap()), ("LANG", "zh_CN.UTF-8"), ("LC_ALL", "")])
}

fn import(home: &Path, text: &str) -> Output {
    let mut command = gpustack(&["tunnel", "import"]);
    command.env("HOME", home).env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

const COMMANDS: &str = "
ssh -CfNg -L 8090:10.0.0.1:8090 root@10.0.0.1
ssh -fN -R 8090:127.0.0.1:8090 root@10.20.0.20
";

#[test]
fn what_is_imported_can_be_planned_in_every_form() {
    let (home, file) = home();
    let imported = import(home.path(), COMMANDS);
    assert!(imported.status.success(), "{}", stderr(&imported));
    assert!(stderr(&imported).contains("line 2: -g "), "{}", stderr(&imported));
    std::fs::write(&file, stdout(&imported) + "state_dir: /nonexistent/tunnels\nid: here\n").unwrap();
    for (form, expected) in [
        (&[][..], "启动工作节点 10.20.0.20 时使用"),
        (&["--language", "en"], "Start worker 10.20.0.20 with"),
        (&["--ssh"], "\nssh -o ServerAliveInterval=10"),
        (&["--ssh-config"], "\nHost GPUStack-Tunnel-10.20.0.20.server\n"),
        (&["--json"], "\"id\": \"10.20.0.20.server\""),
    ] {
        let output = plan(home.path(), &file, form);
        assert!(output.status.success(), "{form:?}: {}", stderr(&output));
        assert!(stdout(&output).contains(expected), "{form:?}: {}", stdout(&output));
    }
}

#[test]
fn a_file_that_is_wrong_ends_with_status_2_and_a_line_for_each_problem() {
    let (home, file) = home();
    std::fs::write(&file, "report: maybe\nforward: {}\n").unwrap();
    let output = plan(home.path(), &file, &[]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""));
    let shown = stderr(&output);
    assert!(shown.contains("tunnels.yaml:1:9: `report`") && shown.contains("tunnels.yaml:2:1: unknown key"), "{shown}");
}

#[test]
fn a_forward_that_is_left_out_ends_with_status_1() {
    let (home, _) = home();
    let output = import(home.path(), &format!("{COMMANDS}ssh -fN -D 1080 root@10.0.0.1\n"));
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("\nworkers:\n"), "{}", stdout(&output));
    assert!(stderr(&output).contains("1 forward was left out"), "{}", stderr(&output));
    assert_eq!(import(home.path(), "ls\n").status.code(), Some(2));
}
