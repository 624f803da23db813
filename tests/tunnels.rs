//! Tunnel agents against a real server: joining, names, reports, deletion, and what workers are told by it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod common;

use api::{Availability, FaultCause, ForwardReport, ForwardState, TunnelFault, TunnelReport};
use common::agent::TestAgent;
use common::worker::{TestWorker, declined, refusal};
use common::{TestServer, answered, until};
use http::{Method, StatusCode};
use link::{KeyPair, LinkEnd, Refusal};
use serde_json::{Value, json};
use std::sync::Mutex;
use uuid::Uuid;

/// The forward that leads `npu-host`, as played workers are called, to the server.
fn forward(state: ForwardState) -> ForwardReport {
    let fault = (state == ForwardState::Down).then(|| TunnelFault {
        hop: Some("root@10.20.0.20:22".to_owned()),
        cause: FaultCause::SshNoAnswer { address: "10.20.0.20:22".to_owned() },
    });
    ForwardReport {
        workers: vec!["npu-host".to_owned()],
        state_age_ms: 60_000,
        fault,
        round_trip_ms: Some(3.5),
        to_target_bytes: 10,
        from_target_bytes: 20,
        open_connections: 1,
        reconnects: 2,
        availability: Availability { day: Some(0.9), week: None, month: None },
        ..ForwardReport::example("npu-host.server", state)
    }
}

fn report(state: ForwardState) -> TunnelReport {
    TunnelReport { forwards: vec![forward(state)], ..TunnelReport::default() }
}

async fn agents(server: &TestServer) -> Vec<Value> {
    server.admin_json("/v1/tunnels").await.as_array().unwrap().clone()
}

/// Waits until the only agent is as wished.
async fn agent(server: &TestServer, is_wished: impl Fn(&Value) -> bool) -> Value {
    until("the agent", async || {
        let all = agents(server).await;
        assert!(all.len() <= 1, "{all:?}");
        all.into_iter().find(|agent| is_wished(agent))
    })
    .await
}

fn is_told(agent: &Value, state: &str) -> bool {
    agent["report"]["forwards"][0]["state"] == state
}

