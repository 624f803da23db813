//! With what a user proves who it is: keys in files, certificates for them, and keys in ssh-agent.

use crate::key_file::{self, KeyFileError, Passphrase};
use crate::validity::{Validity, ValidityFault};
use async_trait::async_trait;
use chrono::Utc;
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{Certificate, HashAlg, PrivateKey, PublicKey};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::time;

/// How long ssh-agent may take to list its keys.
const AGENT_DEADLINE: Duration = Duration::from_secs(10);

/// Where a key is to be found. Files are read anew for each login, so a renewed certificate is used by the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A private key in a file, in OpenSSH's format.
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The file with a certificate for the key; `None` for `PATH-cert.pub`, if there is one.
        certificate: Option<PathBuf>,
    },
    /// Every key that an ssh-agent holds.
    Agent {
        /// The agent's socket.
        socket: PathBuf,
    },
}

impl Identity {
    /// A key, with a certificate where one lies beside it.
    pub fn key_file(path: impl Into<PathBuf>) -> Self {
        Self::KeyFile { path: path.into(), certificate: None }
    }

    /// The agent of this process's environment (`SSH_AUTH_SOCK`), where there is one.
    pub fn agent_of_environment() -> Option<Self> {
        let socket = std::env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty())?;
        Some(Self::Agent { socket: socket.into() })
    }
}

/// Where passphrases of encrypted keys come from: a prompt, a credential file, a secret of the container.
#[async_trait]
pub trait Passphrases: Send + Sync {
    /// The passphrase of the key in `file`; `None` where nobody knows it.
    async fn passphrase(&self, file: &Path) -> Option<Passphrase>;
}

/// For whoever has no encrypted keys.
#[derive(Clone, Copy, Debug)]
pub struct NoPassphrases;

#[async_trait]
impl Passphrases for NoPassphrases {
    async fn passphrase(&self, _file: &Path) -> Option<Passphrase> {
        None
    }
}

/// A key that was to be used cannot be.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// It is in a file.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The agent does not answer as it should.
    #[error("ssh-agent at {socket} does not help: {reason}; is it running, and is SSH_AUTH_SOCK right?")]
    Agent {
        /// Its socket.
        socket: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// There is nothing to log in with.
    #[error("no key to log in with: name a key file, or start ssh-agent and add one (`ssh-add`)")]
    None,
}

/// A key that the server was offered, for whoever wonders why it did not take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedKey {
    /// The file, or the agent's name for the key.
    pub name: String,
    /// `SHA256:` and 43 characters.
    pub fingerprint: String,
    /// The certificate that came with it.
    pub certificate: Option<TriedCertificate>,
}

/// A certificate that the server was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedCertificate {
    /// How its authority calls it.
    pub key_id: String,
    /// Its number.
    pub serial: u64,
    /// Whom it lets somebody log in as.
    pub principals: Vec<String>,
    /// What the clock of this host has against it. The server goes by its own.
    pub validity: Option<ValidityFault>,
}

impl fmt::Display for TriedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.name, self.fingerprint)?;
        if let Some(certificate) = &self.certificate {
            let TriedCertificate { key_id, serial, principals, validity } = certificate;
            write!(f, ", certificate `{key_id}` number {serial} for {}", principals.join(", "))?;
            if let Some(fault) = validity {
                write!(f, "; {fault}")?;
            }
        }
        write!(f, ")")
    }
}

impl TriedCertificate {
    fn of(certificate: &Certificate) -> Self {
        Self {
            key_id: certificate.key_id().to_owned(),
            serial: certificate.serial(),
            principals: certificate.valid_principals().to_vec(),
            validity: Validity::of(certificate).check(Utc::now()).err(),
        }
    }
}

/// The agent's end of a connection.
pub(crate) type Agent = AgentClient<UnixStream>;

