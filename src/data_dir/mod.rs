//! The folder with the state: who may use it, its small files, and the join token and passwords among them.
//!
//! A folder that GPUStack 0.7 left is taken over: its `token` is kept, its `database.db` is never opened.

mod lock;
mod token;

pub use lock::{InstanceLock, LockName};
pub use token::TOKEN;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

use crate::config::TokenError;

/// None of our small files comes near this.
const SMALL_FILE_MAX_BYTES: u64 = 1024 * 1024;

/// The file with the password that the admin was created with, until it is changed.
pub const INITIAL_ADMIN_PASSWORD: &str = "initial_admin_password";

/// The file with the server's key pair for links.
pub const LINK_KEY: &str = "link_key";

/// The file with the worker's key pair, by which the server knows it. The worker in a server's process shares the folder
/// with it.
pub const WORKER_LINK_KEY: &str = "worker_link_key";

/// The file in which a worker keeps the key of the server that it joined.
pub const LINK_SERVER_KEY: &str = "link_server_key";

/// The folder with the state. Cloning it clones a path.
#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
}

/// Why the folder cannot be used.
#[derive(Debug, Error)]
pub enum DataDirError {
    /// The folder cannot be made or entered.
    #[error("cannot use the data directory {path}: {source}{}", hint(source))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The folder is not there.
    #[error("there is no data directory {path}; name the server's with --data-dir")]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// Another process runs the same role from it.
    #[error(
        "the data directory {path} is already in use by {}; stop that one first (`systemctl status {pid}` may name its service), or give this one another --data-dir",
        holder(*pid)
    )]
    InUse {
        /// The folder.
        path: PathBuf,
        /// The process, when it is known; 0 when not.
        pid: u32,
    },
    /// A file in it cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file in it cannot be written.
    #[error("cannot write {path}: {source}{}", hint(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The token file holds no token.
    #[error("the join token in {path} {source}")]
    Token {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: TokenError,
    },
}

impl DataDir {
    /// Makes the folder when it is not there, for its owner alone, and makes sure that it can be written.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let failed = |source| DataDirError::Folder { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
            .map_err(|error| failed(error.into()))?;
        Ok(Self { path: path.to_owned() })
    }

    /// A folder that must be there already.
    pub fn existing(path: &Path) -> Result<Self, DataDirError> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Ok(Self { path: path.to_owned() }),
            Ok(_) => Err(DataDirError::Folder { path: path.to_owned(), source: io::ErrorKind::NotADirectory.into() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(DataDirError::Missing { path: path.to_owned() })
            }
            Err(source) => Err(DataDirError::Folder { path: path.to_owned(), source }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a file of this name is, or would be.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A small text file; None when it is not there. Bytes that are not UTF-8 are replaced.
    pub fn read(&self, name: &str) -> Result<Option<String>, DataDirError> {
        let path = self.file(name);
        let read_all = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(&path)?.take(SMALL_FILE_MAX_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read_all() {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(DataDirError::Read { path, source }),
        }
    }

    /// Writes a small file, for its owner alone: after a power cut either the old or the new content is there whole.
    pub fn write(&self, name: &str, content: &str) -> Result<(), DataDirError> {
        let path = self.file(name);
        let temporary = self.file(&format!(".{name}.{}.new", std::process::id()));
        let written = write_synced(&temporary, content)
            .and_then(|()| std::fs::rename(&temporary, &path))
            .and_then(|()| File::open(&self.path)?.sync_all());
        written.map_err(|source| {
            // the cause is told below; a left-over that cannot be removed changes nothing about it
            let _ = std::fs::remove_file(&temporary);
            DataDirError::Write { path, source }
        })
    }

    /// Removes a file; one that is not there is no error.
    pub fn remove(&self, name: &str) -> Result<(), DataDirError> {
        let path = self.file(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DataDirError::Write { path, source: error }),
            _ => Ok(()),
        }
    }
}

fn write_synced(path: &Path, content: &str) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space there",
        io::ErrorKind::ReadOnlyFilesystem => "; mount it writable, or choose another folder with --data-dir",
        io::ErrorKind::PermissionDenied => {
            "; run as its owner (root, for the default), or choose another folder with --data-dir"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "; a file is in its place",
        _ => "",
    }
}

fn holder(pid: u32) -> String {
    if pid == 0 { "another process".to_owned() } else { format!("pid {pid}") }
}

#[cfg(test)]
mod tests;
