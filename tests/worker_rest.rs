//! The worker's REST transport against servers that misbehave: each fault has its own cause, on one line that says
//! what to do, and no secret gets anywhere it should not.

#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on fails the test")]

use api::{
    HeartbeatRequest, HeartbeatResponse, PROTOCOL_VERSION, RegisterRequest, RegisterResponse, ServerUrl, SessionId,
    WorkerId, WorkerUuid,
};
use axum::Router;
use axum::response::{Html, Redirect};
use axum::routing::{any, get, post};
use axum::{Json, http::HeaderMap};
use gpustack::config::{JoinToken, Secret, ServerTrust};
use gpustack::fingerprint::Fingerprint;
use gpustack::worker::{JoinError, Proof, RestTransport, Transport, TransportError};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls_pki_types::PrivateKeyDer;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

const TOKEN: &str = "c8e291d8045736ab3aa5ddb6de619291";

fn request() -> RegisterRequest {
    RegisterRequest {
        protocol: PROTOCOL_VERSION,
        version: "0".to_owned(),
        worker_uuid: WorkerUuid(Uuid::new_v4()),
        session_id: SessionId(Uuid::new_v4()),
        host_key: "key".to_owned(),
        name: None,
        previous_name: None,
        hostname: "host".to_owned(),
        ip: "127.0.0.1".to_owned(),
        port: 10150,
        labels: BTreeMap::new(),
        system_reserved: None,
    }
}

fn response() -> RegisterResponse {
    RegisterResponse {
        worker_id: WorkerId(1),
        name: "host".to_owned(),
        credential: Some("credential".to_owned()),
        heartbeat_interval_s: 10,
        server_version: "0".to_owned(),
    }
}

async fn begin(url: &str, trust: &ServerTrust) -> Result<RegisterResponse, JoinError> {
    let transport = RestTransport::new(ServerUrl::parse(url).unwrap(), trust).unwrap();
    let result = transport.begin_session(&request(), &Proof::JoinToken(JoinToken::parse(TOKEN).unwrap())).await;
    if let Err(error) = &result {
        let line = error.to_string();
        assert!(!line.contains('\n') && !line.contains(TOKEN), "{line}");
    }
    result
}

async fn refusal(url: &str) -> JoinError {
    begin(url, &ServerTrust::System).await.unwrap_err()
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn serve(router: Router) -> SocketAddr {
    let (listener, address) = listen().await;
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// A server that gives `answer` to whatever comes and closes.
async fn serve_bytes(answer: &'static [u8]) -> SocketAddr {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = [0; 4096];
            // whatever it was, and whether or not the other side still listens
            let _ = stream.read(&mut heard).await;
            let _ = stream.write_all(answer).await;
        }
    });
    address
}

/// Joins as our server lets it.
fn our_server() -> Router {
    Router::new()
        .route("/v1/worker-sessions", post(async || Json(response())))
        .route("/healthz", get(async || "\"ok\""))
}

#[tokio::test]
async fn a_port_where_nothing_listens_is_refused() {
    let (listener, address) = listen().await;
    drop(listener);
    assert_eq!(refusal(&format!("http://{address}")).await, JoinError::Refused { address: address.to_string() });
}

#[tokio::test]
async fn a_name_without_an_address_is_not_resolved() {
    // no resolver may ever answer for names under .invalid (RFC 6761, section 6.4)
    assert_eq!(refusal("http://gpu.invalid:8090").await, JoinError::NotResolved { host: "gpu.invalid".to_owned() });
}

#[tokio::test]
async fn a_tunnel_whose_far_end_is_down_closes_the_connection() {
    let address = serve_bytes(b"").await;
    assert_eq!(refusal(&format!("http://{address}")).await, JoinError::Closed { address: address.to_string() });
}

#[tokio::test]
async fn what_is_no_http_is_told() {
    let address = serve_bytes(b"SSH-2.0-OpenSSH_9.6\r\n").await;
    assert_eq!(refusal(&format!("http://{address}")).await, JoinError::HttpNotSpoken { address: address.to_string() });
}

