//! Bytes from a socket to a session and back.

use crate::forward::counters::{ConnectionFault, OpenConnection};
use crate::io;
use crate::session::{FarStream, NearReader};
use crate::tuning::RELAY_BUFFER_BYTES;
use std::io::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// On which side of the session the target of a forward is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetSide {
    /// Here; whoever connects is over there.
    Near,
    /// Over there; whoever connects is here.
    Far,
}

/// Carries bytes both ways until both sides have ended. When one side ends what it sends, the other one hears so, and
/// may go on sending.
///
/// When the session ends, or `abort` comes, the near socket is reset: its user must not take what has arrived for all.
pub(crate) async fn relay(
    near: TcpStream,
    mut far: FarStream,
    target: TargetSide,
    connection: OpenConnection,
    reader: Arc<NearReader>,
    abort: &CancellationToken,
) {
    let mut near = Counted { stream: near, target, connection, reader: Arc::clone(&reader) };
    let copying = tokio::io::copy_bidirectional_with_sizes(&mut near, &mut far, RELAY_BUFFER_BYTES, RELAY_BUFFER_BYTES);
    let fault = tokio::select! {
        biased;
        result = copying => result.err().map(|error| ConnectionFault::Broke { what: error.to_string() }),
        () = abort.cancelled() => Some(ConnectionFault::Stopped),
        () = reader.is_shown_the_door() => Some(ConnectionFault::HeldUpOthers),
    };
    if let Some(fault) = fault {
        near.connection.ended_by(fault);
        let _ = io::end_with_reset(&near.stream);
    }
}

/// A socket whose bytes are counted.
struct Counted {
    stream: TcpStream,
    target: TargetSide,
    connection: OpenConnection,
    reader: Arc<NearReader>,
}

impl AsyncRead for Counted {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<(), Error>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let bytes = buf.filled().len() - before;
        match this.target {
            TargetSide::Near => this.connection.add_from_target(bytes),
            TargetSide::Far => this.connection.add_to_target(bytes),
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        let this = self.get_mut();
        let write = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.reader.offered(write.is_ready());
        let written = ready!(write)?;
        match this.target {
            TargetSide::Near => this.connection.add_to_target(written),
            TargetSide::Far => this.connection.add_from_target(written),
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
