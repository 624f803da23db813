//! The process with the library: started once, asked again and again, and ended with its whole group when it does not
//! answer, or when nobody wants to ask it any more.

use crate::LibraryReader;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};

/// A longer answer is broken. A host with sixteen chips takes 16 KiB.
const ANSWER_LIMIT_BYTES: u64 = 4 * 1024 * 1024;
/// A process whose outputs are closed has ended, or is about to.
const END_GRACE: Duration = Duration::from_secs(1);

/// Why it gave no answer.
#[derive(Debug, Error)]
pub(super) enum ReaderError {
    /// The system did not start it.
    #[error("the library's process cannot be started: {0}")]
    NotStarted(io::Error),
    /// It gave no answer before the deadline, or one that gave none earlier is still there.
    #[error("the library's process did not answer in time")]
    TimedOut,
    /// It ended instead; how.
    #[error("the library's process ended: {0}")]
    Ended(String),
    /// It answered without end.
    #[error("the library's process answered more than {ANSWER_LIMIT_BYTES} bytes")]
    TooLong,
}

/// A process that waits for questions. Dropping it ends it.
pub(super) struct Reader {
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Taken when it is dropped.
    life: Option<(Child, OwnedSemaphorePermit)>,
}

impl Reader {
    pub(super) fn start(
        reader: &LibraryReader,
        library: &Path,
        library_path: &OsStr,
        slot: OwnedSemaphorePermit,
    ) -> Result<Self, ReaderError> {
        let mut child = Command::new(&reader.program)
            // As people find it in a list of processes.
            .arg0("gpustack")
            .args(&reader.arguments)
            .arg(library)
            .env("LD_LIBRARY_PATH", library_path)
            .env("LANG", "C")
            .env("LC_ALL", "C")
            // It holds no directory that somebody may want to unmount.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(ReaderError::NotStarted)?;
        let no_pipe = || ReaderError::NotStarted(io::Error::from(io::ErrorKind::BrokenPipe));
        let questions = child.stdin.take().ok_or_else(no_pipe)?;
        let answers = child.stdout.take().ok_or_else(no_pipe)?;
        Ok(Self { questions, answers: BufReader::new(answers), life: Some((child, slot)) })
    }

    /// The answer to one question, without the end of its line.
    pub(super) async fn ask(&mut self, question: &str, deadline: Instant) -> Result<Vec<u8>, ReaderError> {
        match timeout_at(deadline, self.exchange(question)).await {
            Ok(Ok(Some(answer))) => Ok(answer),
            Ok(Ok(None)) => Err(ReaderError::TooLong),
            Ok(Err(_)) => Err(ReaderError::Ended(self.how_it_ended().await)),
            Err(_) => Err(ReaderError::TimedOut),
        }
    }

    /// None for an answer that is too long.
    async fn exchange(&mut self, question: &str) -> io::Result<Option<Vec<u8>>> {
        self.questions.write_all(format!("{question}\n").as_bytes()).await?;
        let mut answer = Vec::new();
        (&mut self.answers).take(ANSWER_LIMIT_BYTES).read_until(b'\n', &mut answer).await?;
        if answer.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Some(answer));
        }
        let is_too_long = u64::try_from(answer.len()).is_ok_and(|length| length >= ANSWER_LIMIT_BYTES);
        if is_too_long { Ok(None) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    }

    async fn how_it_ended(&mut self) -> String {
        let Some((child, _)) = &mut self.life else { return String::new() };
        match timeout(END_GRACE, child.wait()).await {
            Ok(Ok(status)) => in_words(status),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "its outputs are closed".to_owned(),
        }
    }
}

fn in_words(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some((mut child, slot)) = self.life.take() else { return };
        kill_group(&child);
        // One that hangs in the kernel is gone only when that lets go of it; until then no other is started.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let _ = child.wait().await;
                drop(slot);
            });
        }
    }
}

/// Does nothing once the process has been waited for: its id may be another's by then.
fn kill_group(child: &Child) {
    let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return };
    if let Err(error) = kill_process_group(group, Signal::KILL) {
        tracing::debug!(%error, "the library's process group could not be killed");
    }
}
