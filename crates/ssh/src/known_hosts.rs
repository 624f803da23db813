//! Whether a server is the one that it should be, by the files that `ssh` uses too.
//!
//! Nothing is trusted by itself: a key that no file knows is an error that carries the key, and a caller that asked
//! somebody writes it down with [`KnownHosts::trust`].

mod judge;
mod line;
pub(crate) mod pattern;

pub use judge::{HostCertificateFault, HostKeyError, KnownKey};

use crate::address::Endpoint;
use line::{HostNames, Line, Names, Purpose};
use pattern::Pattern;
use russh::keys::{Algorithm, HashAlg, PublicKey};
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// A server's key, as a person compares it: `ssh-keygen -l` on the server shows the same.
#[derive(Clone, PartialEq, Eq)]
pub struct HostKey {
    // behind a pointer, as errors carry it
    key: Arc<PublicKey>,
}

impl HostKey {
    pub(crate) fn new(key: PublicKey) -> Self {
        Self { key: Arc::new(key) }
    }

    /// The kind of key, e.g. `ssh-ed25519`.
    pub fn algorithm(&self) -> String {
        self.key.algorithm().to_string()
    }

    /// `SHA256:` and 43 characters.
    pub fn fingerprint(&self) -> String {
        self.key.fingerprint(HashAlg::Sha256).to_string()
    }

    /// The key itself.
    pub fn public_key(&self) -> &PublicKey {
        &self.key
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.algorithm(), self.fingerprint())
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({self})")
    }
}

/// The files that say which keys servers have. They are read anew for each connection.
#[derive(Clone, Debug)]
pub struct KnownHosts {
    own: PathBuf,
    others: Vec<PathBuf>,
}

/// A `known_hosts` file cannot be used.
#[derive(Debug, Error)]
pub enum KnownHostsError {
    /// It cannot be read. One that does not exist says nothing, and is no error.
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
    /// It knows the server by another key, which has to go first.
    #[error(
        "line {line} of {path} has another key for {host}; if the change is rightful, remove that line \
         (`ssh-keygen -R '{name}' -f {path}`), then trust the new key"
    )]
    OtherKeyKnown {
        /// The server.
        host: Endpoint,
        /// As the file calls it.
        name: String,
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// The key is one that cannot be written down.
    #[error("this kind of key ({0}) cannot be written to a known_hosts file")]
    Key(String),
    /// The pattern would mean something else in such a file.
    #[error("`{0}` is no pattern for names of hosts")]
    Pattern(String),
}

impl KnownHosts {
    /// `own` is also where keys are written that somebody decides to trust; `others` are only read, such as
    /// `/etc/ssh/ssh_known_hosts`.
    pub fn new(own: impl Into<PathBuf>, others: Vec<PathBuf>) -> Self {
        Self { own: own.into(), others }
    }

    /// Whether anything is known of `host`: a key, or an authority that may vouch for it. Blocks.
    pub fn has_any_for(&self, host: &Endpoint) -> Result<bool, KnownHostsError> {
        let book = self.read()?;
        Ok(book.has_authority_for(host) || !book.algorithms(host).is_empty())
    }

    /// Writes down that `host` has this key, after somebody has decided so. Does nothing where that is known already.
    ///
    /// A file that knows another key for the host is left as it is: two keys would both be good, and the old one may be
    /// in the wrong hands.
    pub fn trust(&self, host: &Endpoint, key: &HostKey) -> Result<(), KnownHostsError> {
        let names = HostNames::of(host);
        let book = self.read()?;
        if book.knows(&names.full, &key.key) {
            return Ok(());
        }
        if let Some(other) = book.other_key(&names.full) {
            let (path, line) = (other.file.to_path_buf(), other.number);
            return Err(KnownHostsError::OtherKeyKnown { host: host.clone(), name: names.full, path, line });
        }
        self.append(Purpose::Host, &names.full, &key.key)
    }

