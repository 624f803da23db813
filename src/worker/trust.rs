//! Whom the worker trusts to be at its server's address, outside of the link.

use crate::config::ServerTrust;
use api::ServerUrl;
use link::OuterTls;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the trust cannot be set up.
#[derive(Debug, Error)]
pub enum TrustError {
    /// The file given with `--ca-file` cannot be read.
    #[error("cannot read the CA certificates in {path} (--ca-file): {source}")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls_pki_types::pem::Error,
    },
    /// It holds none, or one that is damaged.
    #[error("{path} (--ca-file) holds no usable CA certificate in PEM form")]
    NoCaCertificate {
        /// The file.
        path: PathBuf,
    },
    /// `https`, but nobody is trusted.
    #[error(
        "this host has no CA certificates, so no https server can be trusted; install the package ca-certificates or give --ca-file"
    )]
    NoRoots,
    /// The TLS library.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// The trust for that server. The host's authorities are read only when TLS will be spoken.
pub fn outer_tls(server: &ServerUrl, trust: &ServerTrust) -> Result<OuterTls, TrustError> {
    if !server.is_https() {
        return Ok(OuterTls::anybody()?);
    }
    match trust {
        ServerTrust::SameProcess | ServerTrust::LinkAlone => Ok(OuterTls::anybody()?),
        ServerTrust::Pinned(fingerprint) => Ok(OuterTls::pinned(fingerprint.bytes())?),
        ServerTrust::System => trust_authorities(Vec::new()),
        ServerTrust::CaFile(path) => trust_authorities(certificates_in(path)?),
    }
}

/// The authorities that the host knows, and `given`.
fn trust_authorities(given: Vec<CertificateDer<'static>>) -> Result<OuterTls, TrustError> {
    let mut roots = RootCertStore::empty();
    let host = rustls_native_certs::load_native_certs();
    for error in host.errors {
        tracing::debug!(%error, "cannot read a CA certificate of this host");
    }
    roots.add_parsable_certificates(host.certs);
    roots.add_parsable_certificates(given.iter().cloned());
    if roots.is_empty() {
        return Err(TrustError::NoRoots);
    }
    Ok(OuterTls::with_roots(roots, given)?)
}

fn certificates_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let read_failed = |source| TrustError::CaFile { path: path.to_owned(), source };
    let certificates: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(read_failed)?.collect::<Result<_, _>>().map_err(read_failed)?;
    let all_usable = certificates.iter().all(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok());
    if certificates.is_empty() || !all_usable {
        return Err(TrustError::NoCaCertificate { path: path.to_owned() });
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ca_file_that_holds_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let table: [(&str, Option<&str>); 3] = [
            ("absent.pem", None),
            ("empty.pem", Some("")),
            ("bad.pem", Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")),
        ];
        for (name, content) in table {
            let path = dir.path().join(name);
            if let Some(content) = content {
                std::fs::write(&path, content).unwrap();
            }
            let server = ServerUrl::parse("https://h").unwrap();
            let error = outer_tls(&server, &ServerTrust::CaFile(path)).unwrap_err();
            assert!(matches!(error, TrustError::CaFile { .. } | TrustError::NoCaCertificate { .. }), "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
