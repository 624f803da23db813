//! `https` outside, with certificates of one's own.

use crate::support::{Server, Worker, ask, hello, no_outer_tls, text};
use aws_lc_rs::digest::{SHA256, digest};
use link::{DialError, OuterTls, TransportError, UpgradeError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// A certificate authority, and a certificate of it for `localhost`.
struct Certificates {
    authority: CertificateDer<'static>,
    server: CertificateDer<'static>,
    server_key: PrivateKeyDer<'static>,
}

fn certificates(last_year: i32) -> Certificates {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    server.not_before = rcgen::date_time_ymd(2001, 1, 1);
    server.not_after = rcgen::date_time_ymd(last_year, 1, 1);
    let certificate = server.signed_by(&key, &issuer).unwrap();
    Certificates {
        authority: issuer.der().clone(),
        server: certificate.der().clone(),
        server_key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    }
}

/// Ends TLS in front of a server, as a reverse proxy does.
struct TlsProxy {
    url: String,
    _running: AbortOnDropHandle<()>,
}

impl TlsProxy {
    async fn start(server: SocketAddr, certificates: &Certificates) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificates.server.clone()], certificates.server_key.clone_key())
            .unwrap();
        // one that would rather speak HTTP/2
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let running = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    let mut upstream = TcpStream::connect(server).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
                });
            }
        });
        Self { url: format!("https://localhost:{port}"), _running: AbortOnDropHandle::new(running) }
    }
}

fn trusting(authority: &CertificateDer<'static>) -> OuterTls {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).unwrap();
    OuterTls::with_roots(roots, Vec::new()).unwrap()
}

async fn links_with(outer_tls: OuterTls, certificates: &Certificates) -> Result<(), DialError> {
    let server = Server::start().await;
    let proxy = TlsProxy::start(server.address, certificates).await;
    let mut worker = Worker::of(&server);
    worker.url.clone_from(&proxy.url);
    worker.outer_tls = outer_tls;
    let link = worker.dial().await?;
    let _serving = crate::support::Serving::start(link, hello());
    let link = server.opened(1).await;
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
    Ok(())
}

#[tokio::test]
async fn a_private_authority_is_trusted_whatever_the_dates_are() {
    for last_year in [2002, 4000] {
        let certificates = certificates(last_year);
        links_with(trusting(&certificates.authority), &certificates).await.unwrap();
    }
}

#[tokio::test]
async fn a_pinned_certificate_is_trusted_and_no_other() {
    let certificates = certificates(4000);
    let sha256: [u8; 32] = digest(&SHA256, &certificates.server).as_ref().try_into().unwrap();
    links_with(OuterTls::pinned(sha256).unwrap(), &certificates).await.unwrap();
    let error = links_with(OuterTls::pinned([0; 32]).unwrap(), &certificates).await.unwrap_err();
    assert!(is_about_tls(&error), "{error}");
}

#[tokio::test]
async fn a_certificate_of_somebody_else_is_refused() {
    let error = links_with(no_outer_tls(), &certificates(4000)).await.unwrap_err();
    assert!(is_about_tls(&error), "{error}");
    // nor for another name
    let certificates = certificates(4000);
    let server = Server::start().await;
    let proxy = TlsProxy::start(server.address, &certificates).await;
    let mut worker = Worker::of(&server);
    worker.url = proxy.url.replace("localhost", "127.0.0.1");
    worker.outer_tls = trusting(&certificates.authority);
    let error = worker.dial().await.unwrap_err();
    assert!(is_about_tls(&error), "{error}");
}

fn is_about_tls(error: &DialError) -> bool {
    matches!(error, DialError::Upgrade(UpgradeError::Transport(TransportError::Tls { .. })))
}
