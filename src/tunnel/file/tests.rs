//! Texts and what is wrong with them.

use super::*;
use crate::tunnel::plan::tests::surroundings;
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn problems(text: &str) -> String {
    let problems = FileProblems::new("tunnels.yaml", read(text, &surroundings()).problems);
    problems.to_string()
}

#[test]
fn every_key_is_read() {
    let text = "
id: bastion-01
here: bastion
state_dir: /var/lib/tunnels
token_file: ~/token
report: true
server_url: 10.0.0.1:8090
ssh:
  user: tunnel
  identity: /etc/ssh/tunnel_keys/bastion-01
  certificate: /etc/ssh/bastion-01-cert.pub
  agent: true
  known_hosts: [/etc/ssh/ssh_known_hosts, ~/known]
  keep_alive: 30s
  keep_alives_unanswered: 3
  compression: true
server: {address: 10.0.0.1:8090, ssh: root@10.0.0.1, via: b, local_port: 18090}
bastions:
  b: {ssh: 10.20.0.1, identity: [/k1, /k2], agent: false}
workers:
  npu-1: {ssh: 10.20.0.20, via: b, server_port: 8091, health_check: true, worker_port: 10150, health_port: 10150, user: root}
forwards:
  up: {local: 127.0.0.1:9090, target: 10.20.0.20:9090, ssh: npu-1, workers: [npu-1]}
";
    let ReadFile { file, problems } = read(text, &surroundings());
    assert_eq!(problems, []);
    insta::assert_debug_snapshot!(file.unwrap());
}

#[test]
fn every_problem_is_told_with_its_line_and_what_to_write() {
    let text = "
id: bastion 01
here: bastion
statedir: /x
token_file: token
report: yes
server_url: ftp://x
ssh:
  keep_alive: 10
  keepalive: 10s
  certificate: /x-cert.pub
  agent: [true]
server:
  address: http://10.0.0.1:8090
  ssh: root@
bastions:
  server: {ssh: t@x}
  no ssh: {}
  twice: {ssh: t@x}
  twice: {ssh: t@y}
workers:
  昇腾: {ssh: root@<NPU服务器IP>}
  npu-1: {ssh: 10.20.0.20, server_port: 0, health_port: 70000, health_chek: true}
  npu-2: {ssh: root@10.20.0.21, user: x, via: }
forwards:
  none: {target: x:1}
  both: {local: 1, remote: 2, target: '${TARGET}', ssh: root@x}
  list: [1]
  named: {local: 1, target: x, ssh: npu-1, via: twice}
";
    insta::assert_snapshot!(problems(text));
}

#[test]
fn a_key_that_means_nothing_by_itself_is_told() {
    let text = "
server: {address: 10.0.0.1:8090, user: root}
workers:
  npu-1: {ssh: root@10.20.0.20, health_port: 10151}
  npu-2: {ssh: root@10.20.0.21, worker_port: 10152}
  npu-3: {ssh: root@10.20.0.22, health_check: false, health_port: 10153}
";
    insta::assert_snapshot!(problems(text));
}

#[test]
fn a_misspelt_key_is_told_and_not_what_it_makes_missing() {
    for (text, expected) in [
        ("report: false\nforwrads: {}\n", "tunnels.yaml:2:1: unknown key `forwrads`; is `forwards` meant?"),
        ("server: {adress: 10.0.0.1:8090}\n", "tunnels.yaml:1:10: unknown key `server.adress`; is `address` meant?"),
        (
            "server.address: 10.0.0.1:8090\n",
            "tunnels.yaml:1:1: `server.address` is no key: write `server:`, and under it, indented, `address:`",
        ),
        (
            "bastions: {b: {ssh:t@b, user: x}}\n",
            "tunnels.yaml:1:16: the colon behind `ssh` needs a space: write `ssh: t@b`",
        ),
        (
            "workers: {a: {ssh: t@b, helth_check: true, health_port: 10151}}\n",
            "tunnels.yaml:1:25: unknown key `workers.a.helth_check`; is `health_check` meant?",
        ),
    ] {
        assert_eq!(problems(text), expected, "{text}");
    }
    let empty = read("report: false\nforwrads: {}\n", &surroundings());
    let mut all = empty.problems;
    all.extend(plan::make(&empty.file.unwrap(), plan::tests::no_ports()).planned.unwrap_err());
    assert_eq!(FileProblems::new("f", all).problems.len(), 1);
}

#[test]
fn what_an_error_repeats_is_short_and_plain() {
    let problems = problems(&format!("report: \"\\e[31m{}\"\n{}: 1\n", "x".repeat(5000), "y".repeat(500)));
    assert!(problems.len() < 1000 && !problems.contains('\u{1b}'), "{problems}");
}

