//! The link's bytes as the binary messages of a WebSocket, for proxies that let no other upgrade through.
//!
//! Where a message begins and ends means nothing.

use crate::io::BoxedIo;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{Sink, Stream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// RFC 6455, section 1.3.
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The most that goes into one message: a TLS record and its framing fit.
const MAX_SENT_BYTES: usize = 20 * 1024;
/// The most that one message may hold. A proxy may put several together.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// The library allocates this much at once for each connection.
const READ_BUFFER_BYTES: usize = 4 * 1024;
const WRITE_BUFFER_BYTES: usize = 16 * 1024;

/// What the server answers to a client's `Sec-WebSocket-Key`.
pub(crate) fn accept_key(key: &[u8]) -> String {
    let mut digest = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key);
    digest.update(ACCEPT_SUFFIX);
    STANDARD.encode(digest.finish())
}

/// A byte stream in a WebSocket.
pub(crate) struct WebSocketIo {
    socket: WebSocketStream<BoxedIo>,
    /// What of the last message was not read yet.
    rest: Bytes,
}

impl WebSocketIo {
    /// Takes over `io` after the upgrade.
    pub async fn new(io: BoxedIo, role: Role) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(WRITE_BUFFER_BYTES)
            .max_write_buffer_size(WRITE_BUFFER_BYTES + 4 * MAX_SENT_BYTES)
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        Self { socket: WebSocketStream::from_raw_socket(io, role, Some(config)).await, rest: Bytes::new() }
    }
}

fn to_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::BrokenPipe.into(),
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

impl AsyncRead for WebSocketIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.rest = bytes,
                Some(Ok(Message::Close(_)) | Err(Error::ConnectionClosed | Error::AlreadyClosed)) | None => {
                    return Poll::Ready(Ok(()));
                }
                // pings are answered by the library
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(to_io(error))),
            }
        }
        let take = self.rest.len().min(buf.remaining());
        buf.put_slice(&self.rest.split_to(take));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebSocketIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(to_io)?;
        let part = buf.get(..MAX_SENT_BYTES).unwrap_or(buf);
        Pin::new(&mut self.socket).start_send(Message::Binary(Bytes::copy_from_slice(part))).map_err(to_io)?;
        Poll::Ready(Ok(part.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx).map_err(to_io)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_close(cx).map_err(to_io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn the_answer_to_a_key_is_the_standards() {
        // RFC 6455, section 1.3
        assert_eq!(accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[tokio::test]
    async fn bytes_arrive_in_order_however_they_were_cut() {
        let (client, server) = tokio::io::duplex(1000);
        let mut client = WebSocketIo::new(Box::new(client), Role::Client).await;
        let mut server = WebSocketIo::new(Box::new(server), Role::Server).await;
        let sent: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        let writer = async {
            client.write_all(&sent).await.unwrap();
            client.flush().await.unwrap();
        };
        let mut received = vec![0; sent.len()];
        let (read, ()) = tokio::join!(server.read_exact(&mut received), writer);
        read.unwrap();
        assert!(received == sent);
    }

    #[tokio::test]
    async fn a_close_is_the_end() {
        let (client, server) = tokio::io::duplex(1000);
        let mut client = WebSocketIo::new(Box::new(client), Role::Client).await;
        let mut server = WebSocketIo::new(Box::new(server), Role::Server).await;
        let closer = tokio::spawn(async move { client.shutdown().await });
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
        drop(server);
        closer.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn an_oversized_message_is_an_error() {
        let (mut raw, server) = tokio::io::duplex(1000);
        let mut server = WebSocketIo::new(Box::new(server), Role::Server).await;
        // a masked binary frame that announces 2^40 bytes
        raw.write_all(&[0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4]).await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
