//! A connection over a session.

use crate::session::Session;
use crate::session::shared::Shared;
use russh::client::Msg;
use russh::{Channel, ChannelId, ChannelStream};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time;
use tokio_util::sync::CancellationToken;

/// How long the server may take to close a connection that has ended here.
const FAREWELL_DEADLINE: Duration = Duration::from_secs(2);
/// What it may still send meanwhile, in bytes.
const FAREWELL_BYTES: usize = 1024 * 1024;

/// The bytes of one connection over a session. Dropping it ends the connection.
pub(crate) struct FarStream {
    /// There until it is dropped.
    channel: Option<OpenChannel>,
    shared: Arc<Shared>,
}

struct OpenChannel {
    stream: ChannelStream<Msg>,
    id: ChannelId,
    /// The server has closed it.
    closed: CancellationToken,
}

impl FarStream {
    pub fn new(channel: Channel<Msg>, session: &Session) -> Self {
        let shared = Arc::clone(&session.inner.shared);
        let id = channel.id();
        let closed = shared.closings.watch(id);
        Self { channel: Some(OpenChannel { stream: channel.into_stream(), id, closed }), shared }
    }

    fn stream(&mut self) -> io::Result<&mut ChannelStream<Msg>> {
        // never missing before the end
        let channel = self.channel.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Ok(&mut channel.stream)
    }
}

impl Drop for FarStream {
    fn drop(&mut self) {
        let Some(channel) = self.channel.take() else { return };
        let (closed, over) = (channel.closed.is_cancelled(), self.shared.end.is_set());
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if !closed && !over => drop(runtime.spawn(farewell(channel, Arc::clone(&self.shared)))),
            _ => self.shared.closings.close(channel.id),
        }
    }
}

/// Says that nothing more comes, and lets the server close the channel; closes it where the server does not.
async fn farewell(mut channel: OpenChannel, shared: Arc<Shared>) {
    let OpenChannel { stream, closed, .. } = &mut channel;
    let leaving = async {
        let _ = stream.shutdown().await;
        let mut rest = [0; 8192];
        let mut bytes = 0;
        while bytes < FAREWELL_BYTES {
            match stream.read(&mut rest).await {
                Ok(0) | Err(_) => return closed.cancelled().await,
                Ok(read) => bytes += read,
            }
        }
    };
    tokio::select! {
        () = closed.cancelled() => {}
        _ = shared.end.wait() => {}
        _ = time::timeout(FAREWELL_DEADLINE, leaving) => {}
    }
    shared.closings.close(channel.id);
}

impl AsyncRead for FarStream {
    /// The end of the session is an error, not the end of what was to be read: whoever read half of an answer must not
    /// take it for the whole.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(this.stream()?).poll_read(cx, buf))?;
        if buf.filled().len() == before
            && buf.remaining() > 0
            && let Some(end) = this.shared.end.get()
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, end)));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FarStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.get_mut().stream()?).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().stream()?).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().stream()?).poll_shutdown(cx)
    }
}
