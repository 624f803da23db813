//! Byte streams of any kind, and the socket options that a session and its forwards want.

use crate::abandoned::Abandoned;
use socket2::SockRef;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A byte stream.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A byte stream of a kind that is known at run time only.
pub type BoxedIo = Box<dyn Io>;

/// What the kernel may hold of what was not sent yet, in bytes.
///
/// More would only put a keep-alive or a small answer behind a big one, which on a slow path takes seconds.
const NOT_SENT_LOW_WATER_BYTES: u32 = 128 * 1024;

/// Of more than this many bytes at a time, more follows, and the kernel acknowledges them soon enough.
const SMALL_BYTES: usize = 16 * 1024;

/// The socket of a session. Small messages go out at once, the queue before them stays short, and what arrives is
/// acknowledged at once.
///
/// The last one is for the other side: sshd leaves Nagle's algorithm on for a connection that only carries forwards (it
/// turns it off when a session asks for a program), so its second small message waits for the acknowledgement of the
/// first, which this host's kernel would put off for 40 ms.
pub(crate) struct SessionSocket {
    stream: TcpStream,
    /// The other side ended it, or the kernel did.
    is_over: bool,
    /// Where it goes when this side gives it up.
    abandoned: Abandoned,
}

impl SessionSocket {
    /// A kernel that does not know an option goes without: the session works, only less well.
    pub fn new(stream: TcpStream, abandoned: Abandoned) -> Self {
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_tcp_notsent_lowat(NOT_SENT_LOW_WATER_BYTES);
        Self { stream, is_over: false, abandoned }
    }
}

impl Drop for SessionSocket {
    fn drop(&mut self) {
        if !self.is_over {
            self.abandoned.keep(&self.stream);
        }
    }
}

impl AsyncRead for SessionSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut this.stream).poll_read(cx, buf));
        let read_bytes = buf.filled().len() - before;
        this.is_over |= read.is_err() || read_bytes == 0 && buf.remaining() > 0;
        if read_bytes < SMALL_BYTES {
            // the kernel forgets it again by itself (tcp(7), TCP_QUICKACK)
            let _ = SockRef::from(&this.stream).set_tcp_quickack(true);
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for SessionSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// Lets the end of this socket reach the other side as a reset, which no program takes for the orderly end of what it
/// was reading.
pub(crate) fn end_with_reset(stream: &impl AsFd) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}
