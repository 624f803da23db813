//! Which port on the server's host is whose: chosen once, and kept, since workers are started with it.

use crate::data_dir::{DataDir, DataDirError};
use app::i18n::Language;
use app::i18n::system_words::SystemCause;
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

/// The file with the ports cannot be used. Shows itself in English.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.text(Language::En))]
pub enum PortsError {
    /// It cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: SystemCause,
    },
    /// It holds something else.
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: PortsFault,
    },
    /// It cannot be written.
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: SystemCause,
    },
}

/// What a file with ports should not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortsFault {
    /// Nothing.
    Empty,
    /// No JSON, or other JSON, from this line on.
    Form {
        /// The line.
        line: usize,
        /// The reader's words.
        said: String,
    },
    /// Port 0.
    NoPort {
        /// Whose it is.
        worker: String,
    },
    /// A port of two workers.
    Twice {
        /// The port.
        port: u16,
        /// The second worker.
        worker: String,
    },
}

impl PortsError {
    /// In a language.
    pub fn text(&self, language: Language) -> String {
        match (self, language) {
            (Self::Read { path, cause }, Language::En) => {
                format!("cannot read {}: {}", path.display(), cause.words(language))
            }
            (Self::Read { path, cause }, Language::Zh) => {
                format!("无法读取 {}：{}", path.display(), cause.words(language))
            }
            (Self::Content { path, fault }, Language::En) => format!(
                "{} does not hold the ports of workers: {}. No other ports are given in their place. Put it right; or write \
                 the ports that workers were started with as `health_port:` into tunnels.yaml and remove it; or remove it \
                 alone: then ports are given anew, and each worker with a health check has to be started again with those \
                 that `gpustack tunnel plan` shows",
                path.display(),
                fault.english()
            ),
            (Self::Content { path, fault }, Language::Zh) => format!(
                "{} 中不是工作节点的端口：{}。代理不会另行分配端口。请修复该文件；或把各工作节点启动时使用的端口以 \
                 `health_port:` 写入 tunnels.yaml 后删除它；或直接删除它：此后端口将重新分配，有健康检查的工作节点须按 \
                 `gpustack tunnel plan` 显示的端口重新启动",
                path.display(),
                fault.chinese()
            ),
            (Self::Write { path, cause }, Language::En) => format!(
                "cannot write {}: {}; `state_dir` must be a folder that this user may write to",
                path.display(),
                cause.words(language)
            ),
            (Self::Write { path, cause }, Language::Zh) => {
                format!("无法写入 {}：{}；`state_dir` 必须是当前用户可写的目录", path.display(), cause.words(language))
            }
        }
    }
}

impl PortsFault {
    fn of(error: &serde_json::Error) -> Self {
        // its own words end with line and column
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default().to_owned();
        Self::Form { line: error.line(), said }
    }

    fn english(&self) -> String {
        match self {
            Self::Empty => "it is empty".to_owned(),
            Self::Form { line, said } => format!("line {line} is not as it should be (“{said}”)"),
            Self::NoPort { worker } => format!("`{worker}` has port 0"),
            Self::Twice { port, worker } => format!("`{worker}` has port {port}, which another worker has too"),
        }
    }

    fn chinese(&self) -> String {
        match self {
            Self::Empty => "文件是空的".to_owned(),
            Self::Form { line, said } => format!("第 {line} 行的格式不正确（解析器提示：“{said}”）"),
            Self::NoPort { worker } => format!("`{worker}` 的端口为 0"),
            Self::Twice { port, worker } => format!("`{worker}` 的端口 {port} 也属于另一个工作节点"),
        }
    }
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
        let text = read.map_err(|error| PortsError::Read { path: path.clone(), cause: cause(&error) })?;
        let content = |fault| PortsError::Content { path: path.clone(), fault };
        let ports: Ports = match text {
            Some(text) if text.trim().is_empty() => return Err(content(PortsFault::Empty)),
            Some(text) => serde_json::from_str(&text).map_err(|error| content(PortsFault::of(&error)))?,
            None => Ports::default(),
        };
        let mut seen = BTreeSet::new();
        for (worker, port) in &ports.health_ports {
            if *port == 0 {
                return Err(content(PortsFault::NoPort { worker: worker.clone() }));
            }
            if !seen.insert(port) {
                return Err(content(PortsFault::Twice { port: *port, worker: worker.clone() }));
            }
        }
        Ok(Self { state_dir: state_dir.to_owned(), remembered: ports.health_ports, chosen: BTreeMap::new() })
    }

    /// As if no port had been chosen before.
    pub fn empty(state_dir: &Path) -> Self {
        Self { state_dir: state_dir.to_owned(), remembered: BTreeMap::new(), chosen: BTreeMap::new() }
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
        let failed = |cause| PortsError::Write { path: self.path(), cause };
        let all = self.remembered.iter().chain(&self.chosen);
        let ports = Ports { health_ports: all.map(|(worker, port)| (worker.clone(), *port)).collect() };
        let text =
            serde_json::to_string_pretty(&ports).map_err(|error| failed(SystemCause::of_words(&error.to_string())))?;
        let folder = DataDir::open(&self.state_dir).map_err(|error| failed(cause(&error)))?;
        folder.write(FILE_NAME, &format!("{text}\n")).map_err(|error| failed(cause(&error)))
    }
}

/// Without the hints, which name flags of `gpustack start`.
fn cause(error: &DataDirError) -> SystemCause {
    match error {
        DataDirError::Folder { source, .. }
        | DataDirError::Read { source, .. }
        | DataDirError::Write { source, .. } => SystemCause::of(source),
        other => SystemCause::Other(other.to_string()),
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
