//! TLS 1.3 inside whatever carries the link: one cipher suite, one key exchange, raw public keys, no dates.
//!
//! Both sides are this program, so there is nothing to negotiate and nothing to talk a side down to. Keys are raw
//! (RFC 7250): a certificate would add dates and names, and neither is to decide anything here.

use crate::keys::{KeyPair, PublicKey};
use crate::meter::Traffic;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature_with_raw_key};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, CommonState, DigitallySignedStruct, DistinguishedName,
    ServerConfig, ServerConnection, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// What is spoken inside (RFC 7301). A later version that cannot be told apart by its messages gets another name.
const ALPN: &[u8] = b"gpustack-link/1";

/// Ed25519 signatures, AES-256-GCM, and a key exchange that also holds against somebody who records today and has a
/// quantum computer later.
pub(crate) fn provider() -> &'static Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        Arc::new(CryptoProvider {
            cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384],
            kx_groups: vec![aws_lc_rs::kx_group::X25519MLKEM768],
            ..aws_lc_rs::default_provider()
        })
    });
    &PROVIDER
}

/// The server's side of the encryption.
pub(crate) fn server_config(keys: &KeyPair) -> Result<ServerConfig, rustls::Error> {
    let resolver = AlwaysResolvesServerRawPublicKeys::new(keys.certified());
    let mut config = ServerConfig::builder_with_details(Arc::clone(provider()), Arc::new(NoClock))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(AnyEd25519))
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // no link resumes another one: each has fresh keys, and nothing is there to be replayed or stolen
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(config)
}

/// The worker's side. `seen` gets the key that the server shows.
pub(crate) fn client_config(
    keys: &KeyPair,
    expected: Option<PublicKey>,
    seen: Arc<OnceLock<PublicKey>>,
) -> Result<ClientConfig, rustls::Error> {
    let verifier = ExpectedServer { expected, seen };
    let mut config = ClientConfig::builder_with_details(Arc::clone(provider()), Arc::new(NoClock))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(keys.certified())));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

/// The API wants a name; none is sent and none is checked.
pub(crate) fn no_name() -> ServerName<'static> {
    ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// The key that the other side has proved to own.
pub(crate) fn peer_key(connection: &CommonState) -> Option<PublicKey> {
    PublicKey::from_spki(connection.peer_certificates()?.first()?)
}

/// Nothing here depends on the time, so a host whose clock stands before 1970 links as well as any other.
#[derive(Debug)]
struct NoClock;

impl TimeProvider for NoClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::ZERO))
    }
}

fn key_of(certificate: &CertificateDer<'_>) -> Result<PublicKey, rustls::Error> {
    PublicKey::from_spki(certificate).ok_or(rustls::Error::InvalidCertificate(CertificateError::BadEncoding))
}

fn signature_algorithms() -> &'static WebPkiSupportedAlgorithms {
    &provider().signature_verification_algorithms
}

fn verify_signature(
    message: &[u8],
    key: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    let spki = SubjectPublicKeyInfoDer::from(key.as_ref());
    verify_tls13_signature_with_raw_key(message, &spki, signature, signature_algorithms())
}

/// TLS 1.2 is not offered, so nothing ever calls for it.
fn no_tls12() -> Result<HandshakeSignatureValid, rustls::Error> {
    Err(rustls::Error::PeerIncompatible(rustls::PeerIncompatible::Tls12NotOffered))
}

/// Takes the pinned key only; where none is pinned, any, for the proof of the token to decide about.
#[derive(Debug)]
struct ExpectedServer {
    expected: Option<PublicKey>,
    seen: Arc<OnceLock<PublicKey>>,
}

impl ServerCertVerifier for ExpectedServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let key = key_of(end_entity)?;
        let _ = self.seen.set(key);
        match self.expected {
            Some(expected) if expected != key => Err(CertificateError::ApplicationVerificationFailure.into()),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Takes whoever owns the key it shows; the handshake after this one decides whether it may come in.
#[derive(Debug)]
struct AnyEd25519;

impl ClientCertVerifier for AnyEd25519 {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        key_of(end_entity).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// A TLS stream whose keys can be changed while it is in use.
pub(crate) trait RefreshKeys {
    fn refresh_keys(&mut self) -> Result<(), rustls::Error>;
}

impl<IO> RefreshKeys for tokio_rustls::server::TlsStream<IO> {
    fn refresh_keys(&mut self) -> Result<(), rustls::Error> {
        let connection: &mut ServerConnection = self.get_mut().1;
        connection.refresh_traffic_keys()
    }
}

impl<IO> RefreshKeys for tokio_rustls::client::TlsStream<IO> {
    fn refresh_keys(&mut self) -> Result<(), rustls::Error> {
        let connection: &mut ClientConnection = self.get_mut().1;
        connection.refresh_traffic_keys()
    }
}

/// Takes new traffic keys at an interval (RFC 8446, section 4.6.3), between two records, so that nobody notices.
///
/// The clock is looked at when something is written. A link that writes nothing needs no new keys, and pings make
/// every link write.
pub(crate) struct Rekeyed<T> {
    stream: T,
    interval: Duration,
    due: Instant,
    traffic: Arc<Traffic>,
}

impl<T> Rekeyed<T> {
    pub fn new(stream: T, interval: Duration, traffic: Arc<Traffic>) -> Self {
        Self { stream, interval, due: Instant::now() + interval, traffic }
    }
}

impl<T: RefreshKeys> Rekeyed<T> {
    fn refresh_when_due(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if now < self.due {
            return Ok(());
        }
        self.due = now + self.interval;
        self.stream.refresh_keys().map_err(io::Error::other)?;
        self.traffic.key_refreshed();
        Ok(())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Rekeyed<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + RefreshKeys + Unpin> AsyncWrite for Rekeyed<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.refresh_when_due()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.refresh_when_due()?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
