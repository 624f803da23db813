//! How a worker gets a byte stream to its server, before any HTTP: TCP, and TLS around it for `https`.

use crate::io::{self, BoxedIo};
use async_trait::async_trait;
use aws_lc_rs::digest;
use http::Uri;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{self, Instant};
use tokio_rustls::TlsConnector;

/// Opens a byte stream to the server. Tests put trouble in between here.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Opens one. Who calls this sets the deadline.
    async fn open(&self) -> Result<BoxedIo, TransportError>;
}

/// Why no byte stream came about.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The name has no address.
    #[error("cannot find an address for {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The cause.
        source: std::io::Error,
    },
    /// Nobody takes the connection.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address that was tried last.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The TLS outside failed.
    #[error("cannot speak https with {host}: {source}")]
    Tls {
        /// The name in the address.
        host: String,
        /// The cause.
        source: std::io::Error,
    },
}

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    https: bool,
    host: String,
    port: u16,
    /// What stands before [`LINK_PATH`](crate::LINK_PATH); empty, or begins with a slash and does not end with one.
    base_path: String,
}

/// The address cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// It is neither `http` nor `https`.
    #[error("{0} is no address of a server: it begins with http:// or https://")]
    Scheme(Uri),
    /// It names nobody.
    #[error("{0} is no address of a server: the host is missing")]
    Host(Uri),
}

impl TryFrom<&Uri> for ServerAddress {
    type Error = AddressError;

    fn try_from(uri: &Uri) -> Result<Self, AddressError> {
        let https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(AddressError::Scheme(uri.clone())),
        };
        let host = uri.host().map(|host| host.trim_start_matches('[').trim_end_matches(']'));
        let host = host.filter(|host| !host.is_empty()).ok_or_else(|| AddressError::Host(uri.clone()))?;
        Ok(Self {
            https,
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if https { 443 } else { 80 }),
            base_path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl ServerAddress {
    /// The `Host` header.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.https { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }

    pub(crate) fn base_path(&self) -> &str {
        &self.base_path
    }
}

/// Whom to trust outside, for `https`. The link's own encryption does not depend on it.
#[derive(Clone)]
pub struct OuterTls {
    config: Arc<ClientConfig>,
}

impl OuterTls {
    /// Certificates that chain up to one of `roots` and name the host. Their dates are not looked at, since a worker's
    /// clock may be wrong and the link inside has keys of its own.
    pub fn with_roots(roots: RootCertStore) -> Result<Self, rustls::Error> {
        let provider = outer_provider();
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        Self::with_verifier(provider, Arc::new(DateBlind { verifier }))
    }

    /// The one certificate with this SHA-256, whoever signed it and whatever it says.
    pub fn pinned(sha256: [u8; 32]) -> Result<Self, rustls::Error> {
        let provider = outer_provider();
        Self::with_verifier(Arc::clone(&provider), Arc::new(Pinned { sha256, provider }))
    }

    /// Whomever these settings trust, as those of the program's other connections to the server.
    pub fn with_config(mut config: ClientConfig) -> Self {
        // the upgrade is a thing of HTTP/1.1
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { config: Arc::new(config) }
    }

    fn with_verifier(
        provider: Arc<CryptoProvider>,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<Self, rustls::Error> {
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Self::with_config(config))
    }
}

impl fmt::Debug for OuterTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OuterTls")
    }
}

/// What a proxy speaks is not ours to choose.
fn outer_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A direct connection. It never asks the environment for a proxy.
#[derive(Clone, Debug)]
pub struct DirectTransport {
    address: ServerAddress,
    outer_tls: OuterTls,
    connect_timeout: Duration,
}

impl DirectTransport {
    /// Connects to `address`; tries each of its IP addresses for at most `connect_timeout`.
    pub fn new(address: ServerAddress, outer_tls: OuterTls, connect_timeout: Duration) -> Self {
        Self { address, outer_tls, connect_timeout }
    }

    async fn connect(&self) -> Result<TcpStream, TransportError> {
        let host = self.address.host.as_str();
        let resolve = |source| TransportError::Resolve { host: host.to_owned(), source };
        let found = time::timeout(self.connect_timeout, tokio::net::lookup_host((host, self.address.port))).await;
        let addresses = found.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())).map_err(resolve)?;
        let mut last = resolve(std::io::ErrorKind::NotFound.into());
        for address in addresses {
            let deadline = Instant::now() + self.connect_timeout;
            let connected = time::timeout_at(deadline, TcpStream::connect(address)).await;
            match connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
                Ok(stream) => return Ok(stream),
                Err(source) => last = TransportError::Connect { address, source },
            }
        }
        Err(last)
    }
}

#[async_trait]
impl Transport for DirectTransport {
    async fn open(&self) -> Result<BoxedIo, TransportError> {
        let stream = self.connect().await?;
        io::tune_socket(&stream);
        if !self.address.https {
            return Ok(Box::new(stream));
        }
        let failed = |source| TransportError::Tls { host: self.address.host.clone(), source };
        let name =
            ServerName::try_from(self.address.host.clone()).map_err(|error| failed(std::io::Error::other(error)))?;
        let connector = TlsConnector::from(Arc::clone(&self.outer_tls.config));
        Ok(Box::new(connector.connect(name, stream).await.map_err(failed)?))
    }
}

/// Checks a certificate as everybody does, at a time at which it is valid.
#[derive(Debug)]
struct DateBlind {
    verifier: Arc<WebPkiServerVerifier>,
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

/// Takes one certificate only.
#[derive(Debug)]
struct Pinned {
    sha256: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if digest::digest(&digest::SHA256, end_entity).as_ref() == self.sha256 {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<ServerAddress, AddressError> {
        ServerAddress::try_from(&text.parse::<Uri>().unwrap())
    }

    #[test]
    fn addresses_and_what_becomes_of_them() {
        let table = [
            ("http://server:8090", "server:8090", ""),
            ("http://server:8090/", "server:8090", ""),
            ("http://server", "server", ""),
            ("https://server/gpu/", "server", "/gpu"),
            ("https://server:80", "server:80", ""),
            ("http://[::1]:8090", "[::1]:8090", ""),
        ];
        for (text, authority, base_path) in table {
            let address = address(text).unwrap();
            assert_eq!((address.authority().as_str(), address.base_path()), (authority, base_path), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_server() {
        assert!(matches!(address("ftp://server"), Err(AddressError::Scheme(_))));
        assert!(matches!(address("/path"), Err(AddressError::Scheme(_))));
    }
}
