//! A worker of ours that a test plays: a real link and the worker's own status, without a host behind it.

use super::{TOKEN, TestServer};
use api::{RegisterDeclined, RegisterResponse, WorkerStatus};
use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use gpustack::worker::status::{StatusSource, routes};
use link::{
    AllowedTargets, DialConfig, DialError, Dialer, DirectTransport, JoinError, KeyPair, Link, LinkEnd, OuterTls,
    PublicKey, Refusal, ServerAddress, Tuning,
};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

/// Who a played worker is.
pub struct TestWorker {
    pub uuid: Uuid,
    pub session_id: Uuid,
    pub host_key: String,
    pub keys: KeyPair,
    /// What it shows when it joins.
    pub token: Option<&'static str>,
    /// The server's key from its first join on.
    pub server_key: Mutex<Option<PublicKey>>,
}

/// A played worker that has joined. Dropped, it vanishes without a word.
pub struct Joined {
    pub response: RegisterResponse,
    /// What it sees of its host.
    pub status: watch::Sender<Option<Arc<WorkerStatus>>>,
    /// Whether the server says that somebody looks at it.
    pub watched: watch::Receiver<bool>,
    stop: CancellationToken,
    leaving: CancellationToken,
    serving: AbortOnDropHandle<LinkEnd>,
}

impl TestWorker {
    pub fn new() -> Self {
        Self {
            uuid: Uuid::new_v4(),
            session_id: Uuid::new_v4(),
            host_key: Uuid::new_v4().to_string(),
            keys: KeyPair::generate().unwrap(),
            token: Some(TOKEN),
            server_key: Mutex::default(),
        }
    }

    pub fn request(&self) -> Value {
        json!({
            "protocol": api::PROTOCOL_VERSION,
            "version": "0.1.0",
            "worker_uuid": self.uuid,
            "session_id": self.session_id,
            "host_key": self.host_key,
            "name": null,
            "previous_name": null,
            "hostname": "npu-host",
            "ip": "127.0.0.1",
            "port": 9,
            "labels": {"os": "linux", "arch": "arm64"},
            "system_reserved": {"ram": 1, "vram": 2},
        })
    }

    pub fn named(&self, name: &str) -> Value {
        let mut request = self.request();
        request["name"] = json!(name);
        request
    }

    /// A link that is not served yet.
    pub async fn dial(&self, server: SocketAddr, request: &Value) -> Result<Link, DialError> {
        let address = ServerAddress::try_from(&format!("http://{server}").parse().unwrap()).unwrap();
        let config = DialConfig {
            transport: Arc::new(DirectTransport::new(
                address.clone(),
                OuterTls::anybody().unwrap(),
                Duration::from_secs(10),
            )),
            address,
            keys: self.keys.clone(),
            server_key: *self.server_key.lock().unwrap(),
            token: self.token.map(link::JoinToken::new),
            targets: AllowedTargets::none(),
            tuning: Tuning { drain_deadline: Duration::from_secs(1), ..Tuning::default() },
        };
        let link = Dialer::new(config).dial(Bytes::from(request.to_string())).await?;
        *self.server_key.lock().unwrap() = Some(link.welcome().server_key);
        Ok(link)
    }

    /// Joins with this request.
    pub async fn join_as(&self, server: &TestServer, request: &Value) -> Result<Joined, DialError> {
        let link = self.dial(server.address, request).await?;
        Ok(Joined::serve(link, self.uuid))
    }

    /// Joins as itself, which has to succeed.
    pub async fn join(&self, server: &TestServer) -> Joined {
        self.join_as(server, &self.request()).await.unwrap()
    }
}

impl Joined {
    fn serve(link: Link, uuid: Uuid) -> Self {
        let response: RegisterResponse = serde_json::from_slice(&link.welcome().answer).unwrap();
        let ((status, latest), (is_watched, watched)) = (watch::channel(None), watch::channel(false));
        let (stop, leaving) = (CancellationToken::new(), CancellationToken::new());
        let source = StatusSource {
            latest,
            watched: is_watched,
            heartbeat_interval: Duration::from_secs(response.heartbeat_interval_s),
            stop: stop.clone(),
            leaving: leaving.clone(),
        };
        let health = json!({"status": "ok", "worker_uuid": uuid});
        let router = Router::new().route("/healthz", get(async move || axum::Json(health))).merge(routes(source));
        let serving: JoinHandle<LinkEnd> = tokio::spawn(link.serve(router, stop.clone()));
        Self { response, status, watched, stop, leaving, serving: AbortOnDropHandle::new(serving) }
    }

    pub fn id(&self) -> i64 {
        self.response.worker_id.0
    }

    pub fn report(&self, status: Value) {
        self.status.send_replace(Some(Arc::new(serde_json::from_value(status).unwrap())));
    }

    /// Ends on purpose.
    pub async fn leave(self) {
        self.leaving.cancel();
        self.stop.cancel();
        self.serving.await.unwrap();
    }

    /// Waits until the link has ended.
    pub async fn ended(self) -> LinkEnd {
        self.serving.await.unwrap()
    }
}

pub fn refusal<T>(dialled: Result<T, DialError>) -> Refusal {
    match dialled {
        Err(DialError::Join(JoinError::Refused { refusal, .. })) => refusal,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("let in"),
    }
}

/// Why the server declines: the reason and the sentence.
pub fn declined<T>(dialled: Result<T, DialError>) -> (String, String) {
    let Refusal::Declined { detail } = refusal(dialled) else { panic!("another refusal") };
    let RegisterDeclined { reason, message } = serde_json::from_slice(&detail).unwrap();
    assert!(!message.is_empty());
    (reason, message)
}
