//! The driver's library, read in a process of its own that is started once and kept. It is asked before the vendor's
//! tool: a look costs no process then. When it crashes, hangs or answers nonsense, the tool is asked in the same look,
//! and the library again after a pause that grows.

mod place;
mod process;
mod told;

use super::source::{Answer, ReadingSource};
use super::table::Table;
use crate::files::{PatientReader, Root};
use crate::text;
use crate::vendor::Finding;
use crate::{DetectorConfig, LibraryReader, Printed};
use api::Reason;
use async_trait::async_trait;
use dcmi::report::{self, Failure, code};
use place::LibraryFile;
use process::{Reader, ReaderError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// The library's name.
pub(super) const LIBRARY: &str = "libdcmi.so";

/// After the first failure; twice as long after each that follows.
const FIRST_PAUSE: Duration = Duration::from_mins(1);
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// Reads all chips through the library.
pub(super) struct LibrarySource {
    reader: LibraryReader,
    root: Root,
    deadline: Duration,
    files: PatientReader,
    /// Held by whoever has a process, until that is gone.
    slot: Arc<Semaphore>,
    state: tokio::sync::Mutex<State>,
    /// The last answer as it came.
    printed: Mutex<String>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    rest: Option<Rest>,
}

struct Running {
    reader: Reader,
    file: LibraryFile,
}

/// Why the library is left alone, and for how long.
struct Rest {
    file: LibraryFile,
    why: Reason,
    pause: Duration,
    until: Instant,
}

impl LibrarySource {
    /// None where no program was named that can read the library.
    pub(super) fn new(config: &DetectorConfig) -> Option<Self> {
        Some(Self {
            reader: config.library_reader.clone()?,
            root: Root::new(&config.root),
            deadline: config.tool_deadline,
            files: PatientReader::new(config.tool_deadline),
            slot: Arc::new(Semaphore::new(1)),
            state: tokio::sync::Mutex::default(),
            printed: Mutex::default(),
        })
    }

    async fn read_file(&self, state: &mut State, file: LibraryFile) -> Answer {
        let kept = state.running.take().filter(|running| running.file == file);
        match self.ask(kept, &file).await {
            Ok((running, table)) => {
                state.running = Some(running);
                if state.rest.take().is_some() {
                    tracing::info!(library = %file.path.display(), "the driver's library is read again");
                }
                Answer::Chips(table, Vec::new())
            }
            Err(why) => Answer::Unusable(Finding::error(state.leave_alone(file, why))),
        }
    }

    /// One question to the process that runs, or to a new one. While it is asked it is nobody else's: one that is left
    /// in the middle of an answer, by an error or because nobody waits any more, is not asked again.
    async fn ask(&self, kept: Option<Running>, file: &LibraryFile) -> Result<(Running, Table), Reason> {
        let deadline = Instant::now() + self.deadline;
        let mut running = match kept {
            Some(running) => running,
            None => Running { reader: self.start(file, deadline).await?, file: file.clone() },
        };
        let line = running.reader.ask(dcmi::READ, deadline).await.map_err(|error| self.reason(error))?;
        let answer = serde_json::from_slice(&line);
        *self.printed.lock().unwrap_or_else(PoisonError::into_inner) = String::from_utf8_lossy(&line).into_owned();
        let report = match answer {
            Ok(report::Answer::Read(report)) => report,
            Ok(report::Answer::Failed(failure)) => return Err(why(failure)),
            Err(error) => return Err(unknown(&error.to_string())),
        };
        let table = told::table(report, &file.path).ok_or_else(|| unknown("the same chip twice, or none"))?;
        Ok((running, table))
    }

    /// Waits until the process before it is gone.
    async fn start(&self, file: &LibraryFile, deadline: Instant) -> Result<Reader, Reason> {
        let slot = timeout_at(deadline, Arc::clone(&self.slot).acquire_owned()).await;
        let slot = slot.ok().and_then(Result::ok).ok_or_else(|| self.reason(ReaderError::TimedOut))?;
        let root = self.root.clone();
        let libraries = self.files.read(move || place::libraries(&root)).await.unwrap_or_default();
        Reader::start(&self.reader, &file.path, &libraries, slot).map_err(|error| self.reason(error))
    }

    fn reason(&self, error: ReaderError) -> Reason {
        let tool = LIBRARY.to_owned();
        match error {
            ReaderError::NotStarted(error) => Reason::ToolNotStarted { tool, error: error.to_string() },
            ReaderError::TimedOut => Reason::ToolTimedOut { tool, timeout_s: self.deadline.as_secs() },
            ReaderError::Ended(how) => Reason::ToolFailed { tool, exit_code: None, output: how },
            ReaderError::TooLong => unknown("an answer without an end"),
        }
    }
}

#[async_trait]
impl ReadingSource for LibrarySource {
    async fn read(&self) -> Answer {
        let mut state = self.state.lock().await;
        let root = self.root.clone();
        // A search that hangs is no library.
        let Some(file) = self.files.read(move || place::find(&root)).await.flatten() else {
            *state = State::default();
            return Answer::Absent;
        };
        match &state.rest {
            Some(rest) if rest.file == file && Instant::now() < rest.until => {
                Answer::Unusable(Finding::error(rest.why.clone()))
            }
            _ => self.read_file(&mut state, file).await,
        }
    }

    fn printed(&self) -> Vec<Printed> {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let output = text::sample(&printed);
        let entry = || Printed {
            tool: LIBRARY.to_owned(),
            question: dcmi::READ.to_owned(),
            exit_code: None,
            output: output.clone(),
        };
        (!output.is_empty()).then(entry).into_iter().collect()
    }
}

impl State {
    /// Notes why, and says so once for each cause.
    fn leave_alone(&mut self, file: LibraryFile, why: Reason) -> Reason {
        let before = self.rest.take().filter(|rest| rest.file == file);
        if before.as_ref().is_none_or(|rest| rest.why != why) {
            tracing::warn!(
                library = %file.path.display(),
                cause = ?why,
                "the driver's library cannot be used; the vendor's tool is asked instead"
            );
        }
        let pause = before.map_or(FIRST_PAUSE, |rest| (rest.pause * 2).min(LONGEST_PAUSE));
        self.rest = Some(Rest { file, why: why.clone(), pause, until: Instant::now() + pause });
        why
    }
}

/// What a failure of the library itself is.
fn why(failure: Failure) -> Reason {
    let tool = LIBRARY.to_owned();
    match failure {
        Failure::NotLoaded(error) => match missing_library(&error) {
            Some(library) => Reason::DriverLibraryMissing { tool, library },
            None => Reason::ToolNotStarted { tool, error: text::excerpt(&error) },
        },
        Failure::Lacks(function) => unknown(&format!("no {function}")),
        Failure::NotStarted(code @ code::IN_USE) | Failure::NoList(code @ code::IN_USE) => {
            Reason::DeviceInUseElsewhere { tool, code }
        }
        Failure::NotStarted(code) | Failure::NoList(code) => {
            Reason::DriverInitFailed { tool, code, nodes: Vec::new(), cause: None }
        }
        Failure::Nonsense(what) => unknown(&what),
    }
}

fn unknown(what: &str) -> Reason {
    Reason::ToolOutputUnknown { tool: LIBRARY.to_owned(), output: text::excerpt(what) }
}

/// The loader names the file that it misses first: `libc_sec.so: cannot open shared object file: …` (dlerror(3)).
fn missing_library(error: &str) -> Option<String> {
    let (library, _) = error.split_once(": cannot open shared object file")?;
    Some(text::cell(library))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_library_that_the_library_needs_is_told_by_its_name() {
        let error = "libc_sec.so: cannot open shared object file: No such file or directory";
        let expected = Reason::DriverLibraryMissing { tool: LIBRARY.into(), library: "libc_sec.so".into() };
        assert_eq!(why(Failure::NotLoaded(error.into())), expected);
        let Reason::ToolNotStarted { error, .. } = why(Failure::NotLoaded("/x: file too short".into())) else {
            panic!("another reason");
        };
        assert_eq!(error, "/x: file too short");
    }

    #[test]
    fn codes_are_told_as_the_tool_tells_them() {
        let started = |code| Reason::DriverInitFailed { tool: LIBRARY.into(), code, nodes: Vec::new(), cause: None };
        assert_eq!(why(Failure::NotStarted(-8005)), started(-8005));
        assert_eq!(why(Failure::NoList(-8012)), started(-8012));
        let in_use = Reason::DeviceInUseElsewhere { tool: LIBRARY.into(), code: -8020 };
        assert_eq!(why(Failure::NotStarted(-8020)), in_use);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_up_to_an_hour_and_begin_anew_with_another_file() {
        let file = |inode| LibraryFile { path: PathBuf::from("/lib"), inode, modified: None };
        let mut state = State::default();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            state.leave_alone(file(1), unknown("x"));
            pauses.push(state.rest.as_ref().unwrap().pause.as_secs() / 60);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        state.leave_alone(file(2), unknown("x"));
        assert_eq!(state.rest.unwrap().pause, FIRST_PAUSE);
    }
}
