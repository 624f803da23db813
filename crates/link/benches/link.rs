//! What a link costs: `cargo bench --package link`.
//!
//! In one run, with both ends in this process: small requests and bulk directly to the worker's router, through a
//! reversed HTTP/2 connection without the link's encryption, and through a link. Then the memory of idle links on the
//! server, with the workers in a process of their own: `cargo bench --package link -- idle 10000`.

#![expect(clippy::print_stdout, reason = "the figures are the result")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on ends")]

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::routing::get;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use link::{
    Acceptor, Admission, AllowedTargets, Applicant, CloseReason, DialConfig, Dialer, DirectTransport, Gatekeeper,
    JoinToken, KeyPair, LinkHandle, LinkObserver, OuterTls, Refusal, Registry, ServerAddress, Tuning,
};
use std::io::BufRead;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_mins(1);
const CHUNK_BYTES: usize = 64 * 1024;
/// As a link has it.
const FRAME_BYTES: u32 = 64 * 1024;
const BULK_BYTES: usize = 512 * 1024 * 1024;
const SMALL_REQUESTS: usize = 20_000;
const CLIENTS: usize = 64;
const IDLE_LINKS: usize = 1000;

/// What this process is to do.
enum Task {
    /// Everything.
    Measure,
    /// The memory of this many idle links.
    Idle(usize),
    /// Be the workers of another process that measures.
    Workers { port: u16, count: usize },
}

impl Task {
    /// `cargo bench` says `--bench`. `cargo test --all-targets` runs this file too, does not, and wants no measurement.
    fn from_arguments() -> Option<Self> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != "--bench").collect();
        match words.as_slice() {
            ["workers", port, count] => Some(Self::Workers { port: port.parse().ok()?, count: count.parse().ok()? }),
            _ if words.len() == arguments.len() => None,
            ["idle", count] => Some(Self::Idle(count.parse().ok()?)),
            _ => Some(Self::Measure),
        }
    }
}

fn main() {
    let Some(task) = Task::from_arguments() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match task {
            Task::Measure => {
                compare().await;
                idle_links(IDLE_LINKS).await;
            }
            Task::Idle(count) => idle_links(count).await,
            Task::Workers { port, count } => idle_workers(port, count).await,
        }
    });
}

struct AllComeIn;

#[async_trait]
impl Gatekeeper for AllComeIn {
    async fn tokens(&self) -> Vec<JoinToken> {
        vec![JoinToken::new("token")]
    }

    async fn recognise(&self, _applicant: &Applicant) -> Result<(), Refusal> {
        Ok(())
    }

    async fn admit(&self, applicant: &Applicant, _join_request: Bytes) -> Result<Admission, Refusal> {
        Ok(Admission::Link { id: applicant.worker_key.to_string().into(), answer: Bytes::new() })
    }
}

impl LinkObserver for AllComeIn {
    fn opened(&self, _link: &LinkHandle) {}
    fn closed(&self, _link: &LinkHandle, _reason: &CloseReason) {}
}

fn worker_router() -> Router {
    Router::new().route("/small", get(|| async { "Hello, World!\n" })).route("/bulk", get(bulk))
}

async fn bulk() -> Body {
    let chunk = Bytes::from(vec![7; CHUNK_BYTES]);
    let chunks = (0..BULK_BYTES / CHUNK_BYTES).map(move |_| Ok::<_, std::io::Error>(chunk.clone()));
    Body::from_stream(futures_util::stream::iter(chunks))
}

/// Starts a server that takes links.
async fn link_server() -> (u16, Acceptor) {
    let all: Arc<AllComeIn> = Arc::new(AllComeIn);
    let observer = Arc::clone(&all) as Arc<dyn LinkObserver>;
    let keys = KeyPair::generate().unwrap();
    let acceptor = Acceptor::new(&keys, all, observer, Registry::new(), Tuning::default()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let respond = |State(acceptor): State<Acceptor>, ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request| async move {
        acceptor.respond(request, peer).map(Body::new)
    };
    let router = Router::new().route(link::LINK_PATH, get(respond)).with_state(acceptor.clone());
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream: &mut TcpStream| link::tune_socket(stream));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    (port, acceptor)
}

