//! Where `gpustack tunnel status` asks: a socket in the state directory, which only the agent's user may open. Whoever
//! connects is told everything as JSON, and the connection is closed.

use super::view::{Status, View};
use crate::data_dir::DataDir;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
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

/// Why there is no status.
#[derive(Debug, Error)]
pub enum AskError {
    /// No agent runs there.
    #[error(
        "no tunnel agent runs with the state directory {state_dir}: start it with `gpustack tunnel run`, or name its \
         state directory with --state-dir"
    )]
    NotRunning {
        /// The state directory.
        state_dir: PathBuf,
    },
    /// This user may not ask.
    #[error("this user may not ask the agent at {path}; run the command as the agent's user")]
    NotAllowed {
        /// The socket.
        path: PathBuf,
    },
    /// It does not answer as it should.
    #[error("the agent at {path} does not answer: {detail}")]
    Answer {
        /// The socket.
        path: PathBuf,
        /// What happened.
        detail: String,
    },
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
pub async fn ask(state: &DataDir) -> Result<Status, AskError> {
    let path = state.file(SOCKET);
    let failed = |detail: String| AskError::Answer { path: path.clone(), detail };
    let read = async {
        let stream = UnixStream::connect(&path).await?;
        let mut answer = Vec::new();
        stream.take(STATUS_MAX_BYTES).read_to_end(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = match timeout(DEADLINE, read).await {
        Err(_) => return Err(failed(format!("nothing came within {} s", DEADLINE.as_secs()))),
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            return Err(match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    AskError::NotRunning { state_dir: state.path().to_owned() }
                }
                io::ErrorKind::PermissionDenied => AskError::NotAllowed { path },
                _ => failed(error.to_string()),
            });
        }
    };
    serde_json::from_slice(&answer).map_err(|error| failed(error.to_string()))
}
