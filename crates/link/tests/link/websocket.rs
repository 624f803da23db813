//! Proxies that do not like the upgrade, and answers that are about something else.

use crate::support::{Server, Worker, ask, hello, soon, text};
use link::{Carrier, DialError, UpgradeError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// What a proxy does with an upgrade that is no WebSocket.
#[derive(Clone, Copy, Debug)]
enum Dislike {
    /// Answers this itself.
    Answer(&'static str),
    /// Closes the connection.
    Close,
    /// Passes the request on without the upgrade.
    Strip,
}

/// The least of an HTTP proxy: reads a request's head, and passes bytes on after that.
struct Proxy {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _running: AbortOnDropHandle<()>,
}

impl Proxy {
    async fn start(server: SocketAddr, dislike: Dislike) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let running = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(pass_on(client, server, dislike));
            }
        });
        Self { address, connections, _running: AbortOnDropHandle::new(running) }
    }
}

async fn pass_on(mut client: TcpStream, server: SocketAddr, dislike: Dislike) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let mut text = String::from_utf8(head).unwrap();
    if !text.to_lowercase().contains("upgrade: websocket") {
        match dislike {
            Dislike::Answer(head) => {
                let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                client.write_all(answer.as_bytes()).await.unwrap();
                return;
            }
            Dislike::Close => return,
            Dislike::Strip => {
                text = text
                    .lines()
                    .filter(|line| !line.to_lowercase().contains("upgrade"))
                    .collect::<Vec<_>>()
                    .join("\r\n");
                text.push_str("\r\n\r\n");
            }
        }
    }
    let mut upstream = TcpStream::connect(server).await.unwrap();
    upstream.write_all(text.as_bytes()).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
}

#[tokio::test]
async fn a_worker_finds_the_way_through_a_proxy_that_knows_websockets_only() {
    let dislikes = [
        Dislike::Answer("400 Bad Request"),
        Dislike::Answer("403 Forbidden"),
        Dislike::Answer("501 Not Implemented"),
        Dislike::Answer("502 Bad Gateway"),
        Dislike::Close,
        Dislike::Strip,
    ];
    for dislike in dislikes {
        let server = Server::start().await;
        let proxy = Proxy::start(server.address, dislike).await;
        let mut worker = Worker::of(&server);
        worker.url = format!("http://{}", proxy.address);
        let mut dialer = worker.dialer();
        for (n, connections) in [(1, 2), (2, 3)] {
            let link = soon(dialer.dial(bytes::Bytes::from_static(b"worker"))).await.unwrap();
            assert_eq!(link.welcome().carrier, Carrier::WebSocket, "{dislike:?}");
            // what got through is tried first the next time
            assert_eq!(proxy.connections.load(Ordering::SeqCst), connections, "{dislike:?}");
            let serving = crate::support::Serving::start(link, hello());
            let link = server.opened(n).await;
            assert_eq!(link.carrier(), Carrier::WebSocket);
            assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
            serving.shutdown.cancel();
            serving.end().await;
        }
    }
}

#[tokio::test]
async fn megabytes_go_through_a_websocket() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.address, Dislike::Close).await;
    let mut worker = Worker::of(&server);
    worker.url = format!("http://{}", proxy.address);
    let echo = axum::Router::new()
        .route("/echo", axum::routing::any(|request: axum::extract::Request| async move { request.into_body() }));
    let _serving = worker.serve(echo).await;
    let link = server.opened(1).await;
    let sent: Vec<u8> = (0..2_000_000_u32).flat_map(|n| (n ^ (n >> 9)).to_le_bytes()).collect();
    let body = http_body_util::Full::new(bytes::Bytes::from(sent.clone()));
    let request = http::Request::post("/echo").body(body).unwrap();
    let answer = link.request(request, crate::support::PATIENCE).await.unwrap();
    let received = soon(http_body_util::BodyExt::collect(answer.into_body())).await.unwrap().to_bytes();
    assert!(received == sent);
}

#[tokio::test]
async fn an_answer_that_is_not_about_the_upgrade_is_not_tried_again() {
    let answers = [
        ("401 Unauthorized", "401"),
        ("404 Not Found", "404"),
        ("407 Proxy Authentication Required", "407"),
        ("302 Found\r\nlocation: https://elsewhere/", "use https://elsewhere/"),
        ("500 Internal Server Error", "500"),
        ("200 OK", "200"),
    ];
    let server = Server::start().await;
    for (answer, said) in answers {
        let proxy = Proxy::start(server.address, Dislike::Answer(answer)).await;
        let mut worker = Worker::of(&server);
        worker.url = format!("http://{}", proxy.address);
        let error = worker.dial().await.unwrap_err();
        assert!(matches!(error, DialError::Upgrade(UpgradeError::Foreign(_))), "{error}");
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(proxy.connections.load(Ordering::SeqCst), 1, "{answer}");
    }
}
