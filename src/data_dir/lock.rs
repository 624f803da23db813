//! One server, one worker and one tunnel agent a folder. The kernel drops a lock with its process, however that ends.

use super::{DataDir, DataDirError};
use rustix::fs::FlockOperation;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;

/// What is locked. A server with its own worker holds both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockName {
    /// The server's state.
    Server,
    /// The worker's state.
    Worker,
    /// A tunnel agent's state.
    Tunnels,
}

impl LockName {
    fn file_name(self) -> &'static str {
        match self {
            Self::Server => "server.lock",
            Self::Worker => "worker.lock",
            Self::Tunnels => "tunnels.lock",
        }
    }
}

/// Held as long as it lives.
#[derive(Debug)]
pub struct InstanceLock {
    /// The lock is the open file's.
    file: File,
}

impl Drop for InstanceLock {
    /// A child process that another thread is just starting has the same open file until it executes its program;
    /// closing ours alone would leave the lock with it for that moment.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl DataDir {
    /// Takes the lock, or tells who has it.
    pub fn lock(&self, name: LockName) -> Result<InstanceLock, DataDirError> {
        let path = self.file(name.file_name());
        let failed = |source| DataDirError::Write { path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(DataDirError::InUse { path: self.path.clone(), pid: written_pid(&mut file) });
            }
            Err(error) => return Err(failed(error.into())),
        }
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(failed)?;
        Ok(InstanceLock { file })
    }
}

fn written_pid(file: &mut File) -> u32 {
    let mut text = String::new();
    // whoever holds the lock may be about to write its pid; the answer is then "another process"
    let _ = file.take(16).read_to_string(&mut text);
    text.trim().parse().unwrap_or(0)
}
