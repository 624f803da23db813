//! A plan as `ssh` commands: what an operator would have typed.

use super::{LABEL_VARIABLE, Plan, PlannedForward, PlannedHop, label};
use crate::tunnel::file::SSH_PORT;
use api::ForwardDirection;
use ssh::{Compression, Identity};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A command for each forward, in the order in which they work, for `sh` on the agent's host. `heading` makes the
/// comment above one.
///
/// `ssh -J` takes other keys than those in `default_keys` from `~/.ssh/config` only, so bastions with keys of their own
/// are passed with `ProxyCommand`.
pub fn ssh_commands(plan: &Plan, default_keys: &[PathBuf], heading: impl Fn(&PlannedForward) -> String) -> String {
    let mut text = String::new();
    for forward in &plan.forwards {
        // writing to a String cannot fail
        let _ = writeln!(text, "# {}\n{}\n", heading(forward), command(plan, forward, default_keys));
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

fn command(plan: &Plan, forward: &PlannedForward, default_keys: &[PathBuf]) -> String {
    let mut words = vec!["ssh".to_owned()];
    words.extend(options(plan).iter().flat_map(|option| ["-o".to_owned(), option.clone()]));
    words.extend(["-o".to_owned(), format!("SetEnv={LABEL_VARIABLE}={}", label(&forward.id))]);
    if plan.session.tuning.compression == Compression::On {
        words.push("-C".to_owned());
    }
    let flag = match forward.direction {
        ForwardDirection::Local => "-L",
        ForwardDirection::Remote => "-R",
    };
    words.extend(["-fN", flag].map(str::to_owned));
    words.push(format!("{}:{}", forward.listen, forward.target));
    if let Some((last, jumps)) = forward.route.split_last() {
        words.extend(jump_words(jumps, default_keys));
        words.extend(login(last, default_keys));
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn options(plan: &Plan) -> Vec<String> {
    let tuning = &plan.session.tuning;
    vec![
        format!("ServerAliveInterval={}", tuning.keep_alive_interval.as_secs()),
        format!("ServerAliveCountMax={}", tuning.keep_alives_unanswered),
        "ExitOnForwardFailure=yes".to_owned(),
    ]
}

fn jump_words(jumps: &[PlannedHop], default_keys: &[PathBuf]) -> Vec<String> {
    if jumps.is_empty() {
        return Vec::new();
    }
    if jumps.iter().all(|hop| key_words(hop, default_keys).is_empty()) {
        let hops: Vec<String> = jumps.iter().map(account).collect();
        return vec!["-J".to_owned(), hops.join(",")];
    }
    proxy_command(jumps, default_keys)
        .map(|command| vec!["-o".to_owned(), format!("ProxyCommand={command}")])
        .unwrap_or_default()
}

/// `ssh -W` at the last jump, itself over those before it. `%h` is the host that the outer `ssh` wants, so each further
/// level doubles its percent signs.
fn proxy_command(jumps: &[PlannedHop], default_keys: &[PathBuf]) -> Option<String> {
    let (last, before) = jumps.split_last()?;
    let mut words = vec!["ssh".to_owned()];
    if let Some(inner) = proxy_command(before, default_keys) {
        words.extend(["-o".to_owned(), format!("ProxyCommand={}", inner.replace('%', "%%"))]);
    }
    words.extend(["-W".to_owned(), "[%h]:%p".to_owned()]);
    words.extend(login(last, default_keys));
    Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// `user@host`, with the port and keys where they are not what `ssh` takes by itself.
fn login(hop: &PlannedHop, default_keys: &[PathBuf]) -> Vec<String> {
    let mut words = key_words(hop, default_keys);
    if hop.server.port != SSH_PORT {
        words.extend(["-p".to_owned(), hop.server.port.to_string()]);
    }
    words.push(format!("{}@{}", hop.user, hop.server.host));
    words
}

fn account(hop: &PlannedHop) -> String {
    if hop.server.port == SSH_PORT && !hop.server.host.contains(':') {
        return format!("{}@{}", hop.user, hop.server.host);
    }
    format!("{}@{}", hop.user, hop.server)
}

fn key_words(hop: &PlannedHop, default_keys: &[PathBuf]) -> Vec<String> {
    let mut words = Vec::new();
    for identity in &hop.identities {
        let Identity::KeyFile { path, certificate } = identity else { continue };
        if default_keys.contains(path) && certificate.is_none() {
            continue;
        }
        words.extend(["-i".to_owned(), in_option(path)]);
        if let Some(certificate) = certificate {
            words.extend(["-o".to_owned(), format!("CertificateFile={}", in_option(certificate))]);
        }
    }
    words
}

/// A file's name, in which `ssh` replaces `%` and what follows.
fn in_option(path: &Path) -> String {
    path.display().to_string().replace('%', "%%")
}

/// A word as `sh` reads it back, and `ssh -o` too, which takes backslashes for escapes where `sh` does not.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::plan::tests::plan;
    use std::process::Command;

    fn commands(file: &str, default_keys: &[PathBuf]) -> String {
        ssh_commands(&plan(file), default_keys, |forward| forward.id.to_string())
    }

    const FILE: &str = "
server: {address: 10.0.0.1:8090, ssh: root@10.0.0.1}
bastions:
  near: {ssh: tunnel@near}
  far: {ssh: 'tunnel@[fe80::2]:2222', via: near}
workers:
  npu-1: {ssh: root@10.20.0.20, via: far, health_check: true}
";

    #[test]
    fn commands_are_those_that_an_operator_types() {
        insta::assert_snapshot!(commands(FILE, &["/home/t/.ssh/id_ed25519".into()]));
    }

    #[test]
    fn bastions_with_keys_of_their_own_are_passed_with_them() {
        let file = format!("ssh: {{identity: /etc/key, compression: true}}\n{FILE}");
        insta::assert_snapshot!(commands(&file, &[]));
    }

    /// What `ssh` says that it would do; `ssh -G` fails when it does not understand its command line.
    fn understood(command: &str) -> String {
        let script = command.replacen("ssh ", "ssh -G -F /dev/null ", 1);
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn ssh_understands_every_command() {
        let file = format!("ssh: {{identity: \"/etc/it's %h/key\"}}\n{FILE}");
        for text in [commands(FILE, &["/home/t/.ssh/id_ed25519".into()]), commands(&file, &[])] {
            for command in text.lines().filter(|line| line.starts_with("ssh ")) {
                assert!(understood(command).contains("exitonforwardfailure yes"));
            }
        }
    }

    #[test]
    fn nested_jumps_are_unfolded_one_level_at_a_time() {
        let file = format!("ssh: {{identity: /etc/key}}\n{FILE}");
        let text = commands(&file, &[]);
        let command = text.lines().find(|line| line.contains("-R 127.0.0.1:8090")).unwrap();
        let understood = understood(command);
        let outer = understood.lines().find_map(|line| line.strip_prefix("proxycommand ")).unwrap();
        assert!(outer.ends_with("-W '[%h]:%p' -i /etc/key -p 2222 tunnel@fe80::2"), "{outer}");
        assert!(outer.contains("[%%h]:%%p"), "{outer}");
    }

    #[test]
    fn words_survive_the_shell() {
        for word in ["plain", "", "it's", "a b", "$HOME", "\"", "~", "*"] {
            let output = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }
}
