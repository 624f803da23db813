//! Certificates of the server's own authority, against the real sshd.

use crate::field::{gpustack, is_ready_by_link};
use crate::tunnels::{Lab, NPU, SERVER, has_reason, is_up};
use netlab::{TunnelAgent, TunnelFolder, until};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A lab whose NPU worker's host takes certificates of the server's authority and nothing else.
struct Certified {
    lab: Lab,
    /// The agent's files, its key among them.
    folder: TunnelFolder,
    /// The `sshd_config` of the worker's host.
    settings: Vec<String>,
}

impl Certified {
    fn new() -> Self {
        let mut lab = Lab::new();
        let folder = TunnelFolder::new().unwrap();
        let data_dir = lab.field.server.data_dir().to_owned();
        let said = run(&["ca", "init", "--data-dir", data_dir.to_str().unwrap()]);
        assert!(said.contains("TrustedUserCAKeys"), "{said}");
        let authority = data_dir.join("ssh_authority");
        let settings = vec![
            format!("TrustedUserCAKeys {}", authority.join("ca_key.pub").display()),
            format!("RevokedKeys {}", authority.join("revoked_keys").display()),
            "AuthorizedKeysFile none".to_owned(),
        ];
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "bastion-01", "-f"])
            .arg(folder.path().join("key"))
            .stdin(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        lab.end_npu_sshd();
        let certified = Self { lab, folder, settings };
        certified.write_config();
        let mut certified = certified;
        certified.start_sshd();
        certified
    }

    fn key(&self, end: &str) -> PathBuf {
        self.folder.path().join(format!("key{end}"))
    }

    fn write_config(&self) {
        let config = format!(
            "id: bastion-01\nssh: {{user: root, identity: {}, known_hosts: [{}], keep_alive: 2s}}\n\
             server: {{address: \"{SERVER}:8090\"}}\nworkers:\n  npu: {{ssh: \"{NPU}\"}}\n",
            self.key("").display(),
            self.lab.ssh.known_hosts().unwrap().display()
        );
        self.folder.write_config(&config).unwrap();
    }

    fn start_sshd(&mut self) {
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        self.lab.start_npu_sshd(&settings);
    }

    fn restart_sshd(&mut self) {
        self.lab.end_npu_sshd();
        self.start_sshd();
    }

    fn sign(&self, options: &[&str]) {
        let data_dir = self.lab.field.server.data_dir().to_str().unwrap();
        let key = self.key(".pub");
        run(&[&["ca", "sign", key.to_str().unwrap(), "--data-dir", data_dir], options].concat());
    }

    fn start_agent(&self, wrapper: &[&str]) -> TunnelAgent {
        TunnelAgent::start(&self.lab.bastion, gpustack(), &self.folder, wrapper).unwrap()
    }
}

/// The number of the certificate that the agent has.
fn serial(agent: &TunnelAgent) -> Result<u64, String> {
    let status = agent.status(gpustack()).map_err(|error| error.to_string())?;
    status["certificates"][0]["certificate"]["serial"].as_u64().ok_or_else(|| status.to_string())
}

/// Runs `gpustack tunnel` with these words.
fn run(words: &[&str]) -> String {
    let output = Command::new(gpustack()).arg("tunnel").args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn forward(agent: &TunnelAgent, what: &str, is_wished: impl Fn(&Value) -> bool) -> Value {
    agent.forward(gpustack(), "npu.server", what, is_wished)
}

pub fn a_certificate_is_renewed_under_an_open_session_and_used_by_the_next_one() {
    let mut certified = Certified::new();
    certified.sign(&["--principal", "root", "--source-address", "198.18.20.0/24", "--valid-for", "60s"]);
    let agent = certified.start_agent(&[]);
    let _worker = certified.lab.start_worker(&certified.lab.npu, "npu", &[]);
    certified.lab.field.settled_when("npu", is_ready_by_link);
    let link = certified.lab.field.settled_link("npu");
    assert_eq!(serial(&agent), Ok(1));
    until("a renewed certificate", || match serial(&agent) {
        Ok(2) => Ok(()),
        other => Err(other),
    });
    let open = forward(&agent, "goes on", is_up);
    assert_eq!(open["reconnects"], 0, "{open}");
    assert_eq!(certified.lab.field.settled_link("npu"), link, "nothing was dropped");
    // as if it were the only one that is still good
    certified.lab.end_npu_sshd();
    forward(&agent, "is refused", |forward| has_reason(forward, "down", "ssh_refused"));
    certified.start_sshd();
    forward(&agent, "logs in with the new one", |forward| is_up(forward) && forward["reconnects"] == 1);
}

pub fn an_expired_certificate_is_named_and_a_new_one_lets_the_tunnel_in() {
    let mut certified = Certified::new();
    certified.sign(&["--principal", "root", "--valid-for", "5s", "--no-renewal"]);
    let agent = certified.start_agent(&[]);
    forward(&agent, "works", is_up);
    until("the end of the certificate", || {
        let status = agent.status(gpustack()).map_err(|error| error.to_string())?;
        let until_ms = status["certificates"][0]["certificate"]["valid_before_ms"].as_i64().unwrap_or(i64::MAX);
        if chrono::Utc::now().timestamp_millis() > until_ms { Ok(()) } else { Err(status.to_string()) }
    });
    // a session that stands outlives it
    forward(&agent, "goes on", |forward| is_up(forward) && forward["reconnects"] == 0);
    certified.restart_sshd();
    let down = forward(&agent, "is refused", |forward| has_reason(forward, "down", "certificate_expired"));
    assert_eq!(down["fault"]["params"]["key_id"], "bastion-01");
    // the agent has its server and its key, so that is all that is to be done
    certified.sign(&["--principal", "root", "--valid-for", "1h"]);
    agent.reload().unwrap();
    forward(&agent, "works again", is_up);
}

pub fn a_revoked_certificate_and_one_for_another_user_are_refused() {
    let mut certified = Certified::new();
    certified.sign(&["--principal", "nobody", "--valid-for", "1h"]);
    let agent = certified.start_agent(&[]);
    forward(&agent, "is refused", |forward| has_reason(forward, "down", "login_refused"));
    certified.sign(&["--principal", "root", "--valid-for", "1h"]);
    agent.reload().unwrap();
    forward(&agent, "works", is_up);
    let data_dir = certified.lab.field.server.data_dir().to_str().unwrap().to_owned();
    run(&["ca", "revoke", "--id", "bastion-01", "--data-dir", &data_dir]);
    // one that stands goes on
    forward(&agent, "goes on", is_up);
    certified.restart_sshd();
    forward(&agent, "is refused", |forward| has_reason(forward, "down", "login_refused"));
}

/// Both the bastion and the worker's host have a clock of last year.
pub fn a_certificate_that_is_not_valid_yet_is_blamed_on_the_clock() {
    let mut certified = Certified::new();
    certified.sign(&["--principal", "root", "--valid-for", "1h"]);
    certified.lab.end_npu_sshd();
    let settings: Vec<&str> = certified.settings.iter().map(String::as_str).collect();
    certified.lab.start_npu_sshd_under(&["faketime", "-f", "-365d"], &settings);
    let agent = certified.start_agent(&["faketime", "-f", "-365d"]);
    let down = forward(&agent, "is refused", |forward| has_reason(forward, "down", "certificate_not_yet_valid"));
    let params = &down["fault"]["params"];
    let early_ms = params["valid_after_ms"].as_i64().unwrap() - params["clock_ms"].as_i64().unwrap();
    assert!(early_ms > 364 * 24 * 3_600_000, "{down}");
}
