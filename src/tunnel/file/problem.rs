//! What can be wrong with a `tunnels.yaml`: all of it, with lines, and what to write instead.

use super::yaml::{MAX_BYTES, Position};
use crate::tunnel::plan::PortsError;
use ssh::KeyFileError;
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Longer texts are none that somebody mistyped.
const SHOWN_CHARS: usize = 100;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub position: Position,
    /// What.
    pub fault: Fault,
}

impl Problem {
    /// A fault in its place.
    pub fn new(position: Position, fault: Fault) -> Self {
        Self { position, fault }
    }
}

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {path}: {detail}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        detail: String,
    },
    /// What it says is wrong.
    #[error(transparent)]
    Problems(#[from] FileProblems),
    /// The ports that were chosen before cannot be known.
    #[error(transparent)]
    Ports(#[from] PortsError),
}

/// Everything that is wrong with a file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct FileProblems {
    /// The file, as the user named it.
    pub path: PathBuf,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl FileProblems {
    /// Sorted, and each once: one bastion that is wrong makes many ways wrong.
    pub fn new(path: impl Into<PathBuf>, mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        Self { path: path.into(), problems }
    }
}

impl fmt::Display for FileProblems {
    /// A line for each, as compilers write them, so that editors jump there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Problem { position, fault }) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}:{}:{}: {fault}", self.path.display(), position.line, position.column)?;
        }
        Ok(())
    }
}

