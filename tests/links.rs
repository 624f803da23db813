//! The worker's link in front of a real server: who gets one, what it changes, and how it ends.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod common;
mod support;

use api::{LinkDeclined, ServerUrl};
use bytes::Bytes;
use common::{TOKEN, TestServer, TestWorker, until};
use gpustack::config::{ServerTrust, TlsFiles, WorkerConfig};
use http::{Method, StatusCode};
use link::{
    AllowedTargets, DialConfig, DialError, Dialer, DirectTransport, JoinError, JoinToken, KeyPair, Link, LinkEnd,
    OuterTls, PublicKey, Refusal, ServerAddress, Tuning,
};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use support::Host;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Waits until the server shows the worker as wished.
async fn row(server: &TestServer, name: &str, is_wished: impl Fn(&Value) -> bool) -> Value {
    until(name, async || {
        let rows = server.admin_json("/v1/workers").await;
        let mut rows = rows["items"].as_array().unwrap().clone().into_iter();
        rows.find(|row| row["name"] == name && is_wished(row))
    })
    .await
}

fn condition<'a>(row: &'a Value, kind: &str) -> Option<&'a Value> {
    row["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == kind)
}

fn is(row: &Value, kind: &str, status: &str, severity: &str) -> bool {
    condition(row, kind).is_some_and(|found| found["status"] == status && found["severity"] == severity)
}

fn named(config: WorkerConfig, name: &str) -> WorkerConfig {
    let mut config = config;
    config.identity.name = Some(name.to_owned());
    config
}

fn has_link(row: &Value) -> bool {
    row["link"].is_object()
}

/// A worker that speaks the protocol by itself.
struct Player {
    worker: TestWorker,
    credential: String,
    keys: KeyPair,
    token: Option<&'static str>,
    server_key: Option<PublicKey>,
}

impl Player {
    async fn registered(server: &TestServer, name: &str) -> Self {
        let worker = TestWorker::new();
        let (status, registered) = server.register(&worker.named(name)).await;
        assert_eq!(status, StatusCode::OK, "{registered}");
        let credential = registered["credential"].as_str().unwrap().to_owned();
        Self { worker, credential, keys: KeyPair::generate().unwrap(), token: Some(TOKEN), server_key: None }
    }

    fn join_request(&self) -> Value {
        json!({"protocol": 1, "session_id": self.worker.session_id, "credential": self.credential})
    }

    async fn dial(&mut self, server: SocketAddr) -> Result<Link, DialError> {
        let request = self.join_request();
        self.dial_with(server, &request).await
    }

    async fn dial_with(&mut self, server: SocketAddr, request: &Value) -> Result<Link, DialError> {
        let address = ServerAddress::try_from(&format!("http://{server}").parse().unwrap()).unwrap();
        let no_tls = OuterTls::pinned([0; 32]).unwrap();
        let config = DialConfig {
            transport: Arc::new(DirectTransport::new(address.clone(), no_tls, Duration::from_secs(10))),
            address,
            keys: self.keys.clone(),
            server_key: self.server_key,
            token: self.token.map(JoinToken::new),
            targets: AllowedTargets::none(),
            tuning: Tuning::default(),
        };
        let link = Dialer::new(config).dial(Bytes::from(request.to_string())).await?;
        self.server_key = Some(link.welcome().server_key);
        Ok(link)
    }
}

fn refusal(dialled: Result<Link, DialError>) -> Refusal {
    match dialled {
        Err(DialError::Join(JoinError::Refused { refusal, .. })) => refusal,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("let in"),
    }
}

fn declined(dialled: Result<Link, DialError>) -> String {
    let Refusal::Declined { detail } = refusal(dialled) else { panic!("another refusal") };
    let LinkDeclined { reason, message } = serde_json::from_slice(&detail).unwrap();
    assert!(!message.is_empty());
    reason
}

