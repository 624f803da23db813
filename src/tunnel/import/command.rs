//! One `ssh` command line: its server, its way and its forwards.

use super::options::{is_keyword_without_effect, is_without_effect, key_and_value, takes_word};
use super::shell::{self, CommandLine};
use super::{Address, ImportNote, NoteKind};
use crate::tunnel::file::{LOOPBACK, SSH_PORT, is_loopback, is_placeholder};
use crate::tunnel::plan::{LABEL_VARIABLE, label};
use api::ForwardDirection;
use std::path::Path;

/// What a command says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshCommand {
    /// Where it stands.
    pub line: usize,
    /// The SSH server.
    pub login: Login,
    /// Those on the way, the nearest first.
    pub jumps: Vec<Login>,
    /// Key files.
    pub identities: Vec<String>,
    /// Their certificate.
    pub certificate: Option<String>,
    /// Its forwards.
    pub forwards: Vec<Forward>,
    /// `-C`.
    pub is_compressing: bool,
    /// `ServerAliveInterval`, in seconds.
    pub keep_alive_s: Option<u64>,
    /// `ServerAliveCountMax`.
    pub unanswered: Option<u32>,
    /// What is behind `GPUStack-Tunnel-` in its label.
    pub id: Option<String>,
}

/// An account on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// Who; empty when the command leaves it to `ssh`.
    pub user: String,
    /// Where.
    pub host: String,
    /// The port, as a number or a placeholder.
    pub port: String,
}

/// A forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// `-L` or `-R`.
    pub direction: ForwardDirection,
    /// Where it listens.
    pub listen: Address,
    /// Where its connections go.
    pub target: Address,
}

/// Programs that only start another one, and their options that take a word.
const LAUNCHERS: [(&str, &str); 14] = [
    ("sudo", "ugpChRTDrt"),
    ("nohup", ""),
    ("setsid", ""),
    ("exec", "a"),
    ("env", "uCS"),
    ("time", "fo"),
    ("nice", "n"),
    ("do", ""),
    ("then", ""),
    ("else", ""),
    ("if", ""),
    ("while", ""),
    ("until", ""),
    ("!", ""),
];
/// Words that end what others begin, and headings of systemd's units; nobody misses them.
const CLOSING: [&str; 8] = ["done", "fi", "esac", "}", "true", "[Unit]", "[Service]", "[Install]"];
/// What systemd starts.
const EXEC_START: &str = "ExecStart=";

/// Reads a command; None when it makes no forwards.
pub fn read(line: &CommandLine, notes: &mut Vec<ImportNote>) -> Option<SshCommand> {
    let mut reader = CommandReader { line: line.line, notes, command: SshCommand::default(), flags: Flags::default() };
    reader.whole(&line.words)
}

struct CommandReader<'a> {
    line: usize,
    notes: &'a mut Vec<ImportNote>,
    command: SshCommand,
    flags: Flags,
}

/// What is known only when the whole command was read.
#[derive(Default)]
struct Flags {
    /// The SSH server, before other options say more of it.
    login: Option<Login>,
    user: Option<String>,
    port: Option<String>,
    host_name: Option<String>,
    /// `autossh -M PORT`.
    is_autossh: bool,
    has_lost_forward: bool,
    /// `-W`: it only passes on what comes in.
    is_proxy: bool,
    /// Keys of jumps, which have to be those of the command.
    jump_identities: Vec<String>,
}

