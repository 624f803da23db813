//! Runs a vendor's tool so that nothing it does can hurt the worker: it gets a deadline, a process group of its own
//! and a bounded output, and there is never more than one of it. A broken card can make its tool hang in the kernel,
//! where not even SIGKILL ends it; such a process is left alone and no second one is started beside it.

use crate::Printed;
use crate::text;
use crate::vendor::Finding;
use api::{Reason, Seen};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

/// A tool that prints more than this on one of its outputs is broken. A host with sixteen chips takes 5 KiB.
const OUTPUT_LIMIT_BYTES: usize = 1024 * 1024;
/// The supervisor answers at the deadline; this is for the case that it cannot, being held up before the tool starts.
const ANSWER_GRACE: Duration = Duration::from_secs(1);

/// Of so many questions the last answer is kept for a look at what the tool really prints.
const KEPT_ANSWERS: usize = 128;

/// One tool of a vendor.
pub(crate) struct Tool {
    name: &'static str,
    /// The beginning of what it printed last, by the question.
    printed: Mutex<BTreeMap<String, Printed>>,
    /// Where it was found last.
    program: Arc<Mutex<Option<PathBuf>>>,
    deadline: Duration,
    /// Held by whoever has a process of this tool, until the process and all its output pipes are gone.
    slot: Arc<Semaphore>,
}

/// Where to look for a tool and for the libraries it loads.
pub(crate) struct Places {
    pub directories: Vec<PathBuf>,
    pub libraries: Vec<PathBuf>,
}

/// What a tool printed before it ended by itself.
#[derive(Debug)]
pub(crate) struct ToolOutput {
    pub is_success: bool,
    /// None when a signal ended it.
    pub exit_code: Option<i32>,
    /// Bytes that are no text are replaced.
    pub stdout: String,
    pub stderr: String,
}

impl ToolOutput {
    /// Errors first: that is where a tool that printed half a table says why.
    pub(crate) fn all(&self) -> String {
        format!("{}\n{}", self.stderr, self.stdout)
    }
}

/// Why a tool gave no answer.
#[derive(Debug, Error)]
pub(crate) enum ToolError {
    /// No such file in any of the places.
    #[error("the tool was not found")]
    Missing,
    /// The system did not start it.
    #[error("the tool cannot be started: {0}")]
    NotStarted(io::Error),
    /// It did not end before the deadline and was killed.
    #[error("the tool did not end in time")]
    TimedOut,
    /// One that was killed earlier is still there.
    #[error("an earlier run of the tool has not ended yet")]
    StillRunning,
    /// It printed without end and was killed.
    #[error("the tool printed more than {OUTPUT_LIMIT_BYTES} bytes")]
    OutputTooLong {
        /// The beginning of it.
        start: Vec<u8>,
    },
    /// Its output could not be read.
    #[error("the tool's output cannot be read: {0}")]
    OutputLost(io::Error),
}

impl ToolError {
    /// The problem that it is.
    pub(crate) fn finding(self, of: &Tool) -> Finding {
        let tool = of.name.to_owned();
        Finding::error(match self {
            Self::Missing => Reason::ToolMissing { tool },
            Self::TimedOut | Self::StillRunning => Reason::ToolTimedOut { tool, timeout_s: of.deadline.as_secs() },
            Self::NotStarted(error) => Reason::ToolNotStarted { tool, error: error.to_string() },
            Self::OutputTooLong { start } => {
                Reason::ToolOutputUnknown { tool, output: text::excerpt(&String::from_utf8_lossy(&start)) }
            }
            Self::OutputLost(error) => Reason::ToolFailed { tool, exit_code: None, output: error.to_string() },
        })
    }
}

impl Tool {
    pub(crate) fn new(name: &'static str, deadline: Duration) -> Self {
        Self { name, printed: Mutex::default(), program: Arc::default(), deadline, slot: Arc::new(Semaphore::new(1)) }
    }

