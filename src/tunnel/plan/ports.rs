//! Which port on the server's host is whose: chosen once, and kept, since workers are started with it.

use crate::data_dir::{DataDir, DataDirError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The first port for health checks, a worker's own (`--worker-port`).
pub const FIRST_HEALTH_PORT: u16 = 10150;

const FILE_NAME: &str = "ports.json";

/// The ports that workers have. A worker that is gone keeps its port for ever, so that no other one is asked in its
/// place; who wants it back takes the line out of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortBook {
    state_dir: PathBuf,
    remembered: BTreeMap<String, u16>,
    chosen: BTreeMap<String, u16>,
}

/// `ports.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ports {
    health_ports: BTreeMap<String, u16>,
}

/// The file with the ports cannot be used.
#[derive(Debug, Error)]
pub enum PortsError {
    /// It cannot be read.
    #[error("cannot read {path}: {detail}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        detail: String,
    },
    /// It holds something else.
    #[error(
        "{path} does not hold the ports of workers: {detail}; put it right, or move it away, and start workers that have a \
         health check with the ports that `gpustack tunnel plan` shows then"
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// It cannot be written.
    #[error("cannot write {path}: {detail}; `state_dir` must be a folder that this user may write to")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        detail: String,
    },
}

impl PortBook {
    /// What is remembered in a state directory; nothing when there is none yet.
    pub fn open(state_dir: &Path) -> Result<Self, PortsError> {
        let path = state_dir.join(FILE_NAME);
        let read = match DataDir::existing(state_dir) {
            Ok(folder) => folder.read(FILE_NAME),
            Err(DataDirError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        let text = read.map_err(|error| PortsError::Read { path: path.clone(), detail: cause(&error) })?;
        let content = |detail: String| PortsError::Content { path: path.clone(), detail };
        let ports: Ports = match text {
            Some(text) => serde_json::from_str(&text).map_err(|error| content(error.to_string()))?,
            None => Ports::default(),
        };
        let mut seen = BTreeSet::new();
        for (worker, port) in &ports.health_ports {
            if *port == 0 || !seen.insert(port) {
                return Err(content(format!("port {port} of {worker} is no port, or that of another one too")));
            }
        }
        Ok(Self { state_dir: state_dir.to_owned(), remembered: ports.health_ports, chosen: BTreeMap::new() })
    }

    /// Where they are remembered.
    pub fn path(&self) -> PathBuf {
        self.state_dir.join(FILE_NAME)
    }

    /// The port that was chosen for a worker before.
    pub fn remembered(&self, worker: &str) -> Option<u16> {
        self.remembered.get(worker).copied()
    }

    /// Whose port this is.
    pub fn holder(&self, port: u16) -> Option<&str> {
        let all = self.remembered.iter().chain(&self.chosen);
        all.filter(|(_, held)| **held == port).map(|(worker, _)| worker.as_str()).next()
    }

    /// Takes the lowest free port for a worker that has none; None when there is none.
    pub fn choose(&mut self, worker: &str, is_taken: impl Fn(u16) -> bool) -> Option<u16> {
        let held: BTreeSet<u16> = self.remembered.values().chain(self.chosen.values()).copied().collect();
        let port = (FIRST_HEALTH_PORT..=u16::MAX).find(|port| !held.contains(port) && !is_taken(*port))?;
        self.chosen.insert(worker.to_owned(), port);
        Some(port)
    }

    /// Writes down what was chosen. Blocks; writes nothing when nothing was.
    pub fn remember(&self) -> Result<(), PortsError> {
        if self.chosen.is_empty() {
            return Ok(());
        }
        let failed = |detail: String| PortsError::Write { path: self.path(), detail };
        let all = self.remembered.iter().chain(&self.chosen);
        let ports = Ports { health_ports: all.map(|(worker, port)| (worker.clone(), *port)).collect() };
        let text = serde_json::to_string_pretty(&ports).map_err(|error| failed(error.to_string()))?;
        let folder = DataDir::open(&self.state_dir).map_err(|error| failed(cause(&error)))?;
        folder.write(FILE_NAME, &format!("{text}\n")).map_err(|error| failed(cause(&error)))
    }
}

/// Without the hints, which name flags of `gpustack start`.
fn cause(error: &DataDirError) -> String {
    match error {
        DataDirError::Folder { source, .. }
        | DataDirError::Read { source, .. }
        | DataDirError::Write { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_kept_and_never_given_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let state_dir = folder.path().join("tunnels");
        let mut book = PortBook::open(&state_dir).unwrap();
        assert_eq!(book.choose("npu-2", |_| false), Some(10150));
        assert_eq!(book.choose("npu-1", |port| port == 10151), Some(10152));
        assert!(!state_dir.exists());
        book.remember().unwrap();
        let mut later = PortBook::open(&state_dir).unwrap();
        assert_eq!((later.remembered("npu-1"), later.holder(10150)), (Some(10152), Some("npu-2")));
        assert_eq!(later.choose("npu-3", |_| false), Some(10151));
    }

    #[test]
    fn nothing_is_written_when_nothing_was_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let book = PortBook::open(folder.path()).unwrap();
        book.remember().unwrap();
        assert!(!book.path().exists());
    }

    #[test]
    fn a_file_that_is_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "[]", r#"{"health_ports": {"a": 0}}"#, r#"{"health_ports": {"a": 1, "b": 1}}"#] {
            std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
            assert!(matches!(PortBook::open(folder.path()), Err(PortsError::Content { .. })), "{text}");
        }
    }
}
