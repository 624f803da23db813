//! Forwards: ports here whose connections go to a target over there, and the other way round.

mod counters;
mod local;
mod relay;
mod remote;
mod running;

pub use counters::{ConnectionFault, ForwardStats};
pub use local::{LocalForward, LocalForwardSpec};
pub use remote::{Denial, RemoteForward, RemoteForwardSpec};
pub use running::Stopped;

use crate::address::Endpoint;
use crate::end::SessionEnd;
use crate::error::ChannelError;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// What one forward may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardLimits {
    /// How many connections it has at a time. Further ones are closed at once, and counted.
    pub max_connections: usize,
    /// How long it may take until the target takes a connection.
    pub connect_deadline: Duration,
}

impl Default for ForwardLimits {
    fn default() -> Self {
        Self { max_connections: 256, connect_deadline: Duration::from_secs(10) }
    }
}

/// A forward does not come about.
#[derive(Debug, Error)]
pub enum ForwardError {
    /// Another program listens there already.
    #[error(
        "{address} is taken on this host by another program; `ss -ltnp 'sport = :{}'` shows which, or choose another port",
        address.port()
    )]
    PortTaken {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// Ports below 1024 are for root, or for whoever has `CAP_NET_BIND_SERVICE`.
    #[error("this user may not listen at {address}; choose a port from 1024 on")]
    PortNotAllowed {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// This host has no such address.
    #[error("{address} is no address of this host")]
    NoSuchAddress {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// Something else keeps it from listening.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The server may not connect to the target, today or ever.
    #[error(transparent)]
    Target(ChannelError),
    /// The server does not listen.
    #[error("the server does not listen at {listen}: {denial}")]
    Denied {
        /// Where it was to listen.
        listen: Endpoint,
        /// Why, as far as can be found out.
        denial: Denial,
    },
    /// The server listens for programs on itself only, though it was asked to listen for others.
    #[error(
        "the server listens at its loopback address only, not at {listen}: allow it with `GatewayPorts clientspecified` \
         in its sshd_config, or forward to 127.0.0.1 there"
    )]
    LoopbackOnly {
        /// Where it was to listen.
        listen: Endpoint,
    },
    /// The session ended meanwhile.
    #[error("the session ended: {0}")]
    SessionEnded(#[from] SessionEnd),
}

impl From<ChannelError> for ForwardError {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::SessionEnded(end) => Self::SessionEnded(end),
            other => Self::Target(other),
        }
    }
}

impl ForwardError {
    fn from_listen(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::PortTaken { address },
            io::ErrorKind::PermissionDenied => Self::PortNotAllowed { address },
            io::ErrorKind::AddrNotAvailable => Self::NoSuchAddress { address },
            _ => Self::Listen { address, source },
        }
    }
}
