//! Connections of browsers, programs and workers: accepted, guarded by deadlines, and ended in an orderly way.

mod connection_io;
mod tls;

pub use tls::{Tls, TlsError};

use axum::Router;
use connection_io::ConnectionIo;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustix::process::Resource;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// Handshake and first request together must arrive within so long.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Later requests' headers. It runs while a connection idles too, so it is longer than the pauses of a worker.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(75);
/// What is to be sent may wait for so long until the other side takes some of it.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);
const HTTP2_MAX_STREAMS: u32 = 256;
/// Requests in flight may finish for so long when the server stops; streams, which never finish, are cut then.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after an accept that failed for want of file descriptors or memory.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(500);
/// Descriptors that the database, the files and the probes need.
const RESERVED_DESCRIPTORS: usize = 256;
const MAX_CONNECTIONS: usize = 65_536;
const MIN_CONNECTIONS: usize = 64;

/// Where a request came from; in the extensions of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// The other end of the connection.
    pub addr: SocketAddr,
    /// Whether the connection itself speaks TLS.
    pub https: bool,
}

/// Answers connections until `shutdown`, then lets requests in flight finish for a moment. Speaks HTTP/1 and HTTP/2,
/// inside TLS if that is given.
pub async fn serve(listener: TcpListener, router: Router, tls: Option<Tls>, shutdown: CancellationToken) {
    serve_within(Limits { connections: max_connections(), write: WRITE_TIMEOUT }, listener, router, tls, shutdown)
        .await;
}

#[derive(Clone, Copy)]
struct Limits {
    connections: usize,
    write: Duration,
}

async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    router: Router,
    tls: Option<Tls>,
    shutdown: CancellationToken,
) {
    let reload = tls.clone().map(|tls| tokio::spawn(tls.reload_on_change(shutdown.clone())));
    let connections = Connections {
        router,
        tls,
        write_limit: limits.write,
        http: http_builder(),
        draining: shutdown.clone(),
        cut: CancellationToken::new(),
        tracker: TaskTracker::new(),
    };
    connections.accept_until(&listener, limits.connections, &shutdown).await;
    drop(listener);
    connections.tracker.close();
    if timeout(DRAIN_TIMEOUT, connections.tracker.wait()).await.is_err() {
        connections.cut.cancel();
        connections.tracker.wait().await;
    }
    if let Some(reload) = reload {
        reload.abort();
    }
}

#[derive(Clone)]
struct Connections {
    router: Router,
    tls: Option<Tls>,
    write_limit: Duration,
    http: auto::Builder<TokioExecutor>,
    /// No new requests.
    draining: CancellationToken,
    /// Away with those that are left.
    cut: CancellationToken,
    tracker: TaskTracker,
}

impl Connections {
    async fn accept_until(&self, listener: &TcpListener, capacity: usize, shutdown: &CancellationToken) {
        let free = Arc::new(Semaphore::new(capacity));
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => return,
                accepted = accept(listener, &free) => accepted,
            };
            match accepted {
                Ok((stream, peer, permit)) => self.spawn(stream, peer, permit),
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; trying again");
                    tokio::select! {
                        () = shutdown.cancelled() => return,
                        () = tokio::time::sleep(ACCEPT_BACK_OFF) => {}
                    }
                }
            }
        }
    }

    fn spawn(&self, stream: TcpStream, peer: SocketAddr, permit: OwnedSemaphorePermit) {
        let connections = self.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = connections.cut.cancelled() => {}
                () = connections.answer(stream, peer, permit) => {}
            }
        });
    }

    async fn answer(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        // a connection may become a link
        link::tune_socket(&stream);
        let Some(tls) = &self.tls else {
            let stream = ConnectionIo::new(stream, self.write_limit, place);
            return self.serve_http(stream, PeerAddress { addr: peer, https: false }).await;
        };
        match timeout(FIRST_REQUEST_TIMEOUT, handshake(tls, stream, self.write_limit, place)).await {
            Ok(Ok(Some(stream))) => self.serve_http(stream, PeerAddress { addr: peer, https: true }).await,
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "TLS handshake timed out"),
        }
    }

    async fn serve_http<S>(&self, stream: S, peer: PeerAddress)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let first_request = Arc::new(Notify::new());
        let service = {
            let (first_request, router) = (first_request.clone(), self.router.clone());
            service_fn(move |mut request: http::Request<Incoming>| {
                first_request.notify_one();
                request.extensions_mut().insert(peer);
                router.clone().oneshot(request)
            })
        };
        let connection = self.http.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let mut is_draining = false;
        let mut has_asked = false;
        let mut silence = std::pin::pin!(timeout(FIRST_REQUEST_TIMEOUT, first_request.notified()));
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(peer = %peer.addr, %error, "connection ended");
                    }
                    return;
                }
                asked = silence.as_mut(), if !has_asked => {
                    if asked.is_err() {
                        return;
                    }
                    has_asked = true;
                }
                () = self.draining.cancelled(), if !is_draining => {
                    is_draining = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    // beyond the cap they wait in the kernel's queue
    let permit = free.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

/// None when the other side speaks plain HTTP, which is then told so.
async fn handshake(
    tls: &Tls,
    mut stream: TcpStream,
    write_limit: Duration,
    place: OwnedSemaphorePermit,
) -> io::Result<Option<TlsStream<ConnectionIo>>> {
    let mut first = [0];
    let peeked = stream.peek(&mut first).await?;
    // a TLS record begins with a type below 32, an HTTP request with a letter
    if peeked == 1 && first.iter().all(u8::is_ascii_alphabetic) {
        const ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 37\r\n\
            Connection: close\r\n\r\nthis port speaks https: use https://\n";
        stream.write_all(ANSWER).await?;
        stream.shutdown().await?;
        return Ok(None);
    }
    tls.acceptor().accept(ConnectionIo::new(stream, write_limit, place)).await.map(Some)
}

fn http_builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_READ_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .keep_alive_timeout(HTTP2_PING_TIMEOUT)
        .max_concurrent_streams(HTTP2_MAX_STREAMS);
    builder
}

fn max_connections() -> usize {
    let descriptors = rustix::process::getrlimit(Resource::Nofile).current;
    let allowed = descriptors.and_then(|count| usize::try_from(count).ok()).unwrap_or(MAX_CONNECTIONS);
    allowed.saturating_sub(RESERVED_DESCRIPTORS).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS)
}

/// The client went away before it was accepted; the listener is fine (see accept(2)).
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests;