impl CommandReader<'_> {
    fn note(&mut self, kind: NoteKind) {
        self.notes.push(ImportNote { line: self.line, kind });
    }

    fn whole(&mut self, words: &[String]) -> Option<SshCommand> {
        let arguments = self.arguments(words)?;
        self.command.line = self.line;
        self.read_arguments(arguments);
        self.finish()
    }

    /// What is behind `ssh`.
    fn arguments<'w>(&mut self, words: &'w [String]) -> Option<&'w [String]> {
        let mut rest = words;
        loop {
            let (word, after) = rest.split_first()?;
            rest = after;
            let word = word.strip_prefix(EXEC_START).unwrap_or(word);
            if is_assignment(word) {
                continue;
            }
            let program = Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
            match program.as_deref().unwrap_or_default() {
                "ssh" => return Some(rest),
                "autossh" => {
                    self.flags.is_autossh = true;
                    return Some(rest);
                }
                "sshpass" => {
                    self.note(NoteKind::Password);
                    rest = without_options(rest, "pfde");
                }
                "timeout" => rest = without_options(rest, "ks").get(1..).unwrap_or_default(),
                launcher => {
                    let Some((_, with_word)) = LAUNCHERS.iter().find(|(name, _)| *name == launcher) else {
                        if !CLOSING.contains(&word) {
                            self.note(NoteKind::NotSsh { program: word.to_owned() });
                        }
                        return None;
                    };
                    rest = without_options(rest, with_word);
                }
            }
        }
    }

    fn read_arguments(&mut self, arguments: &[String]) {
        let mut words = arguments.iter();
        let mut are_options_over = false;
        while let Some(word) = words.next() {
            let options = word.strip_prefix('-').filter(|options| !options.is_empty() && !are_options_over);
            match options {
                Some("-") => are_options_over = true,
                Some(options) => self.cluster(options, &mut words),
                None if self.flags.login.is_none() => self.host(word),
                None => {
                    let command: Vec<&str> = std::iter::once(word).chain(words).map(String::as_str).collect();
                    return self.note(NoteKind::NotTakenOver { option: command.join(" ") });
                }
            }
        }
    }

    /// `-CfNgL 8090:host:8090`: letters, of which the last may have a word.
    fn cluster<'w>(&mut self, options: &str, words: &mut impl Iterator<Item = &'w String>) {
        for (index, option) in options.char_indices() {
            let has_word = takes_word(option) || (option == 'M' && self.flags.is_autossh);
            if !has_word {
                self.flag(option);
                continue;
            }
            let joined = options.get(index + option.len_utf8()..).filter(|rest| !rest.is_empty()).map(str::to_owned);
            let word = joined.or_else(|| words.next().cloned()).unwrap_or_default();
            return self.option(option, &word);
        }
    }

    fn flag(&mut self, option: char) {
        match option {
            'C' => self.command.is_compressing = true,
            'g' => self.note(NoteKind::OpenToNetwork),
            option if is_without_effect(option) => {}
            option => self.note(NoteKind::NotTakenOver { option: format!("-{option}") }),
        }
    }

    fn option(&mut self, option: char, word: &str) {
        match option {
            'L' => self.forward(ForwardDirection::Local, word),
            'R' => self.forward(ForwardDirection::Remote, word),
            'D' => self.lose(NoteKind::Dynamic { forward: format!("-D {word}") }),
            'J' => self.jumps(word),
            'i' => self.command.identities.push(file(word)),
            'l' => self.flags.user = Some(word.to_owned()),
            'p' => self.flags.port = Some(word.to_owned()),
            'o' => self.keyword(word),
            // `autossh -M PORT` watches over what an agent watches over by itself
            'M' | 'e' | 'E' => {}
            'W' => self.flags.is_proxy = true,
            option => self.note(NoteKind::NotTakenOver { option: format!("-{option} {word}") }),
        }
    }

    fn keyword(&mut self, option: &str) {
        let (key, value) = key_and_value(option);
        match key.as_str() {
            "user" => self.flags.user = self.flags.user.take().or(Some(value)),
            "port" => self.flags.port = self.flags.port.take().or(Some(value)),
            "hostname" => self.flags.host_name = Some(value),
            "identityfile" => self.command.identities.push(file(&value)),
            "certificatefile" => self.command.certificate = Some(file(&value)),
            "proxyjump" => self.jumps(&value),
            "proxycommand" => self.proxy(&value),
            "localforward" => self.forward(ForwardDirection::Local, &value),
            "remoteforward" => self.forward(ForwardDirection::Remote, &value),
            "dynamicforward" => self.lose(NoteKind::Dynamic { forward: format!("DynamicForward {value}") }),
            "serveraliveinterval" => self.command.keep_alive_s = value.parse().ok().filter(|interval| *interval > 0),
            "serveralivecountmax" => self.command.unanswered = value.parse().ok(),
            "compression" => self.command.is_compressing = value.eq_ignore_ascii_case("yes"),
            "gatewayports" if value.eq_ignore_ascii_case("no") => {}
            "gatewayports" => self.note(NoteKind::OpenToNetwork),
            "stricthostkeychecking" | "checkhostip" if value.eq_ignore_ascii_case("yes") => {}
            "stricthostkeychecking" | "userknownhostsfile" | "globalknownhostsfile" | "checkhostip" => {
                self.note(NoteKind::HostKeysAreChecked);
            }
            key if is_keyword_without_effect(key) => self.label(&value),
            _ => self.note(NoteKind::NotTakenOver { option: format!("-o {option}") }),
        }
    }

    /// `SetEnv=ChannelType=GPUStack-Tunnel-ID`: agents make such labels by themselves, of the ids.
    fn label(&mut self, value: &str) {
        let label_of_id = value.strip_prefix(LABEL_VARIABLE).and_then(|rest| rest.strip_prefix('='));
        let id = label_of_id.and_then(|text| text.strip_prefix(label("").as_str()));
        self.command.id = self.command.id.take().or(id.filter(|id| !is_placeholder(id)).map(str::to_owned));
    }

    fn lose(&mut self, kind: NoteKind) {
        self.flags.has_lost_forward = true;
        self.note(kind);
    }

    fn host(&mut self, word: &str) {
        let word = word.strip_prefix("ssh://").unwrap_or(word).trim_end_matches('/');
        self.flags.login =
            Some(if word.starts_with('<') && !word.contains('@') { Login::at(word) } else { login(word) });
    }

    fn jumps(&mut self, word: &str) {
        if !word.eq_ignore_ascii_case("none") {
            self.command.jumps = word.split(',').filter(|jump| !jump.is_empty()).map(login).collect();
        }
    }

    /// `ssh -W %h:%p user@bastion`, which is what `-J` does; perhaps with another one inside.
    fn proxy(&mut self, value: &str) {
        let (lines, _) = shell::commands(&value.replace("%%", "%"));
        let mut notes = Vec::new();
        let mut inner = CommandReader {
            line: self.line,
            notes: &mut notes,
            command: SshCommand::default(),
            flags: Flags::default(),
        };
        let arguments = lines.first().and_then(|line| inner.arguments(&line.words));
        inner.read_arguments(arguments.unwrap_or_default());
        let (command, flags) = (inner.command, inner.flags);
        let Some(mut login) = flags.login.filter(|_| flags.is_proxy && lines.len() == 1) else {
            return self.note(NoteKind::NotTakenOver { option: format!("-o ProxyCommand={value}") });
        };
        self.notes.extend(notes);
        self.flags.jump_identities.extend(command.identities);
        self.flags.jump_identities.extend(flags.jump_identities);
        complete(&mut login, flags.user, flags.port, flags.host_name);
        self.command.jumps = command.jumps.into_iter().chain([login]).collect();
    }

    /// `[bind:]port:host:port`, and `[bind:]port host:port` as in `ssh_config(5)`.
    fn forward(&mut self, direction: ForwardDirection, word: &str) {
        let flag = if direction == ForwardDirection::Local { "-L" } else { "-R" };
        let shown = || format!("{flag} {word}");
        if word.contains('/') && !is_placeholder(word) {
            return self.lose(NoteKind::Socket { forward: shown() });
        }
        let parts = parts(word);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (bind, port, host, target_port) = match parts.as_slice() {
            [port, host, target_port] => (LOOPBACK, *port, *host, *target_port),
            [bind, port, host, target_port] => (listen_host(bind), *port, *host, *target_port),
            [_] | [_, _] if direction == ForwardDirection::Remote => {
                return self.lose(NoteKind::Dynamic { forward: shown() });
            }
            _ => return self.lose(NoteKind::BadForward { forward: shown() }),
        };
        let is_port = |text: &str| is_placeholder(text) || text.parse::<u16>().is_ok_and(|port| port != 0);
        if host.is_empty() || !is_port(port) || !is_port(target_port) {
            return self.lose(NoteKind::BadForward { forward: shown() });
        }
        let address = |host: &str, port: &str| Address { host: host.to_owned(), port: port.to_owned() };
        let listen = address(bind, port);
        self.command.forwards.push(Forward { direction, listen, target: address(host, target_port) });
    }

    fn finish(&mut self) -> Option<SshCommand> {
        let Flags { login, user, port, host_name, has_lost_forward, jump_identities, .. } =
            std::mem::take(&mut self.flags);
        let mut command = std::mem::take(&mut self.command);
        if command.forwards.is_empty() {
            if !has_lost_forward {
                self.note(NoteKind::NoForward);
            }
            return None;
        }
        let Some(login) = login else {
            self.note(NoteKind::NoHost);
            return None;
        };
        command.login = login;
        complete(&mut command.login, user, port, host_name);
        for identity in jump_identities.into_iter().filter(|identity| !command.identities.contains(identity)) {
            self.note(NoteKind::NotTakenOver { option: format!("-i {identity}") });
        }
        for login in std::iter::once(&mut command.login).chain(&mut command.jumps) {
            if login.user.is_empty() {
                login.user.push_str("<user>");
            }
        }
        self.placeholders(&command);
        Some(command)
    }

    fn placeholders(&mut self, command: &SshCommand) {
        let logins = std::iter::once(&command.login).chain(&command.jumps);
        let of_logins = logins.flat_map(|login| [&login.user, &login.host, &login.port]);
        let of_forwards = command.forwards.iter().flat_map(|forward| {
            [&forward.listen.host, &forward.listen.port, &forward.target.host, &forward.target.port]
        });
        let files = command.identities.iter().chain(&command.certificate);
        let placeholders = of_logins.chain(of_forwards).chain(files).filter(|text| is_placeholder(text));
        for text in placeholders.cloned().collect::<Vec<_>>() {
            self.note(NoteKind::Placeholder { text });
        }
    }
}

