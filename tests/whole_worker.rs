//! Whole workers, with a stand-in for `npu-smi`, in front of a real server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod common;
mod support;

use common::{TestServer, answered, until};
use gpustack::config::WorkerConfig;
use http::{Method, StatusCode};
use serde_json::Value;
use std::net::TcpListener;
use support::{Host, Worker};

/// Waits until the server shows a row of this name as wished.
async fn row(server: &TestServer, name: &str, is_wished: impl Fn(&Value) -> bool) -> Value {
    until(name, async || {
        let rows = server.admin_json("/v1/workers").await;
        let mut rows = rows["items"].as_array().unwrap().clone().into_iter();
        rows.find(|row| row["name"] == name && is_wished(row))
    })
    .await
}

/// Waits until the worker has been refused, and gives the cause that it tells.
async fn refusal(worker: &Worker) -> String {
    until("a refusal", async || {
        let (status, body) = worker.get("/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        body["cause"].as_str().map(str::to_owned)
    })
    .await
}

fn named(config: WorkerConfig, name: &str) -> WorkerConfig {
    let mut config = config;
    config.identity.name = Some(name.to_owned());
    config
}

fn has_condition(row: &Value, kind: &str, reason: &str) -> bool {
    row["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .any(|condition| condition["type"] == kind && condition["reason"] == reason)
}

#[tokio::test]
async fn a_worker_becomes_ready_with_eight_devices_and_goes_when_it_stops() {
    let (host, server) = (Host::new(), TestServer::start().await);
    let worker = host.start_worker(named(host.config(server.address), "npu-198-97")).await;
    let is_complete = |row: &Value| {
        row["state"] == "ready"
            && row["status"]["gpu_devices"].as_array().is_some_and(|devices| devices.len() == 8)
            && has_condition(row, "direct", "direct_answered")
            && has_condition(row, "link", "link_up")
            && has_condition(row, "clock", "clock_in_sync")
    };
    let shown = row(&server, "npu-198-97", is_complete).await;
    assert_eq!(shown["status"]["gpu_devices"][7]["name"], "910B3");
    assert_eq!(shown["labels"]["worker-name"], "npu-198-97");
    assert!(has_condition(&shown, "devices", "devices_working"), "{shown}");
    worker.stop().await;
    row(&server, "npu-198-97", |row| row["state"] == "not_ready").await;
}

fn has_problem(row: &Value, reason: &str) -> bool {
    row["status"]["problems"]
        .as_array()
        .is_some_and(|problems| problems.iter().any(|problem| problem["reason"] == reason))
}

#[tokio::test]
async fn a_worker_shows_what_it_sees_and_answers_for_itself() {
    let (host, server) = (Host::new(), TestServer::start().await);
    let worker = host.start_worker(host.config(server.address)).await;
    let shown = until("the worker's devices", async || {
        let row = server.admin_json("/v1/workers").await["items"][0].clone();
        row["status"]["gpu_devices"].is_array().then_some(row)
    })
    .await;
    let (device, status) = (&shown["status"]["gpu_devices"][0], &shown["status"]);
    assert_eq!((device["name"].as_str(), device["vendor"].as_str()), (Some("910B3"), Some("Huawei")));
    assert_eq!(device["memory"]["total"], 64_u64 << 30);
    assert!(status["problems"].is_null() && status["memory"].is_object() && status["cpu"].is_object(), "{status}");
    assert_eq!((&shown["ip"], &shown["port"]), (&"127.0.0.1".into(), &worker.address.port().into()));
    let (code, body) = worker.get("/healthz").await;
    assert_eq!((code, &body["worker_uuid"], &body["name"]), (StatusCode::OK, &shown["worker_uuid"], &shown["name"]));
    assert_eq!(worker.get("/readyz").await.0, StatusCode::OK);
    assert_eq!(worker.get(api::STATUS_PATH).await.0, StatusCode::NOT_FOUND, "its status is for its link alone");
    worker.stop().await;
}

#[tokio::test]
async fn a_tool_that_hangs_leaves_stale_devices_and_a_steady_heartbeat() {
    let (host, server) = (Host::new(), TestServer::start().await);
    let worker = host.start_worker(named(host.config(server.address), "npu-1")).await;
    let devices = |row: &Value| row["status"]["gpu_devices"].as_array().map(Vec::len);
    let first = row(&server, "npu-1", |row| devices(row) == Some(8) && row["link"].is_object()).await;
    host.set_tool_mode("hang");
    let stale = row(&server, "npu-1", |row| row["status"]["devices_stale_s"].is_number()).await;
    assert_eq!(devices(&stale), Some(8));
    assert!(has_problem(&stale, "tool_timed_out"), "{stale}");
    row(&server, "npu-1", |row| row["heartbeat_time"] != stale["heartbeat_time"]).await;
    host.set_tool_mode("normal");
    let is_well = |row: &Value| row["status"]["devices_stale_s"].is_null() && row["status"]["problems"].is_null();
    let well = row(&server, "npu-1", is_well).await;
    assert_eq!(well["link"]["since_ms"], first["link"]["since_ms"], "all over one link");
    worker.stop().await;
}

#[tokio::test]
async fn an_unhealthy_chip_and_a_failing_driver_are_reported() {
    let (host, server) = (Host::new(), TestServer::start().await);
    host.set_tool_mode("unhealthy");
    let worker = host.start_worker(named(host.config(server.address), "npu-1")).await;
    let unhealthy = row(&server, "npu-1", |row| has_problem(row, "device_unhealthy")).await;
    assert_eq!(unhealthy["status"]["gpu_devices"].as_array().unwrap().len(), 8);
    host.set_tool_mode("error");
    row(&server, "npu-1", |row| has_problem(row, "driver_init_failed")).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_starts_before_its_server_says_why_it_waits_and_joins_then() {
    let host = Host::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let worker = host.start_worker(named(host.config(address), "npu-1")).await;
    let cause = refusal(&worker).await;
    assert!(cause.starts_with(&format!("nothing listens at {address}")), "{cause}");
    let server = TestServer::start_again(address, tempfile::tempdir().unwrap()).await;
    row(&server, "npu-1", |row| row["state"] == "ready").await;
    assert_eq!(worker.get("/readyz").await.0, StatusCode::OK);
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_starts_again_is_the_same_worker_and_needs_no_token() {
    let (host, server) = (Host::new(), TestServer::start().await);
    let worker = host.start_worker(named(host.config(server.address), "npu-1")).await;
    let first = row(&server, "npu-1", |row| row["state"] == "ready" && row["link"].is_object()).await;
    worker.stop().await;
    row(&server, "npu-1", |row| has_condition(row, "heartbeat", "worker_stopped")).await;
    let without_token = WorkerConfig { token: None, ..host.config(server.address) };
    let worker = host.start_worker(without_token).await;
    let second = row(&server, "npu-1", |row| row["state"] == "ready" && row["link"].is_object()).await;
    assert_eq!((&second["id"], &second["worker_uuid"]), (&first["id"], &first["worker_uuid"]));
    worker.stop().await;
}

#[tokio::test]
async fn a_new_worker_without_a_token_ends_with_a_word_about_it() {
    let (host, server) = (Host::new(), TestServer::start().await);
    let without_token = WorkerConfig { token: None, ..host.config(server.address) };
    let error = host.start_worker(without_token).await.task.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("--token"), "{error}");
}

#[tokio::test]
async fn a_worker_that_was_deleted_comes_back_as_a_new_one() {
    let (host, server) = (Host::new(), TestServer::start().await);
    let worker = host.start_worker(named(host.config(server.address), "npu-1")).await;
    let first = row(&server, "npu-1", |row| row["state"] == "ready").await;
    let deleted = server.as_admin(Method::DELETE, &format!("/v1/workers/{}", first["id"])).send().await.unwrap();
    assert!(deleted.status().is_success());
    let is_back = |row: &Value| row["state"] == "ready" && row["id"] != first["id"] && row["link"].is_object();
    let second = row(&server, "npu-1", is_back).await;
    assert_eq!(second["worker_uuid"], first["worker_uuid"]);
    assert_eq!(answered(server.as_admin(Method::GET, "/v1/workers")).await.1["pagination"]["total"], 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_copied_data_directory_is_refused_while_the_original_lives() {
    let (original, copy, server) = (Host::new(), Host::new(), TestServer::start().await);
    let worker = original.start_worker(named(original.config(server.address), "npu-1")).await;
    row(&server, "npu-1", |row| row["state"] == "ready").await;
    let data = |host: &Host| host.dir.path().join("data");
    std::fs::create_dir(data(&copy)).unwrap();
    let files = ["worker_uuid", "worker_name", "worker_link_key", "link_server_key"];
    let before = row(&server, "npu-1", |row| row["link"].is_object()).await;
    for name in files {
        std::fs::copy(data(&original).join(name), data(&copy).join(name)).unwrap();
    }
    let cloned = copy.start_worker(copy.config(server.address)).await;
    let cause = refusal(&cloned).await;
    assert!(cause.contains("uses the same identity"), "{cause}");
    row(&server, "npu-1", |row| has_condition(row, "identity", "identity_duplicated")).await;
    assert_eq!(worker.get("/readyz").await.0, StatusCode::OK);
    let after = row(&server, "npu-1", |row| row["link"].is_object()).await;
    assert_eq!(after["link"]["peer"], before["link"]["peer"], "the original keeps its link");
    worker.stop().await;
    cloned.stop().await;
}

#[tokio::test]
async fn a_name_that_a_live_worker_has_is_refused_and_an_unwished_name_is_made_free() {
    let (first, second, third, server) = (Host::new(), Host::new(), Host::new(), TestServer::start().await);
    let first_worker = first.start_worker(named(first.config(server.address), "npu-1")).await;
    row(&server, "npu-1", |row| row["state"] == "ready").await;
    let second_worker = second.start_worker(named(second.config(server.address), "npu-1")).await;
    let cause = refusal(&second_worker).await;
    assert!(cause.contains("the name npu-1 is taken"), "{cause}");
    second_worker.stop().await;
    let (fourth, other) = (Host::new(), third.start_worker(third.config(server.address)).await);
    let one_more = fourth.start_worker(fourth.config(server.address)).await;
    let names = until("three workers", async || {
        let rows = server.admin_json("/v1/workers").await;
        let rows = rows["items"].as_array().unwrap().clone();
        (rows.len() == 3)
            .then(|| rows.iter().map(|row| row["name"].to_string()).collect::<std::collections::BTreeSet<_>>())
    })
    .await;
    assert_eq!(names.len(), 3, "{names:?}");
    for worker in [first_worker, other, one_more] {
        worker.stop().await;
    }
}
