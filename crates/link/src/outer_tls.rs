//! Whom a worker trusts outside of the link, where the server's address is `https`. The link's own encryption does not
//! depend on it.

use aws_lc_rs::digest;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::fmt;
use std::io;
use std::sync::Arc;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Whom to trust outside.
#[derive(Clone)]
pub struct OuterTls {
    config: Arc<ClientConfig>,
}

/// The server shows another certificate than the one that was pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server shows another certificate than the pinned one")]
pub struct PinMismatch {
    /// SHA-256 of the pinned one.
    pub expected: [u8; 32],
    /// SHA-256 of the one that was shown.
    pub presented: [u8; 32],
}

impl OuterTls {
    /// Certificates that chain up to one of `roots` and name the host, and those in `given` themselves, whatever they
    /// say: private servers often have such a one, and no other holder of its key exists. Dates are not looked at, since
    /// a worker's clock may be wrong and the link inside has keys of its own.
    pub fn with_roots(roots: RootCertStore, given: Vec<CertificateDer<'static>>) -> Result<Self, rustls::Error> {
        let provider = provider();
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        Self::with_verifier(provider, Arc::new(DateBlind { verifier, given }))
    }

    /// The one certificate with this SHA-256, whoever signed it and whatever it says.
    pub fn pinned(sha256: [u8; 32]) -> Result<Self, rustls::Error> {
        let provider = provider();
        let verifier = HolderOfKey { accepted: Accepted::Pinned(sha256), provider: Arc::clone(&provider) };
        Self::with_verifier(provider, Arc::new(verifier))
    }

    /// Any certificate: the link's own encryption is all that counts.
    pub fn anybody() -> Result<Self, rustls::Error> {
        let provider = provider();
        let verifier = HolderOfKey { accepted: Accepted::Anybody, provider: Arc::clone(&provider) };
        Self::with_verifier(provider, Arc::new(verifier))
    }

    /// Speaks TLS with `host` on a byte stream to it. Whoever calls this sets the deadline.
    pub async fn connect<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(self.config()).connect(name, stream).await
    }

    fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    fn with_verifier(
        provider: Arc<CryptoProvider>,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<Self, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        // the upgrade is a thing of HTTP/1.1
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config) })
    }
}

impl fmt::Debug for OuterTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OuterTls")
    }
}

/// What a proxy speaks is not ours to choose.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Checks a certificate as everybody does, at a time at which it is valid.
#[derive(Debug)]
struct DateBlind {
    verifier: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

/// A chain has at most this many certificates whose dates may each be in the way once.
const MAX_DATES: usize = 8;

impl ServerCertVerifier for DateBlind {
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
        let mut at = now;
        for _ in 0..MAX_DATES {
            match self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, at) {
                Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                    at = not_after;
                }
                Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
                    at = not_before;
                }
                decided => return decided,
            }
        }
        Err(CertificateError::Expired.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
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
    /// The certificate with this SHA-256.
    Pinned([u8; 32]),
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
        let Accepted::Pinned(expected) = self.accepted else { return Ok(ServerCertVerified::assertion()) };
        let mut presented = [0; 32];
        presented.copy_from_slice(digest::digest(&digest::SHA256, end_entity).as_ref());
        if presented == expected {
            return Ok(ServerCertVerified::assertion());
        }
        let mismatch = OtherError(Arc::new(PinMismatch { expected, presented }));
        Err(CertificateError::Other(mismatch).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
