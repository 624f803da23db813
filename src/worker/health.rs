//! The worker's own small HTTP server. The server asks it whether the worker can be reached and is the right one.

use super::identity::Identity;
use super::session_state::SessionState;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use http::StatusCode;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// A probe takes one for a moment.
const MAX_CONNECTIONS: usize = 64;
/// For all of a connection; each carries one request.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// A probe's head has a few hundred.
const HEAD_LIMIT_BYTES: usize = 8 * 1024;
/// After an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);
const BIND_V6_ONLY_FILE: &str = "/proc/sys/net/ipv6/bindv6only";

/// The worker's port cannot be used.
#[derive(Debug, Error)]
pub enum BindError {
    /// Something else has it.
    #[error("port {port} is in use by another program; stop that, or give the worker another port with --worker-port")]
    InUse {
        /// The port.
        port: u16,
    },
    /// Any other cause.
    #[error("cannot listen on port {port} (--worker-port): {source}")]
    Other {
        /// The port.
        port: u16,
        /// The cause.
        source: io::Error,
    },
}

/// Listens on the worker's port, on all addresses: the far end of a tunnel may be any of them.
pub async fn bind(port: u16) -> Result<TcpListener, BindError> {
    let listener = match any_family() {
        Some(address) => match TcpListener::bind((address, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
            // IPv6 is compiled in, but switched off
            Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
            ok => ok,
        },
        None => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
    };
    listener.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse { port },
        _ => BindError::Other { port, source },
    })
}

/// The address that listens for IPv4 and IPv6 at once, where the system has it so (`ipv6(7)`).
fn any_family() -> Option<Ipv6Addr> {
    let v6_only = std::fs::read_to_string(BIND_V6_ONLY_FILE).ok()?;
    (v6_only.trim() == "0").then_some(Ipv6Addr::UNSPECIFIED)
}

#[derive(Clone)]
struct Health {
    identity: Arc<Identity>,
    session: watch::Receiver<SessionState>,
}

/// What the worker answers. Knows nothing of how requests reach it.
pub fn router(identity: Arc<Identity>, session: watch::Receiver<SessionState>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/version", get(version))
        .with_state(Health { identity, session })
}

async fn healthz(State(health): State<Health>) -> Response {
    let (worker_uuid, name) = (health.identity.uuid(), health.identity.name());
    Json(json!({"status": "ok", "worker_uuid": worker_uuid, "name": name})).into_response()
}

async fn readyz(State(health): State<Health>) -> Response {
    match &*health.session.borrow() {
        SessionState::Up => Json(json!({"status": "ok"})).into_response(),
        SessionState::Joining { cause } => {
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "joining", "cause": cause}))).into_response()
        }
    }
}

async fn version() -> Response {
    Json(json!({"version": env!("CARGO_PKG_VERSION")})).into_response()
}

/// Answers on `listener` until `shutdown`.
pub async fn serve(listener: Arc<TcpListener>, router: Router, shutdown: CancellationToken) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // a connection beyond the limit waits in the system's queue for the deadline of another
        let (slot, accepted) = tokio::select! {
            () = shutdown.cancelled() => return,
            next = async {
                let slot = Arc::clone(&slots).acquire_owned().await;
                (slot, listener.accept().await)
            } => next,
        };
        let stream = match accepted {
            Ok((stream, _peer)) => stream,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection on the worker's port");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (router, shutdown) = (router.clone(), shutdown.clone());
        tokio::spawn(async move {
            let served = tokio::time::timeout(CONNECTION_TIMEOUT, answer(stream, router));
            tokio::select! {
                () = shutdown.cancelled() => {}
                _ = served => {}
            }
            drop(slot);
        });
    }
}

async fn answer(stream: TcpStream, router: Router) {
    let peer: Option<SocketAddr> = stream.peer_addr().ok();
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .max_buf_size(HEAD_LIMIT_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = connection.await {
        tracing::trace!(?peer, %error, "connection on the worker's port failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use http::{Method, Request};
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tower::ServiceExt;

    fn identity() -> (tempfile::TempDir, Arc<Identity>) {
        let dir = tempfile::tempdir().unwrap();
        let identity = Arc::new(Identity::load(dir.path()).unwrap());
        identity.keep_name("npu-1").unwrap();
        (dir, identity)
    }

    async fn ask(state: SessionState, method: Method, path: &str) -> (StatusCode, serde_json::Value) {
        let (_dir, identity) = identity();
        let (_sender, session) = watch::channel(state);
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let response = router(identity, session).oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    #[tokio::test]
    async fn health_names_the_worker() {
        let (_dir, identity) = identity();
        let uuid = identity.uuid();
        let (_sender, session) = watch::channel(SessionState::Up);
        let request = Request::builder().uri("/healthz").body(Body::empty()).unwrap();
        let response = router(identity, session).oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body, json!({"status": "ok", "worker_uuid": uuid, "name": "npu-1"}));
    }

    #[tokio::test]
    async fn readiness_tells_the_cause_until_a_session_is_up() {
        let joining = SessionState::Joining { cause: Some("nothing listens at h:1".to_owned()) };
        let (status, body) = ask(joining, Method::GET, "/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(body["cause"], "nothing listens at h:1");
        let (status, _) = ask(SessionState::Up, Method::GET, "/readyz").await;
        assert_eq!(status, StatusCode::OK);
    }

    #[tokio::test]
    async fn nothing_else_is_answered() {
        let table = [
            (Method::HEAD, "/healthz", StatusCode::OK),
            (Method::POST, "/healthz", StatusCode::METHOD_NOT_ALLOWED),
            (Method::GET, "/", StatusCode::NOT_FOUND),
            (Method::GET, "/healthz/x", StatusCode::NOT_FOUND),
            (Method::GET, "/version", StatusCode::OK),
        ];
        for (method, path, expected) in table {
            let (status, _) = ask(SessionState::Up, method.clone(), path).await;
            assert_eq!(status, expected, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn a_taken_port_is_named_with_the_flag_that_changes_it() {
        let first = bind(0).await.unwrap();
        let port = first.local_addr().unwrap().port();
        let error = bind(port).await.unwrap_err().to_string();
        assert!(error.contains(&port.to_string()) && error.contains("--worker-port"), "{error}");
    }

    #[tokio::test]
    async fn a_head_that_is_too_long_is_refused_and_the_next_connection_served() {
        let (_dir, identity) = identity();
        let (_sender, session) = watch::channel(SessionState::Up);
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let server = tokio::spawn(serve(listener, router(identity, session), shutdown.clone()));
        for (padding, expected) in [(2 * HEAD_LIMIT_BYTES, "HTTP/1.1 431"), (10, "HTTP/1.1 200")] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET /healthz HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(padding));
            // the server may close before it has read all of it
            let _ = stream.write_all(request.as_bytes()).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with(expected), "{answer}");
        }
        shutdown.cancel();
        server.await.unwrap();
    }
}
