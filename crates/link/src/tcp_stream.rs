//! Raw bytes to a TCP target behind a worker: a CONNECT stream of HTTP/2 (RFC 9113, section 8.5).

use crate::body;
use crate::handle::Closing;
use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection from the worker to a target, as seen from the server. Dropping it closes the connection.
pub struct LinkTcpStream {
    send: SendStream<Bytes>,
    receive: RecvStream,
    closing: Arc<Closing>,
    /// What arrived and was not read yet.
    rest: Bytes,
}

impl LinkTcpStream {
    pub(crate) fn new(send: SendStream<Bytes>, receive: RecvStream, closing: Arc<Closing>) -> Self {
        Self { send, receive, closing, rest: Bytes::new() }
    }

    /// Why nothing can be written any more.
    fn poll_write_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let error = match ready!(self.send.poll_reset(cx)) {
            Ok(Reason::NO_ERROR | Reason::CANCEL | Reason::STREAM_CLOSED) => io::ErrorKind::BrokenPipe.into(),
            Ok(reason) => io::Error::new(io::ErrorKind::ConnectionReset, reason.to_string()),
            Err(error) => io::Error::new(io::ErrorKind::ConnectionReset, self.closing.why(&error)),
        };
        Poll::Ready(error)
    }
}

impl fmt::Debug for LinkTcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkTcpStream").finish_non_exhaustive()
    }
}

impl AsyncRead for LinkTcpStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(self.receive.poll_data(cx)) {
                Some(Ok(data)) => self.rest = data,
                Some(Err(error)) => {
                    let why = self.closing.why(&error);
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, why)));
                }
                None => return Poll::Ready(Ok(())),
            }
        }
        let take = self.rest.len().min(buf.remaining());
        buf.put_slice(&self.rest.split_to(take));
        let _ = self.receive.flow_control().release_capacity(take);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for LinkTcpStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if let Some(room) = ready!(body::poll_room(&mut self.send, buf.len(), cx)) {
            let part = buf.get(..room).unwrap_or(buf);
            if self.send.send_data(Bytes::copy_from_slice(part), false).is_ok() {
                return Poll::Ready(Ok(part.len()));
            }
        }
        self.poll_write_end(cx).map(Err)
    }

    /// The connection's task sends what was written.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.send.send_data(Bytes::new(), true).is_ok() {
            return Poll::Ready(Ok(()));
        }
        let error = ready!(self.poll_write_end(cx));
        // closed is what it was to be
        Poll::Ready(if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
    }
}
