//! How a session gets the byte stream to the first server of its route.

use crate::abandoned::Abandoned;
use crate::address::Endpoint;
use crate::io::{BoxedIo, SessionSocket};
use async_trait::async_trait;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time;

/// Opens a byte stream to a server. Tests put trouble in between here.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Opens one. Who calls this sets the deadline for all of it.
    async fn open(&self, server: &Endpoint) -> Result<BoxedIo, TransportError>;
}

/// Why no byte stream came about.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The name has no address.
    #[error("cannot find an address for {host}: {source}; check the name, and the DNS of this host")]
    Resolve {
        /// The name.
        host: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The host answers, and nobody listens at the port.
    #[error("{address} refuses the connection: is sshd running there, and is this its port?")]
    Refused {
        /// The address that was tried last.
        address: SocketAddr,
    },
    /// Nothing came back.
    #[error("{address} does not answer: a firewall drops the packets, or the host is down")]
    TimedOut {
        /// The address that was tried last.
        address: SocketAddr,
    },
    /// The network does not lead there.
    #[error("no route to {address}: {source}; this host has no way into that network")]
    NoRoute {
        /// The address that was tried last.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// Something else.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address that was tried last.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
}

/// TCP, directly. It never asks the environment for a proxy.
///
/// A server that takes a connection is told that former ones, which this side gave up, are no more: it may not have
/// heard it when they broke, and still keep ports for them.
#[derive(Clone, Debug)]
pub struct TcpTransport {
    connect_deadline: Duration,
    abandoned: Abandoned,
}

impl TcpTransport {
    /// Tries each address of a server for at most `connect_deadline`.
    pub fn new(connect_deadline: Duration) -> Self {
        Self { connect_deadline, abandoned: Abandoned::default() }
    }
}

#[async_trait]
impl Transport for TcpTransport {
    async fn open(&self, server: &Endpoint) -> Result<BoxedIo, TransportError> {
        let stream = connect(server, self.connect_deadline).await?;
        if let Ok(address) = stream.peer_addr() {
            self.abandoned.reset(address);
        }
        Ok(Box::new(SessionSocket::new(stream, self.abandoned.clone())))
    }
}

/// Connects to the first address of `server` that takes the connection.
pub(crate) async fn connect(server: &Endpoint, deadline: Duration) -> Result<TcpStream, TransportError> {
    let resolve = |source| TransportError::Resolve { host: server.host.clone(), source };
    let found = time::timeout(deadline, tokio::net::lookup_host((server.host.as_str(), server.port))).await;
    let addresses = found.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())).map_err(resolve)?;
    let mut last = resolve(std::io::ErrorKind::NotFound.into());
    for address in addresses {
        let connected = time::timeout(deadline, TcpStream::connect(address)).await;
        match connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
            Ok(stream) => return Ok(stream),
            Err(source) => last = TransportError::from_connect(address, source),
        }
    }
    Err(last)
}

impl TransportError {
    fn from_connect(address: SocketAddr, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        match source.kind() {
            ErrorKind::ConnectionRefused => Self::Refused { address },
            ErrorKind::TimedOut => Self::TimedOut { address },
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Self::NoRoute { address, source },
            _ => Self::Connect { address, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn failed_connections_and_what_they_are() {
        let of = |kind: ErrorKind| TransportError::from_connect(SocketAddr::from(([192, 0, 2, 1], 22)), kind.into());
        assert!(matches!(of(ErrorKind::ConnectionRefused), TransportError::Refused { .. }));
        assert!(matches!(of(ErrorKind::TimedOut), TransportError::TimedOut { .. }));
        assert!(matches!(of(ErrorKind::NetworkUnreachable), TransportError::NoRoute { .. }));
        assert!(matches!(of(ErrorKind::HostUnreachable), TransportError::NoRoute { .. }));
        assert!(matches!(of(ErrorKind::PermissionDenied), TransportError::Connect { .. }));
    }
}