fn dialer(port: u16) -> Dialer {
    let address = ServerAddress::try_from(&format!("http://127.0.0.1:{port}").parse().unwrap()).unwrap();
    // nothing is dialled by https here
    let outer_tls = OuterTls::pinned([0; 32]).unwrap();
    Dialer::new(DialConfig {
        transport: Arc::new(DirectTransport::new(address.clone(), outer_tls, DEADLINE)),
        address,
        keys: KeyPair::generate().unwrap(),
        server_key: None,
        token: Some(JoinToken::new("token")),
        targets: AllowedTargets::none(),
        tuning: Tuning { handshake_deadline: DEADLINE, ..Tuning::default() },
    })
}

// ---- small requests and bulk -------------------------------------------------------------------------------------

/// A way to ask the worker.
#[derive(Clone)]
enum Way {
    Http1(SocketAddr),
    Http2(h2::client::SendRequest<Bytes>),
    Link(LinkHandle),
}

/// A way as one client uses it.
enum Client {
    Http1(hyper::client::conn::http1::SendRequest<Empty<Bytes>>),
    Http2(h2::client::SendRequest<Bytes>),
    Link(LinkHandle),
}

impl Way {
    async fn client(&self) -> Client {
        match self {
            Self::Http1(address) => {
                let stream = TcpStream::connect(address).await.unwrap();
                link::tune_socket(&stream);
                let (requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                Client::Http1(requests)
            }
            Self::Http2(requests) => Client::Http2(requests.clone()),
            Self::Link(link) => Client::Link(link.clone()),
        }
    }
}

impl Client {
    /// Asks, reads the answer to its end, and tells its length.
    async fn ask(&mut self, path: &str) -> usize {
        let request = http::Request::get(format!("http://worker{path}"));
        match self {
            Self::Http1(requests) => {
                let request = request.header("host", "worker").uri(path).body(Empty::new()).unwrap();
                requests.ready().await.unwrap();
                length(requests.send_request(request).await.unwrap().into_body()).await
            }
            Self::Http2(requests) => {
                let mut requests = requests.clone().ready().await.unwrap();
                let (answer, _) = requests.send_request(request.body(()).unwrap(), true).unwrap();
                let mut body = answer.await.unwrap().into_body();
                let mut bytes = 0;
                while let Some(data) = body.data().await {
                    let data = data.unwrap();
                    body.flow_control().release_capacity(data.len()).unwrap();
                    bytes += data.len();
                }
                bytes
            }
            Self::Link(link) => {
                let request = request.body(Empty::<Bytes>::new()).unwrap();
                length(link.request(request, DEADLINE).await.unwrap().into_body()).await
            }
        }
    }
}

async fn length<B: http_body::Body<Data = Bytes> + Unpin>(mut body: B) -> usize
where
    B::Error: std::fmt::Debug,
{
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().data_ref().map_or(0, Bytes::len);
    }
    bytes
}

async fn compare() {
    println!(
        "{:44} {:>12} {:>12} {:>14} {:>14} {:>11} {:>10}",
        "way", "small p50 µs", "small p99 µs", "64 clients /s", "CPU µs/request", "bulk MB/s", "CPU s/GB"
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let direct = listener.local_addr().unwrap();
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream: &mut TcpStream| link::tune_socket(stream));
    tokio::spawn(async move { axum::serve(listener, worker_router()).await });
    measure("direct, HTTP/1.1", Way::Http1(direct)).await;

    measure("reversed HTTP/2 without encryption", Way::Http2(unencrypted().await)).await;

    let (port, acceptor) = link_server().await;
    let link = dialer(port).dial(Bytes::new()).await.unwrap();
    tokio::spawn(link.serve(worker_router(), CancellationToken::new()));
    measure("link", Way::Link(acceptor.registry().all().pop().unwrap())).await;
}

/// What a link is but for the encryption: the same roles, windows and sizes on a bare TCP connection.
async fn unencrypted() -> h2::client::SendRequest<Bytes> {
    let tuning = Tuning::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dialled = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    link::tune_socket(&dialled);
    link::tune_socket(&accepted);
    let mut worker = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    worker
        .initial_stream_window_size(tuning.stream_window_bytes)
        .initial_connection_window_size(tuning.connection_window_bytes)
        .max_frame_size(FRAME_BYTES)
        .max_send_buf_size(1024 * 1024);
    let service = hyper_util::service::TowerToHyperService::new(worker_router());
    tokio::spawn(async move { worker.serve_connection(TokioIo::new(dialled), service).await });
    let (requests, connection) = h2::client::Builder::new()
        .initial_window_size(tuning.stream_window_bytes)
        .initial_connection_window_size(tuning.connection_window_bytes)
        .max_frame_size(FRAME_BYTES)
        .handshake(accepted)
        .await
        .unwrap();
    tokio::spawn(connection);
    requests
}

