//! The byte stream below a session: listened to for signs of life, and cut when there are none.

use crate::io::BoxedIo;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A greeting has at most 255 bytes (RFC 4253, section 4.2); lines may come before it.
const GREETING_MAX_BYTES: usize = 2048;

/// What is known of a stream from outside.
///
/// Whatever arrives is a sign of life. So is a write that goes on after it had to wait: then the other side has taken
/// what was sent before. A write that never waited says nothing, for it went no further than this host's kernel. Without
/// the second sign, an upload that fills a slow path would pass for a dead one, since nothing is read while a write waits.
///
/// The protocol task also has one: it always waits for something to read or to write, unless it is held up by a connection
/// whose reader takes nothing.
pub(crate) struct Pulse {
    started: Instant,
    last_sign_ms: AtomicU64,
    last_use_ms: AtomicU64,
    read_waits: AtomicBool,
    write_waits: AtomicBool,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    greeting: Mutex<Vec<u8>>,
}

/// Bytes that went over a session, encryption included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From here to the server.
    pub sent_bytes: u64,
    /// From the server to here.
    pub received_bytes: u64,
}

impl Pulse {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            last_sign_ms: AtomicU64::new(0),
            last_use_ms: AtomicU64::new(0),
            read_waits: AtomicBool::new(false),
            write_waits: AtomicBool::new(false),
            sent_bytes: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            greeting: Mutex::new(Vec::new()),
        })
    }

    /// When the other side last gave a sign of life.
    pub fn last_sign(&self) -> Instant {
        self.started + Duration::from_millis(self.last_sign_ms.load(Ordering::Relaxed))
    }

    /// For how long the protocol task has neither read nor written nor waited to do so.
    pub fn held_up_for(&self) -> Duration {
        if self.read_waits.load(Ordering::Relaxed) || self.write_waits.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.started.elapsed().saturating_sub(Duration::from_millis(self.last_use_ms.load(Ordering::Relaxed)))
    }

    pub fn traffic(&self) -> Traffic {
        Traffic {
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
        }
    }

    /// The first bytes that arrived.
    pub fn greeting(&self) -> Greeting {
        Greeting::parse(&self.greeting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn sign_of_life(&self) {
        self.last_sign_ms.fetch_max(self.now_ms(), Ordering::Relaxed);
    }

    fn used(&self, waits: &AtomicBool, waits_now: bool) -> bool {
        self.last_use_ms.fetch_max(self.now_ms(), Ordering::Relaxed);
        waits.swap(waits_now, Ordering::Relaxed)
    }

    fn received(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.sign_of_life();
        let before = self.received_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if before < GREETING_MAX_BYTES as u64 {
            let mut greeting = self.greeting.lock().unwrap_or_else(PoisonError::into_inner);
            let room = GREETING_MAX_BYTES.saturating_sub(greeting.len());
            greeting.extend(bytes.iter().take(room));
        }
    }

    fn sent(&self, bytes: usize) {
        if self.used(&self.write_waits, false) {
            self.sign_of_life();
        }
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// What a server said first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// Nothing.
    None,
    /// That it speaks SSH, with this line.
    Ssh(String),
    /// Something else, with this line.
    Other(String),
}

impl Greeting {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let lines = || text.split('\n').map(|line| printable(line.trim_end_matches('\r')));
        // servers may say other things before the line that counts
        match lines().find(|line| line.starts_with("SSH-")).or_else(|| lines().find(|line| !line.is_empty())) {
            None => Self::None,
            Some(line) if line.starts_with("SSH-") => Self::Ssh(line),
            Some(line) => Self::Other(line),
        }
    }
}

/// What a stranger sent, fit to be shown.
fn printable(text: &str) -> String {
    text.chars().take(200).map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// A stream whose pulse is taken, and that can be cut.
pub(crate) struct Wire {
    io: BoxedIo,
    pulse: Arc<Pulse>,
    // one for each half, which may be polled by different tasks
    read_cut: Pin<Box<WaitForCancellationFutureOwned>>,
    write_cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Wire {
    /// Once `cut` is cancelled, nothing is read or written any more.
    pub fn new(io: BoxedIo, pulse: Arc<Pulse>, cut: &CancellationToken) -> Self {
        Self {
            io,
            pulse,
            read_cut: Box::pin(cut.clone().cancelled_owned()),
            write_cut: Box::pin(cut.clone().cancelled_owned()),
        }
    }
}

fn was_cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the session was given up")
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.read_cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(was_cut()));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut this.io).poll_read(cx, buf);
        this.pulse.used(&this.pulse.read_waits, read.is_pending());
        ready!(read)?;
        this.pulse.received(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.write_cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(was_cut()));
        }
        match Pin::new(&mut this.io).poll_write(cx, bytes) {
            Poll::Pending => {
                this.pulse.used(&this.pulse.write_waits, true);
                Poll::Pending
            }
            Poll::Ready(Ok(written)) => {
                this.pulse.sent(written);
                Poll::Ready(Ok(written))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.write_cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(was_cut()));
        }
        Pin::new(&mut this.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.write_cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        // what cannot be shut down any more is closed; an error would keep the protocol library from telling the end
        let _ = ready!(Pin::new(&mut this.io).poll_shutdown(cx));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn first_words_and_what_they_mean() {
        let ssh = |line: &str| Greeting::Ssh(line.to_owned());
        let other = |line: &str| Greeting::Other(line.to_owned());
        let table: [(&[u8], Greeting); 7] = [
            (b"", Greeting::None),
            (b"\r\n", Greeting::None),
            (b"SSH-2.0-OpenSSH_9.2\r\n", ssh("SSH-2.0-OpenSSH_9.2")),
            (b"welcome\r\nSSH-2.0-x\r\n\x00\x01", ssh("SSH-2.0-x")),
            (b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n", other("HTTP/1.1 400 Bad Request")),
            (b"Exceeded MaxStartups\r\n", other("Exceeded MaxStartups")),
            (b"\x1b[31mred\xff\r\n", other("\u{fffd}[31mred\u{fffd}")),
        ];
        for (bytes, greeting) in table {
            assert_eq!(Greeting::parse(bytes), greeting, "{bytes:?}");
        }
    }

    /// A wire and what is at its other end.
    fn wire(room_bytes: usize) -> (Wire, tokio::io::DuplexStream, Arc<Pulse>, CancellationToken) {
        let (near, far) = tokio::io::duplex(room_bytes);
        let (pulse, cut) = (Pulse::new(), CancellationToken::new());
        (Wire::new(Box::new(near), Arc::clone(&pulse), &cut), far, pulse, cut)
    }

    #[tokio::test(start_paused = true)]
    async fn what_arrives_is_a_sign_of_life() {
        let (mut wire, mut far, pulse, _) = wire(64);
        let start = Instant::now();
        tokio::time::advance(Duration::from_secs(5)).await;
        far.write_all(b"hello").await.unwrap();
        wire.read_exact(&mut [0; 5]).await.unwrap();
        assert_eq!(pulse.last_sign() - start, Duration::from_secs(5));
        assert_eq!(pulse.traffic(), Traffic { sent_bytes: 0, received_bytes: 5 });
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_a_sign_of_life_only_after_it_had_to_wait() {
        let (mut wire, mut far, pulse, _) = wire(4);
        let start = Instant::now();
        tokio::time::advance(Duration::from_secs(5)).await;
        wire.write_all(b"1234").await.unwrap();
        assert_eq!(pulse.last_sign(), start);
        let more = tokio::spawn(async move { wire.write_all(b"5678").await });
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(pulse.last_sign(), start);
        far.read_exact(&mut [0; 4]).await.unwrap();
        more.await.unwrap().unwrap();
        assert_eq!(pulse.last_sign() - start, Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_the_wire_is_not_held_up() {
        let (mut wire, mut far, pulse, _) = wire(64);
        far.write_all(b"12").await.unwrap();
        assert_eq!(wire.read_u8().await.unwrap(), b'1');
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(pulse.held_up_for(), Duration::from_secs(5));
        assert_eq!(wire.read_u8().await.unwrap(), b'2');
        let waiting = tokio::spawn(async move { wire.read_u8().await });
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(pulse.held_up_for(), Duration::ZERO);
        waiting.abort();
    }

    #[tokio::test]
    async fn a_cut_ends_what_waits() {
        let (mut wire, _far, _, cut) = wire(4);
        let waiting = tokio::spawn(async move { wire.read(&mut [0; 4]).await });
        cut.cancel();
        assert_eq!(waiting.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }
}
