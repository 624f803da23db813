//! The worker: answers at its port, over two links, and over HTTP/2 without encryption.

use crate::hosts::SERVER;
use crate::server::{HTTP2_PORT, LINK_PORT, TOKEN};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use link::{AllowedTargets, DialConfig, Dialer, DirectTransport, JoinToken, KeyPair, OuterTls, ServerAddress, Tuning};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// The argument that makes a process the worker.
pub const WORD: &str = "worker";
pub const PORT: u16 = 10150;
pub const SMALL: &str = "/small";
pub const BULK: &str = "/bulk";
/// As a health check is answered.
const SMALL_ANSWER: &str = r#"{"status":"ok","worker_uuid":"067b0cf7-345e-4bcc-b006-340bf9952d6b"}"#;
const BULK_BYTES: usize = 64 * 1024 * 1024;
/// More than compression looks back, so that what is repeated cannot be made small.
const CHUNK_BYTES: usize = 64 * 1024;
/// As a link has them.
pub const FRAME_BYTES: u32 = 64 * 1024;
const SEND_BUFFER_BYTES: usize = 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub async fn run() {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await.unwrap();
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream: &mut TcpStream| link::tune_socket(stream));
    tokio::spawn(async move { axum::serve(listener, router()).await });
    tokio::spawn(serve_http2());
    // through the bastion's forward, where it has one
    tokio::join!(keep_link(SERVER), keep_link(Ipv4Addr::LOCALHOST));
}

fn router() -> Router {
    Router::new().route(SMALL, get(|| async { SMALL_ANSWER })).route(BULK, get(bulk))
}

async fn bulk() -> Body {
    let chunk = Bytes::from(noise());
    let chunks = (0..BULK_BYTES / CHUNK_BYTES).map(move |_| Ok::<_, std::io::Error>(chunk.clone()));
    Body::from_stream(futures_util::stream::iter(chunks))
}

/// What no compression makes smaller (xorshift64, Marsaglia 2003).
fn noise() -> Vec<u8> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..CHUNK_BYTES / 8).flat_map(|_| next()).collect()
}

async fn serve_http2() {
    let tuning = Tuning::default();
    let stream = TcpStream::connect((SERVER, HTTP2_PORT)).await.unwrap();
    link::tune_socket(&stream);
    let mut http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    http2
        .initial_stream_window_size(tuning.stream_window_bytes)
        .initial_connection_window_size(tuning.connection_window_bytes)
        .max_frame_size(FRAME_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES);
    http2.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router())).await.unwrap();
}

async fn keep_link(server: Ipv4Addr) {
    let address = ServerAddress::try_from(&format!("http://{server}:{LINK_PORT}").parse().unwrap()).unwrap();
    // nothing is dialled by https here
    let outer_tls = OuterTls::pinned([0; 32]).unwrap();
    let mut dialer = Dialer::new(DialConfig {
        transport: Arc::new(DirectTransport::new(address.clone(), outer_tls, CONNECT_TIMEOUT)),
        address,
        keys: KeyPair::generate().unwrap(),
        server_key: None,
        token: Some(JoinToken::new(TOKEN)),
        targets: AllowedTargets::none(),
        tuning: Tuning::default(),
    });
    let link = dialer.dial(Bytes::from(server.to_string())).await.unwrap();
    link.serve(router(), CancellationToken::new()).await;
}
