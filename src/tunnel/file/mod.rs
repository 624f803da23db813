//! `tunnels.yaml`: read and checked as a whole before anything is started. `docs/tunnels.md` describes it.

mod check;
mod fields;
mod problem;
mod read;
mod surroundings;
mod syntax;
mod values;
mod words;
mod yaml;

pub(crate) use fields::is_placeholder;
pub(crate) use problem::nearest;
pub use problem::{Clash, Fault, FileError, FileProblems, Lack, Named, PortTaken, Problem};
pub use surroundings::Surroundings;
pub use values::{LOOPBACK, SSH_PORT, is_loopback, is_wildcard, port};
pub use yaml::{Placed, Position};

use crate::tunnel::plan::{self, AgentName, Planned, PortBook};
use app::i18n::system_words::SystemCause;
use ssh::{Endpoint, Identity, Tuning};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a `tunnels.yaml` says, with lines for what may turn out wrong when it is put together.
#[derive(Clone, Debug)]
pub struct TunnelsFile {
    /// `id`; None when it cannot be one.
    pub id: Option<AgentName>,
    /// `here`.
    pub here: Placed<Here>,
    /// `state_dir`.
    pub state_dir: Placed<PathBuf>,
    /// `report`.
    pub is_reporting: bool,
    /// `server_url`.
    pub server_url: Option<String>,
    /// `token_file`.
    pub token_file: Option<Placed<PathBuf>>,
    /// `ssh.known_hosts`.
    pub known_hosts: Vec<PathBuf>,
    /// `ssh.keep_alive` and its like.
    pub tuning: Tuning,
    /// `server`; None when there is none.
    pub server: Option<ServerEntry>,
    /// `bastions`.
    pub bastions: Vec<BastionEntry>,
    /// `workers`.
    pub workers: Vec<WorkerEntry>,
    /// `forwards`.
    pub forwards: Vec<ForwardEntry>,
    /// The files with keys and certificates that the file names.
    pub key_files: Vec<KeyFile>,
    /// Every `via`, also of hosts that could not be read.
    pub vias: Vec<Via>,
}

impl TunnelsFile {
    /// The SSH servers, each with the name that the file has for it.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, &Host)> {
        let server = self.server.iter().filter_map(|server| Some((Here::SERVER, server.host.as_ref()?)));
        let bastions =
            self.bastions.iter().filter_map(|bastion| Some((bastion.name.value.as_str(), bastion.host.as_ref()?)));
        let workers = self.workers.iter().filter_map(|worker| Some((worker.key.value.as_str(), worker.host.as_ref()?)));
        let forwards = self.forwards.iter().filter_map(|forward| match &forward.end {
            Some(End::Host(host)) => Some((forward.name.value.as_str(), host)),
            Some(End::Named(_)) | None => None,
        });
        server.chain(bastions).chain(workers).chain(forwards)
    }
}

/// A `via`.
#[derive(Clone, Debug)]
pub struct Via {
    /// Its key in the file.
    pub key: String,
    /// The bastions that it names.
    pub names: Vec<Placed<String>>,
}

/// Where the agent runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Here {
    /// On a bastion.
    Bastion,
    /// On the server's host.
    Server,
    /// On the host of the worker with this key.
    Worker(String),
}

/// An SSH server, and how to log in there. What could not be read is None, and has been told.
#[derive(Clone, Debug)]
pub struct Host {
    /// Who logs in.
    pub user: String,
    /// Where.
    pub server: Endpoint,
    /// With what.
    pub identities: Vec<Identity>,
    /// The bastions on the way, nearest first.
    pub via: Vec<Placed<String>>,
    /// Where that stands.
    pub position: Position,
}

/// `server`.
#[derive(Clone, Debug)]
pub struct ServerEntry {
    /// `server.address`.
    pub address: Option<Placed<Endpoint>>,
    /// `server.ssh`; None when there is none.
    pub host: Option<Host>,
    /// `server.via`.
    pub via: Vec<Placed<String>>,
    /// `server.local_port`.
    pub local_port: Option<u16>,
    /// Whether `ssh` is there and could not be read.
    pub is_host_broken: bool,
    /// Where it stands.
    pub position: Position,
}

/// An entry of `bastions`.
#[derive(Clone, Debug)]
pub struct BastionEntry {
    /// Its key.
    pub name: Placed<String>,
    /// How to log in.
    pub host: Option<Host>,
}

