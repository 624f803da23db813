//! The server's certificate: read with errors that name the file, and read again when the files change.

use crate::config::TlsFiles;
use crate::fingerprint::Fingerprint;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How soon a renewed certificate is used.
const RELOAD_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Speaks TLS with the certificate in two files. Cloning it clones a handle.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    seen: Stamps,
    current: Arc<CurrentCertificate>,
    acceptor: TlsAcceptor,
}

/// Why the certificate cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the {role} {path}: {source}")]
    Read {
        /// Which of the two.
        role: FileRole,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file holds no PEM of the right kind.
    #[error("the {role} {path} {problem}")]
    Content {
        /// Which of the two.
        role: FileRole,
        /// The file.
        path: PathBuf,
        /// What is wrong and what belongs there.
        problem: &'static str,
    },
    /// The certificate is of another key.
    #[error("the certificate {certificate} does not belong to the private key {key}")]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// Neither file is at fault alone.
    #[error("the certificate {certificate} with the private key {key} cannot be used: {source}")]
    Unusable {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
}

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// `--ssl-certfile`.
    Certificate,
    /// `--ssl-keyfile`.
    Key,
}

impl fmt::Display for FileRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "certificate (--ssl-certfile)",
            Self::Key => "private key (--ssl-keyfile)",
        })
    }
}

impl Tls {
    /// Reads both files and checks that they belong together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let seen = Stamps::of(files);
        let current = Arc::new(CurrentCertificate(RwLock::new(Arc::new(read(files)?))));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let unusable =
            |source| TlsError::Unusable { certificate: files.certificate.clone(), key: files.key.clone(), source };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { files: files.clone(), seen, current, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Of the certificate that is shown now.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.current.get().cert.first().map(Fingerprint::of)
    }

    /// Whether nobody else vouches for the certificate that is shown now, so that others must be told which it is.
    pub fn is_self_signed(&self) -> bool {
        let current = self.current.get();
        let [certificate] = current.cert.as_slice() else { return false };
        webpki::EndEntityCert::try_from(certificate).is_ok_and(|parsed| parsed.issuer() == parsed.subject())
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Looks at the files now and then, by name, since renewals replace them. A pair that cannot be used leaves the
    /// one in use.
    pub(super) async fn reload_on_change(mut self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(RELOAD_CHECK_INTERVAL) => self.reload_if_changed(),
            }
        }
    }

    fn reload_if_changed(&mut self) {
        let now = Stamps::of(&self.files);
        if now == self.seen {
            return;
        }
        self.seen = now;
        match read(&self.files) {
            Ok(certificate) => {
                self.current.replace(certificate);
                let fingerprint = self.fingerprint().map(tracing::field::display);
                tracing::info!(certificate = %self.files.certificate.display(), fingerprint, "certificate read again");
            }
            Err(error) => tracing::warn!(%error, "the changed certificate cannot be used; the old one stays in use"),
        }
    }
}

/// What tells one version of the files from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamps {
    certificate: Option<Stamp>,
    key: Option<Stamp>,
}

/// Inode, length, seconds and nanoseconds of the last change.
type Stamp = (u64, u64, i64, i64);

impl Stamps {
    fn of(files: &TlsFiles) -> Self {
        let stamp = |path: &Path| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
        };
        Self { certificate: stamp(&files.certificate), key: stamp(&files.key) }
    }
}

struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl CurrentCertificate {
    fn get(&self) -> Arc<CertifiedKey> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, certificate: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certificate);
    }
}

impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CurrentCertificate")
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let chain = read_chain(&files.certificate)?;
    let key = read_key(&files.key)?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map_err(|error| {
        let (certificate, key) = (files.certificate.clone(), files.key.clone());
        match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::Mismatch { certificate, key },
            source => TlsError::Unusable { certificate, key, source },
        }
    })
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read_file(FileRole::Certificate, path)?;
    let content = |problem| TlsError::Content { role: FileRole::Certificate, path: path.to_owned(), problem };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|_| content("is damaged: a PEM block in it cannot be read"))?;
    if !chain.is_empty() {
        return Ok(chain);
    }
    Err(content(if bytes.is_empty() {
        "is empty"
    } else if PrivateKeyDer::from_pem_slice(&bytes).is_ok() {
        "holds a private key and no certificate; the two files may be exchanged"
    } else {
        "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"
    }))
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read_file(FileRole::Key, path)?;
    let error = match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) => return Ok(key),
        Err(error) => error,
    };
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let problem = if bytes.is_empty() {
        "is empty"
    } else if holds(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || holds(b"Proc-Type: 4,ENCRYPTED") {
        "is encrypted with a passphrase; decrypt it first (openssl pkey -in KEY -out NEW)"
    } else if holds(b"-----BEGIN CERTIFICATE-----") {
        "holds a certificate and no private key; the two files may be exchanged"
    } else if matches!(error, pem::Error::NoItemsFound) {
        "holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)"
    } else {
        "is damaged: a PEM block in it cannot be read"
    };
    Err(TlsError::Content { role: FileRole::Key, path: path.to_owned(), problem })
}

fn read_file(role: FileRole, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { role, path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