#[tokio::test]
async fn another_service_is_described_and_a_redirect_is_not_followed() {
    let address = serve(
        Router::new()
            .route("/page/v1/worker-sessions", any(async || Html("<html><title>Grafana</title></html>")))
            .route("/json/v1/worker-sessions", any(async || Json(serde_json::json!({"ok": true}))))
            .route("/moved/v1/worker-sessions", any(async || Redirect::temporary("/v1/worker-sessions")))
            .merge(our_server()),
    )
    .await;
    let url = |part: &str| format!("http://{address}/{part}/v1/worker-sessions");
    let other =
        |part: &str, status: u16, what: &str| JoinError::OtherService { url: url(part), status, what: what.to_owned() };
    let ask = async |part: &str| refusal(&format!("http://{address}/{part}")).await;
    assert_eq!(ask("page").await, other("page", 200, "an HTML page titled \"Grafana\""));
    assert_eq!(ask("json").await, other("json", 200, "JSON of another kind"));
    assert_eq!(ask("none").await, other("none", 404, "an empty answer"));
    let moved = JoinError::Redirected { url: url("moved"), location: "/v1/worker-sessions".to_owned() };
    assert_eq!(ask("moved").await, moved);
}

#[tokio::test]
async fn every_spelling_of_the_server_url_reaches_the_server() {
    let address = serve(our_server().nest("/base", our_server())).await;
    let port = address.port();
    let spellings = [
        format!("http://{address}"),
        format!("http://{address}/"),
        address.to_string(),
        format!(" http://{address} \n"),
        format!("HTTP://{address}//"),
        format!("http://{address}/base"),
        format!("{address}/base/"),
        format!("http://localhost:{port}/"),
    ];
    for url in spellings {
        assert_eq!(begin(&url, &ServerTrust::System).await, Ok(response()), "{url:?}");
    }
}

#[tokio::test]
async fn the_secret_is_sent_as_a_bearer_and_the_heartbeat_measures_the_clock() {
    let heartbeat = async |headers: HeaderMap| {
        assert_eq!(headers["authorization"], "Bearer credential");
        Json(HeartbeatResponse { received_ms: 1_000, returned_ms: 1_000, status_wanted: true })
    };
    let address = serve(Router::new().route("/v1/worker-heartbeats", post(heartbeat))).await;
    let server = ServerUrl::parse(&format!("http://{address}")).unwrap();
    let transport = RestTransport::new(server, &ServerTrust::System).unwrap();
    let request = HeartbeatRequest { session_id: SessionId(Uuid::new_v4()), clock: None, leaving: false };
    let answer = transport.heartbeat(&request, &Secret::new("credential"), Duration::from_secs(8)).await.unwrap();
    assert!(answer.response.status_wanted);
    let measured = answer.clock_sample().measure().unwrap();
    assert!((measured.offset_ms - (answer.sent_ms - 1_000)).abs() <= measured.error_ms);
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_at_the_deadline() {
    let (listener, address) = listen().await;
    let server = ServerUrl::parse(&format!("http://{address}")).unwrap();
    let transport = RestTransport::new(server, &ServerTrust::System).unwrap();
    let request = HeartbeatRequest { session_id: SessionId(Uuid::new_v4()), clock: None, leaving: false };
    let error = transport.heartbeat(&request, &Secret::new("credential"), Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(error, JoinError::TimedOut { address: address.to_string(), timeout_s: 1 });
    drop(listener);
}

/// An authority of our own, in a file, and certificates from it.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    trust: ServerTrust,
    _dir: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        std::fs::write(&file, certificate.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), trust: ServerTrust::CaFile(file), _dir: dir }
    }

    /// Serves over TLS with a certificate for `name` from this authority.
    async fn serve(&self, name: &str, years: std::ops::Range<i32>) -> SocketAddr {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.start, 1, 1);
        params.not_after = date_time_ymd(years.end, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        serve_tls(&certificate, &key).await
    }
}

async fn serve_tls(certificate: &Certificate, key: &KeyPair) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // a client that does not trust the certificate goes away
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = TowerToHyperService::new(our_server());
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_certificate_of_an_authority_in_the_ca_file_is_trusted() {
    let authority = Authority::new();
    let address = authority.serve("localhost", 2020..2099).await;
    assert_eq!(begin(&format!("https://localhost:{}", address.port()), &authority.trust).await, Ok(response()));
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not() {
    let (known, other) = (Authority::new(), Authority::new());
    let address = other.serve("localhost", 2020..2099).await;
    let url = format!("localhost:{}", address.port());
    let error = begin(&format!("https://{url}"), &known.trust).await.unwrap_err();
    assert_eq!(error, JoinError::UnknownAuthority { address: url });
}

#[tokio::test]
async fn a_pinned_certificate_is_trusted_whatever_its_names_and_dates_and_no_other_is() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(1990, 1, 1), date_time_ymd(1991, 1, 1));
    let certificate = params.self_signed(&key).unwrap();
    let address = serve_tls(&certificate, &key).await;
    let url = format!("https://{address}");
    let presented = Fingerprint::of(certificate.der());
    assert_eq!(begin(&url, &ServerTrust::Pinned(presented)).await, Ok(response()));
    let expected = Fingerprint::parse(&"5e".repeat(32)).unwrap();
    let error = begin(&url, &ServerTrust::Pinned(expected)).await.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, JoinError::OtherCertificate { .. }), "{told}");
    assert!(told.contains(&expected.to_string()) && told.contains(&presented.to_string()), "{told}");
    assert!(!told.contains('\n'));
}

