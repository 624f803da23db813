//! A plan as a `~/.ssh/config`.

use super::{LABEL_VARIABLE, Plan, PlannedForward, PlannedHop, label};
use api::ForwardDirection;
use ssh::{Compression, Identity};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// A block for each forward, so that `ssh -N GPUStack-Tunnel-ID` makes it, and one for each bastion. `heading` makes
/// the comment above a forward's.
pub fn ssh_config(plan: &Plan, heading: impl Fn(&PlannedForward) -> String) -> String {
    let mut text = String::new();
    for forward in &plan.forwards {
        let Some((last, jumps)) = forward.route.split_last() else { continue };
        // writing to a String cannot fail
        let _ = writeln!(text, "# {}\nHost {}", heading(forward), label(&forward.id));
        text.push_str(&host_lines(last));
        if !jumps.is_empty() {
            let names: Vec<String> = jumps.iter().map(bastion).collect();
            let _ = writeln!(text, "    ProxyJump {}", names.join(","));
        }
        let keyword = match forward.direction {
            ForwardDirection::Local => "LocalForward",
            ForwardDirection::Remote => "RemoteForward",
        };
        let _ = writeln!(text, "    {keyword} {} {}", forward.listen, forward.target);
        let _ = writeln!(text, "    ExitOnForwardFailure yes");
        let _ = writeln!(text, "    SetEnv {LABEL_VARIABLE}={}", label(&forward.id));
        text.push_str(&session_lines(plan));
        text.push('\n');
    }
    text.push_str(&bastions(plan));
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

fn bastions(plan: &Plan) -> String {
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    for forward in &plan.forwards {
        let jumps = forward.route.split_last().map(|(_, jumps)| jumps).unwrap_or_default();
        for hop in jumps.iter().filter(|hop| seen.insert(hop.name.clone())) {
            let _ = write!(text, "Host {}\n{}{}\n", bastion(hop), host_lines(hop), session_lines(plan));
        }
    }
    text
}

/// Another beginning than that of forwards, so that a `Host GPUStack-Tunnel-*` of the operator's does not mean them
/// too.
fn bastion(hop: &PlannedHop) -> String {
    format!("GPUStack-Bastion-{}", hop.name)
}

fn host_lines(hop: &PlannedHop) -> String {
    let mut text = format!(
        "    HostName {}\n    User {}\n    Port {}\n",
        hop.server.host.replace('%', "%%"),
        value(&hop.user),
        hop.server.port
    );
    let mut has_agent = false;
    for identity in &hop.identities {
        match identity {
            Identity::KeyFile { path, certificate } => {
                let _ = writeln!(text, "    IdentityFile {}", file(path));
                if let Some(certificate) = certificate {
                    let _ = writeln!(text, "    CertificateFile {}", file(certificate));
                }
            }
            Identity::Agent { .. } => has_agent = true,
        }
    }
    if !has_agent {
        text.push_str("    IdentitiesOnly yes\n");
    }
    text
}

fn session_lines(plan: &Plan) -> String {
    let tuning = &plan.session.tuning;
    let compression = if tuning.compression == Compression::On { "    Compression yes\n" } else { "" };
    format!(
        "{compression}    ServerAliveInterval {}\n    ServerAliveCountMax {}\n",
        tuning.keep_alive_interval.as_secs(),
        tuning.keep_alives_unanswered
    )
}

/// A file's name, in which `ssh` replaces `%` and what follows.
fn file(path: &Path) -> String {
    value(&path.display().to_string().replace('%', "%%"))
}

/// A word as `ssh_config(5)` reads it back.
fn value(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "@%+=:,./-_~".contains(c);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::plan::tests::plan;
    use std::process::Command;

    const FILE: &str = "
ssh: {identity: /etc/ssh/tunnel_keys/bastion-01, certificate: /etc/ssh/tunnel_keys/bastion-01-cert.pub, compression: true}
server: {address: '[fe80::1]:8090', ssh: root@10.0.0.1}
bastions:
  near: {ssh: tunnel@near, identity: '/home/a b/50%/key'}
  far: {ssh: tunnel@far:2222, via: near}
workers:
  npu-1: {ssh: root@10.20.0.20, via: far}
";

    fn config() -> String {
        ssh_config(&plan(FILE), |forward| forward.id.to_string())
    }

    #[test]
    fn every_forward_and_bastion_has_a_block() {
        insta::assert_snapshot!(config());
    }

    /// What `ssh` makes of the file for a host.
    fn understood(host: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, config()).unwrap();
        let output = Command::new("ssh").arg("-G").arg("-F").arg(&path).arg(host).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn ssh_reads_a_forward_as_it_is_meant() {
        let understood = understood("GPUStack-Tunnel-npu-1.server");
        for expected in [
            "user root",
            "hostname 10.20.0.20",
            "port 22",
            "exitonforwardfailure yes",
            "compression yes",
            "serveraliveinterval 10",
            "serveralivecountmax 1",
            "identitiesonly yes",
            "proxyjump GPUStack-Bastion-near,GPUStack-Bastion-far",
            "remoteforward [127.0.0.1]:8090 [127.0.0.1]:8090",
            "identityfile /etc/ssh/tunnel_keys/bastion-01",
            "certificatefile /etc/ssh/tunnel_keys/bastion-01-cert.pub",
            "setenv ChannelType=GPUStack-Tunnel-npu-1.server",
        ] {
            assert!(understood.iter().any(|line| line == expected), "{expected} is not in {understood:#?}");
        }
    }

    #[test]
    fn ssh_reads_addresses_and_files_with_signs_in_them() {
        assert!(
            understood("GPUStack-Tunnel-server").contains(&"localforward [127.0.0.1]:8090 [fe80::1]:8090".to_owned())
        );
        let near = understood("GPUStack-Bastion-near");
        assert!(near.iter().any(|line| line.starts_with("identityfile /home/a b/50%")), "{near:#?}");
        assert!(understood("GPUStack-Bastion-far").contains(&"port 2222".to_owned()));
    }
}
