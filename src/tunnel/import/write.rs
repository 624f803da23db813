//! A `tunnels.yaml` for what was recognised.

use super::command::{Forward, Login, SshCommand};
use super::recognise::{Recognised, Server, Worker, host_name, unique};
use crate::tunnel::file::SSH_PORT;
use api::ForwardDirection;
use std::fmt::Write;

/// What the file says to whoever reads it, in that one's language; each one line.
#[derive(Clone, Copy, Debug)]
pub struct Comments {
    /// At the top.
    pub heading: &'static str,
    /// Beside `token_file`.
    pub token_file: &'static str,
    /// Beside `report`, when there is no server.
    pub no_server: &'static str,
}

/// A bastion and the name that it gets.
struct Bastion<'a> {
    name: String,
    login: &'a Login,
}

struct Writer<'a> {
    text: String,
    commands: &'a [SshCommand],
    bastions: Vec<Bastion<'a>>,
    /// Keys and certificate that all commands have in common, and that therefore stand at the top.
    common: Option<(&'a [String], Option<&'a str>)>,
}

/// Writes it.
pub fn yaml<'a>(recognised: &'a Recognised<'a>, commands: &'a [SshCommand], comments: &Comments) -> String {
    let mut writer =
        Writer { text: String::new(), commands, bastions: bastions(recognised), common: common_keys(commands) };
    writer.line(&format!("# {}", comments.heading));
    if recognised.server.is_some() {
        writer.line(&format!("# token_file: /etc/gpustack/token  # {}", comments.token_file));
    } else {
        writer.line(&format!("report: false  # {}", comments.no_server));
    }
    writer.session();
    writer.server(recognised.server.as_ref());
    writer.bastions();
    writer.workers(recognised);
    writer.others(recognised);
    writer.text
}

/// Every host that somebody jumps over, and the one before the server when the server has no SSH.
fn bastions<'a>(recognised: &'a Recognised<'a>) -> Vec<Bastion<'a>> {
    let mut names: Vec<String> =
        recognised.workers.iter().map(|worker| worker.name.clone()).chain(["server".to_owned()]).collect();
    let mut bastions: Vec<Bastion<'a>> = Vec::new();
    let of_server = recognised.server.iter().flat_map(|server| {
        let end = (!server.has_ssh).then_some(&server.command.login);
        server.command.jumps.iter().chain(end)
    });
    let of_workers = recognised.workers.iter().flat_map(|worker| &worker.command.jumps);
    let of_others = recognised.others.iter().flat_map(|(_, command, _)| &command.jumps);
    for login in of_server.chain(of_workers).chain(of_others) {
        if bastions.iter().all(|bastion| bastion.login != login) {
            bastions.push(Bastion { name: unique(&host_name(login, "bastion"), &mut names), login });
        }
    }
    bastions
}

