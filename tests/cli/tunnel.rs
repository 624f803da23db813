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
    assert!(shown.contains("tunnels.yaml:1:9: `report`") && shown.contains("tunnels.yaml:2:1: "), "{shown}");
    assert!(shown.starts_with("error: 共有 2 处问题：\n") && shown.trim_end().lines().count() == 3, "{shown}");
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

#[test]
fn a_state_directory_that_others_may_write_in_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let (home, file) = home();
    let state = home.path().join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o777)).unwrap();
    let public = std::fs::read_to_string(home.path().join(".ssh/id_ed25519.pub")).unwrap();
    std::fs::write(home.path().join(".ssh/known_hosts"), format!("127.0.0.1 {public}")).unwrap();
    let text = format!(
        "report: false\nstate_dir: {}\nforwards:\n  f: {{local: 9999, target: \"10.0.0.1:1\", ssh: root@127.0.0.1}}\n",
        state.display()
    );
    std::fs::write(&file, text).unwrap();
    let output =
        run(&["tunnel", "run", "--config", file.to_str().unwrap()], &[("HOME", home.path().to_str().unwrap())]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("chmod 700"), "{}", stderr(&output));
}

#[test]
fn what_is_wrong_is_told_in_the_locales_language() {
    let (home, file) = home();
    std::fs::write(&file, "report: false\n\tid: x\n").unwrap();
    let output = plan(home.path(), &file, &[]);
    assert!(stderr(&output).contains("tunnels.yaml:2:1: YAML 语法错误：此处有制表符"), "{}", stderr(&output));
    let missing = plan(home.path(), &home.path().join("none.yaml"), &[]);
    assert!(stderr(&missing).contains("none.yaml：文件或目录不存在"), "{}", stderr(&missing));
    let status = run(&["tunnel", "status", "--language", "zh", "--state-dir", file.to_str().unwrap()], &[]);
    assert!(stderr(&status).contains("不是目录"), "{}", stderr(&status));
}

#[test]
fn a_status_without_an_agent_says_how_to_start_one() {
    let output = run(&["tunnel", "status", "--state-dir", "/nonexistent/tunnels"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("gpustack tunnel run"), "{}", stderr(&output));
}

#[test]
fn an_authority_signs_shows_and_revokes() {
    let (home, _) = home();
    let data_dir = home.path().join("data");
    std::fs::create_dir(&data_dir).unwrap();
    let key = home.path().join(".ssh/id_ed25519.pub");
    let ca =
        |words: &[&str]| run(&[&["tunnel", "ca"], words, &["--data-dir", data_dir.to_str().unwrap()]].concat(), &[]);
    let sign = ["sign", key.to_str().unwrap(), "--principal", "tunnel", "--id", "bastion-01"];
    let early = ca(&sign);
    assert_eq!(early.status.code(), Some(2));
    assert!(stderr(&early).contains("gpustack tunnel ca init"), "{}", stderr(&early));
    assert!(stdout(&ca(&["init"])).contains("TrustedUserCAKeys"));
    assert_eq!(ca(&["init"]).status.code(), Some(2), "a second key would make the first worthless");
    assert!(ca(&sign).status.success());
    let seen =
        Command::new("ssh-keygen").arg("-Lf").arg(home.path().join(".ssh/id_ed25519-cert.pub")).output().unwrap();
    assert!(stdout(&seen).contains("permit-port-forwarding"), "{}", stdout(&seen));
    assert!(stdout(&ca(&["show"])).contains("1  bastion-01  as tunnel from anywhere  until "));
    assert!(stdout(&ca(&["revoke", "--serial", "1"])).starts_with("Revoked: bastion-01 (1)."));
    assert!(stdout(&ca(&["show"])).contains("revoked "));
    assert_eq!(ca(&["revoke", "--id", "nobody"]).status.code(), Some(2));
    for (file, expected) in [
        ("/nonexistent/key.pub", "error: cannot read /nonexistent/key.pub: it is not there; name the .pub file"),
        ("/tmp", "error: cannot read /tmp: it is a folder; name the .pub file"),
        (key.to_str().unwrap().trim_end_matches(".pub"), "holds the private key; name the .pub file"),
    ] {
        let output = ca(&["revoke", "--key", file]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    for wrong in ["0d", "367d", "7", "soon"] {
        assert_eq!(ca(&[&sign[..], &["--valid-for", wrong]].concat()).status.code(), Some(2), "{wrong}");
    }
}