impl Login {
    fn at(host: &str) -> Self {
        Self { user: String::new(), host: host.to_owned(), port: SSH_PORT.to_string() }
    }
}

/// What options say of an account, beside `user@host`.
fn complete(login: &mut Login, user: Option<String>, port: Option<String>, host_name: Option<String>) {
    if login.user.is_empty() {
        login.user = user.unwrap_or_default();
    }
    if let Some(port) = port {
        login.port = port;
    }
    if let Some(host) = host_name {
        login.host = host;
    }
}

/// `[user@]host[:port]`; a host in brackets may hold colons.
fn login(text: &str) -> Login {
    let (user, rest) = text.rsplit_once('@').unwrap_or(("", text));
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, after)) => (host, after.strip_prefix(':')),
        None if rest.matches(':').count() == 1 => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
        None => (rest, None),
    };
    Login { user: user.to_owned(), port: port.map_or_else(|| SSH_PORT.to_string(), str::to_owned), ..Login::at(host) }
}

/// A file's whole name. The folder in which a command was typed is not known.
fn file(name: &str) -> String {
    let below_home = ["$HOME/", "${HOME}/", "%d/"].into_iter().find_map(|home| name.strip_prefix(home));
    if let Some(rest) = below_home {
        return format!("~/{rest}");
    }
    if name.starts_with(['/', '~']) || is_placeholder(name) { name.to_owned() } else { format!("<directory>/{name}") }
}

