//! Connections of browsers, programs and workers.

use std::net::SocketAddr;

/// Where a request came from; in the extensions of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// The other end of the connection.
    pub addr: SocketAddr,
    /// Whether the connection itself speaks TLS.
    pub https: bool,
}
