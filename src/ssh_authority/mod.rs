//! The server as an SSH certificate authority: who may log in where as whom, for some days, and for forwards only.
//!
//! Its state is a folder in the server's data directory, which the server and `gpustack tunnel ca` both work on: the key,
//! what was signed, and the list of what was revoked. A change takes the folder's lock, reads, and writes whole files.

mod register;

pub use register::{Grant, Held, RevokedKeys, Signed};

use crate::data_dir::{DataDir, DataDirError};
use chrono::{DateTime, TimeDelta, Utc};
use register::{Due, Register};
use rustix::fs::FlockOperation;
use ssh::ca::{CertificateAuthority, Network, SignError, UserCertificate, WriteListError};
use ssh::{KeyFileError, PublicKey, Validity};
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::path::PathBuf;
use thiserror::Error;

const FOLDER: &str = "ssh_authority";
const KEY: &str = "ca_key";
/// For `TrustedUserCAKeys` of `sshd_config`.
const PUBLIC_KEY: &str = "ca_key.pub";
/// For `RevokedKeys` of `sshd_config`.
const REVOKED: &str = "revoked_keys";
const REGISTER: &str = "signed.json";
const COMMENT: &str = "gpustack tunnels";
/// sshd goes by its own clock, which may be a little behind.
const EARLY: TimeDelta = TimeDelta::minutes(5);