#[test]
fn an_address_of_everybody_is_none_to_connect_to() {
    let text = "server: {address: 0.0.0.0:8090}";
    assert!(problems(text).contains("write 127.0.0.1"), "{}", problems(text));
}

#[test]
fn a_text_that_is_no_file_of_ours_says_so() {
    for text in ["", "# nothing", "just text", "- a", "a: b: c", "\t"] {
        assert!(problems(text).starts_with("tunnels.yaml:"), "{text}: {}", problems(text));
    }
}

#[test]
fn keys_are_looked_for_in_ssh_agent_and_the_home_only_when_none_is_named() {
    let identities = |ssh: &str| {
        let text = format!("{ssh}\nbastions: {{b: {{ssh: t@b}}}}");
        let file = read(&text, &surroundings()).file.unwrap();
        file.bastions[0].host.as_ref().unwrap().identities.clone()
    };
    let default = Identity::key_file("/home/t/.ssh/id_ed25519");
    let agent = surroundings().agent.unwrap();
    assert_eq!(identities(""), [default]);
    assert_eq!(identities("ssh: {agent: true}"), std::slice::from_ref(&agent));
    assert_eq!(identities("ssh: {identity: /k, agent: true}"), [Identity::key_file("/k"), agent]);
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    /// What is wrong with a file in which `FOLDER` stands for this folder.
    fn load(&self, text: &str) -> Result<Planned, String> {
        let folder = self.0.path().display().to_string();
        let path = self.file("tunnels.yaml", &format!("state_dir: FOLDER\n{text}").replace("FOLDER", &folder), 0o644);
        load(&path, &surroundings()).map_err(|error| error.to_string().replace(&folder, "FOLDER"))
    }
}

const FORWARD: &str = "forwards: {up: {local: 9090, target: x:1, ssh: root@x}}";

#[test]
fn keys_that_an_agent_cannot_use_are_told_before_it_runs() {
    let folder = Folder::new();
    for (name, passphrase) in [("plain", ""), ("encrypted", "secret")] {
        let path = folder.0.path().join(name);
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", passphrase, "-f"]).arg(path).status();
        assert!(made.unwrap().success());
    }
    folder.file("plain-cert.pub", "x", 0o644);
    let host =
        |name: &str| format!("  {name}: {{local: {}, target: x:1, ssh: t@x, identity: FOLDER/{name}}}", name.len());
    let text = format!("report: false\nforwards:\n{}\n{}\n", host("plain"), host("encrypted"));
    insta::assert_snapshot!(folder.load(&text).unwrap_err());
}

#[test]
fn a_default_key_is_looked_at_like_one_that_is_named() {
    let folder = Folder::new();
    let error = folder.load(&format!("report: false\n{FORWARD}")).unwrap_err();
    assert!(error.contains(":1:1: `ssh.identity`: cannot read /home/t/.ssh/id_ed25519"), "{error}");
}

#[test]
fn files_with_keys_and_tokens_are_looked_at() {
    let folder = Folder::new();
    folder.file("open", "x", 0o644);
    folder.file("other", "x", 0o600);
    folder.file("token", "a b", 0o600);
    let text = format!(
        "token_file: FOLDER/token\nserver_url: http://x\nssh: {{identity: [FOLDER/missing, FOLDER/open, FOLDER/other, FOLDER/key.pub]}}\n{FORWARD}"
    );
    insta::assert_snapshot!(folder.load(&text).unwrap_err());
}

#[test]
fn a_token_that_everybody_may_read_is_none() {
    let folder = Folder::new();
    folder.file("token", "secret", 0o644);
    let error = folder.load(&format!("token_file: FOLDER/token\nserver_url: http://x\n{FORWARD}")).unwrap_err();
    assert!(error.contains(":2:13: `token_file`: FOLDER/token is open to every user (mode 644)"), "{error}");
    assert!(!error.contains("secret"));
    let missing = folder.load(&format!("token_file: FOLDER/none\nserver_url: http://x\n{FORWARD}")).unwrap_err();
    assert!(missing.contains("`gpustack token` prints what belongs there"), "{missing}");
}

#[test]
fn a_folder_in_place_of_a_file_is_told_as_one() {
    let folder = Folder::new();
    std::fs::create_dir(folder.0.path().join("keys")).unwrap();
    let text = format!("token_file: FOLDER/keys\nserver_url: http://x\nssh: {{identity: FOLDER/keys}}\n{FORWARD}");
    let error = folder.load(&text).unwrap_err();
    assert!(error.contains("FOLDER/keys is a folder; write the file with the key"), "{error}");
    assert!(error.contains("`token_file`: cannot read FOLDER/keys: it is a folder"), "{error}");
    assert!(!error.contains("chmod"), "{error}");
}

