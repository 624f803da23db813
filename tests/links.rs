//! The worker's link in front of a real server: who gets one, what it changes, and how it ends.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod common;
mod support;

use api::ServerUrl;
use common::worker::{TestWorker, refusal};
use common::{TestServer, until};
use gpustack::config::{ServerTrust, TlsFiles, WorkerConfig};
use http::{Method, StatusCode};
use link::Refusal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use support::Host;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

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

#[tokio::test]
async fn a_worker_that_cannot_be_dialled_is_ready_through_its_link() {
    let (host, server) = (Host::new(), TestServer::start().await);
    let mut config = named(host.config(server.address), "npu-1");
    // the worker listens at another one of this host
    config.identity.ip = Some("127.0.0.2".parse().unwrap());
    let worker = host.start_worker(config).await;
    let is_complete = |row: &Value| {
        row["state"] == "ready"
            && is(row, "direct", "false", "ok")
            && is(row, "link", "true", "ok")
            && row["link"]["readings"][0].is_number()
    };
    let shown = row(&server, "npu-1", is_complete).await;
    assert_eq!(shown["unreachable"], false);
    assert_eq!(shown["link"]["carrier"], "stream");
    assert!(shown["link"]["readings"][1].as_u64().unwrap() > 0 && shown["link"]["readings"][2].as_u64().unwrap() > 0);
    for name in ["worker_link_key", "link_server_key"] {
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
    let worker = TestWorker::new();
    let first = worker.join(&server).await;
    row(&server, "npu-host", |row| is(row, "link", "true", "ok") && has_link(row)).await;
    drop(first);
    let is_down = |row: &Value| row["state"] == "unreachable" && is(row, "link", "false", "error");
    let shown = row(&server, "npu-host", is_down).await;
    assert_eq!(condition(&shown, "link").unwrap()["reason"], "link_down");
    assert_eq!(condition(&shown, "link").unwrap()["params"]["loss"], "closed");
    assert_eq!(condition(&shown, "heartbeat").unwrap()["status"], "true");
    assert_eq!(shown["unreachable"], true);
    let _second = worker.join(&server).await;
    row(&server, "npu-host", |row| row["state"] == "ready" && has_link(row)).await;
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_leaves_no_trace() {
    let server = TestServer::start().await;
    let mut worker = TestWorker::new();
    worker.token = Some("ffffffffffffffffffffffffffffffff");
    assert_eq!(refusal(worker.join_as(&server, &worker.request()).await), Refusal::WrongToken);
    assert_eq!(server.admin_json("/v1/workers").await["pagination"]["total"], 0);
}

#[tokio::test]
async fn a_worker_whose_reports_make_no_sense_is_asked_again_and_others_are_not_disturbed() {
    let server = TestServer::start().await;
    let (strange, well) = (TestWorker::new(), TestWorker::new());
    let link = strange.dial(server.address, &strange.named("strange")).await.unwrap();
    let asked = Arc::new(tokio::sync::Semaphore::new(0));
    let router = axum::Router::new().route(api::STATUS_PATH, {
        let asked = Arc::clone(&asked);
        axum::routing::post(async move || {
            asked.add_permits(1);
            [0xff_u8; 64]
        })
    });
    let _strange = AbortOnDropHandle::new(tokio::spawn(link.serve(router, CancellationToken::new())));
    let _twice = asked.acquire_many(2).await.unwrap();
    let _well = well.join_as(&server, &well.named("well")).await.unwrap();
    row(&server, "well", |row| row["state"] == "ready").await;
    row(&server, "strange", has_link).await;
}

#[tokio::test]
async fn a_worker_that_is_looked_at_hears_of_it() {
    let server = TestServer::start().await;
    let mut joined = TestWorker::new().join(&server).await;
    row(&server, "npu-host", has_link).await;
    let mut looking = server.as_admin(Method::GET, "/v1/events").send().await.unwrap();
    let hello = String::from_utf8(looking.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let hello = hello.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let hello: Value = serde_json::from_str(hello).unwrap();
    let path = format!("/v1/events/{}/watch", hello["stream"].as_str().unwrap());
    let look = server.as_admin(Method::POST, &path).json(&json!({"workers": [joined.id()]}));
    assert_eq!(look.send().await.unwrap().status(), StatusCode::OK);
    joined.watched.wait_for(|watched| *watched).await.unwrap();
    drop(looking);
    joined.watched.wait_for(|watched| !*watched).await.unwrap();
}

#[tokio::test]
async fn a_server_stops_although_a_worker_takes_no_notice_of_it() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    // its end is never read, so it cannot hear that it is to come back later
    let _deaf = worker.dial(server.address, &worker.request()).await.unwrap();
    row(&server, "npu-host", has_link).await;
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
async fn a_link_stands_over_https_too() {
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