/// Something to offer to a server.
pub(crate) enum Credential {
    Key(Arc<PrivateKey>),
    CertifiedKey(Arc<PrivateKey>, Certificate),
    AgentKey(PublicKey, Arc<tokio::sync::Mutex<Agent>>),
    AgentCertificate(Certificate, Arc<tokio::sync::Mutex<Agent>>),
}

/// A credential and its description.
pub(crate) struct Offer {
    pub credential: Credential,
    pub tried: TriedKey,
}

impl Offer {
    fn new(name: String, credential: Credential) -> Self {
        let (key, certificate) = match &credential {
            Credential::Key(key) => (key.public_key().clone(), None),
            Credential::AgentKey(key, _) => (key.clone(), None),
            Credential::CertifiedKey(_, certificate) | Credential::AgentCertificate(certificate, _) => {
                (PublicKey::from(certificate.public_key().clone()), Some(TriedCertificate::of(certificate)))
            }
        };
        let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
        Self { credential, tried: TriedKey { name, fingerprint, certificate } }
    }
}

/// What all `identities` have to offer, in their order; a certificate before its bare key, as `ssh` does it.
///
/// One that cannot be used is an error though others could: whoever names a key wants it to be used.
pub(crate) async fn offers(
    identities: &[Identity],
    passphrases: &dyn Passphrases,
) -> Result<Vec<Offer>, IdentityError> {
    let mut offers = Vec::new();
    for identity in identities {
        match identity {
            Identity::KeyFile { path, certificate } => {
                offers.extend(from_file(path, certificate.as_deref(), passphrases).await?);
            }
            Identity::Agent { socket } => offers.extend(from_agent(socket).await?),
        }
    }
    if offers.is_empty() { Err(IdentityError::None) } else { Ok(offers) }
}

async fn from_file(
    path: &Path,
    certificate: Option<&Path>,
    passphrases: &dyn Passphrases,
) -> Result<Vec<Offer>, KeyFileError> {
    let key = Arc::new(private_key(path, passphrases).await?);
    let name = path.display().to_string();
    let mut offers = Vec::new();
    if let Some(certificate) = certificate_for(path, certificate, &key)? {
        offers.push(Offer::new(name.clone(), Credential::CertifiedKey(Arc::clone(&key), certificate)));
    }
    offers.push(Offer::new(name, Credential::Key(key)));
    Ok(offers)
}

/// Whether a key in a file, and its certificate, can be used as they stand: for whoever wants to know before a login does.
///
/// Blocks. An encrypted key is [`KeyFileError::PassphraseNeeded`].
pub fn check_key_file(path: &Path, certificate: Option<&Path>) -> Result<(), KeyFileError> {
    let key = key_file::read_private_key(path)?;
    certificate_for(path, certificate, &key)?;
    if key.is_encrypted() { Err(KeyFileError::PassphraseNeeded { path: path.to_owned() }) } else { Ok(()) }
}

async fn private_key(path: &Path, passphrases: &dyn Passphrases) -> Result<PrivateKey, KeyFileError> {
    let key = key_file::read_private_key(path)?;
    if !key.is_encrypted() {
        return Ok(key);
    }
    let passphrase = passphrases.passphrase(path).await;
    let owned = path.to_owned();
    let decrypted = tokio::task::spawn_blocking(move || key_file::decrypt(&key, passphrase.as_ref(), &owned)).await;
    decrypted.unwrap_or_else(|_| Err(KeyFileError::NoPrivateKey { path: path.to_owned() }))
}

fn certificate_for(
    key_path: &Path,
    named: Option<&Path>,
    key: &PrivateKey,
) -> Result<Option<Certificate>, KeyFileError> {
    let beside = || {
        let mut name = key_path.as_os_str().to_owned();
        name.push("-cert.pub");
        PathBuf::from(name)
    };
    let path = named.map_or_else(beside, Path::to_owned);
    let Some(certificate) = key_file::read_certificate(&path)? else {
        return if named.is_some() { Err(KeyFileError::NoCertificate { path }) } else { Ok(None) };
    };
    if certificate.public_key() != key.public_key().key_data() {
        return Err(KeyFileError::OtherKey { certificate: path, key: key_path.to_owned() });
    }
    Ok(Some(certificate))
}

