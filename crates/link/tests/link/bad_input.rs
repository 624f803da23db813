//! Peers that do not keep to the protocol: a clear end for them, and nothing for anybody else.

use crate::chaos::Plan;
use crate::support::{Server, Worker, ask, hello, soon, text};
use link::{CloseReason, DialError, LinkEnd, Step, Tuning};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tracing_subscriber::fmt::MakeWriter;

const UPGRADE: &[u8] = b"GET /v1/link HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: gpustack-link/1\r\n\r\n";

/// The log of what runs on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// The lines with this in them, as soon as there is one. What writes them runs on this thread.
    async fn lines_with(&self, text: &str) -> Vec<String> {
        soon(async {
            loop {
                let found: Vec<String> = self.lines().into_iter().filter(|line| line.contains(text)).collect();
                if !found.is_empty() {
                    return found;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.0.lock().unwrap()).lines().map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn listen_to_the_log() -> (Log, tracing::subscriber::DefaultGuard) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    (log, tracing::subscriber::set_default(subscriber))
}

/// A connection that is upgraded and says something else than TLS.
async fn upgraded(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(UPGRADE).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon(stream.read_u8()).await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    stream
}

async fn is_closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
}

#[tokio::test]
async fn garbage_after_the_upgrade_ends_in_one_line_of_the_log_and_harms_nobody() {
    let (log, _guard) = listen_to_the_log();
    let server = Server::start().await;
    let _serving = Worker::of(&server).serve(hello()).await;
    let link = server.opened(1).await;

    let mut stream = upgraded(&server).await;
    let peer = stream.local_addr().unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    is_closed(stream).await;

    let lines = log.lines_with(&peer.to_string()).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("no encryption could be agreed on"), "{lines:?}");
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
    assert_eq!(server.registry().len(), 1);
}

#[tokio::test]
async fn a_refused_worker_is_one_line_of_the_log_without_the_token() {
    let (log, _guard) = listen_to_the_log();
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.token = Some("a-token-that-is-wrong");
    worker.dial().await.unwrap_err();
    let lines = log.lines_with("wrong_token").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(!log.lines().iter().any(|line| line.contains("a-token-that-is-wrong")));
}

fn hasty() -> Tuning {
    Tuning { handshake_deadline: Duration::from_millis(300), ..Tuning::default() }
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_closed_at_the_deadline() {
    let server = Server::start_tuned(hasty()).await;
    is_closed(upgraded(&server).await).await;
}

#[tokio::test]
async fn a_peer_that_sends_a_byte_at_a_time_is_closed_at_the_same_deadline() {
    let server = Server::start_tuned(hasty()).await;
    let stream = upgraded(&server).await;
    let (mut read, mut write) = stream.into_split();
    // the beginning of a TLS record that never gets full
    let trickle = async {
        write.write_all(&[0x16, 0x03, 0x01, 0x40, 0x00]).await.unwrap();
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        loop {
            tick.tick().await;
            if write.write_all(&[1]).await.is_err() {
                return;
            }
        }
    };
    let closed = async {
        let mut rest = Vec::new();
        let _ = read.read_to_end(&mut rest).await;
    };
    soon(async {
        tokio::select! {
            () = trickle => {}
            () = closed => {}
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.url = format!("http://{}", listener.local_addr().unwrap());
    worker.tuning = hasty();
    let error = worker.dial().await.unwrap_err();
    assert!(matches!(error, DialError::Deadline { step: Step::Answer, .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_upgrades_and_speaks_something_else_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.url = format!("http://{}", listener.local_addr().unwrap());
    let other = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).await.unwrap();
        let answer = b"HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: gpustack-link/1\r\n\r\nsomething else";
        stream.write_all(answer).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    };
    let (error, ()) = tokio::join!(async { worker.dial().await.unwrap_err() }, other);
    assert!(error.to_string().starts_with("no encryption could be agreed on"), "{error}");
}

fn attentive() -> Tuning {
    Tuning { ping_interval: Duration::from_millis(100), ping_timeout: Duration::from_millis(200), ..Tuning::default() }
}

#[tokio::test]
async fn a_peer_that_vanishes_without_a_word_is_noticed_on_both_sides() {
    let server = Server::start_tuned(attentive()).await;
    let mut worker = Worker::of(&server);
    worker.tuning = attentive();
    let serving = worker.serve(hello()).await;
    let link = server.opened(1).await;
    worker.plan.black_hole.store(true, Ordering::SeqCst);
    let waiting = ask(&link, "/hello").await.unwrap_err();
    assert_eq!(waiting, link::RequestError::Closed(CloseReason::Silent));
    assert_eq!(serving.end().await, LinkEnd::Silent);
    assert_eq!(server.closed(1).await, [CloseReason::Silent]);
    assert!(server.registry().is_empty());
}

#[tokio::test]
async fn a_worker_that_joins_and_never_reads_loses_its_link() {
    let server = Server::start_tuned(attentive()).await;
    let _idle = Worker::of(&server).dial().await.unwrap();
    let link = server.opened(1).await;
    let waiting = ask(&link, "/hello").await.unwrap_err();
    assert_eq!(waiting, link::RequestError::Closed(CloseReason::Silent));
    assert_eq!(server.closed(1).await, [CloseReason::Silent]);
}

/// The pong waits behind megabytes on a path that takes seconds for them; they are a sign of life.
#[tokio::test]
async fn a_slow_path_that_is_busy_is_not_taken_for_a_dead_one() {
    let tuning =
        Tuning { ping_interval: Duration::from_millis(200), ping_timeout: Duration::from_secs(1), ..Tuning::default() };
    let server = Server::start_tuned(tuning.clone()).await;
    let mut worker = Worker::of(&server);
    worker.tuning = tuning;
    worker.plan = Arc::new(Plan { piece_bytes: 16 * 1024, delay: Duration::from_millis(15), ..Plan::default() });
    let echo = axum::Router::new()
        .route("/echo", axum::routing::any(|request: axum::extract::Request| async move { request.into_body() }));
    let _serving = worker.serve(echo).await;
    let link = server.opened(1).await;
    let body = http_body_util::Full::new(bytes::Bytes::from(vec![b'x'; 3_000_000]));
    let request = http::Request::post("/echo").body(body).unwrap();
    let answer = link.request(request, crate::support::PATIENCE).await.unwrap();
    assert_eq!(text(answer).await.len(), 3_000_000);
    assert_eq!(link.close_reason(), None);
}

#[tokio::test]
async fn bytes_in_the_smallest_pieces_make_a_link_all_the_same() {
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.plan = Arc::new(Plan { piece_bytes: 1, ..Plan::default() });
    let _serving = worker.serve(hello()).await;
    let link = server.opened(1).await;
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
}

#[tokio::test]
async fn a_connection_cut_at_any_point_leaves_nothing_half_registered() {
    let server = Server::start_tuned(attentive()).await;
    for cut in (1..2600).step_by(100) {
        let mut worker = Worker::of(&server);
        worker.tuning = attentive();
        worker.plan = Arc::new(Plan { cut_sent_at: Some(cut), ..Plan::default() });
        if let Ok(link) = worker.dial().await {
            // the cut comes while it serves
            crate::support::Serving::start(link, hello()).end().await;
        }
    }
    let opened = server.opened_count();
    server.closed(opened).await;
    assert!(server.registry().is_empty());
}

#[tokio::test]
async fn the_answers_to_requests_that_are_no_links() {
    let server = Server::start().await;
    let table: [(&[u8], &str); 4] = [
        (b"GET /v1/link HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "HTTP/1.1 426"),
        (b"GET /v1/link HTTP/1.0\r\nhost: x\r\n\r\n", "HTTP/1.0 426"),
        (b"GET /v1/link HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: gpustack-link/2\r\n\r\n", "HTTP/1.1 426"),
        (b"GET /v1/link HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-protocol: gpustack-link.1\r\n\r\n", "HTTP/1.1 400"),
    ];
    for (request, status) in table {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with(status), "{answer}");
        assert!(answer.to_lowercase().contains("gpustack-link: 1"), "{answer}");
    }
}