    /// Writes down that `authority` may vouch for all hosts whose names `pattern` means, e.g. `*.cluster.example`; with
    /// a port other than 22 a host's name is `[name]:port` there, or the name alone.
    pub fn trust_authority(&self, pattern: &str, authority: &PublicKey) -> Result<(), KnownHostsError> {
        self.append(Purpose::Authority, pattern, authority)
    }

    fn append(&self, purpose: Purpose, names: &str, key: &PublicKey) -> Result<(), KnownHostsError> {
        let no_pattern = || KnownHostsError::Pattern(names.to_owned());
        if names.contains(|character: char| character.is_whitespace() || "#@|".contains(character)) {
            return Err(no_pattern());
        }
        let patterns: Vec<_> =
            names.split(',').map(|text| Pattern::parse(text).ok_or_else(no_pattern)).collect::<Result<_, _>>()?;
        let line = Line { purpose, names: Names::Plain(patterns), key: key.clone() };
        let text = line.to_text().ok_or_else(|| KnownHostsError::Key(key.algorithm().to_string()))?;
        append_line(&self.own, &text).map_err(|source| KnownHostsError::Write { path: self.own.clone(), source })
    }

    /// Reads all files.
    pub(crate) fn read(&self) -> Result<Book, KnownHostsError> {
        let mut entries = Vec::new();
        for path in std::iter::once(&self.own).chain(&self.others) {
            let bytes = match std::fs::read(path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(source) => return Err(KnownHostsError::Read { path: path.clone(), source }),
            };
            let file: Arc<Path> = Arc::from(path.as_path());
            let lines = String::from_utf8_lossy(&bytes).lines().map(Line::parse).collect::<Vec<_>>();
            let numbered = lines.into_iter().zip(1..).filter_map(|(line, number)| Some((line?, number)));
            entries.extend(numbered.map(|(line, number)| Entry { line, file: Arc::clone(&file), number }));
        }
        Ok(Book { entries })
    }
}

/// A line, and where it stands.
pub(crate) struct Entry {
    line: Line,
    file: Arc<Path>,
    number: usize,
}

/// All that the files said at one time.
pub(crate) struct Book {
    entries: Vec<Entry>,
}

impl Book {
    /// Lines for one purpose that mean `name`.
    fn lines<'a>(&'a self, purpose: Purpose, name: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.line.purpose == purpose && entry.line.names.match_name(name))
    }

    fn knows(&self, name: &str, key: &PublicKey) -> bool {
        self.lines(Purpose::Host, name).any(|entry| entry.line.key.key_data() == key.key_data())
    }

    fn other_key<'a>(&'a self, name: &'a str) -> Option<&'a Entry> {
        self.lines(Purpose::Host, name).next()
    }

    /// Whether somebody may vouch for `host`. Only then is the server asked for a certificate: with one that nobody here
    /// can check it would be a stranger.
    pub fn has_authority_for(&self, host: &Endpoint) -> bool {
        let names = HostNames::of(host);
        [&names.full, &names.bare].into_iter().any(|name| self.lines(Purpose::Authority, name).next().is_some())
    }

    /// Kinds of key that are known for `host`. A server with keys of several kinds is asked for one of these first, or
    /// it would show one that nobody here has seen.
    pub fn algorithms(&self, host: &Endpoint) -> Vec<Algorithm> {
        let names = HostNames::of(host);
        let known = |name| self.lines(Purpose::Host, name).map(|entry| entry.line.key.algorithm());
        known(&names.full).chain(known(&names.bare)).collect()
    }
}

/// Adds one line. A last line without an end gets one first, and a new file is its owner's alone.
fn append_line(path: &Path, line: &str) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let unfinished = match std::fs::read(path) {
        Ok(bytes) => bytes.last().is_some_and(|last| *last != b'\n'),
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    let mut file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let text = format!("{}{line}\n", if unfinished { "\n" } else { "" });
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
