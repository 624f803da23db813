//! A real server in this process, on a port of its own.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

pub mod agent;
pub mod worker;

use gpustack::config::{JoinToken, Secret, ServerConfig, TlsFiles};
use gpustack::server;
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, StatusCode};
use serde_json::Value;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const TOKEN: &str = "8fb74878a2e813ed19c54bfe8810ad3e";
pub const PASSWORD: &str = "correct horse battery";
/// No condition of these tests takes longer on the slowest machine that runs them.
const PATIENCE: Duration = Duration::from_mins(1);

pub struct TestServer {
    pub address: SocketAddr,
    pub client: Client,
    scheme: &'static str,
    data_dir: TempDir,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl TestServer {
    pub async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap()).await
    }

    pub async fn start_in(data_dir: TempDir) -> Self {
        Self::listen("127.0.0.1", data_dir).await
    }

    /// Where one listened before.
    pub async fn start_again(address: SocketAddr, data_dir: TempDir) -> Self {
        Self::serve(TcpListener::bind(address).await.unwrap(), data_dir)
    }

    /// At this address of the host.
    pub async fn start_at(host: &str) -> Self {
        Self::listen(host, tempfile::tempdir().unwrap()).await
    }

    async fn listen(host: &str, data_dir: TempDir) -> Self {
        Self::serve(TcpListener::bind((host, 0)).await.unwrap(), data_dir)
    }

    fn serve(listener: TcpListener, data_dir: TempDir) -> Self {
        let port = listener.local_addr().unwrap().port();
        Self::run(listener, config(data_dir.path(), port), data_dir, Client::builder())
    }

    /// Speaks TLS with these. Its client believes any certificate.
    pub async fn start_tls(files: TlsFiles) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (data_dir, port) = (tempfile::tempdir().unwrap(), listener.local_addr().unwrap().port());
        let config = ServerConfig { tls: Some(files), ..config(data_dir.path(), port) };
        Self::run(listener, config, data_dir, Client::builder().danger_accept_invalid_certs(true))
    }

    fn run(listener: TcpListener, config: ServerConfig, data_dir: TempDir, client: ClientBuilder) -> Self {
        let address = listener.local_addr().unwrap();
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let stop = CancellationToken::new();
        let running = server::run(listener, config, stop.clone());
        let task = tokio::spawn(async move { running.await.unwrap() });
        let client = client.no_proxy().build().unwrap();
        Self { address, client, scheme, data_dir, stop, task }
    }

    /// Stops it in an orderly way; its data dir can be started again.
    pub async fn stop(self) -> TempDir {
        self.stop.cancel();
        self.task.await.unwrap();
        self.data_dir
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}://{}{path}", self.scheme, self.address))
    }

    pub fn as_admin(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).basic_auth("admin", Some(PASSWORD))
    }

    pub fn as_legacy_worker(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).basic_auth("system/worker/127.0.0.1", Some(TOKEN))
    }

    pub async fn admin_json(&self, path: &str) -> Value {
        answered(self.as_admin(Method::GET, path)).await.1
    }
}

pub fn config(data_dir: &Path, port: u16) -> ServerConfig {
    ServerConfig {
        host: "127.0.0.1".into(),
        port,
        data_dir: data_dir.to_owned(),
        database: data_dir.join("gpustack.db"),
        token: Some(JoinToken::parse(TOKEN).unwrap()),
        bootstrap_password: Some(Secret::new(PASSWORD)),
        tls: None,
        worker_offline_timeout: Duration::from_mins(1),
        key_rotation: Duration::from_hours(24),
    }
}

/// Status and JSON body; null for an empty one.
pub async fn answered(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let body = response.bytes().await.unwrap();
    let value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    (status, value)
}

/// Takes what ends in an empty line off the front of what has arrived.
pub fn take_block(arrived: &mut String) -> Option<String> {
    let end = arrived.find("\n\n")?;
    let rest = arrived.split_off(end + 2);
    let block = std::mem::replace(arrived, rest);
    Some(block.trim_end().to_owned())
}

/// Waits until the condition holds, and gives what it found.
pub async fn until<T, F, Check>(what: &str, mut check: Check) -> T
where
    F: Future<Output = Option<T>>,
    Check: FnMut() -> F,
{
    let looking = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let Ok(found) = tokio::time::timeout(PATIENCE, looking).await else { panic!("never seen: {what}") };
    found
}