/// `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn without_options<'w>(words: &'w [String], with_word: &str) -> &'w [String] {
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        let Some(options) = word.strip_prefix('-') else { break };
        rest = after;
        if options == "-" {
            break;
        }
        let mut letters = options.chars();
        let is_last_with_word = letters.next().is_some_and(|c| with_word.contains(c)) && letters.next().is_none();
        if is_last_with_word {
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    rest
}

/// Splits at colons and blanks outside of brackets, which go, and of placeholders, which stay.
fn parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut closing = None;
    for c in text.trim().chars() {
        let is_outside = closing.is_none();
        if is_outside && (c == ':' || (c.is_whitespace() && !part.is_empty())) {
            parts.push(std::mem::take(&mut part));
            continue;
        }
        let is_end = closing == Some(c);
        if is_end {
            closing = None;
        } else if is_outside {
            closing = closing_of(c);
        }
        let is_left_out = if is_outside { c == '[' || c.is_whitespace() } else { is_end && c == ']' };
        if !is_left_out {
            part.push(c);
        }
    }
    parts.push(part);
    parts
}

fn closing_of(opening: char) -> Option<char> {
    match opening {
        '[' => Some(']'),
        '<' => Some('>'),
        '{' => Some('}'),
        _ => None,
    }
}

/// As `ssh -L` and `ssh -R` mean it.
fn listen_host(bind: &str) -> &str {
    match bind {
        "" | "*" => "0.0.0.0",
        bind if is_loopback(bind) && !bind.contains(':') => LOOPBACK,
        bind => bind,
    }
}
