//! Trouble below a session: bytes that come late, slowly, or not at all, and connections that break.

use async_trait::async_trait;
use ssh::{BoxedIo, Endpoint, TcpTransport, Transport, TransportError};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// What happens below all sessions of a user.
#[derive(Default)]
pub struct Trouble {
    /// Nothing arrives on either side, and nobody is told.
    pub black_hole: AtomicBool,
    /// Nothing can be sent any more, and nothing arrives.
    pub clogged: AtomicBool,
    /// Before each piece that is sent or received.
    pub delay_ms: AtomicU64,
    /// At most this many bytes are sent at a time; 0 for no limit.
    pub piece_bytes: AtomicUsize,
    /// How many connections there were.
    pub opened: AtomicUsize,
}

impl Trouble {
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }
}

pub struct TroubledTransport(pub Arc<Trouble>);

#[async_trait]
impl Transport for TroubledTransport {
    async fn open(&self, server: &Endpoint) -> Result<BoxedIo, TransportError> {
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        let io = TcpTransport::new(Duration::from_secs(10)).open(server).await?;
        Ok(Box::new(TroubledIo { io, trouble: Arc::clone(&self.0), read_wait: None, write_wait: None }))
    }
}

struct TroubledIo {
    io: BoxedIo,
    trouble: Arc<Trouble>,
    read_wait: Option<Pin<Box<Sleep>>>,
    write_wait: Option<Pin<Box<Sleep>>>,
}

fn poll_delay(trouble: &Trouble, wait: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<()> {
    let delay = Duration::from_millis(trouble.delay_ms.load(Ordering::SeqCst));
    if delay.is_zero() {
        return Poll::Ready(());
    }
    let sleep = wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(delay)));
    ready!(sleep.as_mut().poll(cx));
    *wait = None;
    Poll::Ready(())
}

impl AsyncRead for TroubledIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(poll_delay(&this.trouble, &mut this.read_wait, cx));
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
        if this.trouble.black_hole.load(Ordering::SeqCst) || this.trouble.clogged.load(Ordering::SeqCst) {
            buf.set_filled(before);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TroubledIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.trouble.black_hole.load(Ordering::SeqCst) {
            return Poll::Ready(Ok(bytes.len()));
        }
        if this.trouble.clogged.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        ready!(poll_delay(&this.trouble, &mut this.write_wait, cx));
        let piece = match this.trouble.piece_bytes.load(Ordering::SeqCst) {
            0 => bytes.len(),
            most => most.min(bytes.len()),
        };
        Pin::new(&mut this.io).poll_write(cx, &bytes[..piece])
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
