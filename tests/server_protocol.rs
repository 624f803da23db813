//! Workers of ours against a real server: joining, names, identities, sessions, deletion.

#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on fails the test")]

mod common;

use common::{TestServer, TestWorker, answered, until};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

fn reason(body: &Value) -> &str {
    body["reason"].as_str().unwrap_or_default()
}

fn credential(body: &Value) -> &str {
    body["credential"].as_str().unwrap()
}

#[tokio::test]
async fn a_worker_joins_beats_reports_and_is_shown() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    let (status, joined) = server.register(&worker.request()).await;
    assert_eq!((status, joined["name"].as_str()), (StatusCode::OK, Some("npu-host")));

    let (status, beaten) = server.beat(credential(&joined), worker.session_id).await;
    assert_eq!((status, beaten["status_wanted"].as_bool()), (StatusCode::OK, Some(true)));
    let devices = json!({"gpu_devices": [{"index": 0, "name": "910B3", "vendor": "Huawei", "type": "npu"}]});
    let (status, _) = server.report(credential(&joined), worker.session_id, devices).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (_, beaten) = server.beat(credential(&joined), worker.session_id).await;
    assert_eq!(beaten["status_wanted"], json!(false));

    let rows = server.admin_json("/v1/workers").await;
    assert_eq!(rows["items"][0]["clock_offset_ms"], json!(5));
    let devices = server.admin_json("/v1/gpu-devices").await;
    assert_eq!(devices["items"][0]["id"], json!("npu-host:npu:0"));
    let device = server.admin_json("/v1/gpu-devices/npu-host:npu:0").await;
    assert_eq!(device["worker_name"], json!("npu-host"));
    let fleet = server.admin_json("/v1/fleet").await;
    assert!(fleet["workers"][0]["search"].as_str().unwrap().ends_with(" 910B3"));
}

#[tokio::test]
async fn secrets_that_are_wrong_are_told_apart() {
    let server = TestServer::start().await;
    let request = TestWorker::new().request();
    for (secret, expected) in [("wrong", "Unauthorized"), (&"0".repeat(64), "CredentialRevoked"), ("", "Unauthorized")]
    {
        let call = server.request(Method::POST, "/v1/worker-sessions").bearer_auth(secret).json(&request);
        let (status, body) = answered(call).await;
        assert_eq!((status, reason(&body)), (StatusCode::UNAUTHORIZED, expected), "{secret}");
        assert!(!body["request_id"].as_str().unwrap().is_empty());
    }
    let (status, body) = server.beat(common::TOKEN, Uuid::new_v4()).await;
    assert_eq!((status, reason(&body)), (StatusCode::UNAUTHORIZED, "CredentialRevoked"));
}

