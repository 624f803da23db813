//! Workers of ours against a real server: joining, names, identities, sessions, reports, deletion.

#![expect(clippy::indexing_slicing, reason = "a helper of a test that cannot go on fails the test")]

mod common;

use common::worker::{TestWorker, declined, refusal};
use common::{TestServer, answered, until};
use link::{LinkEnd, Refusal};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

/// Waits until the only row is as wished.
async fn row(server: &TestServer, is_wished: impl Fn(&Value) -> bool) -> Value {
    until("the worker's row", async || {
        let row = server.admin_json("/v1/workers").await["items"][0].clone();
        is_wished(&row).then_some(row)
    })
    .await
}

async fn total(server: &TestServer) -> Value {
    server.admin_json("/v1/workers").await["pagination"]["total"].clone()
}

#[tokio::test]
async fn a_worker_joins_beats_reports_and_is_shown() {
    let server = TestServer::start().await;
    let joined = TestWorker::new().join(&server).await;
    assert_eq!(joined.response.name, "npu-host");
    joined.report(json!({"gpu_devices": [{"index": 0, "name": "910B3", "vendor": "Huawei", "type": "npu"}]}));
    row(&server, |row| row["clock_offset_ms"].is_number() && row["status"]["gpu_devices"].is_array()).await;
    let devices = server.admin_json("/v1/gpu-devices").await;
    assert_eq!(devices["items"][0]["id"], json!("npu-host:npu:0"));
    let device = server.admin_json("/v1/gpu-devices/npu-host:npu:0").await;
    assert_eq!(device["worker_name"], json!("npu-host"));
    let fleet = server.admin_json("/v1/fleet").await;
    assert!(fleet["workers"][0]["search"].as_str().unwrap().ends_with(" 910B3"));
}

#[tokio::test]
async fn readings_that_move_arrive_and_one_that_is_gone_is_not_zero() {
    let server = TestServer::start().await;
    let joined = TestWorker::new().join(&server).await;
    let status = |celsius: Value, used: u64| {
        json!({
            "gpu_devices": [
                {"index": 0, "name": "910B3", "temperature": 40.0, "memory": {"total": 1000, "used": 10}},
                {"index": 1, "name": "910B3", "temperature": celsius, "memory": {"total": 1000, "used": used}},
            ],
        })
    };
    let second = |row: &Value| row["status"]["gpu_devices"][1].clone();
    joined.report(status(json!(41.0), 10));
    row(&server, |row| second(row)["temperature"] == json!(41.0)).await;
    joined.report(status(json!(71.5), 500));
    let shown = row(&server, |row| second(row)["temperature"] == json!(71.5)).await;
    assert_eq!(second(&shown)["memory"]["used"], json!(500));
    assert_eq!(shown["status"]["gpu_devices"][0]["temperature"], json!(40.0));
    joined.report(status(Value::Null, 500));
    row(&server, |row| second(row)["temperature"] == Value::Null).await;
}

#[tokio::test]
async fn another_protocol_is_refused_before_its_fields_are_read() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    let other = json!({"protocol": 99, "other": "fields"});
    let (reason, message) = declined(worker.join_as(&server, &other).await);
    assert_eq!(reason, "ProtocolUnsupported");
    assert!(message.contains("update the server"), "{message}");
    let mut newer = worker.request();
    newer["a_field_of_tomorrow"] = json!(1);
    worker.join_as(&server, &newer).await.unwrap();
}

#[tokio::test]
async fn a_deleted_worker_comes_back_with_the_token_as_often_as_one_likes_and_never_without() {
    let server = TestServer::start().await;
    let mut worker = TestWorker::new();
    for _ in 0..3 {
        let joined = worker.join(&server).await;
        let path = format!("/v1/workers/{}", joined.id());
        let (status, body) = answered(server.as_admin(Method::DELETE, &path)).await;
        assert_eq!((status, body), (StatusCode::OK, Value::Null));
        assert_eq!(joined.ended().await, LinkEnd::Revoked);
    }
    worker.token = None;
    assert_eq!(refusal(worker.join_as(&server, &worker.request()).await), Refusal::UnknownKey);
    worker.token = Some(common::TOKEN);
    let _joined = worker.join(&server).await;
    assert_eq!(total(&server).await, json!(1));
}

