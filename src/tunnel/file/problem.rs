//! What can be wrong with a `tunnels.yaml`: all of it, with lines, and what to write instead. `words` says it.

use super::syntax::Slip;
use super::words;
use super::yaml::Position;
use crate::config::TokenError;
use crate::tunnel::plan::PortsError;
use api::ServerUrlError;
use app::i18n::Language;
use app::i18n::system_words::SystemCause;
use ssh::{KeyFileError, KnownHostsError};
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

/// Why a file cannot be used. Shows itself in English.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{}", words::unreadable(path, cause, Language::En))]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: SystemCause,
    },
    /// What it says is wrong.
    #[error(transparent)]
    Problems(#[from] FileProblems),
    /// The ports that were chosen before cannot be known.
    #[error(transparent)]
    Ports(#[from] PortsError),
}

impl FileError {
    /// In a language.
    pub fn text(&self, language: Language) -> String {
        match self {
            Self::Read { path, cause } => words::unreadable(path, cause, language),
            Self::Problems(problems) => problems.text(language),
            Self::Ports(error) => error.text(language),
        }
    }
}

/// Everything that is wrong with a file, in the order of its lines. Shows itself in English.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct FileProblems {
    /// The file, as the user named it.
    pub path: PathBuf,
    /// At least one.
    pub problems: Vec<Problem>,
    /// The ports that were chosen before cannot be known either.
    pub unknown_ports: Option<PortsError>,
}

impl FileProblems {
    /// Sorted, and each once: one bastion that is wrong makes many ways wrong. What only a misspelt key makes missing is
    /// left out.
    pub fn new(path: impl Into<PathBuf>, mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        let misspelt: Vec<(String, Option<String>)> =
            problems.iter().filter_map(|problem| problem.fault.misspelt()).collect();
        problems
            .retain(|problem| !misspelt.iter().any(|(table, meant)| problem.fault.follows(table, meant.as_deref())));
        Self { path: path.into(), problems, unknown_ports: None }
    }

    /// A line for each, as compilers write them, so that editors jump there.
    pub fn text(&self, language: Language) -> String {
        let line = |Problem { position, fault }: &Problem| {
            let Position { line, column } = position;
            format!("{}:{line}:{column}: {}", self.path.display(), words::fault(fault, language))
        };
        let lines = self.problems.iter().map(line);
        let ports = self.unknown_ports.iter().map(|error| error.text(language));
        lines.chain(ports).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for FileProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Language::En))
    }
}

