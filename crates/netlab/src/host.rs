//! Hosts: network namespaces with names.

use crate::process;
use crate::sockets::{self, SocketState};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A host with a network and a name of its own, but this machine's files and processors.
#[derive(Debug)]
pub struct Host {
    /// A process that waits in the host's namespaces and keeps them alive; None for this process's own.
    keeper: Option<Child>,
}

impl Host {
    /// The host that this process runs on, which is called `name` from now on.
    pub fn here(name: &str) -> Result<Self> {
        let host = Self { keeper: None };
        host.run(&format!("hostname {name}"))?;
        host.run("ip link set lo up")?;
        Ok(host)
    }

    /// One more, without cables.
    pub fn new(name: &str) -> Result<Self> {
        // The shell says when the namespaces are there, and ends with this process, whose end closes its input.
        let script = "hostname \"$0\" && echo ready && read -r _";
        let mut keeper = Command::new("unshare")
            .args(["--net", "--uts", "sh", "-c", script, name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("`unshare`, of util-linux, does not start")?;
        let said = keeper.stdout.take().context("no pipe")?;
        let host = Self { keeper: Some(keeper) };
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        ensure!(line == "ready\n", "this system does not let the host {name} have a network of its own");
        host.run("ip link set lo up")?;
        Ok(host)
    }

    /// A program on this host, to be started.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let Some(keeper) = &self.keeper else { return Command::new(program) };
        let mut command = Command::new("nsenter");
        // it enters and then becomes the program: both have one process number
        command.arg("--target").arg(keeper.id().to_string()).args(["--net", "--uts", "--"]).arg(program);
        command
    }

    /// Runs a line of words without quotes, and gives what it printed.
    pub fn run(&self, line: &str) -> Result<String> {
        let mut words = line.split_whitespace();
        let program = words.next().context("an empty line")?;
        process::run(self.command(program).args(words), line)
    }

    /// Whether something takes connections to this port.
    pub fn listens(&self, port: u16) -> Result<bool> {
        Ok(sockets::count(&self.namespace(), SocketState::Listening, port)? > 0)
    }

    /// Ends all processes of this program on this host, with a signal that they cannot hear, and gives how many.
    pub fn kill_all(&self, program: &str) -> Result<usize> {
        let own = std::fs::read_link(format!("/proc/{}/ns/net", self.namespace()))?;
        let mut killed = 0;
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // what ends meanwhile need not be ended
            let is_meant = std::fs::read_to_string(entry.path().join("comm")).is_ok_and(|name| name.trim() == program)
                && std::fs::read_link(entry.path().join("ns/net")).is_ok_and(|network| network == own);
            let Some(process) = Pid::from_raw(number).filter(|_| is_meant) else { continue };
            killed += usize::from(kill_process(process, Signal::KILL).is_ok());
        }
        Ok(killed)
    }

    /// What `ip` calls this host's namespace.
    pub(crate) fn namespace(&self) -> String {
        self.keeper.as_ref().map_or_else(std::process::id, Child::id).to_string()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            // fails where it has ended, which is what is wished
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }
}