/// An entry of `workers`.
#[derive(Clone, Debug)]
pub struct WorkerEntry {
    /// Its key, which ids of forwards begin with.
    pub key: Placed<String>,
    /// The worker's name.
    pub name: String,
    /// How to log in. None as well for the worker on this host, where nobody has to.
    pub host: Option<Host>,
    /// `server_port`.
    pub server_port: Option<Placed<u16>>,
    /// `health_check`.
    pub has_health_check: bool,
    /// `worker_port`.
    pub worker_port: Option<Placed<u16>>,
    /// `health_port`.
    pub health_port: Option<Placed<u16>>,
}

/// An entry of `forwards`.
#[derive(Clone, Debug)]
pub struct ForwardEntry {
    /// Its key and id.
    pub name: Placed<String>,
    /// `local` or `remote`.
    pub listen: Option<Placed<Listen>>,
    /// `target`.
    pub target: Option<Endpoint>,
    /// `ssh`.
    pub end: Option<End>,
    /// `workers`.
    pub workers: Vec<Placed<String>>,
}

/// Where a forward listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On this host.
    Local(Endpoint),
    /// On the SSH server.
    Remote(Endpoint),
}

/// The SSH server of a forward.
#[derive(Clone, Debug)]
pub enum End {
    /// The bastion or worker with this key, or `server`.
    Named(Placed<String>),
    /// One that is described in place.
    Host(Host),
}

/// A file with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// The key of the `tunnels.yaml` that names it.
    pub key: String,
    /// Where that stands.
    pub position: Position,
    /// The file.
    pub path: PathBuf,
    /// The file with its certificate, where one is named.
    pub certificate: Option<PathBuf>,
}

/// Reads a file, checks it and the files that it names, and makes the plan that it asks for. Blocks.
///
/// Nothing is written; who runs the plan calls [`PortBook::remember`] first.
pub fn load(path: &Path, surroundings: &Surroundings) -> Result<Planned, FileError> {
    load_all(path, surroundings).map(|(_, planned)| planned)
}

/// Like [`load`], for whoever is about to connect: an SSH server of which no key is known is wrong too.
pub fn load_to_run(path: &Path, surroundings: &Surroundings) -> Result<Planned, FileError> {
    let (file, planned) = load_all(path, surroundings)?;
    let problems = check::host_keys(&file, &planned.plan);
    if problems.is_empty() { Ok(planned) } else { Err(FileProblems::new(path, problems).into()) }
}

fn load_all(path: &Path, surroundings: &Surroundings) -> Result<(TunnelsFile, Planned), FileError> {
    let text = read_text(path)?;
    let ReadFile { file, mut problems } = read(&text, surroundings);
    let Some(file) = file else { return Err(FileProblems::new(path, problems).into()) };
    // what is wrong with the file besides is told too; with ports that are not known nothing is planned
    let bad_state_dir = check::state_dir(&file.state_dir);
    let state_dir = &file.state_dir.value;
    let (ports, unknown_ports) = match PortBook::open(state_dir) {
        Ok(ports) => (ports, None),
        // that is told already
        Err(_) if bad_state_dir.is_some() => (PortBook::empty(state_dir), None),
        Err(error) => (PortBook::empty(state_dir), Some(error)),
    };
    problems.extend(bad_state_dir);
    let made = plan::make(&file, ports);
    problems.extend(check::files(&file, &made.identities));
    let planned = made.planned.map_err(|further| problems.extend(further)).ok();
    if !problems.is_empty() {
        return Err(FileProblems { unknown_ports, ..FileProblems::new(path, problems) }.into());
    }
    match (planned, unknown_ports) {
        (_, Some(error)) => Err(error.into()),
        (Some(planned), None) => Ok((file, planned)),
        // a plan that is not there has problems
        (None, None) => Err(FileProblems::new(path, problems).into()),
    }
}

/// What could be read of a text, and all that is wrong with it.
#[derive(Debug)]
pub struct ReadFile {
    /// Without what could not be read; None when nothing could.
    pub file: Option<TunnelsFile>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// Reads a text. Looks at no other file.
pub fn read(text: &str, surroundings: &Surroundings) -> ReadFile {
    match yaml::parse(text) {
        Ok(Some(root)) => read::file(&root, surroundings),
        Ok(None) => nothing(Problem::new(Position { line: 1, column: 1 }, Fault::Empty)),
        Err(problem) => nothing(problem),
    }
}

fn nothing(problem: Problem) -> ReadFile {
    ReadFile { file: None, problems: vec![problem] }
}

fn read_text(path: &Path) -> Result<String, FileError> {
    let failed = |error: std::io::Error| FileError::Read { path: path.to_owned(), cause: SystemCause::of(&error) };
    let file = File::open(path).map_err(failed)?;
    let mut text = String::new();
    // one byte more than allowed, so that the reader sees that it is too large
    let limit = u64::try_from(yaml::MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