#[tokio::test]
async fn a_new_key_comes_in_with_the_token_and_the_old_one_is_revoked() {
    let server = TestServer::start().await;
    let mut worker = TestWorker::new();
    let first = worker.join(&server).await;
    let old_keys = std::mem::replace(&mut worker.keys, link::KeyPair::generate().unwrap());
    let second = worker.join(&server).await;
    assert_eq!(second.id(), first.id());
    assert_eq!(first.ended().await, LinkEnd::Replaced);
    worker.keys = old_keys;
    worker.token = None;
    assert_eq!(refusal(worker.join_as(&server, &worker.request()).await), Refusal::UnknownKey);
}

#[tokio::test]
async fn a_key_opens_the_door_of_its_own_worker_only() {
    let server = TestServer::start().await;
    let known = TestWorker::new();
    let _joined = known.join(&server).await;
    let mut other = TestWorker::new();
    let _other = other.join(&server).await;
    other.keys = known.keys.clone();
    other.token = None;
    let (reason, _) = declined(other.join_as(&server, &other.request()).await);
    assert_eq!(reason, "WorkerUnknown");
}

#[tokio::test]
async fn a_worker_is_known_over_restarts_of_itself_and_the_server_without_the_token() {
    let server = TestServer::start().await;
    let mut worker = TestWorker::new();
    let first = worker.join(&server).await;
    worker.session_id = Uuid::new_v4();
    worker.token = None;
    let second = worker.join(&server).await;
    assert_eq!((first.id(), first.ended().await), (second.id(), LinkEnd::Replaced));

    let address = server.address;
    let server = TestServer::start_again(address, server.stop().await).await;
    let shown = row(&server, |row| row["name"] == json!("npu-host")).await;
    assert_eq!(shown["state"], json!("pending"));
    assert_ne!(shown["heartbeat_time"], Value::Null, "flushed at the end");
    let _third = worker.join(&server).await;
    row(&server, |row| row["state"] == json!("ready")).await;
}

#[tokio::test]
async fn a_copied_data_directory_is_refused_while_the_other_host_lives_and_shown() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    let _joined = worker.join(&server).await;
    for token in [Some(common::TOKEN), None] {
        let mut copy = TestWorker { uuid: worker.uuid, keys: worker.keys.clone(), token, ..TestWorker::new() };
        *copy.server_key.get_mut().unwrap() = *worker.server_key.lock().unwrap();
        let mut request = copy.request();
        request["hostname"] = json!("the-copy");
        assert_eq!(declined(copy.join_as(&server, &request).await).0, "IdentityDuplicated");
    }
    let identity = |row: &Value| {
        let conditions = row["conditions"].as_array().unwrap().clone();
        conditions.into_iter().find(|condition| condition["type"] == json!("identity"))
    };
    let shown = identity(&row(&server, |row| identity(row).is_some()).await).unwrap();
    assert_eq!(
        (shown["reason"].as_str(), shown["params"]["hostname"].as_str()),
        (Some("identity_duplicated"), Some("the-copy"))
    );
    row(&server, |row| row["link"].is_object()).await;
    // another run on the same boot of the same host is a restart
    let (uuid, keys, host_key) = (worker.uuid, worker.keys.clone(), worker.host_key.clone());
    let _restarted = TestWorker { uuid, host_key, keys, ..TestWorker::new() }.join(&server).await;
}

#[tokio::test]
async fn an_explicit_name_is_given_once_and_a_derived_one_gets_a_suffix() {
    let server = TestServer::start().await;
    let holder = TestWorker::new();
    let held = holder.join_as(&server, &holder.named(" npu-01 ")).await.unwrap();
    assert_eq!(held.response.name, "npu-01");
    for _ in 0..2 {
        let late = TestWorker::new();
        let (reason, message) = declined(late.join_as(&server, &late.named("npu-01")).await);
        assert_eq!(reason, "AlreadyExists");
        assert!(message.contains("npu-host") && message.contains("127.0.0.1"), "{message}");
    }
    let derived = [TestWorker::new(), TestWorker::new(), TestWorker::new()];
    let mut joined = Vec::new();
    for worker in &derived {
        joined.push(worker.join(&server).await);
    }
    let names: Vec<&str> = joined.iter().map(|joined| joined.response.name.as_str()).collect();
    let [first, second, third] = names[..] else { unreachable!() };
    assert_eq!(first, "npu-host");
    assert!(second.starts_with("npu-host-") && third.starts_with("npu-host-") && second != third);
    for (worker, name) in derived.iter().zip(&names) {
        assert_eq!(worker.join(&server).await.response.name, *name, "stable over a restart");
    }
}