/// What is wrong. `key` is the whole path of a key, e.g. `workers.npu-1.ssh`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// No YAML.
    Syntax {
        /// What was probably meant, or what its reader says.
        slip: Slip,
    },
    /// Nobody writes so much.
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Lists in lists in lists.
    TooDeep,
    /// `&name` or `*name`.
    Anchor,
    /// `!name`.
    Tag,
    /// After `---`.
    SecondDocument,
    /// A list or nothing as a key.
    KeyIsNoWord,
    /// Nothing in it.
    Empty,

    /// Not one of ours.
    UnknownKey {
        /// The table in which it stands; empty for the whole file.
        table: String,
        /// The key.
        key: String,
        /// The one that was probably meant.
        nearest: Option<String>,
        /// All that could stand there.
        known: Vec<&'static str>,
    },
    /// `key:value`, or with the colon of Chinese texts.
    NoSpace {
        /// The table in which it stands; empty for the whole file.
        table: String,
        /// The key.
        key: String,
        /// What was meant to be its value.
        value: String,
        /// Whether the colon is `：`.
        is_wide: bool,
    },
    /// `server.address`.
    DottedKey {
        /// The key.
        key: String,
        /// Its first part, which is a key.
        table: String,
        /// The rest.
        inner: String,
    },
    /// Twice.
    DuplicateKey {
        /// The key.
        key: String,
        /// The line of the first.
        first: usize,
    },
    /// A list for a word, or the like.
    WrongType {
        /// The key; empty for the whole file.
        key: String,
        /// What.
        expected: Expected,
    },
    /// Nobody has decided about an SSH server.
    HostKeyUnknown {
        /// `host:port`.
        host: String,
    },
    /// A file of known hosts cannot be used.
    KnownHosts {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: SystemCause,
    },
    /// `key:` and nothing more.
    NoValue {
        /// The key.
        key: String,
    },
    /// A value that cannot be meant.
    BadValue {
        /// The key.
        key: String,
        /// What stands there.
        value: String,
        /// What may stand there.
        rule: Rule,
    },
    /// `<address>`, `${VARIABLE}`.
    Placeholder {
        /// The key.
        key: String,
        /// What stands there.
        value: String,
    },
    /// A name with other characters than may be in a label.
    BadName {
        /// The name.
        name: String,
        /// How long it may be.
        max: usize,
        /// Whose name it is.
        of: Named,
    },
    /// `server` or `bastion`.
    ReservedName {
        /// The name.
        name: String,
        /// What has the name.
        of: Named,
    },
    /// A key that has to be there.
    Missing {
        /// The table that lacks it; empty for the whole file.
        table: String,
        /// What it lacks.
        lack: Lack,
    },
    /// Two keys of which one is enough.
    Conflict {
        /// One of them.
        key: String,
        /// The other, and why.
        clash: Clash,
    },
    /// A key that means something only beside another one.
    NoEffect {
        /// The key.
        key: String,
        /// What has to stand beside it.
        needs: &'static str,
    },

    /// No such name.
    UnknownName {
        /// The key.
        key: String,
        /// The name.
        name: String,
        /// Whose name it should be.
        of: Named,
        /// The one that was probably meant.
        nearest: Option<String>,
    },
    /// A word that is neither a name of this file nor says who logs in.
    NoSuchEnd {
        /// The key.
        key: String,
        /// The word.
        name: String,
        /// The name that was probably meant.
        nearest: Option<String>,
    },
    /// A bastion that is reached through itself.
    Circle {
        /// The bastions, the first one again at the end.
        names: Vec<String>,
    },
    /// The same account on the same host.
    PassesTwice {
        /// The end.
        end: String,
        /// The account.
        hop: String,
    },
    /// A forward to the host on which it begins.
    EndsHere {
        /// Its name.
        name: String,
    },
    /// Two workers of one name, of which the server takes one.
    SameWorkerName {
        /// The name.
        name: String,
        /// Where the other one stands.
        first_line: usize,
    },
    /// Two listeners.
    PortTaken(Box<PortTaken>),
    /// Two forwards of one name, of which the agent makes one by itself.
    ForwardNameTaken {
        /// The name.
        id: String,
        /// Where the other one, or what it is for, stands.
        first: usize,
    },
    /// The server's host cannot be logged in at.
    HealthCheckNeedsServer {
        /// The worker.
        worker: String,
    },
    /// Two ports that have to be one.
    PortsDiffer {
        /// The worker.
        worker: String,
        /// One.
        worker_port: u16,
        /// The other.
        health_port: u16,
    },
    /// A port that another worker was started with.
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
    NoPortLeft {
        /// Who wants one.
        worker: String,
        /// The file with the ports.
        file: String,
    },
    /// Nothing would be done.
    Nothing,

    /// A file where the folder for the state should be.
    StateDirIsFile {
        /// The file.
        path: PathBuf,
    },
    /// No socket fits into it.
    StateDirTooLong {
        /// How long its path is.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// A key or certificate that cannot be used.
    Key {
        /// The key of the file.
        key: String,
        /// What is wrong with the file.
        fault: KeyFault,
    },
    /// Nothing to log in with.
    NoIdentity {
        /// Who.
        key: String,
    },
    /// `agent: true` without an agent.
    NoAgent {
        /// The key.
        key: String,
    },
    /// The join token cannot be used.
    TokenFile {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: TokenFault,
    },
}

/// Two forwards that would listen at one port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortTaken {
    /// The forward.
    pub forward: String,
    /// At which port.
    pub listen: String,
    /// Of which host; None for this one.
    pub host: Option<String>,
    /// Who else.
    pub other: String,
    /// Where that stands.
    pub other_line: usize,
    /// The key that moves it to another port; None when that is the forward's own.
    pub remedy: Option<&'static str>,
}

/// What should stand at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expected {
    /// A table of `key: value` lines.
    Table,
    /// The table of what all hosts have in common, `ssh` at the top.
    Common,
    /// One value.
    OneValue,
}

/// What may stand in place of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// `true` or `false`.
    Switch,
    /// `user@host:port`.
    Account,
    /// The same, and nothing around it.
    BareAccount,
    /// Brackets around an address of IPv6.
    Brackets,
    /// The name of an account.
    User,
    /// Who logs in.
    WhoLogsIn,
    /// An address that is no URL.
    NoUrl,
    /// `host:port`.
    Address,
    /// An address to connect to.
    NoWildcard,
    /// `0.0.0.0` in place of `*`.
    NoStar,
    /// A number of a port.
    Port,
    /// A path without control characters.
    PlainPath,
    /// A whole path, as there is no home.
    NoHome,
    /// A whole path.
    WholePath,
    /// A time between signs of life.
    KeepAlive,
    /// A count of them.
    Unanswered,
    /// A server's URL.
    ServerUrl(ServerUrlError),
    /// A worker's name, with at most so many characters.
    WorkerName(usize),
}

/// Whose a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// The agent's, as `id` says it.
    Agent,
    /// The agent's, which is the host's.
    AgentByHost,
    /// The host of `here`.
    Here,
    /// A bastion's.
    Bastion,
    /// A worker's.
    Worker,
    /// A forward's.
    Forward,
}

