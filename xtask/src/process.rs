//! Running other programs, each with a deadline.

use anyhow::{Context, Result, bail};
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(20);

/// Runs a program to its end; what it prints is shown. Fails when the program does, or when it takes longer than
/// `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Result<()> {
    let name = shown(command);
    let mut child = command.spawn().with_context(|| format!("cannot start `{name}`"))?;
    match wait(&mut child, limit).with_context(|| format!("cannot wait for `{name}`"))? {
        None => bail!("`{name}` took longer than {} minutes and was ended", limit.as_secs() / 60),
        Some(status) if status.success() => Ok(()),
        Some(status) => bail!("`{name}` failed ({status})"),
    }
}

/// What a program prints; None when it is not there, fails, or takes longer than `limit`.
pub fn answer(command: &mut Command, limit: Duration) -> Option<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut stdout = child.stdout.take()?;
    // read beside the wait: a program that prints more than a pipe holds would never end
    let reader = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let status = wait(&mut child, limit).ok()??;
    let text = reader.join().ok()?.ok()?;
    status.success().then_some(text)
}

/// None when the limit passed; the program is then ended.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_output_than_a_pipe_holds_is_read() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 300000 /dev/zero | tr '\\0' x"]);
        assert_eq!(answer(&mut command, Duration::from_secs(20)).map(|text| text.len()), Some(300_000));
    }

    #[test]
    fn a_program_past_its_deadline_is_ended() {
        let mut command = Command::new("sleep");
        let error = run(command.arg("600"), Duration::ZERO).err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("sleep 600")));
    }
}
