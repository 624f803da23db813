//! `gpustack tunnel import`: from `ssh` commands to a `tunnels.yaml` that makes the same forwards.

mod command;
mod options;
mod recognise;
mod shell;
mod write;

pub use write::Comments;

use command::SshCommand;
use ssh::{Endpoint, Tuning};

/// A `tunnels.yaml`, and what whoever uses it should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The file; None when there was no forward in what was read.
    pub yaml: Option<String>,
    /// In the order of the lines.
    pub notes: Vec<ImportNote>,
}

/// What whoever imports should know about a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportNote {
    /// The line, from 1.
    pub line: usize,
    /// What about it.
    pub kind: NoteKind,
}

/// What is to be known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// No `ssh` command; left out.
    NotSsh {
        /// Its first word.
        program: String,
    },
    /// A comment in which a command stands; left out.
    CommandInComment,
    /// The text ends inside quotes; what came before is read.
    UnclosedQuote,
    /// An `ssh` command without a forward; left out.
    NoForward,
    /// A forward that names no SSH server; left out.
    NoHost,
    /// `-D` and its like: SOCKS; left out.
    Dynamic {
        /// As it was written.
        forward: String,
    },
    /// A forward of a Unix socket; left out.
    Socket {
        /// As it was written.
        forward: String,
    },
    /// A forward that nobody can read; left out.
    BadForward {
        /// As it was written.
        forward: String,
    },
    /// A text that stands for something else; kept, and to be replaced.
    Placeholder {
        /// As it was written.
        text: String,
    },
    /// An option without a counterpart; left out.
    NotTakenOver {
        /// As it was written.
        option: String,
    },
    /// `-g`: the forward listens on the loopback interface in spite of it.
    OpenToNetwork,
    /// `-C`: of one command, and now of all.
    CompressesAll,
    /// Signs of life are asked for less often than by default.
    SlowKeepAlive {
        /// How often they were, in seconds.
        interval_s: u64,
        /// How many could fail to come.
        unanswered: u32,
    },
    /// `StrictHostKeyChecking=no`: keys are checked in spite of it.
    HostKeysAreChecked,
    /// `sshpass`: there are no passwords.
    Password,
    /// A forward of a worker's port to the server, in a way that no health check goes.
    HealthCheckUnclear {
        /// The port.
        port: u16,
    },
    /// A worker whose name is not known.
    WorkerNamed {
        /// The name that it got.
        name: String,
    },
}

impl NoteKind {
    /// Whether a forward, or what could hold one, was left out.
    pub fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::UnclosedQuote | Self::NoHost | Self::Dynamic { .. } | Self::Socket { .. } | Self::BadForward { .. }
        )
    }
}

/// Reads commands, one a line or several with `;` and `&&`.
pub fn import(text: &str, comments: &Comments) -> Imported {
    let (lines, mut notes) = shell::commands(text);
    let commands: Vec<SshCommand> = lines.iter().filter_map(|line| command::read(line, &mut notes)).collect();
    notes.extend(of_all(&commands));
    let recognised = recognise::recognise(&commands, &mut notes);
    notes.sort();
    notes.dedup();
    let yaml = (!recognised.is_empty()).then(|| write::yaml(&recognised, &commands, comments));
    Imported { yaml, notes }
}

/// What a command says of itself and is taken over for all; told once, at the first.
fn of_all(commands: &[SshCommand]) -> Vec<ImportNote> {
    let compressing = commands.iter().find(|command| command.is_compressing);
    let compresses = compressing.map(|command| ImportNote { line: command.line, kind: NoteKind::CompressesAll });
    let slow = commands.iter().find_map(|command| {
        let (interval_s, unanswered) = (command.keep_alive_s?, command.unanswered.unwrap_or(1));
        let longest_silence_s = interval_s.saturating_mul(u64::from(unanswered).saturating_add(1));
        let is_slow = longest_silence_s > Tuning::default().longest_silence().as_secs();
        let kind = NoteKind::SlowKeepAlive { interval_s, unanswered };
        is_slow.then_some(ImportNote { line: command.line, kind })
    });
    compresses.into_iter().chain(slow).collect()
}

/// `host:port`, of which both can be placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: String,
}

impl Address {
    fn text(&self) -> String {
        match self.port.parse() {
            Ok(port) => Endpoint::new(self.host.clone(), port).to_string(),
            Err(_) => format!("{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests;
