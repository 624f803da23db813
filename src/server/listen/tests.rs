use super::*;
use crate::config::TlsFiles;
use axum::extract::Extension;
use axum::routing::get;
use futures_util::StreamExt;
use rcgen::generate_simple_self_signed;
use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncReadExt;
use tokio::task::{JoinHandle, JoinSet};

const LIMITS: Limits = Limits { connections: 10, write: WRITE_TIMEOUT };

struct Running {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

async fn start(router: Router, tls: Option<Tls>) -> Running {
    start_within(LIMITS, router, tls).await
}

async fn start_within(limits: Limits, router: Router, tls: Option<Tls>) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(serve_within(limits, listener, router, tls, shutdown.clone()));
    Running { address, shutdown, task }
}

fn who_router() -> Router {
    Router::new().route("/", get(|Extension(peer): Extension<PeerAddress>| async move { format!("{peer:?}") }))
}

async fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn self_signed(dir: &tempfile::TempDir) -> (Tls, Vec<u8>) {
    let pair = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files = TlsFiles { key: dir.path().join("key"), certificate: dir.path().join("cert") };
    std::fs::write(&files.key, pair.signing_key.serialize_pem()).unwrap();
    std::fs::write(&files.certificate, pair.cert.pem()).unwrap();
    (Tls::load(&files).unwrap(), pair.cert.pem().into_bytes())
}

#[tokio::test]
async fn a_handler_learns_the_peers_address() {
    let server = start(who_router(), None).await;
    let mut client = TcpStream::connect(server.address).await.unwrap();
    let own = client.local_addr().unwrap();
    let answer = ask(&mut client, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    assert!(answer.ends_with(&format!("PeerAddress {{ addr: {own}, https: false }}")), "{answer}");
}

#[tokio::test]
async fn no_more_connections_are_answered_at_once_than_the_cap_allows() {
    let (active, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (active, most) = (active.clone(), most.clone());
        move || async move {
            most.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            active.fetch_sub(1, Ordering::SeqCst);
        }
    };
    let server = start_within(Limits { connections: 2, ..LIMITS }, Router::new().route("/", get(handler)), None).await;
    let mut clients = JoinSet::new();
    for _ in 0..10 {
        clients.spawn(async move {
            let mut client = TcpStream::connect(server.address).await.unwrap();
            ask(&mut client, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await
        });
    }
    for answer in clients.join_all().await {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert!(most.load(Ordering::SeqCst) <= 2, "{most:?}");
}

#[tokio::test]
async fn a_connection_that_was_upgraded_keeps_its_place_until_its_bytes_end() {
    let (sender, mut upgraded) = tokio::sync::mpsc::channel(1);
    let router = Router::new().route(
        "/",
        get({
            async move |mut request: http::Request<axum::body::Body>| {
                let io = hyper::upgrade::on(&mut request);
                tokio::spawn(async move { sender.send(io.await.unwrap()).await });
                http::Response::builder()
                    .status(http::StatusCode::SWITCHING_PROTOCOLS)
                    .header("upgrade", "link")
                    .header("connection", "upgrade")
                    .body(axum::body::Body::empty())
                    .unwrap()
            }
        }),
    );
    let router = router.route("/other", get(async || "answered"));
    let server = start_within(Limits { connections: 1, ..LIMITS }, router, None).await;
    let mut link = TcpStream::connect(server.address).await.unwrap();
    link.write_all(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: link\r\n\r\n").await.unwrap();
    let io = upgraded.recv().await.unwrap();
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    let asked = ask(&mut waiting, "GET /other HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let mut asked = std::pin::pin!(asked);
    assert!(timeout(Duration::from_millis(200), asked.as_mut()).await.is_err(), "there is no place");
    drop(io);
    assert!(asked.await.ends_with("answered"));
}

#[tokio::test]
async fn tls_is_spoken_and_told_to_handlers() {
    let dir = tempfile::tempdir().unwrap();
    let (tls, certificate) = self_signed(&dir);
    let server = start(who_router(), Some(tls)).await;
    let client = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(&certificate).unwrap()])
        .no_proxy()
        .build()
        .unwrap();
    let answer = client.get(format!("https://{}/", server.address)).send().await.unwrap();
    assert!(answer.text().await.unwrap().ends_with("https: true }"));
}

#[tokio::test]
async fn plain_http_to_a_tls_port_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(who_router(), Some(self_signed(&dir).0)).await;
    let mut client = TcpStream::connect(server.address).await.unwrap();
    let answer = ask(&mut client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_asks_nothing_is_closed() {
    let server = start(who_router(), None).await;
    for sent in ["", "PRI * HT", "GET / HT"] {
        let mut client = TcpStream::connect(server.address).await.unwrap();
        assert_eq!(ask(&mut client, sent).await, "", "{sent}");
    }
}

#[tokio::test]
async fn a_stream_is_cut_when_the_server_has_waited_long_enough() {
    let arrived = Arc::new(Notify::new());
    let handler = {
        let arrived = arrived.clone();
        move || async move {
            arrived.notify_one();
            pending::<()>().await;
        }
    };
    let server = start(Router::new().route("/", get(handler)), None).await;
    let mut client = TcpStream::connect(server.address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    arrived.notified().await;
    tokio::time::pause();
    server.shutdown.cancel();
    server.task.await.unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_request_in_flight_finishes_before_the_server_ends() {
    let arrived = Arc::new(Notify::new());
    let may_finish = Arc::new(Notify::new());
    let handler = {
        let (arrived, may_finish) = (arrived.clone(), may_finish.clone());
        move || async move {
            arrived.notify_one();
            may_finish.notified().await;
            "finished"
        }
    };
    let server = start(Router::new().route("/", get(handler)), None).await;
    let mut client = TcpStream::connect(server.address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    arrived.notified().await;
    server.shutdown.cancel();
    may_finish.notify_one();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("finished"), "{answer}");
    server.task.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

/// Gives a body of so many bytes that then goes on without end, and tells when it is dropped.
fn endless_router(bytes: usize) -> (Router, Arc<Notify>) {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let freed = Arc::new(Notify::new());
    let handler = {
        let freed = freed.clone();
        move || async move {
            const CHUNK: &[u8] = &[b'x'; 1024];
            let guard = Dropped(freed);
            let chunks =
                futures_util::stream::iter(std::iter::repeat_n(Ok::<_, Infallible>(CHUNK), bytes / CHUNK.len()));
            let body = chunks.chain(futures_util::stream::pending()).inspect(move |_| {
                let _freed_with_the_body = &guard;
            });
            axum::body::Body::from_stream(body)
        }
    };
    (Router::new().route("/", get(handler)), freed)
}

/// Asks and never reads; its buffer is small, so that the server soon feels it.
async fn ask_and_read_nothing(address: SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut client = socket.connect(address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    client
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_more_is_given_up_with_all_that_waits_for_it() {
    let (router, freed) = endless_router(usize::MAX);
    let server = start(router, None).await;
    let _client = ask_and_read_nothing(server.address).await;
    freed.notified().await;
}

/// What waits lies in the kernel, which keeps time by the real clock.
#[tokio::test]
async fn a_reader_for_whom_only_the_kernel_keeps_something_is_given_up_too() {
    let (router, freed) = endless_router(64 * 1024);
    let limits = Limits { write: Duration::from_millis(100), ..LIMITS };
    let server = start_within(limits, router, None).await;
    let _client = ask_and_read_nothing(server.address).await;
    freed.notified().await;
}
