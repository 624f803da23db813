//! A whole worker, with a stand-in for `npu-smi`, in front of a server that notes what it hears.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod support;

use api::{
    HeartbeatRequest, HeartbeatResponse, Reason, RegisterRequest, RegisterResponse, StatusReport, WorkerId,
    WorkerStatus,
};
use axum::extract::State;
use axum::routing::{post, put};
use axum::{Json, Router};
use gpustack::config::WorkerConfig;
use http::{HeaderMap, StatusCode};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use support::{Host, TOKEN, Worker};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// No condition of these tests takes longer on the slowest machine that runs them.
const PATIENCE: Duration = Duration::from_mins(1);
const CREDENTIAL: &str = "a-credential-of-its-own";

/// What the server has heard.
#[derive(Clone, Debug, Default)]
struct Heard {
    registers: Vec<(String, RegisterRequest)>,
    beats: Vec<HeartbeatRequest>,
    statuses: Vec<WorkerStatus>,
}

#[derive(Clone)]
struct Server {
    address: SocketAddr,
    heard: Arc<watch::Sender<Heard>>,
}

/// Waits until the server has heard what is wished.
async fn until(worker: &mut Worker, server: &Server, is_wished: impl Fn(&Heard) -> bool) -> Heard {
    let mut heard = server.heard.subscribe();
    tokio::select! {
        ended = &mut worker.task => panic!("the worker has ended: {ended:?}"),
        heard = heard.wait_for(|heard| is_wished(heard)) => heard.unwrap().clone(),
        () = tokio::time::sleep(PATIENCE) => panic!("the server waits in vain; it has heard {:?}", server.heard.borrow()),
    }
}

impl Server {
    async fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap()).await
    }

    async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let server = Self { address: listener.local_addr().unwrap(), heard: Arc::default() };
        let router = Router::new()
            .route("/v1/worker-sessions", post(register))
            .route("/v1/worker-heartbeats", post(beat))
            .route("/v1/worker-status", put(report))
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        server
    }
}

async fn register(
    State(server): State<Server>,
    headers: HeaderMap,
    Json(request): Json<RegisterRequest>,
) -> Json<RegisterResponse> {
    let bearer = headers["authorization"].to_str().unwrap().to_owned();
    let name = request.name.clone().or(request.previous_name.clone()).unwrap_or_else(|| "named-by-server".to_owned());
    let credential = (bearer == format!("Bearer {TOKEN}")).then(|| CREDENTIAL.to_owned());
    server.heard.send_modify(|heard| heard.registers.push((bearer, request)));
    Json(RegisterResponse {
        worker_id: WorkerId(1),
        name,
        credential,
        heartbeat_interval_s: 1,
        server_version: "0".to_owned(),
    })
}

async fn beat(State(server): State<Server>, Json(request): Json<HeartbeatRequest>) -> Json<HeartbeatResponse> {
    server.heard.send_modify(|heard| heard.beats.push(request));
    Json(HeartbeatResponse { received_ms: 0, returned_ms: 0, status_wanted: false })
}

async fn report(State(server): State<Server>, Json(report): Json<StatusReport>) -> StatusCode {
    server.heard.send_modify(|heard| heard.statuses.push(report.status));
    StatusCode::NO_CONTENT
}

fn device_count(status: &WorkerStatus) -> usize {
    status.gpu_devices.as_ref().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_worker_shows_its_eight_npus_beats_and_answers_for_itself() {
    let (host, server) = (Host::new(), Server::start().await);
    let mut worker = host.start_worker(host.config(server.address)).await;
    let heard = until(&mut worker, &server, |heard| {
        heard.beats.len() > 2 && heard.statuses.last().is_some_and(|status| device_count(status) == 8)
    })
    .await;
    let status = heard.statuses.last().unwrap();
    let device = &status.gpu_devices.as_ref().unwrap()[0];
    assert_eq!((device.name.as_str(), device.vendor.as_str()), ("910B3", "Huawei"));
    assert_eq!(device.memory.as_ref().unwrap().total, Some(64 << 30));
    assert_eq!(status.problems, []);
    assert!(status.memory.is_some() && status.cpu.is_some());
    assert!(heard.beats[1].clock.is_some());

    let (bearer, request) = &heard.registers[0];
    assert_eq!(*bearer, format!("Bearer {TOKEN}"));
    assert_eq!((request.ip.as_str(), request.port), ("127.0.0.1", worker.address.port()));
    let (status, body) = worker.get("/healthz").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["worker_uuid"], request.worker_uuid.to_string());
    assert_eq!(body["name"], "named-by-server");
    assert_eq!(worker.get("/readyz").await.0, StatusCode::OK);
    worker.stop().await;
}

