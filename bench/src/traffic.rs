//! A TCP stream that counts what passes.

use api::ServerUrl;
use async_trait::async_trait;
use link::{BoxedIo, Transport, TransportError, tune_socket};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes of a connection's payload, both ways; TCP's and IP's own are not in it.
#[derive(Debug, Default)]
pub struct Traffic {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Traffic {
    /// Towards the server and back.
    pub fn bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) + self.received_bytes()
    }

    /// From the server.
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// The stream and its count.
pub struct Counted {
    stream: TcpStream,
    traffic: Arc<Traffic>,
}

impl Counted {
    /// Counts into `traffic`.
    pub fn new(stream: TcpStream, traffic: Arc<Traffic>) -> Self {
        Self { stream, traffic }
    }

    fn note_sent(&self, outcome: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(length)) = outcome {
            self.traffic.sent.fetch_add(*length as u64, Ordering::Relaxed);
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        let length = buf.filled().len().saturating_sub(before);
        self.traffic.received.fetch_add(length as u64, Ordering::Relaxed);
        outcome
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.note_sent(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.note_sent(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Connects links to a server on this host, and counts into one place for all.
pub struct CountedTransport {
    host: String,
    port: u16,
    traffic: Arc<Traffic>,
}

impl CountedTransport {
    /// To this server.
    pub fn new(server: &ServerUrl, traffic: Arc<Traffic>) -> Self {
        Self { host: server.host().to_owned(), port: server.port(), traffic }
    }
}

#[async_trait]
impl Transport for CountedTransport {
    async fn open(&self) -> Result<BoxedIo, TransportError> {
        let failed = |source| TransportError::Resolve { host: self.host.clone(), source };
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(failed)?;
        tune_socket(&stream);
        Ok(Box::new(Counted::new(stream, Arc::clone(&self.traffic))))
    }
}
