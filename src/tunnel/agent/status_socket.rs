//! Where `gpustack tunnel status` asks: a socket in the state directory, which only the agent's user may open. Whoever
//! connects is told everything as JSON, and the connection is closed.

use super::view::{Status, View};
use crate::data_dir::{DataDir, DataDirError};
use app::i18n::system_words::SystemCause;
use app::i18n::{Language, tunnel_status};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

const SOCKET: &str = "status.sock";
/// For all of an answer, on either side.
const DEADLINE: Duration = Duration::from_secs(5);
/// The status of some ten thousand forwards.
const STATUS_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// After an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// What Linux takes as a socket's path, `sun_path` without its end.
const PATH_MAX_BYTES: usize = 107;
/// So long may the path of a state directory be: a slash and the socket come behind it.
pub const STATE_DIR_MAX_BYTES: usize = PATH_MAX_BYTES - SOCKET.len() - 1;

/// Whether no socket fits into a state directory.
pub fn is_too_long(state_dir: &Path) -> bool {
    state_dir.join(SOCKET).as_os_str().len() > PATH_MAX_BYTES
}

/// Why there is no status. Shows itself in English.
#[derive(Debug, Error)]
#[error("{}", self.text(Language::En))]
pub enum AskError {
    /// No agent runs there.
    NotRunning {
        /// The state directory.
        state_dir: PathBuf,
    },
    /// The state directory is none.
    NoFolder {
        /// What it should be.
        state_dir: PathBuf,
        /// Why it is not.
        cause: SystemCause,
    },
    /// This user may not ask.
    NotAllowed {
        /// The socket.
        path: PathBuf,
    },
    /// It says nothing.
    Silent {
        /// The socket.
        path: PathBuf,
        /// How long it had, in seconds.
        deadline_s: u64,
    },
    /// Asking fails.
    Failed {
        /// The socket.
        path: PathBuf,
        /// Why.
        cause: SystemCause,
    },
    /// It says something else.
    NotUnderstood {
        /// The socket.
        path: PathBuf,
    },
}

impl AskError {
    /// In a language.
    pub fn text(&self, language: Language) -> String {
        let words = tunnel_status::messages(language);
        match self {
            Self::NotRunning { state_dir } => (words.not_running)(&state_dir.display().to_string()),
            Self::NoFolder { state_dir, cause } => {
                (words.no_state_dir)(&state_dir.display().to_string(), &cause.words(language))
            }
            Self::NotAllowed { path } => (words.not_allowed)(&path.display().to_string()),
            Self::Silent { path, deadline_s } => (words.silent)(&path.display().to_string(), *deadline_s),
            Self::Failed { path, cause } => (words.ask_failed)(&path.display().to_string(), &cause.words(language)),
            Self::NotUnderstood { path } => (words.not_understood)(&path.display().to_string()),
        }
    }
}

/// Takes the socket, also one that a process left behind which did not end in good order. The caller holds the lock of the
/// state directory.
pub fn bind(state: &DataDir) -> io::Result<UnixListener> {
    let path = state.file(SOCKET);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers for ever.
pub async fn serve(listener: UnixListener, view: View) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(timeout(DEADLINE, answer(stream, view.clone())))),
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection for the status");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(mut stream: UnixStream, view: View) -> io::Result<()> {
    stream.write_all(&serde_json::to_vec(&view.status())?).await?;
    stream.shutdown().await
}

/// Asks the agent with this state directory.
pub async fn ask(state_dir: &Path) -> Result<Status, AskError> {
    let state = DataDir::existing(state_dir).map_err(|error| match error {
        DataDirError::Folder { path, source } => {
            AskError::NoFolder { state_dir: path, cause: SystemCause::of(&source) }
        }
        _ => AskError::NotRunning { state_dir: state_dir.to_owned() },
    })?;
    let path = state.file(SOCKET);
    let read = async {
        let stream = UnixStream::connect(&path).await?;
        let mut answer = Vec::new();
        stream.take(STATUS_MAX_BYTES).read_to_end(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = match timeout(DEADLINE, read).await {
        Err(_) => return Err(AskError::Silent { path, deadline_s: DEADLINE.as_secs() }),
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            return Err(match error.kind() {
                // no agent can run with a path that is too long for its socket
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::InvalidInput => {
                    AskError::NotRunning { state_dir: state.path().to_owned() }
                }
                io::ErrorKind::PermissionDenied => AskError::NotAllowed { path },
                _ => AskError::Failed { path, cause: SystemCause::of(&error) },
            });
        }
    };
    serde_json::from_slice(&answer).map_err(|_| AskError::NotUnderstood { path })
}
