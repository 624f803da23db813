//! The process with the library: a question is a line on the standard input, its answer a line on the standard output.

use crate::native::Driver;
use crate::read::read;
use crate::report::{Answer, Failure};
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use rustix::stdio::{dup2_stdout, stderr};
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

/// The one question there is.
pub const READ: &str = "read";

/// Answers questions by the library at `path` until the standard input ends, and then ends this process, whatever the
/// library does at that time. Loads it at the first question.
///
/// # Errors
///
/// When the process cannot be prepared; then nothing has been loaded.
pub fn serve(path: &Path) -> io::Result<()> {
    // A library that crashes fills no disk.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    // The library prints on the standard output. Only the answers go where that was.
    let answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    dup2_stdout(stderr())?;
    let (questions, asked) = mpsc::channel();
    let path = path.to_owned();
    // On a thread of its own: this one sees the end of the questions even when the library hangs.
    thread::Builder::new().name("library".to_owned()).spawn(move || answer_all(&path, &asked, answers))?;
    for line in io::stdin().lock().lines() {
        if line? == READ && questions.send(()).is_err() {
            break;
        }
    }
    end()
}

/// Not by `exit`: the library's own last words could hang or crash.
fn end() -> io::Result<()> {
    Ok(kill_process(getpid(), Signal::KILL)?)
}

fn answer_all(path: &Path, asked: &mpsc::Receiver<()>, mut answers: File) {
    let mut driver: Option<Driver> = None;
    for () in asked {
        let answer = answer(&mut driver, path).map_or_else(Answer::Failed, Answer::Read);
        if tell(&mut answers, &answer).is_err() {
            // Nobody listens.
            let _ = end();
        }
    }
}

fn answer(driver: &mut Option<Driver>, path: &Path) -> Result<crate::report::Report, Failure> {
    let started = match driver.take() {
        Some(started) => started,
        None => Driver::start(path)?,
    };
    read(driver.insert(started))
}

fn tell(answers: &mut File, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    answers.write_all(&line)
}