/// A key that has to be there, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// The server, for workers.
    Server,
    /// The server, to report to.
    ReportServer,
    /// How the server is reached from a worker's host.
    WayToServer,
    /// How to log in at the server, for a forward that ends there.
    EndAtServer,
    /// `server.address`.
    ServerAddress,
    /// How to log in at a host.
    Login,
    /// Where a forward ends.
    End,
    /// Where its connections go.
    Target,
    /// Where it listens.
    Listen,
}

impl Lack {
    /// The key.
    pub fn key(self) -> &'static str {
        match self {
            Self::Server | Self::ReportServer => "server",
            Self::WayToServer | Self::EndAtServer | Self::Login | Self::End => "ssh",
            Self::ServerAddress => "address",
            Self::Target => "target",
            Self::Listen => "local",
        }
    }
}

/// Why two keys do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clash {
    /// A certificate is for one key.
    CertificateOfOneKey,
    /// The user is named twice.
    UserTwice,
    /// A forward listens at one end.
    BothEnds,
    /// `ssh` names an entry that says all this.
    NamedEnd,
    /// The server is reached without a forward.
    NoForwardNeeded,
}

impl Clash {
    /// The other key.
    pub fn other(self) -> &'static str {
        match self {
            Self::CertificateOfOneKey => "identity",
            Self::UserTwice | Self::NamedEnd => "ssh",
            Self::BothEnds => "local",
            Self::NoForwardNeeded => "address",
        }
    }
}

/// What is wrong with a file of a key or its certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyFault {
    /// The public half of the key.
    PublicHalf {
        /// The file.
        path: PathBuf,
        /// The private half.
        private: PathBuf,
    },
    /// Nobody would type its passphrase.
    Encrypted {
        /// The file.
        path: PathBuf,
    },
    /// It is a folder.
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// It cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: SystemCause,
        /// Whose it is, and who this is, when these are two.
        owner: Option<(u32, u32)>,
    },
    /// Others may read it.
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It holds something else.
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// It holds something else.
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The certificate is for another key.
    OtherKey {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
}

impl KeyFault {
    /// That of an error. One that belongs to somebody else says whom.
    pub fn of(error: KeyFileError, owner: Option<(u32, u32)>) -> Self {
        match error {
            KeyFileError::Read { path, source } if source.kind() == std::io::ErrorKind::IsADirectory => {
                Self::Folder { path }
            }
            KeyFileError::Read { path, source } | KeyFileError::Write { path, source } => {
                Self::Unreadable { path, cause: SystemCause::of(&source), owner }
            }
            KeyFileError::NotPrivate { path, mode } => Self::Open { path, mode },
            KeyFileError::NoPrivateKey { path } => Self::NoKey { path },
            KeyFileError::NoCertificate { path } => Self::NoCertificate { path },
            KeyFileError::PassphraseNeeded { path } | KeyFileError::WrongPassphrase { path } => {
                Self::Encrypted { path }
            }
            KeyFileError::OtherKey { certificate, key } => Self::OtherKey { certificate, key },
        }
    }
}

/// What is wrong with the file of the join token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenFault {
    /// It cannot be read.
    Unreadable {
        /// Why not.
        cause: SystemCause,
    },
    /// Everybody may read it.
    Open {
        /// Its permission bits.
        mode: u32,
    },
    /// It holds something else.
    Content(TokenError),
}

impl Fault {
    /// A file of known hosts that cannot be used.
    pub fn known_hosts(error: &KnownHostsError, own: PathBuf) -> Self {
        match error {
            KnownHostsError::Read { path, source } | KnownHostsError::Write { path, source } => {
                Self::KnownHosts { path: path.clone(), cause: SystemCause::of(source) }
            }
            error => Self::KnownHosts { path: own, cause: SystemCause::Other(error.to_string()) },
        }
    }

    /// The table of a misspelt key (empty for the whole file), and the key that was probably meant.
    fn misspelt(&self) -> Option<(String, Option<String>)> {
        match self {
            Self::UnknownKey { table, nearest, .. } => Some((table.clone(), nearest.clone())),
            Self::DottedKey { table, .. } => Some((String::new(), Some(table.clone()))),
            Self::NoSpace { table, key, .. } => Some((table.clone(), Some(key.clone()))),
            _ => None,
        }
    }

    /// Whether this is only so because of a misspelt key.
    fn follows(&self, table: &str, meant: Option<&str>) -> bool {
        match self {
            Self::Nothing => table.is_empty(),
            Self::Missing { table: lacking, lack } => lacking == table && meant == Some(lack.key()),
            Self::NoEffect { key, needs } => {
                let is_beside = key.rsplit_once('.').is_some_and(|(lacking, _)| lacking == table);
                is_beside && meant.is_some_and(|meant| needs.split(':').next() == Some(meant))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words::fault(self, Language::En))
    }
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
