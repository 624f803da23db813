//! `ssh -L`: a port here, a target over there.

use crate::address::Endpoint;
use crate::end::SessionEnd;
use crate::error::ChannelError;
use crate::forward::counters::ConnectionFault;
use crate::forward::relay::{self, TargetSide};
use crate::forward::running::{Context, Running, Stopped};
use crate::forward::{ForwardError, ForwardLimits, ForwardStats};
use crate::session::Session;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time;

/// After this host could not take a connection. What is missing then, such as file descriptors, comes back without a
/// sign that could be waited for.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A local forward, as it is wished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalForwardSpec {
    /// Where to listen on this host. Port 0 lets the system choose; an address other than loopback lets others in.
    pub listen: SocketAddr,
    /// Where the server connects to. The server resolves the name.
    pub target: Endpoint,
    /// What it may take.
    pub limits: ForwardLimits,
}

/// A port on this host whose connections go to a target as seen from the server of a session.
///
/// It ends with its session: then nobody listens at the port any more, which clients see at once. Dropping it ends it
/// too, with all its connections.
pub struct LocalForward {
    address: SocketAddr,
    running: Running,
}

impl LocalForward {
    /// Listens, and lets the server try the target once. A server that may not connect there is an error. One that
    /// cannot at the moment is none, as the target may come later; [`stats`](Self::stats) tell of it.
    pub async fn start(session: &Session, spec: LocalForwardSpec) -> Result<Self, ForwardError> {
        let failed = |source| ForwardError::from_listen(spec.listen, source);
        let listener = TcpListener::bind(spec.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let running = Running::new(session, spec.limits.clone());
        match session.check_target(&spec.target, spec.limits.connect_deadline).await {
            Ok(()) => {}
            Err(error @ (ChannelError::Prohibited { .. } | ChannelError::SessionEnded(_))) => return Err(error.into()),
            Err(error) => running.context().counters.note(ConnectionFault::Channel(error)),
        }
        let context = running.context().clone();
        running.context().spawn(accept(listener, spec.target, context));
        Ok(Self { address, running })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it did so far.
    pub fn stats(&self) -> ForwardStats {
        self.running.stats()
    }

    /// Waits until its session has ended, and with it the forward.
    pub async fn ended(&self) -> SessionEnd {
        self.running.context().session.ended().await
    }

    /// Takes no new connections, and gives those that stand this long to end by themselves.
    pub async fn stop(self, drain_deadline: Duration) -> Stopped {
        self.running.stop(drain_deadline).await
    }
}

impl fmt::Debug for LocalForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalForward").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, target: Endpoint, context: Context) {
    loop {
        let accepted = tokio::select! {
            () = context.stop.cancelled() => return,
            _ = context.session.ended() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((near, peer)) => take(near, peer, &target, &context),
            Err(error) => {
                context.counters.note(ConnectionFault::Accept { what: error.to_string() });
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Without a place for it, the connection is dropped, which closes it.
fn take(near: TcpStream, peer: SocketAddr, target: &Endpoint, context: &Context) {
    let Some(place) = context.place() else { return };
    let (target, context_of_task) = (target.clone(), context.clone());
    context.spawn(async move {
        connect_and_relay(near, peer, &target, &context_of_task).await;
        drop(place);
    });
}

async fn connect_and_relay(near: TcpStream, peer: SocketAddr, target: &Endpoint, context: &Context) {
    let _ = near.set_nodelay(true);
    let originator = Endpoint::new(peer.ip().to_string(), peer.port());
    let opened = tokio::select! {
        () = context.abort.cancelled() => return,
        opened = context.session.open(target, &originator, context.limits.connect_deadline) => opened,
    };
    match opened {
        Ok(far) => {
            let reader = context.session.near_reader();
            relay::relay(near, far, TargetSide::Far, context.counters.opened(), reader, &context.abort).await;
        }
        Err(error) => {
            // as a target that refuses would do
            let _ = crate::io::end_with_reset(&near);
            context.counters.failed(ConnectionFault::Channel(error));
        }
    }
}
