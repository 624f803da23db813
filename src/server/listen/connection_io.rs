//! A connection's bytes. One whose other side takes nothing any more ends, with all that waits to be sent on it; and a
//! place among the connections is taken for as long as the bytes can flow, whether they are HTTP's or a link's.

use rustix::net::sockopt::set_tcp_user_timeout;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

/// A stream on which nothing waits for longer than the limit to be sent, and its place among the connections.
pub struct ConnectionIo {
    stream: TcpStream,
    limit: Duration,
    /// Runs while the kernel takes nothing more.
    blocked: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl ConnectionIo {
    pub fn new(stream: TcpStream, limit: Duration, place: OwnedSemaphorePermit) -> Self {
        // What the kernel has taken already may wait as long (tcp(7), TCP_USER_TIMEOUT): for an acknowledgement from a
        // host that is gone, which takes a quarter of an hour otherwise, or for a reader that has stopped, which takes for
        // ever. Where the kernel refuses, what follows still ends those for whom much waits.
        let _ = set_tcp_user_timeout(&stream, u32::try_from(limit.as_millis()).unwrap_or(u32::MAX));
        Self { stream, limit, blocked: None, _place: place }
    }

    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.blocked = None;
            return written;
        }
        let limit = self.limit;
        ready!(self.blocked.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other side reads no more")))
    }
}

impl AsyncRead for ConnectionIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for ConnectionIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.judge(cx, written)
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
