//! The real SSH, as operators set it up between networks that cannot reach one another.

use crate::host::Host;
use crate::process::{self, Process};
use crate::wait::until;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const SSH_PORT: u16 = 22;

/// Keys that open every host of a lab to every other one.
#[derive(Debug)]
pub struct Ssh {
    folder: TempDir,
}

/// A host that takes SSH. Dropped, the listener ends; sessions end with their clients.
#[derive(Debug)]
pub struct SshServer(#[expect(dead_code, reason = "held so that it runs")] Process);

impl Ssh {
    /// Makes keys for this lab.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder for SSH keys")?;
        let keys = ["host", "user"];
        for key in keys {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.path().join(key));
            process::run(&mut command, "ssh-keygen, of the package openssh-client")?;
        }
        let root = folder.path().display();
        let config = format!(
            "HostKey {root}/host\nAuthorizedKeysFile {root}/user.pub\nPidFile none\nStrictModes no\nUsePAM no\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\n"
        );
        std::fs::write(folder.path().join("sshd_config"), config)?;
        // sshd does not start without it, and otherwise the system's start makes it
        std::fs::create_dir_all("/run/sshd").context("cannot make /run/sshd")?;
        Ok(Self { folder })
    }

    /// Starts the server on `host`, at port 22 of all its addresses.
    pub fn serve(&self, host: &Host) -> Result<SshServer> {
        let config = self.folder.path().join("sshd_config");
        let mut command = host.command("/usr/sbin/sshd");
        command.args(["-D", "-e", "-f"]).arg(config).stdin(Stdio::null());
        let process = Process::start(&mut command).context("install the package openssh-server")?;
        until("sshd at work", || if host.listens(SSH_PORT).unwrap_or(false) { Ok(()) } else { Err("nobody") });
        Ok(SshServer(process))
    }

    /// Starts `ssh -N` on `host` with these further words, the last of which names the other host. It ends by itself
    /// when it cannot connect or forward.
    pub fn forward(&self, host: &Host, words: &[&str]) -> Result<Process> {
        let mut command = host.command("ssh");
        command.args(["-F", "none", "-N", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]);
        command.args(["-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR"]);
        command.args(["-o", "ExitOnForwardFailure=yes", "-o", "ConnectTimeout=5", "-i"]).arg(self.key());
        Process::start(command.args(words).stdin(Stdio::null()))
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("user")
    }
}
