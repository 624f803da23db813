//! A worker whose server misbehaves, or is none: each fault has its own cause, on one line that says what to do, and no
//! secret gets anywhere it should not.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod common;
mod support;

use api::ServerUrl;
use axum::Router;
use axum::response::{Html, Redirect};
use axum::routing::any;
use common::{TOKEN, TestServer, until};
use gpustack::config::{ServerTrust, TlsFiles, WorkerConfig};
use gpustack::fingerprint::Fingerprint;
use http::StatusCode;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use std::net::SocketAddr;
use std::path::PathBuf;
use support::Host;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What becomes of a worker: `None` when it joins, else why it does not.
async fn outcome(url: &str, trust: ServerTrust) -> Option<String> {
    let host = Host::new();
    let server_url = ServerUrl::parse(url).unwrap();
    let worker =
        host.start_worker(WorkerConfig { server_url, trust, ..host.config("127.0.0.1:1".parse().unwrap()) }).await;
    let outcome = until("the worker's fate", async || {
        let (status, body) = worker.get("/readyz").await;
        match status {
            StatusCode::OK => Some(None),
            _ => body["cause"].as_str().map(|cause| Some(cause.to_owned())),
        }
    })
    .await;
    worker.stop().await;
    if let Some(line) = &outcome {
        assert!(!line.contains('\n') && !line.contains(TOKEN), "{line}");
    }
    outcome
}

async fn cause(url: &str) -> String {
    outcome(url, ServerTrust::System).await.unwrap()
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

#[tokio::test]
async fn what_keeps_a_worker_from_its_server_is_told_apart() {
    let (listener, nobody) = listen().await;
    drop(listener);
    let (far_end_down, ssh) = (serve_bytes(b"").await, serve_bytes(b"SSH-2.0-OpenSSH_9.6\r\n").await);
    let table = [
        (format!("http://{nobody}"), format!("nothing listens at {nobody}")),
        // no resolver may ever answer for names under .invalid (RFC 6761, section 6.4)
        ("http://gpu.invalid:8090".to_owned(), "the server's name `gpu.invalid` has no address".to_owned()),
        (format!("http://{far_end_down}"), format!("{far_end_down} closed the connection without an answer")),
        (format!("http://{ssh}"), format!("{ssh} does not speak plain HTTP")),
    ];
    for (url, expected) in table {
        let told = cause(&url).await;
        assert!(told.starts_with(&expected), "{url}: {told}");
    }
}

#[tokio::test]
async fn another_service_is_described_and_a_redirect_is_not_followed() {
    let address = serve(
        Router::new()
            .route("/page/v1/link", any(async || Html("<html><title>Grafana</title></html>")))
            .route("/moved/v1/link", any(async || Redirect::temporary("/v1/link"))),
    )
    .await;
    let table = [
        ("page", "(200, an HTML page titled \"Grafana\")"),
        ("none", "(404, an empty answer)"),
        ("moved", "/moved/v1/link redirects to /v1/link;"),
    ];
    for (part, expected) in table {
        let told = cause(&format!("http://{address}/{part}")).await;
        assert!(told.contains(expected), "{part}: {told}");
    }
}

#[tokio::test]
async fn every_spelling_of_the_server_url_reaches_the_server() {
    let server = TestServer::start().await;
    let (address, port) = (server.address, server.address.port());
    let spellings = [
        address.to_string(),
        format!(" http://{address}/ \n"),
        format!("HTTP://{address}//"),
        format!("http://localhost:{port}/"),
    ];
    for url in spellings {
        assert_eq!(outcome(&url, ServerTrust::System).await, None, "{url:?}");
    }
}

/// An authority of our own, in a file, and certificates from it.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    trust: ServerTrust,
    dir: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let trust = ServerTrust::CaFile(write(&dir, "ca.pem", &certificate.pem()));
        Self { issuer: Issuer::new(params, key), trust, dir }
    }

    /// A server with a certificate for `name` from this authority.
    async fn start(&self, name: &str, years: std::ops::Range<i32>) -> TestServer {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.start, 1, 1);
        params.not_after = date_time_ymd(years.end, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        TestServer::start_tls(TlsFiles {
            key: write(&self.dir, "key.pem", &key.serialize_pem()),
            certificate: write(&self.dir, "cert.pem", &certificate.pem()),
        })
        .await
    }
}