async fn from_agent(socket: &Path) -> Result<Vec<Offer>, IdentityError> {
    let failed = |reason: String| IdentityError::Agent { socket: socket.to_owned(), reason };
    let asked = async {
        let mut agent = AgentClient::connect_uds(socket).await?;
        let identities = agent.request_identities().await?;
        Ok::<_, russh::keys::Error>((agent, identities))
    };
    let answered = time::timeout(AGENT_DEADLINE, asked).await.map_err(|_| failed("it does not answer".to_owned()))?;
    let (agent, identities) = answered.map_err(|error| failed(error.to_string()))?;
    let agent = Arc::new(tokio::sync::Mutex::new(agent));
    let offers = identities.into_iter().map(|identity| match identity {
        AgentIdentity::PublicKey { key, comment } => {
            Offer::new(format!("{comment} in ssh-agent"), Credential::AgentKey(key, Arc::clone(&agent)))
        }
        AgentIdentity::Certificate { certificate, comment } => {
            Offer::new(format!("{comment} in ssh-agent"), Credential::AgentCertificate(certificate, Arc::clone(&agent)))
        }
    });
    Ok(offers.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use russh::keys::Algorithm;
    use russh::keys::key::safe_rng;
    use std::os::unix::fs::PermissionsExt;

    fn new_key() -> PrivateKey {
        PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap()
    }

    async fn refusal(path: &Path) -> KeyFileError {
        match offers(&[Identity::key_file(path)], &NoPassphrases).await {
            Err(IdentityError::File(error)) => error,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("the key was taken"),
        }
    }

    #[tokio::test]
    async fn a_key_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        key_file::write_private_key(&path, &new_key()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(matches!(refusal(&path).await, KeyFileError::NotPrivate { mode: 0o644, .. }));
    }

    #[tokio::test]
    async fn files_without_a_key_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(matches!(refusal(&path).await, KeyFileError::Read { .. }));
        key_file::write(&path, b"something else", 0o600).unwrap();
        assert!(matches!(refusal(&path).await, KeyFileError::NoPrivateKey { .. }));
    }

    #[tokio::test]
    async fn a_certificate_for_another_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        key_file::write_private_key(&path, &new_key()).unwrap();
        let authority = crate::ca::CertificateAuthority::generate("test").unwrap();
        let valid = Validity { after: Utc::now(), before: None };
        let certificate = authority.sign_host(new_key().public_key(), "x", &["x".into()], valid).unwrap();
        std::fs::write(folder.path().join("key-cert.pub"), certificate.to_openssh().unwrap()).unwrap();
        assert!(matches!(refusal(&path).await, KeyFileError::OtherKey { .. }));
    }

    #[test]
    fn a_key_is_checked_before_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = new_key();
        key_file::write_private_key(&path, &key).unwrap();
        assert!(check_key_file(&path, None).is_ok());
        let named = folder.path().join("missing-cert.pub");
        assert!(matches!(check_key_file(&path, Some(&named)), Err(KeyFileError::NoCertificate { .. })));
        key_file::write_private_key(&path, &key.encrypt(&mut safe_rng(), "secret").unwrap()).unwrap();
        assert!(matches!(check_key_file(&path, None), Err(KeyFileError::PassphraseNeeded { .. })));
    }

    #[tokio::test]
    async fn nothing_to_log_in_with_is_an_error() {
        assert!(matches!(offers(&[], &NoPassphrases).await, Err(IdentityError::None)));
    }

    #[test]
    fn a_passphrase_is_not_printed() {
        assert_eq!(format!("{:?}", Passphrase::new("secret".to_owned())), "Passphrase(..)");
    }
}