#[tokio::test]
async fn an_agent_joins_reports_is_shown_vanishes_and_comes_back() {
    let server = TestServer::start().await;
    let mut bastion = TestAgent::new("bastion-01");
    let joined = bastion.join(server.address, &report(ForwardState::Up)).await.unwrap();
    assert_eq!(joined.response.name, "bastion-01");
    let shown = agent(&server, |agent| is_told(agent, "up")).await;
    assert_eq!(shown["is_connected"], true);
    assert_eq!(shown["hostname"], "bastion-host");
    assert!(shown["since_ms"].is_number() && shown["reported_ms"].is_number(), "{shown}");
    let one = server.admin_json(&format!("/v1/tunnels/{}", joined.id())).await;
    assert_eq!(one["report"], shown["report"]);

    joined.report(&report(ForwardState::Down));
    agent(&server, |agent| is_told(agent, "down")).await;
    drop(joined);
    let gone = agent(&server, |agent| agent["is_connected"] == false).await;
    assert!(is_told(&gone, "down"), "what was told last stays: {gone}");

    // its key is known, so it needs no token
    bastion.token = None;
    let again = bastion.join(server.address, &report(ForwardState::Up)).await.unwrap();
    let back = agent(&server, |agent| is_told(agent, "up")).await;
    assert_eq!((&back["is_connected"], &back["id"]), (&json!(true), &json!(again.id())));
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_leaves_no_trace() {
    let server = TestServer::start().await;
    let mut stranger = TestAgent::new("bastion-01");
    stranger.token = Some("ffffffffffffffffffffffffffffffff");
    assert_eq!(refusal(stranger.join(server.address, &TunnelReport::default()).await), Refusal::WrongToken);
    assert!(agents(&server).await.is_empty());
}

#[tokio::test]
async fn a_workers_key_lets_no_agent_in() {
    let server = TestServer::start().await;
    let worker = TestWorker::new();
    let _joined = worker.join(&server).await;
    let server_key = *worker.server_key.lock().unwrap();
    let keys = worker.keys.clone();
    let agent = TestAgent { keys, token: None, server_key: Mutex::new(server_key), ..TestAgent::new("bastion-01") };
    let (reason, _) = declined(agent.join(server.address, &TunnelReport::default()).await);
    assert_eq!(reason, "WorkerUnknown");
}

#[tokio::test]
async fn the_name_of_a_living_agent_is_not_given_to_another() {
    let server = TestServer::start().await;
    let _first = TestAgent::new("bastion-01").join(server.address, &TunnelReport::default()).await.unwrap();
    let second = TestAgent::new("bastion-01");
    let (reason, message) = declined(second.join(server.address, &TunnelReport::default()).await);
    assert_eq!(reason, "AlreadyExists");
    assert!(message.contains("`id:` in tunnels.yaml") && message.contains("bastion-host"), "{message}");
    assert_eq!(agents(&server).await.len(), 1);
}

#[tokio::test]
async fn a_new_key_comes_in_with_the_token_and_the_old_one_is_revoked() {
    let server = TestServer::start().await;
    let mut bastion = TestAgent::new("bastion-01");
    let first = bastion.join(server.address, &TunnelReport::default()).await.unwrap();
    let old = std::mem::replace(&mut bastion.keys, KeyPair::generate().unwrap());
    let second = bastion.join(server.address, &TunnelReport::default()).await.unwrap();
    assert_eq!(second.id(), first.id());
    assert_eq!(first.ended().await, LinkEnd::Replaced);
    bastion.keys = old;
    bastion.token = None;
    assert_eq!(refusal(bastion.join(server.address, &TunnelReport::default()).await), Refusal::UnknownKey);
}

#[tokio::test]
async fn a_deleted_agent_is_revoked_and_comes_again_as_new_with_the_token_only() {
    let server = TestServer::start().await;
    let mut bastion = TestAgent::new("bastion-01");
    let joined = bastion.join(server.address, &report(ForwardState::Up)).await.unwrap();
    let (id, path) = (joined.id(), format!("/v1/tunnels/{}", joined.id()));
    agent(&server, |agent| is_told(agent, "up")).await;
    let (status, body) = answered(server.as_admin(Method::DELETE, &path)).await;
    assert_eq!((status, body), (StatusCode::OK, Value::Null));
    assert_eq!(joined.ended().await, LinkEnd::Revoked);
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(answered(server.as_admin(method, &path)).await.0, StatusCode::NOT_FOUND);
    }
    bastion.token = None;
    assert_eq!(refusal(bastion.join(server.address, &TunnelReport::default()).await), Refusal::UnknownKey);
    bastion.token = Some(common::TOKEN);
    let again = bastion.join(server.address, &TunnelReport::default()).await.unwrap();
    assert!(again.id() > id);
}

#[tokio::test]
async fn a_report_that_makes_no_sense_changes_nothing_and_is_asked_for_again() {
    let server = TestServer::start().await;
    let mut joined = TestAgent::new("bastion-01").join(server.address, &report(ForwardState::Up)).await.unwrap();
    agent(&server, |agent| is_told(agent, "up")).await;
    joined.asked.recv().await.unwrap();
    joined.tell(&[0, 0, 0, 3, b'n', b'o', b'!']);
    joined.asked.recv().await.unwrap();
    let shown = agent(&server, |_| true).await;
    assert!(shown["is_connected"] == true && is_told(&shown, "up"), "{shown}");
    // it is read, and out of bounds
    let mut endless = forward(ForwardState::Down);
    endless.state_age_ms = u64::MAX;
    joined.report(&TunnelReport { forwards: vec![endless], ..TunnelReport::default() });
    joined.asked.recv().await.unwrap();
    joined.report(&report(ForwardState::Degraded));
    agent(&server, |agent| is_told(agent, "degraded")).await;
}