#[tokio::test]
async fn another_protocol_is_refused_before_its_fields_are_read() {
    let server = TestServer::start().await;
    let (status, body) = server.register(&json!({"protocol": 2, "other": "fields"})).await;
    assert_eq!((status, reason(&body)), (StatusCode::UPGRADE_REQUIRED, "ProtocolUnsupported"));
    let mut newer = TestWorker::new().request();
    newer["a_field_of_tomorrow"] = json!(1);
    assert_eq!(server.register(&newer).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_deleted_worker_comes_back_with_the_token_as_often_as_one_likes() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    for _ in 0..3 {
        let (_, joined) = server.register(&worker.request()).await;
        let path = format!("/v1/workers/{}", joined["worker_id"]);
        let (status, body) = answered(server.as_admin(Method::DELETE, &path)).await;
        assert_eq!((status, body), (StatusCode::OK, Value::Null));
        let (status, body) = server.beat(credential(&joined), worker.session_id).await;
        assert_eq!((status, reason(&body)), (StatusCode::UNAUTHORIZED, "CredentialRevoked"));
    }
    server.register(&worker.request()).await;
    assert_eq!(server.admin_json("/v1/workers").await["pagination"]["total"], json!(1));
}

#[tokio::test]
async fn a_lost_credential_is_replaced_and_the_old_one_revoked() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    let (_, first) = server.register(&worker.request()).await;
    let (status, second) = server.register(&worker.request()).await;
    assert_eq!((status, &second["worker_id"]), (StatusCode::OK, &first["worker_id"]));
    assert_eq!(server.beat(credential(&first), worker.session_id).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(server.beat(credential(&second), worker.session_id).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_credential_is_kept_over_restarts_of_the_worker_and_the_server() {
    let server = TestServer::start().await;
    let mut worker = TestWorker::new();
    let (_, joined) = server.register(&worker.request()).await;
    let old_session = worker.session_id;
    worker.session_id = Uuid::new_v4();
    let call = server.request(Method::POST, "/v1/worker-sessions").bearer_auth(credential(&joined));
    let (status, again) = answered(call.json(&worker.request())).await;
    assert_eq!((status, &again["credential"]), (StatusCode::OK, &Value::Null));
    let (status, body) = server.beat(credential(&joined), old_session).await;
    assert_eq!((status, reason(&body)), (StatusCode::CONFLICT, "SessionReplaced"));

    let server = TestServer::start_in(server.stop().await).await;
    let workers = server.admin_json("/v1/workers").await;
    assert_eq!(workers["items"][0]["state"], json!("pending"));
    assert_ne!(workers["items"][0]["heartbeat_time"], Value::Null, "flushed at the end");
    assert_eq!(server.beat(credential(&joined), worker.session_id).await.0, StatusCode::OK);
    let workers = server.admin_json("/v1/workers").await;
    assert_ne!(workers["items"][0]["state"], json!("pending"));
}

#[tokio::test]
async fn a_copied_data_directory_is_refused_while_the_other_host_lives_and_shown() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    let (_, joined) = server.register(&worker.request()).await;
    let copy = TestWorker { uuid: worker.uuid, ..TestWorker::new() };
    let mut request = copy.request();
    request["hostname"] = json!("the-copy");
    for secret in [common::TOKEN, credential(&joined)] {
        let call = server.request(Method::POST, "/v1/worker-sessions").bearer_auth(secret).json(&request);
        let (status, body) = answered(call).await;
        assert_eq!((status, reason(&body)), (StatusCode::CONFLICT, "IdentityDuplicated"));
    }
    let workers = server.admin_json("/v1/workers").await;
    let conditions = workers["items"][0]["conditions"].as_array().unwrap();
    let shown = conditions.iter().find(|condition| condition["type"] == json!("identity")).unwrap();
    assert_eq!(
        (shown["reason"].as_str(), shown["params"]["hostname"].as_str()),
        (Some("identity_duplicated"), Some("the-copy"))
    );
    assert_eq!(server.beat(credential(&joined), worker.session_id).await.0, StatusCode::OK);
    // another run on the same boot of the same host is a restart
    let restarted = TestWorker { uuid: worker.uuid, host_key: worker.host_key.clone(), ..TestWorker::new() };
    assert_eq!(server.register(&restarted.request()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn an_explicit_name_is_given_once_and_a_derived_one_gets_a_suffix() {
    let server = TestServer::start().await;
    let holder = TestWorker::new();
    assert_eq!(server.register(&holder.named(" npu-01 ")).await.1["name"], json!("npu-01"));
    for _ in 0..2 {
        let (status, body) = server.register(&TestWorker::new().named("npu-01")).await;
        assert_eq!((status, reason(&body)), (StatusCode::CONFLICT, "AlreadyExists"));
        let message = body["message"].as_str().unwrap();
        assert!(message.contains("npu-host") && message.contains("127.0.0.1"), "{message}");
    }
    let mut names = Vec::new();
    let derived = [TestWorker::new(), TestWorker::new(), TestWorker::new()];
    for worker in &derived {
        names.push(server.register(&worker.request()).await.1["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(names[0], "npu-host");
    assert!(names[1].starts_with("npu-host-") && names[2].starts_with("npu-host-") && names[1] != names[2]);
    for (worker, name) in derived.iter().zip(&names) {
        assert_eq!(server.register(&worker.request()).await.1["name"], json!(name), "stable over a restart");
    }
}

#[tokio::test]
async fn a_worker_that_is_gone_is_replaced_only_when_an_administrator_allows_it() {
    let server = TestServer::start().await;
    let old = TestWorker::new();
    let (_, joined) = server.register(&old.named("npu-01")).await;
    let farewell = json!({"session_id": old.session_id, "clock": null, "leaving": true});
    let call = server.request(Method::POST, "/v1/worker-heartbeats").bearer_auth(credential(&joined));
    assert_eq!(answered(call.json(&farewell)).await.0, StatusCode::OK);

    let new = TestWorker::new();
    let replacement = format!("/v1/workers/{}/replacement", joined["worker_id"]);
    let (status, _) = answered(server.as_admin(Method::POST, &replacement)).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "nobody has asked");
    let (status, body) = server.register(&new.named("npu-01")).await;
    assert_eq!((status, reason(&body)), (StatusCode::CONFLICT, "ReplacementNeeded"));
    let (status, _) = answered(server.as_admin(Method::POST, &replacement)).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, taken) = server.register(&new.named("npu-01")).await;
    assert_eq!((status, &taken["worker_id"]), (StatusCode::OK, &joined["worker_id"]));
    assert_eq!(server.beat(credential(&joined), old.session_id).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(server.admin_json("/v1/workers").await["pagination"]["total"], json!(1));
}

#[tokio::test]
async fn a_hundred_workers_that_join_at_once_all_get_a_row_and_a_name() {
    let server = TestServer::start().await;
    let workers: Vec<_> = (0..100).map(|_| TestWorker::new()).collect();
    let joins = workers.iter().map(|worker| async {
        let (status, joined) = server.register(&worker.request()).await;
        assert_eq!(status, StatusCode::OK, "{joined}");
        joined["name"].as_str().unwrap().to_owned()
    });
    let mut names = futures_util::future::join_all(joins).await;
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 100);
    let server = TestServer::start_in(server.stop().await).await;
    assert_eq!(server.admin_json("/v1/workers?perPage=1").await["pagination"]["total"], json!(100));
}

#[tokio::test]
async fn bad_input_gets_a_clear_error_and_changes_nothing() {
    let server = TestServer::start().await;
    let with = |field: &str, value: Value| {
        let mut request = TestWorker::new().request();
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
        let (status, body) = server.register(&bad).await;
        assert_eq!((status, reason(&body)), (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"), "{bad}");
    }
    let broken = server.request(Method::POST, "/v1/worker-sessions").bearer_auth(common::TOKEN).body("{");
    let (status, body) = answered(broken).await;
    assert_eq!((status, reason(&body)), (StatusCode::BAD_REQUEST, "BadRequest"));
    assert_eq!(server.admin_json("/v1/workers").await["pagination"]["total"], json!(0));
}

#[tokio::test]
async fn a_change_that_changes_nothing_is_refused_and_a_whole_row_sent_back_is_not() {
    let server = TestServer::start().await;
    let (_, joined) = server.register(&TestWorker::new().named("npu-1")).await;
    let path = format!("/v1/workers/{}", joined["worker_id"]);
    for bad in [json!([]), json!({"name": "npu-2"})] {
        let (status, body) = answered(server.as_admin(Method::PUT, &path).json(&bad)).await;
        assert_eq!((status, reason(&body)), (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"), "{bad}");
    }
    let mut row = server.admin_json(&path).await;
    row["labels"] = json!({"rack": "a1"});
    let (status, changed) = answered(server.as_admin(Method::PUT, &path).json(&row)).await;
    assert_eq!((status, &changed["labels"]["rack"], &changed["name"]), (StatusCode::OK, &json!("a1"), &json!("npu-1")));
}

#[tokio::test]
async fn events_of_a_worker_reach_its_page_and_a_state_is_announced() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    server.register(&worker.request()).await;
    // nothing listens on its port
    let state = until("the failed probe", || async {
        let rows = server.admin_json("/v1/workers").await;
        let row = rows["items"][0].clone();
        (row["state"] == json!("unreachable")).then_some(row)
    })
    .await;
    assert_eq!(
        state["state_message"],
        json!("The server cannot reach the worker at http://127.0.0.1:9/healthz: the connection was refused.")
    );
}