#[tokio::test]
async fn a_worker_that_cannot_be_dialled_is_ready_through_its_link() {
    let (host, server) = (Host::new(), TestServer::start().await);
    let mut config = named(host.config(server.address), "npu-1");
    // the worker listens at another one of this host
    config.identity.ip = Some("127.0.0.2".parse().unwrap());
    let worker = host.start_worker(config).await;
    let is_complete = |row: &Value| {
        row["state"] == "ready"
            && is(row, "direct", "false", "warning")
            && is(row, "link", "true", "ok")
            && row["link"]["readings"][0].is_number()
    };
    let shown = row(&server, "npu-1", is_complete).await;
    assert_eq!(shown["unreachable"], false);
    assert_eq!(shown["link"]["carrier"], "stream");
    assert!(shown["link"]["readings"][1].as_u64().unwrap() > 0 && shown["link"]["readings"][2].as_u64().unwrap() > 0);
    for name in ["link_key", "link_server_key"] {
        let mode = std::fs::metadata(host.dir.path().join("data").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    worker.stop().await;
    let gone = row(&server, "npu-1", |row| row["state"] == "not_ready").await;
    assert!(condition(&gone, "heartbeat").unwrap()["reason"] == "worker_stopped", "{gone}");
}

#[tokio::test]
async fn both_ways_down_is_unreachable_and_a_new_link_ends_that() {
    let server = TestServer::start().await;
    // nothing listens at its port
    let mut player = Player::registered(&server, "npu-1").await;
    let first = player.dial(server.address).await.unwrap();
    row(&server, "npu-1", |row| is(row, "link", "true", "ok") && has_link(row)).await;
    drop(first);
    let is_down = |row: &Value| row["state"] == "unreachable" && is(row, "link", "false", "error");
    let shown = row(&server, "npu-1", is_down).await;
    assert_eq!(condition(&shown, "link").unwrap()["reason"], "link_down");
    assert_eq!(condition(&shown, "link").unwrap()["params"]["loss"], "closed");
    assert_eq!(condition(&shown, "heartbeat").unwrap()["status"], "true");
    assert_eq!(shown["unreachable"], true);
    // its key is known by now
    player.token = None;
    let _second = player.dial(server.address).await.unwrap();
    row(&server, "npu-1", |row| row["state"] == "ready" && has_link(row)).await;
}

#[tokio::test]
async fn a_worker_that_never_had_a_link_has_no_condition_about_one() {
    let server = TestServer::start().await;
    let _player = Player::registered(&server, "npu-1").await;
    let shown = row(&server, "npu-1", |row| row["state"] == "unreachable").await;
    assert!(condition(&shown, "link").is_none() && shown["link"].is_null(), "{shown}");
    assert!(is(&shown, "direct", "false", "error"), "{shown}");
}

#[tokio::test]
async fn who_may_not_have_a_link_hears_why_and_leaves_no_trace() {
    let server = TestServer::start().await;
    let mut player = Player::registered(&server, "npu-1").await;
    player.token = Some("ffffffffffffffffffffffffffffffff");
    assert_eq!(refusal(player.dial(server.address).await), Refusal::WrongToken);
    player.token = Some(TOKEN);
    let with = |key: &str, value: Value| {
        let mut request = player.join_request();
        request[key] = value;
        request
    };
    let table = [
        (with("protocol", json!(99)), "ProtocolUnsupported"),
        (with("credential", json!("ab".repeat(32))), "CredentialRevoked"),
        (with("session_id", json!(Uuid::new_v4())), "SessionReplaced"),
    ];
    for (request, reason) in table {
        assert_eq!(declined(player.dial_with(server.address, &request).await), reason);
    }
    assert_eq!(refusal(player.dial_with(server.address, &json!([])).await), Refusal::Malformed);
    let shown = row(&server, "npu-1", |_| true).await;
    assert!(condition(&shown, "link").is_none() && shown["link"].is_null(), "{shown}");

    let _link = player.dial(server.address).await.unwrap();
    let mut other = Player::registered(&server, "npu-2").await;
    (other.token, other.server_key) = (None, player.server_key);
    assert_eq!(refusal(other.dial(server.address).await), Refusal::UnknownKey);
    other.keys = player.keys.clone();
    assert_eq!(refusal(other.dial(server.address).await), Refusal::UnknownKey, "it is the key of another worker");
}

#[tokio::test]
async fn deleting_a_worker_ends_its_link() {
    let server = TestServer::start().await;
    let mut player = Player::registered(&server, "npu-1").await;
    let link = player.dial(server.address).await.unwrap();
    let serving = tokio::spawn(link.serve(axum::Router::new(), CancellationToken::new()));
    let shown = row(&server, "npu-1", has_link).await;
    server.as_admin(Method::DELETE, &format!("/v1/workers/{}", shown["id"])).send().await.unwrap();
    assert_eq!(serving.await.unwrap(), LinkEnd::Revoked);
    player.token = None;
    assert_eq!(refusal(player.dial(server.address).await), Refusal::UnknownKey);
}

#[tokio::test]
async fn a_server_stops_although_a_worker_takes_no_notice_of_it() {
    let server = TestServer::start().await;
    let mut player = Player::registered(&server, "npu-1").await;
    // its end is never read, so it cannot hear that it is to come back later
    let _deaf = player.dial(server.address).await.unwrap();
    row(&server, "npu-1", has_link).await;
    server.stop().await;
}

#[tokio::test]
async fn links_come_back_when_the_server_does_also_under_a_new_key() {
    let (host, server) = (Host::new(), TestServer::start().await);
    let worker = host.start_worker(named(host.config(server.address), "npu-1")).await;
    let server_key = host.dir.path().join("data/link_server_key");
    row(&server, "npu-1", has_link).await;
    let first_key = std::fs::read_to_string(&server_key).unwrap();

    let address = server.address;
    let server = TestServer::start_again(address, server.stop().await).await;
    let shown = row(&server, "npu-1", has_link).await;
    assert!(is(&shown, "link", "true", "ok"), "{shown}");
    assert_eq!(std::fs::read_to_string(&server_key).unwrap(), first_key);

    // as after the server was set up anew with the same token
    let data_dir = server.stop().await;
    std::fs::remove_file(data_dir.path().join("link_key")).unwrap();
    let server = TestServer::start_again(address, data_dir).await;
    row(&server, "npu-1", has_link).await;
    assert_ne!(std::fs::read_to_string(&server_key).unwrap(), first_key);
    worker.stop().await;
}

#[tokio::test]
async fn a_link_stands_over_https_too_under_the_trust_that_rest_has() {
    let made = rcgen::generate_simple_self_signed(vec!["gpustack.example".to_owned()]).unwrap();
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = TestServer::start_tls(TlsFiles { key, certificate: certificate.clone() }).await;
    let host = Host::new();
    let worker = host
        .start_worker(WorkerConfig {
            server_url: ServerUrl::parse(&format!("https://{}", server.address)).unwrap(),
            // the certificate itself, made for another name
            trust: ServerTrust::CaFile(certificate),
            ..named(host.config(server.address), "npu-1")
        })
        .await;
    row(&server, "npu-1", |row| row["state"] == "ready" && has_link(row)).await;
    worker.stop().await;
}

#[tokio::test]
async fn the_path_of_links_answers_others_in_plain_words_and_asks_nobody_for_a_login() {
    let server = TestServer::start().await;
    let response = server.request(Method::GET, "/v1/link").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UPGRADE_REQUIRED);
    assert!(response.headers().contains_key("gpustack-link"));
    assert!(response.text().await.unwrap().contains("Workers link here"));
}