fn common_keys(commands: &[SshCommand]) -> Option<(&[String], Option<&str>)> {
    let first = commands.first()?;
    let is_common = commands
        .iter()
        .all(|command| command.identities == first.identities && command.certificate == first.certificate);
    (is_common && !first.identities.is_empty()).then_some((&first.identities, first.certificate.as_deref()))
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn section(&mut self, name: &str) {
        self.line("");
        self.line(&format!("{name}:"));
    }

    fn session(&mut self) {
        let mut lines = Vec::new();
        if let Some((identities, certificate)) = self.common {
            lines.push(format!("  identity: {}", list(identities)));
            lines.extend(certificate.map(|certificate| format!("  certificate: {}", quoted(certificate))));
        }
        // the most careful of all, as sessions are shared
        let intervals = self.commands.iter().filter_map(|command| command.keep_alive_s);
        if let Some(interval_s) = intervals.min() {
            lines.push(format!("  keep_alive: {}s", interval_s.clamp(1, 3600)));
            let counts = self.commands.iter().filter_map(|command| command.unanswered);
            lines.extend(counts.min().map(|count| format!("  keep_alives_unanswered: {}", count.min(100))));
        }
        if self.commands.iter().any(|command| command.is_compressing) {
            lines.push("  compression: true".to_owned());
        }
        if lines.is_empty() {
            return;
        }
        self.section("ssh");
        for line in &lines {
            self.line(line);
        }
    }

    fn server(&mut self, server: Option<&Server<'_>>) {
        let Some(Server { address, local_port, command, has_ssh }) = server else { return };
        self.section("server");
        self.line(&format!("  address: {}", quoted(&address.text())));
        if let Some(port) = local_port {
            self.line(&format!("  local_port: {}", quoted(port)));
        }
        let mut via = self.via(&command.jumps);
        if *has_ssh {
            self.line(&format!("  ssh: {}", account(&command.login)));
            self.keys(command, "  ");
        } else {
            via.extend(self.name_of(&command.login));
        }
        if !via.is_empty() {
            self.line(&format!("  via: {}", list(&via)));
        }
    }

    fn name_of(&self, login: &Login) -> Option<String> {
        self.bastions.iter().find(|bastion| bastion.login == login).map(|bastion| bastion.name.clone())
    }

    fn via(&self, jumps: &[Login]) -> Vec<String> {
        jumps.iter().filter_map(|jump| self.name_of(jump)).collect()
    }

    fn keys(&mut self, command: &SshCommand, indent: &str) {
        if self.common.is_some() || command.identities.is_empty() {
            return;
        }
        self.line(&format!("{indent}identity: {}", list(&command.identities)));
        if let Some(certificate) = &command.certificate {
            self.line(&format!("{indent}certificate: {}", quoted(certificate)));
        }
    }

    fn bastions(&mut self) {
        if self.bastions.is_empty() {
            return;
        }
        self.section("bastions");
        let lines: Vec<String> = self
            .bastions
            .iter()
            .map(|bastion| format!("  {}:\n    ssh: {}", quoted(&bastion.name), account(bastion.login)))
            .collect();
        for line in &lines {
            self.line(line);
        }
    }

    fn workers(&mut self, recognised: &Recognised<'_>) {
        let Some(server) = &recognised.server else { return };
        if recognised.workers.is_empty() {
            return;
        }
        self.section("workers");
        for Worker { name, command, server_port, health_port } in &recognised.workers {
            self.line(&format!("  {}:", quoted(name)));
            self.login(command);
            if *server_port != server.address.port {
                self.line(&format!("    server_port: {}", quoted(server_port)));
            }
            if let Some(port) = health_port {
                self.line("    health_check: true");
                self.line(&format!("    health_port: {}", quoted(port)));
            }
        }
    }

    fn login(&mut self, command: &SshCommand) {
        self.line(&format!("    ssh: {}", account(&command.login)));
        let via = self.via(&command.jumps);
        if !via.is_empty() {
            self.line(&format!("    via: {}", list(&via)));
        }
        self.keys(command, "    ");
    }

    fn others(&mut self, recognised: &Recognised<'_>) {
        if recognised.others.is_empty() {
            return;
        }
        self.section("forwards");
        for (name, command, Forward { direction, listen, target }) in &recognised.others {
            let keyword = match direction {
                ForwardDirection::Local => "local",
                ForwardDirection::Remote => "remote",
            };
            self.line(&format!("  {}:", quoted(name)));
            self.line(&format!("    {keyword}: {}", quoted(&listen.text())));
            self.line(&format!("    target: {}", quoted(&target.text())));
            self.login(command);
        }
    }
}

fn account(login: &Login) -> String {
    let host = if login.host.contains(':') { format!("[{}]", login.host) } else { login.host.clone() };
    let port = if login.port == SSH_PORT.to_string() { String::new() } else { format!(":{}", login.port) };
    quoted(&format!("{}@{host}{port}", login.user))
}

fn list(items: &[String]) -> String {
    match items {
        [one] => quoted(one),
        items => format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", ")),
    }
}

/// A text as YAML reads it back.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@._/:-~".contains(c);
    let begins_plainly = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
    let is_word_of_yaml = matches!(text.to_ascii_lowercase().as_str(), "null" | "true" | "false" | "yes" | "no");
    if begins_plainly && text.chars().all(is_plain) && !text.ends_with(':') && !is_word_of_yaml {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        // writing to a String cannot fail
        let _ = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            c if c.is_control() => write!(quoted, "\\u{:04x}", u32::from(c)),
            c => write!(quoted, "{c}"),
        };
    }
    quoted.push('"');
    quoted
}