#[tokio::test]
async fn a_worker_that_is_gone_is_replaced_only_when_an_administrator_allows_it() {
    let server = TestServer::start().await;
    let mut old = TestWorker::new();
    let joined = old.join_as(&server, &old.named("npu-01")).await.unwrap();
    let id = joined.id();
    row(&server, |row| row["link"].is_object()).await;
    joined.leave().await;
    row(&server, |row| row["state"] == json!("not_ready")).await;

    let new = TestWorker::new();
    let replacement = format!("/v1/workers/{id}/replacement");
    let (status, _) = answered(server.as_admin(Method::POST, &replacement)).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "nobody has asked");
    assert_eq!(declined(new.join_as(&server, &new.named("npu-01")).await).0, "ReplacementNeeded");
    let (status, _) = answered(server.as_admin(Method::POST, &replacement)).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let taken = new.join_as(&server, &new.named("npu-01")).await.unwrap();
    assert_eq!(taken.id(), id);
    old.token = None;
    assert_eq!(refusal(old.join_as(&server, &old.request()).await), Refusal::UnknownKey);
    assert_eq!(total(&server).await, json!(1));
}

#[tokio::test]
async fn a_hundred_workers_that_join_at_once_all_get_a_row_and_a_name() {
    let server = TestServer::start().await;
    let workers: Vec<_> = (0..100).map(|_| TestWorker::new()).collect();
    let joined = futures_util::future::join_all(workers.iter().map(|worker| worker.join(&server))).await;
    let mut names: Vec<_> = joined.iter().map(|joined| joined.response.name.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 100);
    let server = TestServer::start_in(server.stop().await).await;
    assert_eq!(server.admin_json("/v1/workers?perPage=1").await["pagination"]["total"], json!(100));
}

#[tokio::test]
async fn bad_input_gets_a_clear_error_and_changes_nothing() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    let with = |field: &str, value: Value| {
        let mut request = worker.request();
        request[field] = value;
        request
    };
    for bad in [
        with("ip", json!("0.0.0.0")),
        with("ip", json!("")),
        with("port", json!(0)),
        with("port", json!(70_000)),
        with("name", json!("   ")),
        with("name", json!("a\nb")),
        with("worker_uuid", json!("not-a-uuid")),
        with("hostname", Value::Null),
    ] {
        assert_eq!(declined(worker.join_as(&server, &bad).await).0, "Invalid", "{bad}");
    }
    assert_eq!(refusal(worker.join_as(&server, &json!([])).await), Refusal::Malformed);
    assert_eq!(total(&server).await, json!(0));
}

#[tokio::test]
async fn a_change_that_changes_nothing_is_refused_and_a_whole_row_sent_back_is_not() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    let joined = worker.join_as(&server, &worker.named("npu-1")).await.unwrap();
    let path = format!("/v1/workers/{}", joined.id());
    for bad in [json!([]), json!({"name": "npu-2"})] {
        let (status, body) = answered(server.as_admin(Method::PUT, &path).json(&bad)).await;
        assert_eq!((status, body["reason"].as_str()), (StatusCode::UNPROCESSABLE_ENTITY, Some("Invalid")), "{bad}");
    }
    let mut row = server.admin_json(&path).await;
    row["labels"] = json!({"rack": "a1"});
    let (status, changed) = answered(server.as_admin(Method::PUT, &path).json(&row)).await;
    assert_eq!((status, &changed["labels"]["rack"], &changed["name"]), (StatusCode::OK, &json!("a1"), &json!("npu-1")));
}

#[tokio::test]
async fn a_worker_that_vanishes_is_unreachable_at_once_and_the_sentence_tells_both_ways() {
    let server = TestServer::start().await;
    let joined = TestWorker::new().join(&server).await;
    row(&server, |row| row["link"].is_object()).await;
    // nothing listens on its port
    drop(joined);
    let shown = row(&server, |row| row["state"] == json!("unreachable")).await;
    assert_eq!(
        shown["state_message"],
        json!(
            "The server cannot reach the worker at http://127.0.0.1:9/healthz: the connection was refused. Nor over the \
             worker's link: it was closed."
        )
    );
}