    /// It has been found at least once.
    pub(crate) fn is_known(&self) -> bool {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The point of a host's environment that it is.
    pub(crate) fn seen(&self) -> Seen {
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        let path = program.as_ref().map(|path| path.display().to_string());
        Seen::Tool { tool: self.name.to_owned(), path }
    }

    /// The beginning of what it printed at its last runs, one for each question.
    pub(crate) fn printed(&self) -> Vec<Printed> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Finds the tool and runs it once. Ends by the deadline, whatever the tool, its disk or the kernel do. When the
    /// caller goes away the run is still ended by its deadline.
    pub(crate) async fn run<F>(&self, arguments: &[&str], places: F) -> Result<ToolOutput, ToolError>
    where
        F: FnOnce() -> Places + Send + 'static,
    {
        let question = arguments.join(" ");
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let answer = self.run_once(arguments, places).await;
        self.keep(question, &answer);
        answer
    }

    fn keep(&self, question: String, answer: &Result<ToolOutput, ToolError>) {
        let (exit_code, output) = match answer {
            Ok(output) => (output.exit_code, text::sample(&output.all())),
            Err(ToolError::OutputTooLong { start }) => (None, text::sample(&String::from_utf8_lossy(start))),
            Err(ToolError::Missing) => return,
            Err(error) => (None, error.to_string()),
        };
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.len() < KEPT_ANSWERS || printed.contains_key(&question) {
            let tool = self.name.to_owned();
            printed.insert(question.clone(), Printed { tool, question, exit_code, output });
        }
    }

    async fn run_once<F>(&self, arguments: Vec<String>, places: F) -> Result<ToolOutput, ToolError>
    where
        F: FnOnce() -> Places + Send + 'static,
    {
        let slot = Arc::clone(&self.slot).try_acquire_owned().map_err(|_| ToolError::StillRunning)?;
        let deadline = Instant::now() + self.deadline;
        let (name, runtime) = (self.name, Handle::current());
        let (answer, answered) = oneshot::channel();
        let found = Arc::clone(&self.program);
        // Searching directories and starting a program wait for disks, and on a dead network disk for ever. A plain
        // thread does no harm then: neither the runtime nor the end of the process waits for it.
        let start = move || {
            let _in_runtime = runtime.enter();
            let places = places();
            let program = find(name, &places.directories);
            found.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&program);
            match start_program(program, &arguments, &places) {
                Ok(run) => drop(runtime.spawn(run.supervise(deadline, slot, answer))),
                Err(error) => {
                    drop(slot);
                    // Nobody listens when the caller has gone away.
                    let _ = answer.send(Err(error));
                }
            }
        };
        std::thread::Builder::new().name(format!("start {name}")).spawn(start).map_err(ToolError::NotStarted)?;
        match timeout_at(deadline + ANSWER_GRACE, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(ToolError::TimedOut),
        }
    }
}

fn start_program(program: Option<PathBuf>, arguments: &[String], places: &Places) -> Result<Run, ToolError> {
    let program = program.ok_or(ToolError::Missing)?;
    Run::start(&program, arguments, &library_path(&places.libraries)).map_err(ToolError::NotStarted)
}

/// The first program of that name; failing that, a file of that name that cannot be run, so that the attempt tells
/// why. A directory is neither: container engines make one where a mount's source does not exist.
fn find(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let files: Vec<(PathBuf, u32)> = directories
        .iter()
        .map(|directory| directory.join(name))
        .filter_map(|path| {
            Some((path.clone(), path.metadata().ok().filter(std::fs::Metadata::is_file)?.permissions().mode()))
        })
        .collect();
    let program = files.iter().find(|(_, mode)| mode & 0o111 != 0).or_else(|| files.first());
    program.map(|(path, _)| path.clone())
}

/// The absolute directories of a search path, by default of this process's. Relative ones depend on where the worker
/// was started, so they are not searched.
pub(crate) fn search_path(path: Option<OsString>) -> Vec<PathBuf> {
    let path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect()
}

