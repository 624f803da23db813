//! Private keys in files: read only where nobody else may, and written so.

use russh::keys::ssh_key::LineEnding;
use russh::keys::{Certificate, PrivateKey};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;
use zeroize::Zeroizing;

/// The largest RSA keys have some 12 KiB.
const KEY_FILE_MAX_BYTES: u64 = 64 * 1024;

/// What opens an encrypted key. It is wiped from memory when it is dropped, and never printed.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// A passphrase.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

/// A file with a key or certificate cannot be used.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Others than the owner may read or change it. `ssh` does not use such a key either.
    #[error("{path} is open to other users (mode {mode:o}); make it private with `chmod 600 {path}`")]
    NotPrivate {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It holds something else.
    #[error(
        "{path} holds no private key in OpenSSH's format; `ssh-keygen -p -f {path}` rewrites a key that is in an older one"
    )]
    NoPrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// It holds something else.
    #[error("{path} holds no OpenSSH certificate")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The key is encrypted, and nobody gave a passphrase.
    #[error("the key in {path} is encrypted; give its passphrase, or load it into ssh-agent with `ssh-add {path}`")]
    PassphraseNeeded {
        /// The file.
        path: PathBuf,
    },
    /// The passphrase is another one.
    #[error("the passphrase does not open the key in {path}")]
    WrongPassphrase {
        /// The file.
        path: PathBuf,
    },
    /// The certificate is for another key.
    #[error("the certificate in {certificate} is for another key than the one in {key}")]
    OtherKey {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
}

/// Reads a key as it stands in the file, perhaps encrypted.
pub(crate) fn read_private_key(path: &Path) -> Result<PrivateKey, KeyFileError> {
    let failed = |source| KeyFileError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(ErrorKind::IsADirectory.into()));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::NotPrivate { path: path.to_owned(), mode });
    }
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(KEY_FILE_MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    PrivateKey::from_openssh(bytes.as_slice()).map_err(|_| KeyFileError::NoPrivateKey { path: path.to_owned() })
}

/// Opens an encrypted key. Takes a good part of a second, on purpose of the format.
pub(crate) fn decrypt(
    key: &PrivateKey,
    passphrase: Option<&Passphrase>,
    path: &Path,
) -> Result<PrivateKey, KeyFileError> {
    let Some(Passphrase(passphrase)) = passphrase else {
        return Err(KeyFileError::PassphraseNeeded { path: path.to_owned() });
    };
    key.decrypt(passphrase.as_bytes()).map_err(|_| KeyFileError::WrongPassphrase { path: path.to_owned() })
}

/// Reads a certificate; `None` where there is no file.
pub(crate) fn read_certificate(path: &Path) -> Result<Option<Certificate>, KeyFileError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(KeyFileError::Read { path: path.to_owned(), source }),
    };
    let certificate = Certificate::from_openssh(text.trim());
    certificate.map(Some).map_err(|_| KeyFileError::NoCertificate { path: path.to_owned() })
}

/// Writes a key, unencrypted.
pub(crate) fn write_private_key(path: &Path, key: &PrivateKey) -> Result<(), KeyFileError> {
    let text = key.to_openssh(LineEnding::LF).map_err(|_| KeyFileError::NoPrivateKey { path: path.to_owned() })?;
    write(path, text.as_bytes(), 0o600)
}

/// Writes a neighbour of the file and puts it in its place: a crash leaves the old file or the new one, nobody ever sees
/// it with a wider mode, and sshd, which may read it at any time, never sees half of it.
pub(crate) fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), KeyFileError> {
    let failed = |source| KeyFileError::Write { path: path.to_owned(), source };
    let mut new_name = path.as_os_str().to_owned();
    new_name.push(".new");
    let new = PathBuf::from(new_name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new).map_err(failed)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&new, path).map_err(failed)
}
