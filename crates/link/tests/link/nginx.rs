//! The real nginx in between, as `docs/link-protocol.md` says to set it up, and as it should not be set up.

use crate::support::{PATIENCE, Server, Serving, Worker, ask, hello, soon, text};
use async_trait::async_trait;
use bytes::Bytes;
use link::{BoxedIo, Carrier, CloseReason, DialError, Dialer, Transport, TransportError, Tuning, UpgradeError};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::UnixStream;

/// What the operating guide gives.
const PASSES_UPGRADES: &str = "
    proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
";

const PASSES_WEBSOCKETS: &str = "
    proxy_http_version 1.1;
    proxy_set_header Upgrade $websocket_only;
    proxy_set_header Connection $websocket_connection;
";

/// An nginx with a configuration of its own, on a socket of its own, so that no port can be taken.
struct Nginx {
    folder: TempDir,
    child: Child,
}

impl Nginx {
    async fn start(server: &Server, location: &str, main: &str) -> Self {
        Self::in_front_of(server.address, location, main).await
    }

    async fn in_front_of(address: SocketAddr, location: &str, main: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "daemon off; pid {root}/pid; error_log {root}/error.log; {main}
            events {{}}
            http {{
                access_log off;
                client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fastcgi;
                uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;
                map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
                map $http_upgrade $websocket_only {{ default ''; websocket websocket; }}
                map $http_upgrade $websocket_connection {{ default close; websocket upgrade; }}
                server {{
                    listen unix:{root}/socket;
                    location / {{ proxy_pass http://{address}; {location} }}
                }}
            }}",
            root = folder.path().display(),
        );
        std::fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let child = nginx(&folder, &[]).spawn().expect("cannot start nginx: install the package nginx");
        let nginx = Self { folder, child };
        soon(async {
            while UnixStream::connect(nginx.socket()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        nginx
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn reload(&self) {
        assert!(nginx(&self.folder, &["-s", "reload"]).status().unwrap().success());
    }

    fn dialer(&self, worker: &Worker) -> Dialer {
        let mut config = worker.config();
        config.transport = Arc::new(ThroughSocket(self.socket()));
        Dialer::new(config)
    }

    async fn dial(&self, worker: &Worker) -> Result<link::Link, DialError> {
        soon(self.dialer(worker).dial(Bytes::from_static(b"worker"))).await
    }
}

fn nginx(folder: &TempDir, arguments: &[&str]) -> Command {
    // Debian has it where only root's PATH looks
    let program =
        ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].into_iter().find(|path| std::path::Path::new(path).exists());
    let mut command = Command::new(program.unwrap_or("nginx"));
    command.arg("-p").arg(folder.path()).arg("-c").arg(folder.path().join("nginx.conf"));
    command.arg("-e").arg(folder.path().join("error.log")).args(arguments).stderr(Stdio::null());
    command
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // its workers would outlive a master that is killed
        let _ = nginx(&self.folder, &["-s", "stop"]).status();
        let _ = self.child.wait();
    }
}

struct ThroughSocket(PathBuf);

#[async_trait]
impl Transport for ThroughSocket {
    async fn open(&self) -> Result<BoxedIo, TransportError> {
        Ok(Box::new(UnixStream::connect(&self.0).await.unwrap()))
    }
}

#[tokio::test]
async fn a_link_goes_through_as_the_guide_says() {
    let server = Server::start().await;
    let nginx = Nginx::start(&server, PASSES_UPGRADES, "").await;
    let link = nginx.dial(&Worker::of(&server)).await.unwrap();
    assert_eq!(link.welcome().carrier, Carrier::Stream);
    let big = axum::Router::new().route("/big", axum::routing::get(|| async { "x".repeat(5_000_000) }));
    let _serving = Serving::start(link, hello().merge(big));
    let link = server.opened(1).await;
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
    assert_eq!(text(ask(&link, "/big").await.unwrap()).await.len(), 5_000_000);
}

/// nginx cuts a silent connection after 60 s, and pings come every 10 s; here both are shorter, so that it can be waited
/// for.
#[tokio::test]
async fn pings_keep_nginx_from_cutting_an_idle_link() {
    let tuning = Tuning { ping_interval: Duration::from_millis(300), ..Tuning::default() };
    let server = Server::start_tuned(tuning).await;
    let impatient = format!("{PASSES_UPGRADES} proxy_read_timeout 1s; proxy_send_timeout 1s;");
    let nginx = Nginx::start(&server, &impatient, "").await;
    let _serving = Serving::start(nginx.dial(&Worker::of(&server)).await.unwrap(), hello());
    let link = server.opened(1).await;
    assert!(tokio::time::timeout(Duration::from_millis(3500), link.closed()).await.is_err(), "nginx cut the link");
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
}

#[tokio::test]
async fn an_nginx_that_knows_websockets_only_is_passed_as_one() {
    let server = Server::start().await;
    let nginx = Nginx::start(&server, PASSES_WEBSOCKETS, "").await;
    let link = nginx.dial(&Worker::of(&server)).await.unwrap();
    assert_eq!(link.welcome().carrier, Carrier::WebSocket);
    let _serving = Serving::start(link, hello());
    assert_eq!(text(ask(&server.opened(1).await, "/hello").await.unwrap()).await, "hello");
}

#[tokio::test]
async fn an_nginx_that_takes_the_upgrade_away_is_named() {
    let server = Server::start().await;
    let nginx = Nginx::start(&server, "", "").await;
    let error = nginx.dial(&Worker::of(&server)).await.unwrap_err();
    assert!(matches!(error, DialError::Upgrade(UpgradeError::TakenAway)), "{error}");
}

#[tokio::test]
async fn an_nginx_without_a_server_behind_it_is_told_apart() {
    let server = Server::start().await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let nginx = Nginx::in_front_of(free, PASSES_UPGRADES, "").await;
    let error = nginx.dial(&Worker::of(&server)).await.unwrap_err();
    assert!(error.to_string().contains("a proxy answers, and the server behind it does not"), "{error}");
}

#[tokio::test]
async fn a_link_outlives_a_reload_of_nginx_or_is_dialled_again() {
    let server = Server::start().await;
    let nginx = Nginx::start(&server, PASSES_UPGRADES, "").await;
    let _serving = Serving::start(nginx.dial(&Worker::of(&server)).await.unwrap(), hello());
    let link = server.opened(1).await;
    nginx.reload();
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");

    let impatient = Nginx::start(&server, PASSES_UPGRADES, "worker_shutdown_timeout 100ms;").await;
    let worker = Worker::of(&server);
    let serving = Serving::start(impatient.dial(&worker).await.unwrap(), hello());
    let link = server.opened(2).await;
    impatient.reload();
    assert_eq!(tokio::time::timeout(PATIENCE, link.closed()).await.unwrap(), CloseReason::ClosedByWorker);
    assert_eq!(serving.end().await, link::LinkEnd::Closed);
    let _serving = Serving::start(impatient.dial(&worker).await.unwrap(), hello());
    assert_eq!(text(ask(&server.opened(3).await, "/hello").await.unwrap()).await, "hello");
}