/// Why the authority does not do what it is asked.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// There is none.
    #[error("the server is no SSH certificate authority yet; make it one with `gpustack tunnel ca init`")]
    None,
    /// There is one already. Another key would make all certificates and all servers' settings worthless.
    #[error("the server is an SSH certificate authority already; `gpustack tunnel ca show` shows its key")]
    Exists,
    /// Its folder.
    #[error(transparent)]
    Folder(#[from] DataDirError),
    /// Its key.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// What it remembers is damaged.
    #[error(
        "{path} cannot be understood: {source}; restore it from a copy, since revoked certificates are noted there"
    )]
    Register {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// The folder cannot be locked.
    #[error("cannot lock {path}: {source}")]
    Lock {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The certificate.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The list of what was revoked.
    #[error(transparent)]
    List(#[from] WriteListError),
    /// The key was revoked.
    #[error("this key was revoked on {}; make a new key, or take a new one for what was signed before", at.format("%Y-%m-%d %H:%M UTC"))]
    Revoked {
        /// When.
        at: DateTime<Utc>,
    },
    /// Nothing that was signed is meant.
    #[error("nothing that was signed has {0}; `gpustack tunnel ca show` lists what was")]
    NothingSigned(String),
}

/// What is to be revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// The key of the certificate with this number.
    Serial(u64),
    /// All keys whose certificates have this name.
    KeyId(String),
    /// This key.
    Key(PublicKey),
}

/// The authority of a server.
#[derive(Clone, Debug)]
pub struct Authority {
    folder: DataDir,
}

/// Held as long as it lives.
struct FolderLock(#[expect(dead_code, reason = "the lock is the open file's")] File);

impl Authority {
    /// Makes the server with this data directory one.
    pub fn init(server: &DataDir) -> Result<Self, AuthorityError> {
        let authority = Self { folder: DataDir::open(&server.file(FOLDER))? };
        let _lock = authority.lock()?;
        if authority.folder.file(KEY).exists() {
            return Err(AuthorityError::Exists);
        }
        let key = CertificateAuthority::generate(COMMENT)?;
        authority.write_register(&Register::default(), &key)?;
        authority.folder.write(PUBLIC_KEY, &openssh_line(key.public_key())?)?;
        // last, as it is what tells that there is an authority
        key.save(&authority.folder.file(KEY))?;
        Ok(authority)
    }

    /// That of the server with this data directory.
    pub fn open(server: &DataDir) -> Result<Self, AuthorityError> {
        let folder = match DataDir::existing(&server.file(FOLDER)) {
            Ok(folder) => folder,
            Err(DataDirError::Missing { .. }) => return Err(AuthorityError::None),
            Err(error) => return Err(error.into()),
        };
        if !folder.file(KEY).exists() {
            return Err(AuthorityError::None);
        }
        Ok(Self { folder })
    }

    /// The file for `TrustedUserCAKeys`.
    pub fn public_key_file(&self) -> PathBuf {
        self.folder.file(PUBLIC_KEY)
    }

    /// The file for `RevokedKeys`.
    pub fn revoked_file(&self) -> PathBuf {
        self.folder.file(REVOKED)
    }

    /// What servers are to trust, as one line of OpenSSH's format.
    pub fn public_key(&self) -> Result<String, AuthorityError> {
        openssh_line(self.key()?.public_key())
    }

    /// What was signed and is not long past, in its order.
    pub fn signed(&self) -> Result<Vec<Signed>, AuthorityError> {
        Ok(self.register()?.signed)
    }

    /// The keys that were revoked.
    pub fn revoked_keys(&self) -> Result<RevokedKeys, AuthorityError> {
        Ok(self.register()?.revoked_keys())
    }

    /// Signs a certificate for what is granted, and remembers it. In OpenSSH's format.
    pub fn sign(&self, grant: &Grant, now: DateTime<Utc>) -> Result<String, AuthorityError> {
        let _lock = self.lock()?;
        let mut register = self.register()?;
        if let Some(at) = register.revoked_at(&grant.public_key) {
            return Err(AuthorityError::Revoked { at });
        }
        self.sign_and_write(&mut register, grant, now)
    }

    /// What the holder of a key is to get in place of the certificate that it has: a new one when two thirds of the last
    /// one's life are over, with what was granted then; the last one when it does not have that; None when it has it, or
    /// may have none.
    pub fn renew(
        &self,
        public_key: &str,
        held: Option<&Held>,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, AuthorityError> {
        let _lock = self.lock()?;
        let mut register = self.register()?;
        match register.due(public_key, held, now) {
            None => Ok(None),
            Some(Due::Last(certificate)) => Ok(Some(certificate)),
            Some(Due::New(grant)) => self.sign_and_write(&mut register, &grant, now).map(Some),
        }
    }

    /// Sees to it that neither these keys nor their certificates are good any more, and tells which certificates that are.
    pub fn revoke(&self, what: &Revocation, now: DateTime<Utc>) -> Result<Vec<Signed>, AuthorityError> {
        let _lock = self.lock()?;
        let mut register = self.register()?;
        let revoked = register.revoke(what, now)?;
        self.write_register(&register, &self.key()?)?;
        Ok(revoked)
    }

    fn sign_and_write(
        &self,
        register: &mut Register,
        grant: &Grant,
        now: DateTime<Utc>,
    ) -> Result<String, AuthorityError> {
        let key = self.key()?;
        let serial = register.next_serial();
        let validity = Validity { after: now - EARLY, before: Some(now + grant.lifetime()) };
        let certificate = key.sign_user(&UserCertificate {
            key: grant.key()?,
            key_id: grant.key_id.clone(),
            serial,
            principals: grant.principals.clone(),
            validity,
            source_addresses: grant.networks()?,
        })?;
        let certificate = certificate.to_openssh().map_err(|error| SignError::Format(error.to_string()))?;
        register.add(grant, serial, certificate.clone(), now);
        // what was signed is known before anybody has it
        self.write_register(register, &key)?;
        Ok(certificate)
    }

    fn key(&self) -> Result<CertificateAuthority, AuthorityError> {
        Ok(CertificateAuthority::load(&self.folder.file(KEY), None)?)
    }

    fn register(&self) -> Result<Register, AuthorityError> {
        let Some(text) = self.folder.read(REGISTER)? else { return Ok(Register::default()) };
        serde_json::from_str(&text)
            .map_err(|source| AuthorityError::Register { path: self.folder.file(REGISTER), source })
    }

    fn write_register(&self, register: &Register, key: &CertificateAuthority) -> Result<(), AuthorityError> {
        register.revocation_list(key.public_key(), Utc::now())?.write(&self.revoked_file())?;
        let text = serde_json::to_string_pretty(register).unwrap_or_default();
        Ok(self.folder.write(REGISTER, &text)?)
    }

    /// Waits for whoever has it; nobody keeps it for longer than it takes to write three small files.
    fn lock(&self) -> Result<FolderLock, AuthorityError> {
        let path = self.folder.path();
        let failed = |source| AuthorityError::Lock { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        Ok(FolderLock(file))
    }
}

fn openssh_line(key: &PublicKey) -> Result<String, AuthorityError> {
    key.to_openssh().map_err(|error| SignError::Format(error.to_string()).into())
}

/// Addresses as `10.0.0.0/8`, or one alone.
pub fn network(text: &str) -> Result<Network, String> {
    let wrong = || format!("`{text}` is no network: write an address such as 10.0.0.7, or a range such as 10.0.0.0/8");
    let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
    let address: std::net::IpAddr = address.parse().map_err(|_| wrong())?;
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let prefix_bits = prefix.map_or(Ok(whole), str::parse).map_err(|_| wrong())?;
    Network::new(address, prefix_bits).map_err(|error| format!("`{text}`: {error}"))
}

/// Never 0, which OpenSSH takes for "none".
fn serial(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)
}

#[cfg(test)]
mod tests;