async fn measure(name: &str, way: Way) {
    let mut client = way.client().await;
    let mut micros = Vec::with_capacity(SMALL_REQUESTS);
    for _ in 0..SMALL_REQUESTS {
        let start = Instant::now();
        client.ask("/small").await;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
    }
    micros.sort_by(f64::total_cmp);
    let percentile = |percent: usize| micros.get(micros.len() * percent / 100).copied().unwrap_or_default();

    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let mut client = way.client().await;
        clients.spawn(async move {
            for _ in 0..SMALL_REQUESTS / CLIENTS * 4 {
                client.ask("/small").await;
            }
        });
    }
    clients.join_all().await;
    let requests = (SMALL_REQUESTS / CLIENTS * 4 * CLIENTS) as f64;
    let per_second = requests / start.elapsed().as_secs_f64();
    let cpu_per_request = (cpu_seconds() - cpu) * 1e6 / requests;

    let mut best = 0.0_f64;
    let cpu = cpu_seconds();
    for _ in 0..3 {
        let start = Instant::now();
        let bytes = client.ask("/bulk").await;
        best = best.max(bytes as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    let cpu_per_gb = (cpu_seconds() - cpu) / (3.0 * BULK_BYTES as f64 / 1e9);
    println!(
        "{name:44} {:12.0} {:12.0} {per_second:14.0} {cpu_per_request:14.1} {best:11.0} {cpu_per_gb:10.2}",
        percentile(50),
        percentile(99)
    );
}

/// What this process has used, both ends together.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // user and system time are the 14th and 15th fields, in hundredths; the second one may hold spaces
    let after_name = stat.rsplit(") ").next().unwrap();
    after_name.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

// ---- memory of idle links ----------------------------------------------------------------------------------------

async fn idle_links(count: usize) {
    let (port, acceptor) = link_server().await;
    let before = resident_bytes();
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut workers = Command::new(std::env::current_exe().unwrap())
        .args(["workers", &port.to_string(), &count.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(workers.stdout.take().unwrap());
    tokio::task::spawn_blocking(move || said.read_line(&mut String::new())).await.unwrap().unwrap();
    println!(
        "{} of {count} links joined in {:.2} s, {:.2} ms of CPU each on the server",
        acceptor.registry().len(),
        start.elapsed().as_secs_f64(),
        (cpu_seconds() - cpu) * 1e3 / count as f64
    );
    println!("{:.1} KiB of resident memory for each link on the server, after the join", per_link(before, count));
    // a ping each, and a request each
    let start = Instant::now();
    let mut asked = JoinSet::new();
    for link in acceptor.registry().all() {
        asked.spawn(async move { Client::Link(link).ask("/small").await });
    }
    asked.join_all().await;
    println!("one request to each took {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    println!("{:.1} KiB for each link after it", per_link(before, count));
    let idle_cpu = cpu_seconds();
    tokio::time::sleep(Duration::from_secs(25)).await;
    println!(
        "{:.1} KiB for each link after 25 s of pings, which took {:.2} % of a core",
        per_link(before, count),
        (cpu_seconds() - idle_cpu) / 25.0 * 100.0
    );
    workers.kill().unwrap();
    workers.wait().unwrap();
}

fn per_link(before: f64, count: usize) -> f64 {
    (resident_bytes() - before) / 1024.0 / count as f64
}

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
}

/// The other process: says when all have joined, and stays.
async fn idle_workers(port: u16, count: usize) {
    let mut joins = JoinSet::new();
    for _ in 0..count {
        joins.spawn(async move {
            let mut dialer = dialer(port);
            // the server answers 503 to more than it can take at a time
            loop {
                if let Ok(link) = dialer.dial(Bytes::new()).await {
                    tokio::spawn(link.serve(worker_router(), CancellationToken::new()));
                    return;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
    }
    joins.join_all().await;
    println!("joined");
    std::future::pending::<()>().await;
}
