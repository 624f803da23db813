//! Starts the binary and watches it.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Far more than anything here takes.
const DEADLINE: Duration = Duration::from_secs(30);

/// Names and values.
pub type Variables<'a> = &'a [(&'a str, &'a str)];

/// The binary, with nothing in its environment that could change what it does.
pub fn gpustack(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpustack"));
    let inherited: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    for name in inherited.iter().filter(|name| name.to_string_lossy().starts_with("GPUSTACK_")) {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn run(args: &[&str], variables: Variables) -> Output {
    gpustack(args).envs(variables.iter().copied()).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A process that goes on, killed when it is dropped.
pub struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    seen: String,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self { child, stdout, stderr, seen: String::new() }
    }

    /// As a process whose log goes to a pipe that nobody reads any more.
    pub fn start_without_reader_of_stderr(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        drop(child.stderr.take());
        Self { child, stdout, stderr: channel().1, seen: String::new() }
    }

    /// A server on free ports; returns when it has said that it is ready.
    pub fn server(data_dir: &Path, args: &[&str]) -> Self {
        let data_dir = data_dir.to_str().unwrap();
        let own = ["start", "--data-dir", data_dir, "--host", "127.0.0.1", "--port", "0", "--worker-port", "0"];
        let mut running = Self::start(&mut gpustack(&[&own, args].concat()));
        running.wait_for_stdout("Join token");
        running
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed on standard output so far.
    pub fn printed(&self) -> &str {
        &self.seen
    }

    /// The address that it printed.
    pub fn url(&self) -> &str {
        self.seen.split_whitespace().find(|word| word.starts_with("http")).unwrap()
    }

    pub fn wait_for_stdout(&mut self, text: &str) -> String {
        let line = wait_for(&self.stdout, text, &mut self.seen);
        line.unwrap_or_else(|| panic!("no `{text}` in {}{}", self.seen, self.rest_of_stderr()))
    }

    pub fn wait_for_stderr(&mut self, text: &str) -> String {
        let mut before = String::new();
        wait_for(&self.stderr, text, &mut before).unwrap_or_else(|| panic!("no `{text}` in {before}"))
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.wait()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Everything that it has said on standard error and that nobody has read.
    pub fn rest_of_stderr(&self) -> String {
        self.stderr.try_iter().collect()
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        // the threads that read its output see its end as soon as it comes
        while self.stdout.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(source: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            if sender.send(line + "\n").is_err() {
                return;
            }
        }
    });
    receiver
}

fn wait_for(lines: &Receiver<String>, text: &str, seen: &mut String) -> Option<String> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let line = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
        seen.push_str(&line);
        if line.contains(text) {
            return Some(line);
        }
    }
}
