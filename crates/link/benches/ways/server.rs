//! The server: takes links, and the worker's HTTP/2 without encryption. And SSH as the bastion keeps it.

use crate::client::{Road, Way};
use crate::hosts::{Hosts, SERVER, WORKER};
use crate::worker;
use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::routing::get;
use link::{
    Acceptor, Admission, Applicant, CloseReason, Gatekeeper, JoinToken, KeyPair, LinkHandle, LinkObserver, Refusal,
    Registry, Tuning,
};
use netlab::{Host, Process, Ssh, SshServer, until};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

pub const LINK_PORT: u16 = 8090;
pub const HTTP2_PORT: u16 = 8091;
pub const TOKEN: &str = "8fb74878a2e813ed19c54bfe8810ad3e";
/// Where the forwards of the worker's port end on the server.
const FORWARDED: u16 = 10150;
const FORWARDED_COMPRESSED: u16 = 10151;

/// Lets everybody in, and calls a link after the address that the worker dialled.
struct AllComeIn;

#[async_trait]
impl Gatekeeper for AllComeIn {
    async fn tokens(&self) -> Vec<JoinToken> {
        vec![JoinToken::new(TOKEN)]
    }

    async fn recognise(&self, _applicant: &Applicant) -> Result<(), Refusal> {
        Ok(())
    }

    async fn admit(&self, _applicant: &Applicant, dialled: Bytes) -> Result<Admission, Refusal> {
        let id = String::from_utf8_lossy(&dialled).into_owned();
        Ok(Admission::Link { id: id.into(), answer: Bytes::new() })
    }
}

impl LinkObserver for AllComeIn {
    fn opened(&self, _link: &LinkHandle) {}
    fn closed(&self, _link: &LinkHandle, _reason: &CloseReason) {}
}

/// Starts everything; the first way is the direct one.
pub async fn start(hosts: &Hosts) -> Vec<Way> {
    let links = take_links().await;
    let http2 = TcpListener::bind((Ipv4Addr::UNSPECIFIED, HTTP2_PORT)).await.unwrap();
    let ssh = Forwards::start(hosts);
    let mut command = hosts.worker.command(std::env::current_exe().unwrap());
    let worker = Process::start(command.arg(worker::WORD).stdin(Stdio::null())).unwrap();
    let unencrypted = accept_http2(&http2).await;
    let link = link(&links, SERVER).await;
    let link_through_forwards = self::link(&links, Ipv4Addr::LOCALHOST).await;
    // both end with this process
    std::mem::forget((ssh, worker));
    let http1 = |host, port| Road::Http1(SocketAddr::from((host, port)));
    [
        ("direct, HTTP/1.1", http1(WORKER, worker::PORT)),
        ("link", Road::Link(link)),
        ("reversed HTTP/2 without encryption", Road::Http2(unencrypted)),
        ("OpenSSH's two forwards, HTTP/1.1", http1(Ipv4Addr::LOCALHOST, FORWARDED)),
        ("OpenSSH's two forwards with -C, HTTP/1.1", http1(Ipv4Addr::LOCALHOST, FORWARDED_COMPRESSED)),
        ("link through OpenSSH's two forwards", Road::Link(link_through_forwards)),
    ]
    .map(|(name, road)| Way { name, road })
    .into()
}

async fn take_links() -> Registry {
    let all: Arc<AllComeIn> = Arc::new(AllComeIn);
    let observer = Arc::clone(&all) as Arc<dyn LinkObserver>;
    let registry = Registry::new();
    let keys = KeyPair::generate().unwrap();
    let acceptor = Acceptor::new(&keys, all, observer, registry.clone(), Tuning::default()).unwrap();
    let respond = |State(acceptor): State<Acceptor>, ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request| async move {
        acceptor.respond(request, peer).map(Body::new)
    };
    let router = Router::new().route(link::LINK_PATH, get(respond)).with_state(acceptor);
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, LINK_PORT)).await.unwrap();
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream: &mut TcpStream| link::tune_socket(stream));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    registry
}

async fn link(links: &Registry, dialled: Ipv4Addr) -> LinkHandle {
    let (links, id) = (links.clone(), dialled.to_string());
    let wait = move || until("a link", || links.get(&id).ok_or("none"));
    tokio::task::spawn_blocking(wait).await.unwrap()
}

/// What a link is but for the encryption: the same roles, windows and sizes on a bare TCP connection.
async fn accept_http2(listener: &TcpListener) -> h2::client::SendRequest<Bytes> {
    let tuning = Tuning::default();
    let (stream, _) = listener.accept().await.unwrap();
    link::tune_socket(&stream);
    let (requests, connection) = h2::client::Builder::new()
        .initial_window_size(tuning.stream_window_bytes)
        .initial_connection_window_size(tuning.connection_window_bytes)
        .max_frame_size(worker::FRAME_BYTES)
        .handshake(stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    requests
}

/// The bastion's forwards: the worker's port to the server, and the server's to the worker.
struct Forwards {
    _keys: Ssh,
    _servers: [SshServer; 2],
    _clients: Vec<Process>,
}

impl Forwards {
    fn start(hosts: &Hosts) -> Self {
        let keys = Ssh::new().unwrap();
        let servers = [keys.serve(&hosts.here).unwrap(), keys.serve(&hosts.worker).unwrap()];
        let (server, worker) = (format!("root@{SERVER}"), format!("root@{WORKER}"));
        let mut clients = Vec::new();
        let mut forward = |listener: &Host, port: u16, words: &[&str]| {
            clients.push(keys.forward(&hosts.bastion, words).unwrap());
            until("a forward", || if listener.listens(port).unwrap() { Ok(()) } else { Err(port) });
        };
        for (port, compress) in [(FORWARDED, "no"), (FORWARDED_COMPRESSED, "yes")] {
            let compression = format!("Compression={compress}");
            let (out, back) = (format!("{port}:{WORKER}:{}", worker::PORT), format!("{port}:127.0.0.1:{port}"));
            forward(&hosts.bastion, port, &["-o", &compression, "-L", &out, &worker]);
            forward(&hosts.here, port, &["-o", &compression, "-R", &back, &server]);
        }
        forward(&hosts.bastion, LINK_PORT, &["-L", &format!("{LINK_PORT}:{SERVER}:{LINK_PORT}"), &server]);
        forward(&hosts.worker, LINK_PORT, &["-R", &format!("{LINK_PORT}:127.0.0.1:{LINK_PORT}"), &worker]);
        Self { _keys: keys, _servers: servers, _clients: clients }
    }
}