/// The libraries' directories in front of those that this process was given.
pub(crate) fn library_path(directories: &[PathBuf]) -> OsString {
    let inherited = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let inherited = std::env::split_paths(&inherited).filter(|directory| directory.is_absolute());
    let all: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
    // A directory with a colon in its name cannot be in such a list.
    std::env::join_paths(all.into_iter().map(Path::to_path_buf).chain(inherited)).unwrap_or_default()
}

/// One process of a tool, with what it printed so far.
struct Run {
    child: Child,
    stdout: ChildStdout,
    stderr: ChildStderr,
    printed: Vec<u8>,
    complained: Vec<u8>,
}

impl Run {
    fn start(program: &Path, arguments: &[String], library_path: &OsStr) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .env("LD_LIBRARY_PATH", library_path)
            // Their words are what is understood here, not their translations.
            .env("LANG", "C")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let no_pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdout = child.stdout.take().ok_or_else(no_pipe)?;
        let stderr = child.stderr.take().ok_or_else(no_pipe)?;
        Ok(Self { child, stdout, stderr, printed: Vec::new(), complained: Vec::new() })
    }

    /// Sees the process through to its end, however long that takes, and answers by the deadline.
    async fn supervise(
        mut self,
        deadline: Instant,
        slot: OwnedSemaphorePermit,
        answer: oneshot::Sender<Result<ToolOutput, ToolError>>,
    ) {
        let error = match timeout_at(deadline, self.finish()).await {
            Ok(Ok(output)) => {
                // Free before the answer: the caller may start the next run at once.
                drop(slot);
                let _ = answer.send(Ok(output));
                return;
            }
            Ok(Err(error)) => error,
            Err(_) => ToolError::TimedOut,
        };
        self.kill_group();
        let _ = answer.send(Err(error));
        self.wait_until_gone().await;
        drop(slot);
    }

    async fn finish(&mut self) -> Result<ToolOutput, ToolError> {
        tokio::try_join!(
            read_bounded(&mut self.stdout, &mut self.printed),
            read_bounded(&mut self.stderr, &mut self.complained)
        )?;
        // Only now, with the pipes closed: as long as the process is not waited for, its id is its own, and so is
        // the group's that a kill goes to.
        let status = self.child.wait().await.map_err(ToolError::OutputLost)?;
        Ok(ToolOutput {
            is_success: status.success(),
            exit_code: status.code(),
            stdout: String::from_utf8_lossy(&self.printed).into_owned(),
            stderr: String::from_utf8_lossy(&self.complained).into_owned(),
        })
    }

    /// Does nothing once the process has been waited for: its id may be another's by then.
    fn kill_group(&self) {
        let Some(group) = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return };
        if let Err(error) = kill_process_group(group, Signal::KILL) {
            tracing::debug!(%error, "a tool's process group could not be killed");
        }
    }

    /// The pipes close when the last process that has them is gone, so they tell of the tool's own children as well.
    async fn wait_until_gone(&mut self) {
        let (mut nowhere, mut nowhere_else) = (tokio::io::sink(), tokio::io::sink());
        let (_, _) = tokio::join!(
            tokio::io::copy(&mut self.stdout, &mut nowhere),
            tokio::io::copy(&mut self.stderr, &mut nowhere_else)
        );
        let _ = self.child.wait().await;
    }
}

/// The runtime ends, or the supervisor is dropped: no process stays behind.
impl Drop for Run {
    fn drop(&mut self) {
        self.kill_group();
    }
}

async fn read_bounded(pipe: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) -> Result<(), ToolError> {
    let limit = u64::try_from(OUTPUT_LIMIT_BYTES).unwrap_or(u64::MAX);
    pipe.take(limit + 1).read_to_end(into).await.map_err(ToolError::OutputLost)?;
    if into.len() > OUTPUT_LIMIT_BYTES {
        return Err(ToolError::OutputTooLong { start: std::mem::take(into) });
    }
    Ok(())
}