#[tokio::test]
async fn the_last_report_outlives_the_server() {
    let server = TestServer::start().await;
    let bastion = TestAgent::new("bastion-01");
    let joined = bastion.join(server.address, &report(ForwardState::Down)).await.unwrap();
    let before = agent(&server, |agent| is_told(agent, "down")).await;
    let address = server.address;
    let data_dir = server.stop().await;
    drop(joined);
    let server = TestServer::start_again(address, data_dir).await;
    let after = agent(&server, |_| true).await;
    assert_eq!((&after["is_connected"], &after["since_ms"]), (&json!(false), &Value::Null));
    assert_eq!((&after["report"], &after["created_ms"]), (&before["report"], &before["created_ms"]));
    let moved = after["reported_ms"].as_i64().unwrap() - before["reported_ms"].as_i64().unwrap();
    assert!(moved.abs() <= 1_000, "{moved}");
    let _again = bastion.join(server.address, &report(ForwardState::Up)).await.unwrap();
    agent(&server, |agent| is_told(agent, "up")).await;
}

#[tokio::test]
async fn a_worker_whose_tunnel_is_down_is_shown_with_that_as_the_reason() {
    let server = TestServer::start().await;
    let bastion = TestAgent::new("bastion-01").join(server.address, &report(ForwardState::Up)).await.unwrap();
    // nothing listens at its port
    let worker = TestWorker::new().join(&server).await;
    let id = worker.id();
    let row = async |is_wished: &dyn Fn(&Value) -> bool| {
        until("the worker", async || {
            let row = server.admin_json(&format!("/v1/workers/{id}")).await;
            is_wished(&row).then_some(row)
        })
        .await
    };
    let tunnels = until("its tunnels", async || {
        let tunnels = server.admin_json(&format!("/v1/workers/{id}/tunnels")).await;
        (tunnels.as_array().unwrap().len() == 1).then_some(tunnels)
    })
    .await;
    assert_eq!((&tunnels[0]["agent"], &tunnels[0]["is_connected"]), (&json!("bastion-01"), &json!(true)));
    assert_eq!(tunnels[0]["forward"]["id"], "npu-host.server");

    drop(worker);
    let reason = |row: &Value, kind: &str| {
        let all = row["conditions"].as_array().unwrap();
        all.iter().find(|condition| condition["type"] == kind).map(|condition| condition["reason"].clone())
    };
    let lost = row(&|row| row["state"] == "unreachable").await;
    assert_eq!(reason(&lost, "link"), Some(json!("link_down")), "the tunnel is up as far as is known");
    bastion.report(&report(ForwardState::Down));
    let explained = row(&|row| reason(row, "link") == Some(json!("tunnel_down"))).await;
    assert_eq!(reason(&explained, "direct"), Some(json!("tunnel_down")));
    let message = explained["state_message"].as_str().unwrap();
    assert!(
        message.starts_with("The tunnel npu-host.server of the tunnel agent bastion-01 does not work since"),
        "{message}"
    );
    bastion.report(&report(ForwardState::Up));
    row(&|row| reason(row, "link") == Some(json!("link_down"))).await;
    drop(bastion);
    row(&|row| reason(row, "link") == Some(json!("tunnel_down"))).await;
}

#[tokio::test]
async fn tunnels_are_for_administrators() {
    let server = TestServer::start().await;
    for (method, path) in [
        (Method::GET, "/v1/tunnels"),
        (Method::GET, "/v1/tunnels/1"),
        (Method::DELETE, "/v1/tunnels/1"),
        (Method::GET, "/v1/workers/1/tunnels"),
    ] {
        assert_eq!(answered(server.request(method.clone(), path)).await.0, StatusCode::UNAUTHORIZED, "{method} {path}");
    }
    assert_eq!(answered(server.as_admin(Method::GET, "/v1/workers/1/tunnels")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_health_answer_tells_which_server_it_is() {
    let server = TestServer::start().await;
    let (status, health) = answered(server.request(Method::GET, "/healthz")).await;
    assert_eq!((status, &health["status"]), (StatusCode::OK, &json!("ok")));
    let data_dir = server.stop().await;
    let key = KeyPair::load(&data_dir.path().join("link_key")).unwrap().unwrap().public();
    assert_eq!(health["server"], json!(key.fingerprint()));
    assert!(Uuid::parse_str(health["server"].as_str().unwrap()).is_ok(), "32 hexadecimal digits");
}
