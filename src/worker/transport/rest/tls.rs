//! Whom the worker trusts.

use super::TransportError;
use crate::config::ServerTrust;
use crate::fingerprint::Fingerprint;
use api::ServerUrl;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// The TLS settings for talking to that server. The host's authorities are read only when TLS will be spoken.
pub(in crate::worker) fn client_config(
    server: &ServerUrl,
    trust: &ServerTrust,
) -> Result<ClientConfig, TransportError> {
    if !server.is_https() {
        return no_authorities();
    }
    match trust {
        ServerTrust::SameProcess => trust_anybody(),
        ServerTrust::Pinned(fingerprint) => {
            with_verifier(|provider| Ok(Arc::new(HolderOfKey { accepted: Accepted::Pinned(*fingerprint), provider })))
        }
        ServerTrust::System => trust_authorities(&[]),
        ServerTrust::CaFile(path) => trust_authorities(&certificates_in(path)?),
    }
}

/// Settings that believe any certificate. Nothing secret may be sent with them except to this same host.
pub(super) fn trust_anybody() -> Result<ClientConfig, TransportError> {
    with_verifier(|provider| Ok(Arc::new(HolderOfKey { accepted: Accepted::Anybody, provider })))
}

fn no_authorities() -> Result<ClientConfig, TransportError> {
    Ok(ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// Settings that believe the authorities that the host knows, and `given`.
fn trust_authorities(given: &[CertificateDer<'static>]) -> Result<ClientConfig, TransportError> {
    let mut roots = RootCertStore::empty();
    let host = rustls_native_certs::load_native_certs();
    for error in host.errors {
        tracing::debug!(%error, "cannot read a CA certificate of this host");
    }
    roots.add_parsable_certificates(host.certs);
    roots.add_parsable_certificates(given.iter().cloned());
    if roots.is_empty() {
        return Err(TransportError::NoRoots);
    }
    with_verifier(|provider| {
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        Ok(Arc::new(AuthoritiesOrGiven { authorities, given: given.to_vec() }))
    })
}

fn with_verifier(
    verifier: impl FnOnce(Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, TransportError>,
) -> Result<ClientConfig, TransportError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = verifier(Arc::clone(&provider))?;
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn certificates_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let read_failed = |source| TransportError::CaFile { path: path.to_owned(), source };
    let certificates: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(read_failed)?.collect::<Result<_, _>>().map_err(read_failed)?;
    let all_usable = certificates.iter().all(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok());
    if certificates.is_empty() || !all_usable {
        return Err(TransportError::NoCaCertificate { path: path.to_owned() });
    }
    Ok(certificates)
}

/// Believes what the authorities have signed. A server that shows one of the given certificates itself is believed
/// too, whatever its names and dates: private servers often have such a one, and no other holder of its key exists.
#[derive(Debug)]
struct AuthoritiesOrGiven {
    authorities: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for AuthoritiesOrGiven {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.given.iter().any(|given| given.as_ref() == end_entity.as_ref()) {
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// The server shows another certificate than the one that it was to show.
#[derive(Debug, Error)]
#[error("the certificate has the fingerprint {presented}, and not {expected}")]
pub(super) struct PinMismatch {
    pub(super) expected: Fingerprint,
    pub(super) presented: Fingerprint,
}

/// Looks at no name, date or issuer of a certificate, but still checks that the peer holds its key.
#[derive(Debug)]
struct HolderOfKey {
    accepted: Accepted,
    provider: Arc<CryptoProvider>,
}

#[derive(Clone, Copy, Debug)]
enum Accepted {
    Anybody,
    Pinned(Fingerprint),
}

impl ServerCertVerifier for HolderOfKey {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let presented = Fingerprint::of(end_entity);
        match self.accepted {
            Accepted::Pinned(expected) if expected != presented => {
                let mismatch = OtherError(Arc::new(PinMismatch { expected, presented }));
                Err(CertificateError::Other(mismatch).into())
            }
            Accepted::Pinned(_) | Accepted::Anybody => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
