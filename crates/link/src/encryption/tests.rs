use super::*;
use rustls::{CipherSuite, HandshakeKind, NamedGroup, ProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

type Pair = (client::TlsStream<DuplexStream>, server::TlsStream<DuplexStream>);

async fn meet(client: ClientConfig, server: ServerConfig) -> Result<Pair, (io::Error, io::Error)> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let connected = TlsConnector::from(Arc::new(client)).connect(no_name(), near);
    let accepted = TlsAcceptor::from(Arc::new(server)).accept(far);
    match tokio::join!(connected, accepted) {
        (Ok(client), Ok(server)) => Ok((client, server)),
        (client, server) => Err((
            client.err().unwrap_or_else(|| io::Error::other("the client is content")),
            server.err().unwrap_or_else(|| io::Error::other("the server is content")),
        )),
    }
}

fn worker_config() -> ClientConfig {
    client_config(&KeyPair::generate().unwrap(), None, Arc::default()).unwrap()
}

#[tokio::test]
async fn every_link_has_the_one_suite_and_fresh_keys() {
    let server = server_config(&KeyPair::generate().unwrap()).unwrap();
    let client = worker_config();
    for _ in 0..2 {
        let (near, _far) = meet(client.clone(), server.clone()).await.unwrap();
        let connection = near.get_ref().1;
        assert_eq!(connection.protocol_version(), Some(ProtocolVersion::TLSv1_3));
        let suite = connection.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(suite, CipherSuite::TLS13_AES_256_GCM_SHA384);
        let group = connection.negotiated_key_exchange_group().unwrap().name();
        assert_eq!(group, NamedGroup::X25519MLKEM768);
        // nothing was kept of the first one that could be used, or stolen, for the second
        assert_eq!(connection.handshake_kind(), Some(HandshakeKind::Full));
        assert_eq!(connection.tls13_tickets_received(), 0);
    }
}

/// A client of another kind, with what this program does not have.
fn foreign_client(provider: CryptoProvider, versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
    let verifier = ExpectedServer { expected: None, seen: Arc::default() };
    let keys = KeyPair::generate().unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(keys.certified())));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

#[tokio::test]
async fn nobody_is_talked_down_to_something_weaker() {
    let others = || CryptoProvider {
        cipher_suites: vec![
            aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
            aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..aws_lc_rs::default_provider()
    };
    let classical = CryptoProvider { kx_groups: vec![aws_lc_rs::kx_group::X25519], ..aws_lc_rs::default_provider() };
    let table = [
        ("TLS 1.2", foreign_client(aws_lc_rs::default_provider(), &[&rustls::version::TLS12])),
        ("other suites", foreign_client(others(), &[&rustls::version::TLS13])),
        ("another key exchange", foreign_client(classical, &[&rustls::version::TLS13])),
    ];
    for (name, client) in table {
        let server = server_config(&KeyPair::generate().unwrap()).unwrap();
        assert!(meet(client, server).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_client_without_a_key_is_refused() {
    let mut client = worker_config();
    client.client_auth_cert_resolver = Arc::new(NoKey);
    let server = server_config(&KeyPair::generate().unwrap()).unwrap();
    let met = meet(client, server).await;
    // in TLS 1.3 the client is done before the server has seen that there is no key
    assert!(met.is_err());
}

#[derive(Debug)]
struct NoKey;

impl rustls::client::ResolvesClientCert for NoKey {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }

    fn only_raw_public_keys(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_client_of_another_protocol_is_refused() {
    let mut client = worker_config();
    client.alpn_protocols = vec![b"gpustack-link/2".to_vec()];
    let server = server_config(&KeyPair::generate().unwrap()).unwrap();
    let (near, _) = meet(client, server).await.err().unwrap();
    assert!(near.to_string().contains("NoApplicationProtocol"), "{near}");
}

#[tokio::test(start_paused = true)]
async fn new_keys_are_taken_at_the_interval_and_data_goes_on() {
    let mut server = server_config(&KeyPair::generate().unwrap()).unwrap();
    server.enable_secret_extraction = true;
    let mut client = worker_config();
    client.enable_secret_extraction = true;
    let (near, far) = meet(client, server).await.unwrap();
    let (near_traffic, far_traffic) = (Traffic::new(), Traffic::new());
    let minute = Duration::from_mins(1);
    let mut near = Rekeyed::new(near, minute, Arc::clone(&near_traffic));
    let mut far = Rekeyed::new(far, Duration::from_hours(24), far_traffic);
    for round in 0..10_u8 {
        tokio::time::advance(minute / 2).await;
        near.write_all(&[round]).await.unwrap();
        near.flush().await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), round);
        far.write_all(&[round]).await.unwrap();
        far.flush().await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), round);
    }
    assert_eq!(near_traffic.key_refreshes(), 5);
    // the numbers of records start anew with each key: both directions have new ones since the last round
    let sent = near.stream.into_inner().1.dangerous_extract_secrets().unwrap();
    assert_eq!(sent.tx.0, 1, "records since the last key");
    assert_eq!(sent.rx.0, 1, "the answer to a new key is a new key");
}
