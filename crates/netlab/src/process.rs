//! Processes that end with the variable that holds them.

use anyhow::{Context, Result, ensure};
use std::process::{Child, ChildStdout, Command};

/// A running process. Dropped, it is killed.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts it.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("{} does not start", command.get_program().display()))?;
        Ok(Self(child))
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// What it prints, when that is piped and was not taken before.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// Ends it with a signal that it cannot hear.
    pub fn kill(self) {}

    /// The files that it has open, sockets among them.
    pub fn open_files(&self) -> Result<usize> {
        let folder = format!("/proc/{}/fd", self.id());
        Ok(std::fs::read_dir(&folder).with_context(|| format!("cannot list {folder}"))?.count())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // fails where it has ended, which is what is wished
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command to its end, and gives what it printed.
pub fn run(command: &mut Command, what: &str) -> Result<String> {
    let output = command.output().with_context(|| format!("`{what}` does not start"))?;
    ensure!(output.status.success(), "`{what}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
