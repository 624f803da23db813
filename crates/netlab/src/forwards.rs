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
             PermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\nLogLevel ERROR\n"
        );
        std::fs::write(folder.path().join("sshd_config"), config)?;
        // sshd does not start without it, and otherwise the system's start makes it
        std::fs::create_dir_all("/run/sshd").context("cannot make /run/sshd")?;
        Ok(Self { folder })
    }

    /// Starts the server on `host`, at port 22 of all its addresses.
    pub fn serve(&self, host: &Host) -> Result<SshServer> {
        self.serve_with(host, &[])
    }

    /// Starts it with further lines of `sshd_config(5)`, which come before the others and so win over them.
    pub fn serve_with(&self, host: &Host, settings: &[&str]) -> Result<SshServer> {
        self.serve_under(host, &[], settings)
    }

    /// Starts it with `wrapper` before it, as `faketime`, which changes what it sees.
    pub fn serve_under(&self, host: &Host, wrapper: &[&str], settings: &[&str]) -> Result<SshServer> {
        let common = std::fs::read_to_string(self.folder.path().join("sshd_config"))?;
        let config = self.folder.path().join(format!("sshd_config-{}", host.namespace()));
        std::fs::write(&config, format!("{}\n{common}", settings.join("\n")))?;
        let mut words = wrapper.iter().copied().chain(["/usr/sbin/sshd"]);
        let mut command = host.command(words.next().context("no program")?);
        command.args(words).args(["-D", "-e", "-f"]).arg(config).stdin(Stdio::null());
        let process = Process::start(&mut command).context("install the package openssh-server")?;
        until("sshd at work", || if host.listens(SSH_PORT).unwrap_or(false) { Ok(()) } else { Err("nobody") });
        Ok(SshServer(process))
    }

    /// Starts `ssh -N` on `host` with these further words, the last of which names the other host. It ends by itself
    /// when it cannot connect or forward.
    pub fn forward(&self, host: &Host, words: &[&str]) -> Result<Process> {
        self.start_forward(host.command("ssh"), words)
    }

    /// The same under `autossh`, of the package of that name, which starts it again whenever it ends.
    pub fn forward_by_autossh(&self, host: &Host, words: &[&str]) -> Result<Process> {
        let mut command = host.command("autossh");
        // it also goes on when the very first attempt fails, as a service has to
        command.env("AUTOSSH_GATETIME", "0").args(["-M", "0"]);
        self.start_forward(command, words)
    }

    fn start_forward(&self, mut command: Command, words: &[&str]) -> Result<Process> {
        command.args(["-F", "none", "-N", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]);
        command.args(["-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR"]);
        command.args(["-o", "ExitOnForwardFailure=yes", "-o", "ConnectTimeout=5", "-i"]).arg(self.key());
        Process::start(command.args(words).stdin(Stdio::null()))
    }

    /// The private key that opens every host. Its public half is in the file of that name with `.pub`.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("user")
    }

    /// A file of `known_hosts`, in which all hosts of the lab are.
    pub fn known_hosts(&self) -> Result<PathBuf> {
        let key = std::fs::read_to_string(self.folder.path().join("host.pub"))?;
        let file = self.folder.path().join("known_hosts");
        std::fs::write(&file, format!("* {key}"))?;
        Ok(file)
    }
}
