//! Connections that this side gave up and whose other side may not know it.
//!
//! A server that hears nothing of a lost connection goes on listening for it, and refuses the port to the session that
//! takes its place: for as long as its kernel waits for an acknowledgement, which can be a quarter of an hour. Closing the
//! socket tells nobody while the path is broken; the kernel tries again, ever more rarely. So the socket is kept until the
//! same server takes a new connection, when the path has healed, and is then ended with a reset, which the kernel sends at
//! once whatever it was waiting for. If bytes were lost meanwhile, its place in the stream is wrong, and the other kernel
//! asks about it (RFC 5961, section 3.2); the answer is right, as it comes from a socket that is no more.

use crate::io::end_with_reset;
use socket2::{SockRef, Socket};
use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpStream;

/// Each takes a descriptor. A server whose sessions break again and again has the latest ones here.
const MOST_KEPT: usize = 64;

/// Keeps them. Cloning it clones a handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Abandoned {
    kept: Arc<Mutex<VecDeque<(SocketAddr, Socket)>>>,
}

impl Abandoned {
    /// Takes over a connection whose other side has not ended it.
    pub fn keep(&self, stream: &TcpStream) {
        // one without a peer is over on both sides
        let Ok(server) = stream.peer_addr() else { return };
        // What this socket held is of no use any more. The other side hears of it if it hears anything, and whatever it
        // still sends is answered with a reset.
        let _ = SockRef::from(stream).shutdown(Shutdown::Both);
        // without a descriptor the connection is closed like any other
        let Ok(socket) = SockRef::from(stream).try_clone() else { return };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(_, socket)| socket.peer_addr().is_ok());
        if kept.len() >= MOST_KEPT
            && let Some((_, oldest)) = kept.pop_front()
        {
            let _ = end_with_reset(&oldest);
        }
        kept.push_back((server, socket));
    }

    /// `server` has taken a connection: tells it that the former ones are no more.
    pub fn reset(&self, server: SocketAddr) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(address, socket)| {
            let is_other = *address != server;
            if !is_other {
                let _ = end_with_reset(socket);
            }
            is_other
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A connection to `listener` and its other end.
    async fn connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_new_connection_to_the_same_server_ends_the_old_one_with_a_reset() {
        let abandoned = Abandoned::default();
        let [listener, elsewhere] = [TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0")];
        let (listener, elsewhere) = (listener.await.unwrap(), elsewhere.await.unwrap());
        let (near, mut far) = connection(&listener).await;
        abandoned.keep(&near);
        drop(near);
        assert_eq!(far.read(&mut [0; 1]).await.unwrap(), 0);

        abandoned.reset(elsewhere.local_addr().unwrap());
        assert_eq!(abandoned.kept.lock().unwrap().len(), 1);
        abandoned.reset(listener.local_addr().unwrap());
        assert_eq!(abandoned.kept.lock().unwrap().len(), 0);
        assert_eq!(far.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn those_that_are_over_and_the_oldest_are_not_kept() {
        let abandoned = Abandoned::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut far_ends = Vec::new();
        for _ in 0..MOST_KEPT + 3 {
            let (near, far) = connection(&listener).await;
            abandoned.keep(&near);
            far_ends.push(far);
        }
        assert_eq!(abandoned.kept.lock().unwrap().len(), MOST_KEPT);
        drop(far_ends);
        let (near, _far) = connection(&listener).await;
        abandoned.keep(&near);
        assert_eq!(abandoned.kept.lock().unwrap().len(), 1);
    }
}
