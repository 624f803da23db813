//! Trouble on the way: bytes that come in pieces, late, changed, or not at all; and an ear that hears them.

use async_trait::async_trait;
use link::{BoxedIo, Transport, TransportError};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// What happens on the way. One plan serves all connections of a transport.
#[derive(Debug, Default)]
pub struct Plan {
    /// At most this many bytes at a time; 0 for no limit.
    pub piece_bytes: usize,
    /// Before each piece that arrives.
    pub delay: Duration,
    /// The byte of what is sent that gets one bit changed.
    pub corrupt_sent_at: Option<usize>,
    /// The same for what is received.
    pub corrupt_received_at: Option<usize>,
    /// The connection breaks after this many bytes were sent.
    pub cut_sent_at: Option<usize>,
    /// From when it is set, nothing arrives on either side, and nobody is told.
    pub black_hole: AtomicBool,
    /// All that was sent and received.
    pub sent: Mutex<Vec<u8>>,
    pub received: Mutex<Vec<u8>>,
    /// How many connections there were.
    pub opened: AtomicUsize,
}

impl Plan {
    pub fn heard(&self) -> Vec<u8> {
        [self.sent.lock().unwrap().as_slice(), self.received.lock().unwrap().as_slice()].concat()
    }
}

pub struct ChaosTransport<T> {
    pub inner: T,
    pub plan: Arc<Plan>,
}

#[async_trait]
impl<T: Transport> Transport for ChaosTransport<T> {
    async fn open(&self) -> Result<BoxedIo, TransportError> {
        self.plan.opened.fetch_add(1, Ordering::SeqCst);
        let io = self.inner.open().await?;
        Ok(Box::new(ChaosIo { io, plan: Arc::clone(&self.plan), sent: 0, received: 0, wait: None }))
    }
}

struct ChaosIo {
    io: BoxedIo,
    plan: Arc<Plan>,
    sent: usize,
    received: usize,
    wait: Option<Pin<Box<Sleep>>>,
}

fn corrupt(bytes: &mut [u8], first: usize, at: Option<usize>) {
    if let Some(byte) = at.and_then(|at| at.checked_sub(first)).and_then(|index| bytes.get_mut(index)) {
        *byte ^= 0x10;
    }
}

fn piece(len: usize, limit: usize) -> usize {
    if limit == 0 { len } else { len.min(limit) }
}

impl AsyncRead for ChaosIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.plan.delay.is_zero() {
            let wait = this.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(this.plan.delay)));
            ready!(wait.as_mut().poll(cx));
            this.wait = None;
        }
        let mut bytes = vec![0; piece(buf.remaining(), this.plan.piece_bytes)];
        let mut part = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut this.io).poll_read(cx, &mut part))?;
        if this.plan.black_hole.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        let read = part.filled_mut();
        this.plan.received.lock().unwrap().extend_from_slice(read);
        corrupt(read, this.received, this.plan.corrupt_received_at);
        this.received += read.len();
        buf.put_slice(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ChaosIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.plan.black_hole.load(Ordering::SeqCst) {
            return Poll::Ready(Ok(buf.len()));
        }
        if this.plan.cut_sent_at.is_some_and(|at| this.sent >= at) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let mut bytes = buf[..piece(buf.len(), this.plan.piece_bytes)].to_vec();
        corrupt(&mut bytes, this.sent, this.plan.corrupt_sent_at);
        let written = ready!(Pin::new(&mut this.io).poll_write(cx, &bytes))?;
        this.plan.sent.lock().unwrap().extend_from_slice(&bytes[..written]);
        this.sent += written;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