/// What is wrong. `key` is the whole path of a key, e.g. `workers.npu-1.ssh`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Fault {
    /// No YAML.
    #[error("this is no YAML: {detail}")]
    Syntax {
        /// The parser's words.
        detail: String,
    },
    /// Nobody writes so much.
    #[error("the file has {bytes} bytes; a file with tunnels has at most {MAX_BYTES}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Lists in lists in lists.
    #[error("this is nested deeper than anything in a file with tunnels")]
    TooDeep,
    /// `&name` or `*name`.
    #[error("anchors (`&`) and aliases (`*`) are not read; put what all hosts have in common under `ssh:` at the top")]
    Anchor,
    /// `!name`.
    #[error("tags (`!`) are not read; put text that begins with `!` into quotes")]
    Tag,
    /// After `---`.
    #[error("a second document begins here; a file holds one, so take the `---` out")]
    SecondDocument,
    /// A list or nothing as a key.
    #[error("a key must be a word")]
    KeyIsNoWord,
    /// Nothing in it.
    #[error("the file is empty; it needs `server:` and `workers:`, or `forwards:` (docs/tunnels.md)")]
    Empty,

    /// Not one of ours.
    #[error("unknown key `{key}`{}", suggestion(.nearest.as_deref(), .known))]
    UnknownKey {
        /// The key.
        key: String,
        /// The one that was probably meant.
        nearest: Option<String>,
        /// All that could stand there.
        known: Vec<&'static str>,
    },
    /// Twice.
    #[error("`{key}` stands here a second time; the first is in line {first}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The line of the first.
        first: usize,
    },
    /// A list for a word, or the like.
    #[error("`{key}` must be {expected}")]
    WrongType {
        /// The key.
        key: String,
        /// What.
        expected: &'static str,
    },
    /// Nobody has decided about an SSH server.
    #[error(
        "no file of known hosts has a key for {host}; compare and trust it with `gpustack tunnel trust --config` and this file"
    )]
    HostKeyUnknown {
        /// `host:port`.
        host: String,
    },
    /// A file of known hosts cannot be used.
    #[error("{detail}")]
    KnownHosts {
        /// What is wrong with it.
        detail: String,
    },
    /// `key:` and nothing more.
    #[error("`{key}` has no value; give it one, or take the line out")]
    NoValue {
        /// The key.
        key: String,
    },
    /// A value that cannot be meant.
    #[error("`{key}` is `{value}`; {rule}")]
    BadValue {
        /// The key.
        key: String,
        /// What stands there.
        value: String,
        /// What may stand there.
        rule: String,
    },
    /// `<address>`, `${VARIABLE}`.
    #[error("`{key}` is `{value}`, which stands for something else: write the real one in its place")]
    Placeholder {
        /// The key.
        key: String,
        /// What stands there.
        value: String,
    },
    /// A name with other characters than may be in a label.
    #[error("`{name}` cannot be a name here: use up to {max} letters, digits, `.`, `_` and `-`{hint}")]
    BadName {
        /// The name.
        name: String,
        /// How long it may be.
        max: usize,
        /// What else helps.
        hint: &'static str,
    },
    /// `server` or `bastion`.
    #[error("`{name}` means something else in this file; give this {what} another name")]
    ReservedName {
        /// The name.
        name: String,
        /// What has the name.
        what: &'static str,
    },
    /// A key that has to be there.
    #[error("{what} has no `{key}`: write {example}")]
    Missing {
        /// What lacks it.
        what: String,
        /// The key.
        key: &'static str,
        /// How to write it.
        example: &'static str,
    },
    /// Two keys of which one is enough.
    #[error("`{key}` and `{other}` do not go together: {rule}")]
    Conflict {
        /// One.
        key: String,
        /// The other.
        other: &'static str,
        /// What to do.
        rule: &'static str,
    },

    /// No such name.
    #[error("`{key}` names `{name}`, and there is no such {what}{}", did_you_mean(.nearest.as_deref()))]
    UnknownName {
        /// The key.
        key: String,
        /// The name.
        name: String,
        /// What it should be.
        what: &'static str,
        /// The one that was probably meant.
        nearest: Option<String>,
    },
    /// A bastion that is reached through itself.
    #[error("the way leads in a circle: {}; take one `via` out", .names.join(" → "))]
    Circle {
        /// The bastions, the first one again at the end.
        names: Vec<String>,
    },
    /// The same account on the same host.
    #[error("the way to `{end}` passes {hop} twice; take one of them out")]
    PassesTwice {
        /// The end.
        end: String,
        /// The account.
        hop: String,
    },
    /// A forward to the host on which it begins.
    #[error("`{name}` is this agent's own host, to which nothing has to be forwarded; name another one")]
    EndsHere {
        /// Its name.
        name: String,
    },
    /// Two workers of one name, of which the server takes one.
    #[error("the worker in line {first_line} is called `{name}` too; write the name that this one is started with")]
    SameWorkerName {
        /// The name.
        name: String,
        /// Where the other one stands.
        first_line: usize,
    },
    /// Two listeners.
    #[error("`{forward}` listens at {place}, where `{other}` (line {other_line}) listens already; {remedy}")]
    PortTaken {
        /// The forward.
        forward: String,
        /// At which port of which host.
        place: String,
        /// Who else.
        other: String,
        /// Where that stands.
        other_line: usize,
        /// What to write.
        remedy: &'static str,
    },
    /// The server's host cannot be logged in at.
    #[error(
        "health checks of `{worker}` come to a port of the server's host, where the agent has to log in: write `ssh: \
         user@host` under `server:`, or `health_check: false`; workers of this version need none"
    )]
    HealthCheckNeedsServer {
        /// The worker.
        worker: String,
    },
    /// Two ports that have to be one.
    #[error(
        "`{worker}` has `worker_port: {worker_port}` and `health_port: {health_port}`; the server asks at the port that the \
         worker was started with, so write the same, or leave one out"
    )]
    PortsDiffer {
        /// The worker.
        worker: String,
        /// One.
        worker_port: u16,
        /// The other.
        health_port: u16,
    },
    /// A port that another worker was started with.
    #[error("`{worker}` wants port {port}, which is remembered for `{other}` in {file}; choose another one")]
    PortRemembered {
        /// Who wants it.
        worker: String,
        /// The port.
        port: u16,
        /// Who has it.
        other: String,
        /// The file with the ports.
        file: String,
    },
    /// There are 55,386 of them.
    #[error("no port from 10150 to 65535 is left for `{worker}`; take workers that are gone out of {file}")]
    NoPortLeft {
        /// Who wants one.
        worker: String,
        /// The file with the ports.
        file: String,
    },
    /// Nothing would be done.
    #[error("nothing is to be forwarded: add a worker under `workers:`, or something under `forwards:`")]
    Nothing,

    /// A key or certificate that cannot be used.
    #[error("`{key}`: {detail}")]
    Key {
        /// The key of the file.
        key: String,
        /// What is wrong with the file, and what to do.
        detail: String,
    },
    /// Nothing to log in with.
    #[error(
        "`{key}` has no key to log in with: write `identity: /path/to/key` under `ssh:`, or `agent: true` for ssh-agent's"
    )]
    NoIdentity {
        /// Who.
        key: String,
    },
    /// `agent: true` without an agent.
    #[error("`{key}` is true, and SSH_AUTH_SOCK is not set: start ssh-agent, or write `identity: /path/to/key`")]
    NoAgent {
        /// The key.
        key: String,
    },
    /// The join token cannot be used.
    #[error("`{key}`: {detail}")]
    TokenFile {
        /// The key.
        key: String,
        /// What is wrong, and what to do.
        detail: String,
    },
}

impl Fault {
    /// A key file that cannot be used. One that belongs to somebody else says whom.
    pub fn key_file(key: &str, error: &KeyFileError, owner: Option<String>) -> Self {
        let owner = owner.map(|owner| format!("; {owner}")).unwrap_or_default();
        Self::Key { key: key.to_owned(), detail: format!("{error}{owner}") }
    }
}

fn suggestion(nearest: Option<&str>, known: &[&str]) -> String {
    match nearest {
        Some(nearest) => format!("; is `{nearest}` meant?"),
        None => format!("; there are: {}", known.join(", ")),
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; is `{nearest}` meant?")).unwrap_or_default()
}

/// What stands in a file, as an error repeats it: no more than fits into a line, and nothing that moves a cursor.
pub fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).map(|c| if c.is_control() { '�' } else { c }).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// The one of `known` that `name` was probably meant to be.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if name.chars().nth(SHOWN_CHARS).is_some() {
        return None;
    }
    let spelled = name.replace('-', "_").to_ascii_lowercase();
    let distances = known.into_iter().map(|known| {
        let other = known.replace('-', "_").to_ascii_lowercase();
        (strsim::damerau_levenshtein(&spelled, &other), known)
    });
    let limit = (name.chars().count() / 3).clamp(1, 3);
    distances.min().filter(|(distance, _)| *distance <= limit).map(|(_, known)| known.to_owned())
}