#[test]
fn a_state_directory_that_cannot_be_one_is_told_with_its_line() {
    let folder = Folder::new();
    let file = folder.file("file", "", 0o600);
    let long = folder.0.path().join("x".repeat(120));
    for (state_dir, expected) in [(file, "which is a file"), (long, "choose one of at most 95")] {
        let path = folder.file(
            "other.yaml",
            &format!("report: false\nstate_dir: {}\nssh: {{agent: true}}\n{FORWARD}", state_dir.display()),
            0o644,
        );
        let error = load(&path, &surroundings()).unwrap_err().to_string();
        assert!(error.contains(":2:12: ") && error.contains(expected) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn with_damaged_ports_nothing_is_planned_and_the_rest_is_told_too() {
    let folder = Folder::new();
    folder.file("ports.json", "{\"health_ports\": {\"npu-1\": 10150,\n", 0o644);
    let worker = "server: {address: s:8090, ssh: root@s}\nworkers: {npu-1: {ssh: root@x, health_check: true}}\n";
    let text = format!("report: false\nssh: {{agent: true}}\n{worker}");
    insta::assert_snapshot!(folder.load(&text).unwrap_err());
    let error = folder.load(&text.replace("npu-1", "npu 1")).unwrap_err();
    assert!(
        error.contains("`npu 1` cannot be a name here") && error.contains("FOLDER/ports.json does not hold"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(folder.0.path().join("ports.json")).unwrap().lines().count(), 1);
}

#[test]
fn a_key_that_no_way_uses_is_not_looked_at() {
    let folder = Folder::new();
    let bastion = "bastions: {b: {ssh: t@b, identity: FOLDER/missing}}";
    let text = format!("report: false\nssh: {{agent: true}}\n{bastion}\n{FORWARD}");
    assert!(folder.load(&text).is_ok(), "{:?}", folder.load(&text).err());
}

#[test]
fn a_file_that_is_not_there_says_so() {
    let error = load(Path::new("/nonexistent/tunnels.yaml"), &surroundings()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nonexistent/tunnels.yaml: "), "{error}");
}

/// Words of which such files are made, so that more of them get further than the first line.
fn likely_text() -> impl Strategy<Value = String> {
    let words = [
        "id",
        "here",
        "ssh",
        "server",
        "workers",
        "bastions",
        "forwards",
        "via",
        "a",
        "b",
        ": ",
        ":",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "root@a",
        "10.0.0.1:8090",
        "8090",
        "true",
        "health_check",
        "local",
        "remote",
        "target",
        "'",
        "\"",
        "#",
        "&",
        "*",
        "|",
        ">",
        "昇",
        "\t",
        "~",
        "<<",
        "---",
    ];
    proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..60).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in prop_oneof![any::<String>(), likely_text()]) {
        if let Some(file) = read(&text, &surroundings()).file {
            let made = plan::make(&file, plan::tests::no_ports());
            prop_assert!(made.planned.is_ok() || !made.planned.unwrap_err().is_empty() || !read(&text, &surroundings()).problems.is_empty());
        }
    }
}

#[test]
fn every_example_of_the_documentation_can_be_planned() {
    let page = include_str!("../../../docs/tunnels.md");
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 5, "{}", blocks.len());
    for block in blocks {
        plan::tests::plan(block);
    }
}

#[test]
fn a_server_of_which_no_key_is_known_is_told_before_anybody_connects() {
    let dir = tempfile::tempdir().unwrap();
    let (path, known, key) = (dir.path().join("tunnels.yaml"), dir.path().join("known"), dir.path().join("key"));
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status().unwrap();
    assert!(made.success());
    let text = format!(
        "report: false\nstate_dir: {}/state\nssh: {{user: root, identity: {}, known_hosts: [{}]}}\nbastions:\n  b: {{ssh: 10.20.0.1}}\n  \
         unused: {{ssh: 10.20.0.9}}\nforwards:\n  f: {{local: 9090, target: 10.20.0.20:9090, ssh: \"10.20.0.20:2222\", via: b}}\n",
        dir.path().display(),
        key.display(),
        known.display()
    );
    std::fs::write(&path, text).unwrap();
    let unknown = |error: FileError| match error {
        FileError::Problems(problems) => {
            problems.problems.iter().map(|problem| problem.position.line).collect::<Vec<_>>()
        }
        other => panic!("{other}"),
    };
    assert!(load(&path, &surroundings()).is_ok());
    assert_eq!(load_to_run(&path, &surroundings()).map_err(unknown).err(), Some(vec![5, 8]));
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    std::fs::write(&known, format!("10.20.0.1 {public}@cert-authority [10.20.0.*]:2222 {public}")).unwrap();
    assert!(load_to_run(&path, &surroundings()).is_ok());
}