#[tokio::test]
async fn a_tool_that_hangs_leaves_stale_devices_and_a_steady_heartbeat() {
    let (host, server) = (Host::new(), Server::start().await);
    let mut worker = host.start_worker(host.config(server.address)).await;
    until(&mut worker, &server, |heard| heard.statuses.last().is_some_and(|status| device_count(status) == 8)).await;
    host.set_tool_mode("hang");
    let heard = until(&mut worker, &server, |heard| {
        heard.statuses.last().is_some_and(|status| status.devices_stale_s.is_some())
    })
    .await;
    let status = heard.statuses.last().unwrap();
    assert_eq!(device_count(status), 8);
    assert!(status.problems.iter().any(|problem| matches!(problem.reason, Reason::ToolTimedOut { .. })));
    let beats = heard.beats.len();
    until(&mut worker, &server, |heard| heard.beats.len() >= beats + 3).await;
    host.set_tool_mode("normal");
    let is_well = |status: &WorkerStatus| status.devices_stale_s.is_none() && status.problems.is_empty();
    let heard = until(&mut worker, &server, |heard| heard.statuses.last().is_some_and(is_well)).await;
    assert_eq!(heard.registers.len(), 1, "all in one session");
    worker.stop().await;
}

#[tokio::test]
async fn an_unhealthy_chip_and_a_failing_driver_are_reported() {
    let (host, server) = (Host::new(), Server::start().await);
    host.set_tool_mode("unhealthy");
    let mut worker = host.start_worker(host.config(server.address)).await;
    let has = |heard: &Heard, is_wished: fn(&Reason) -> bool| {
        heard.statuses.last().is_some_and(|status| status.problems.iter().any(|problem| is_wished(&problem.reason)))
    };
    let heard = until(&mut worker, &server, |heard| {
        has(heard, |reason| matches!(reason, Reason::DeviceUnhealthy { index: 3, .. }))
    })
    .await;
    assert_eq!(device_count(heard.statuses.last().unwrap()), 8);
    host.set_tool_mode("error");
    until(&mut worker, &server, |heard| {
        has(heard, |reason| matches!(reason, Reason::DriverInitFailed { code: -8005, .. }))
    })
    .await;
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_starts_before_its_server_says_why_it_waits_and_joins_then() {
    let host = Host::new();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut worker = host.start_worker(host.config(address)).await;
    let body = loop {
        let (status, body) = worker.get("/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        if !body["cause"].is_null() {
            break body;
        }
    };
    assert!(body["cause"].as_str().unwrap().starts_with(&format!("nothing listens at {address}")), "{body}");
    let server = Server::start_at(address).await;
    until(&mut worker, &server, |heard| !heard.beats.is_empty()).await;
    assert_eq!(worker.get("/readyz").await.0, StatusCode::OK);
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_starts_again_is_the_same_worker_and_needs_no_token() {
    let (host, server) = (Host::new(), Server::start().await);
    let mut worker = host.start_worker(host.config(server.address)).await;
    until(&mut worker, &server, |heard| !heard.beats.is_empty()).await;
    worker.stop().await;
    assert!(server.heard.borrow().beats.last().unwrap().leaving);

    let without_token = WorkerConfig { token: None, ..host.config(server.address) };
    let mut worker = host.start_worker(without_token).await;
    let heard = until(&mut worker, &server, |heard| heard.registers.len() == 2).await;
    let [(_, first), (bearer, second)] = heard.registers.as_slice() else { unreachable!() };
    assert_eq!(*bearer, format!("Bearer {CREDENTIAL}"));
    assert_eq!(second.worker_uuid, first.worker_uuid);
    assert_eq!(second.host_key, first.host_key);
    assert_ne!(second.session_id, first.session_id);
    assert_eq!(second.previous_name.as_deref(), Some("named-by-server"));
    worker.stop().await;
}

#[tokio::test]
async fn a_new_worker_without_a_token_ends_with_a_word_about_it() {
    let (host, server) = (Host::new(), Server::start().await);
    let without_token = WorkerConfig { token: None, ..host.config(server.address) };
    let error = host.start_worker(without_token).await.task.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("--token"), "{error}");
}