#[tokio::test]
async fn a_self_signed_certificate_is_trusted_only_when_it_is_given_itself() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    // as `openssl req -x509` makes them
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let address = serve_tls(&certificate, &key).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.pem");
    std::fs::write(&file, certificate.pem()).unwrap();
    let url = format!("https://{address}");
    assert_eq!(begin(&url, &ServerTrust::CaFile(file)).await, Ok(response()));
    let error = begin(&url, &Authority::new().trust).await.unwrap_err();
    assert_eq!(error, JoinError::UnknownAuthority { address: address.to_string() });
}

#[tokio::test]
async fn a_certificate_for_another_name_is_told_with_its_names() {
    let authority = Authority::new();
    let address = authority.serve("gpu.example.com", 2020..2099).await;
    let url = format!("localhost:{}", address.port());
    let error = begin(&format!("https://{url}"), &authority.trust).await.unwrap_err();
    assert_eq!(error, JoinError::CertificateName { address: url, names: "gpu.example.com".to_owned() });
}

#[tokio::test]
async fn a_certificate_out_of_its_time_is_told_with_both_clocks() {
    let authority = Authority::new();
    for (years, limit_ms) in [(2001..2002, 1_009_843_200_000), (2098..2099, 4_039_372_800_000)] {
        let address = authority.serve("localhost", years).await;
        let error = begin(&format!("https://localhost:{}", address.port()), &authority.trust).await.unwrap_err();
        let (JoinError::CertificateExpired { clocks, .. } | JoinError::CertificateNotYetValid { clocks, .. }) = &error
        else {
            panic!("{error}");
        };
        assert_eq!(clocks.limit_ms, Some(limit_ms));
        // both run on this host; the server's has whole seconds
        assert!((clocks.ours_ms - clocks.server_ms.unwrap()).abs() < 60_000, "{error}");
    }
}

#[tokio::test]
async fn the_server_in_the_same_process_is_trusted_whatever_its_certificate() {
    let address = Authority::new().serve("gpu.example.com", 2001..2002).await;
    let url = format!("https://127.0.0.1:{}", address.port());
    assert_eq!(begin(&url, &ServerTrust::SameProcess).await, Ok(response()));
}

#[tokio::test]
async fn http_and_https_taken_for_one_another_are_told() {
    let authority = Authority::new();
    let plain = serve(our_server()).await;
    let error = begin(&format!("https://{plain}"), &authority.trust).await.unwrap_err();
    assert_eq!(error, JoinError::TlsNotSpoken { address: plain.to_string() });
    let tls = authority.serve("localhost", 2020..2099).await;
    let error = refusal(&format!("http://{tls}")).await;
    assert_eq!(error, JoinError::HttpNotSpoken { address: tls.to_string() });
}

#[tokio::test]
async fn a_ca_file_that_holds_none_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let table: [(&str, Option<&str>); 3] = [
        ("absent.pem", None),
        ("empty.pem", Some("")),
        ("bad.pem", Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")),
    ];
    for (name, content) in table {
        let path: PathBuf = dir.path().join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let server = ServerUrl::parse("https://h").unwrap();
        let error = RestTransport::new(server, &ServerTrust::CaFile(path)).unwrap_err();
        assert!(matches!(error, TransportError::CaFile { .. } | TransportError::NoCaCertificate { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

/// Runs this test again in a process that has proxies in its environment: no other way to set them is safe here.
#[tokio::test]
async fn proxies_in_the_environment_are_not_used() {
    const SERVER: &str = "WORKER_REST_TEST_SERVER";
    if let Ok(server) = std::env::var(SERVER) {
        assert_eq!(begin(&server, &ServerTrust::System).await, Ok(response()));
        return;
    }
    let server = serve(our_server()).await;
    let (proxy, proxy_address) = listen().await;
    let proxy_url = format!("http://{proxy_address}");
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "proxies_in_the_environment_are_not_used"]).env(SERVER, format!("http://{server}"));
    for variable in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(variable, &proxy_url);
    }
    child.env("NO_PROXY", "").env("no_proxy", "");
    tokio::select! {
        asked = proxy.accept() => panic!("the proxy was asked: {asked:?}"),
        output = child.output() => {
            let output = output.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}