fn write(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A server whose certificate signed itself; the file and the fingerprint of that.
async fn start_self_signed(
    dir: &TempDir,
    change: impl FnOnce(&mut CertificateParams),
) -> (TestServer, PathBuf, Fingerprint) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    change(&mut params);
    let certificate = params.self_signed(&key).unwrap();
    let file = write(dir, "cert.pem", &certificate.pem());
    let files = TlsFiles { key: write(dir, "key.pem", &key.serialize_pem()), certificate: file.clone() };
    (TestServer::start_tls(files).await, file, Fingerprint::of(certificate.der()))
}

fn localhost(server: &TestServer) -> String {
    format!("https://localhost:{}", server.address.port())
}

#[tokio::test]
async fn a_certificate_of_an_authority_in_the_ca_file_is_trusted_whatever_its_dates_and_no_other() {
    let authority = Authority::new();
    for years in [2020..2099, 2001..2002, 2098..2099] {
        let server = authority.start("localhost", years.clone()).await;
        assert_eq!(outcome(&localhost(&server), authority.trust.clone()).await, None, "{years:?}");
    }
    let server = authority.start("localhost", 2020..2099).await;
    let told = outcome(&localhost(&server), Authority::new().trust).await.unwrap();
    assert!(told.contains("is from an authority that this host does not know"), "{told}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_told_with_its_names() {
    let authority = Authority::new();
    let server = authority.start("gpu.example.com", 2020..2099).await;
    let told = outcome(&localhost(&server), authority.trust.clone()).await.unwrap();
    assert!(told.contains("is for gpu.example.com only"), "{told}");
    let same_process = outcome(&localhost(&server), ServerTrust::SameProcess).await;
    assert_eq!(same_process, None, "the server in the same process is trusted whatever its certificate");
}

#[tokio::test]
async fn a_pinned_certificate_is_trusted_whatever_its_names_and_dates_and_no_other_is() {
    let dir = tempfile::tempdir().unwrap();
    let (server, _, presented) = start_self_signed(&dir, |params| {
        (params.not_before, params.not_after) = (date_time_ymd(1990, 1, 1), date_time_ymd(1991, 1, 1));
    })
    .await;
    assert_eq!(outcome(&localhost(&server), ServerTrust::Pinned(presented)).await, None);
    let expected = Fingerprint::parse(&"5e".repeat(32)).unwrap();
    let told = outcome(&localhost(&server), ServerTrust::Pinned(expected)).await.unwrap();
    assert!(told.contains(&expected.to_string()) && told.contains(&presented.to_string()), "{told}");
}

#[tokio::test]
async fn a_self_signed_certificate_is_trusted_only_when_it_is_given_itself() {
    let dir = tempfile::tempdir().unwrap();
    // as `openssl req -x509` makes them
    let as_openssl = |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let (server, file, _) = start_self_signed(&dir, as_openssl).await;
    assert_eq!(outcome(&localhost(&server), ServerTrust::CaFile(file)).await, None);
    let told = outcome(&localhost(&server), Authority::new().trust).await.unwrap();
    assert!(told.contains("is from an authority that this host does not know"), "{told}");
}

#[tokio::test]
async fn http_and_https_taken_for_one_another_are_told() {
    let authority = Authority::new();
    let plain = TestServer::start().await;
    let told = outcome(&format!("https://{}", plain.address), authority.trust.clone()).await.unwrap();
    assert!(told.contains("does not speak TLS"), "{told}");
    let tls = authority.start("localhost", 2020..2099).await;
    let told = cause(&format!("http://{}", tls.address)).await;
    assert!(told.contains("this port speaks https"), "{told}");
}

/// Runs this test again in a process that has proxies in its environment: no other way to set them is safe here.
#[tokio::test]
async fn proxies_in_the_environment_are_not_used() {
    const SERVER: &str = "WORKER_ERRORS_TEST_SERVER";
    if let Ok(server) = std::env::var(SERVER) {
        assert_eq!(outcome(&server, ServerTrust::System).await, None);
        return;
    }
    let server = TestServer::start().await;
    let (proxy, proxy_address) = listen().await;
    let proxy_url = format!("http://{proxy_address}");
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "proxies_in_the_environment_are_not_used"])
        .env(SERVER, format!("http://{}", server.address));
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
