//! Byte streams of any kind, and the socket options that a link wants.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A byte stream.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A byte stream of a kind that is known at run time only.
pub type BoxedIo = Box<dyn Io>;

/// What the kernel may hold of what was not sent yet, in bytes.
///
/// More would only put a ping or a small answer behind a big one, which on a slow path takes seconds.
const NOT_SENT_LOW_WATER_BYTES: u32 = 128 * 1024;

/// Sets the options on a link's socket: small messages go out at once, and the queue before them stays short.
///
/// The dialling side does this by itself; whoever accepts the connections of a server calls it there. A kernel that
/// does not know an option goes without: the link works, only less well.
pub fn tune_socket(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(NOT_SENT_LOW_WATER_BYTES);
}
