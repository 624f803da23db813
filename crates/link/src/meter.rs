//! What goes over a link: how much, how quickly, and when the other side last gave a sign of life.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Counters of one link. All of them only ever grow or are replaced, so they are read and written without a lock.
#[derive(Debug)]
pub(crate) struct Traffic {
    since: Instant,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    key_refreshes: AtomicU64,
    /// Microseconds; [`UNKNOWN`] before the first answer.
    round_trip_us: AtomicU64,
    /// Microseconds after `since`.
    last_life_us: AtomicU64,
}

const UNKNOWN: u64 = u64::MAX;

impl Traffic {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            since: Instant::now(),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            key_refreshes: AtomicU64::new(0),
            round_trip_us: AtomicU64::new(UNKNOWN),
            last_life_us: AtomicU64::new(0),
        })
    }

    pub fn since(&self) -> Instant {
        self.since
    }

    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    pub fn key_refreshes(&self) -> u64 {
        self.key_refreshes.load(Ordering::Relaxed)
    }

    pub fn key_refreshed(&self) {
        self.key_refreshes.fetch_add(1, Ordering::Relaxed);
    }

    pub fn round_trip(&self) -> Option<Duration> {
        match self.round_trip_us.load(Ordering::Relaxed) {
            UNKNOWN => None,
            us => Some(Duration::from_micros(us)),
        }
    }

    pub fn measured(&self, round_trip: Duration) {
        self.round_trip_us.store(micros(round_trip), Ordering::Relaxed);
    }

    /// When the other side was last known to be there.
    pub fn last_life(&self) -> Instant {
        self.since + Duration::from_micros(self.last_life_us.load(Ordering::Relaxed))
    }

    fn alive(&self) {
        self.last_life_us.store(micros(self.since.elapsed()), Ordering::Relaxed);
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(UNKNOWN - 1)
}

/// Counts what passes through a stream, and notes signs of life.
///
/// Bytes that arrive are one. A write that was held up and then goes on is one too: the kernel took it because the other
/// side acknowledged what went before. It keeps a slow path that is busy with a big answer from being taken for dead
/// while the answer to a ping waits its turn.
#[derive(Debug)]
pub(crate) struct Metered<T> {
    io: T,
    traffic: Arc<Traffic>,
    write_held_up: bool,
}

impl<T> Metered<T> {
    pub fn new(io: T, traffic: Arc<Traffic>) -> Self {
        Self { io, traffic, write_held_up: false }
    }

    fn note_written(&mut self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.write_held_up = true,
            Poll::Ready(Ok(bytes)) => {
                self.traffic.sent_bytes.fetch_add(*bytes as u64, Ordering::Relaxed);
                if std::mem::take(&mut self.write_held_up) {
                    self.traffic.alive();
                }
            }
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Metered<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        let read = buf.filled().len() - before;
        if read > 0 {
            self.traffic.received_bytes.fetch_add(read as u64, Ordering::Relaxed);
            self.traffic.alive();
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        self.note_written(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.note_written(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn counts_both_directions_and_notes_when_bytes_arrive() {
        let traffic = Traffic::new();
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = Metered::new(near, Arc::clone(&traffic));
        near.write_all(b"four").await.unwrap();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(traffic.last_life(), traffic.since(), "sending is no sign of life");
        far.write_all(b"answer").await.unwrap();
        near.read_exact(&mut [0; 6]).await.unwrap();
        assert_eq!((traffic.sent_bytes(), traffic.received_bytes()), (4, 6));
        assert_eq!(traffic.last_life(), traffic.since() + Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_goes_on_after_a_while_is_a_sign_of_life() {
        let traffic = Traffic::new();
        let (near, mut far) = tokio::io::duplex(4);
        let mut near = Metered::new(near, Arc::clone(&traffic));
        let reader = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            far.read_exact(&mut [0; 8]).await.unwrap();
        };
        let (written, ()) = tokio::join!(near.write_all(b"too much"), reader);
        written.unwrap();
        assert_eq!(traffic.last_life(), traffic.since() + Duration::from_secs(5));
    }
}
