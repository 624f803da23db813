//! `ssh -R`: a port over there, a target here.

use crate::address::Endpoint;
use crate::end::SessionEnd;
use crate::error::ChannelError;
use crate::forward::counters::ConnectionFault;
use crate::forward::relay::{self, TargetSide};
use crate::forward::running::{Context, Running, Stopped};
use crate::forward::{ForwardError, ForwardLimits, ForwardStats};
use crate::session::{FarStream, Incoming, ListenAnswer, Registration, Session};
use crate::transport;
use russh::ChannelOpenFailure;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time;

/// Connections that may wait to be taken. They wait for a task to look at them only, not for the target.
const WAITING_CONNECTIONS: usize = 64;

/// For a server to connect to itself.
const OPEN_DEADLINE: Duration = Duration::from_secs(2);

/// Where sshd listens when it listens on loopback alone.
const FIRST_LOOPBACK: &str = "127.0.0.1";
/// Linux has all of 127.0.0.0/8 as its own, so whoever listens at all addresses is found at this one too.
const SECOND_LOOPBACK: &str = "127.0.0.2";

/// A remote forward, as it is wished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteForwardSpec {
    /// Where the server listens: `localhost`, an address of the server, or `0.0.0.0` or an empty text for all of them.
    /// Port 0 lets the server choose.
    pub listen: Endpoint,
    /// Where this host connects to.
    pub target: Endpoint,
    /// What it may take.
    pub limits: ForwardLimits,
}

/// Why a server does not listen, as far as can be found out: the protocol has no place for a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Denial {
    /// Somebody listens at the port already.
    #[error(
        "something listens there already: another program, or a session that broke and that sshd has not missed yet. It \
         misses it sooner with `ClientAliveInterval 15` and `ClientAliveCountMax 3` in its sshd_config; `ss -ltnp` there \
         shows who listens"
    )]
    PortTaken,
    /// It listens at no port for this user.
    #[error(
        "allow it with `AllowTcpForwarding yes` (or `remote`) and, where `PermitListen` is set, with that port in it, in \
         its sshd_config; `DisableForwarding`, and `restrict` or `no-port-forwarding` beside the key in authorized_keys \
         or in the certificate, forbid it too"
    )]
    NotAllowed,
    /// Only root may listen at ports below 1024.
    #[error("ports below 1024 are for root there; choose another one")]
    PrivilegedPort,
    /// It listens at other ports, and nobody is seen at this one.
    #[error(
        "it listens at other ports; either the port is taken by something that cannot be seen from here, or the address is \
         none of the server's"
    )]
    Unknown,
}

/// A port on the server of a session whose connections go to a target as seen from this host.
///
/// It ends with its session; dropping it ends it too, with all its connections.
pub struct RemoteForward {
    listener: FarListener,
    running: Running,
    is_open_to_others: bool,
}

impl RemoteForward {
    /// Lets the server listen, and tries whether connections to it come here: sshd also says yes when it listens on loopback
    /// alone (`GatewayPorts no`), and when another program has one of the two addresses that `localhost` stands for.
    pub async fn start(session: &Session, spec: RemoteForwardSpec) -> Result<Self, ForwardError> {
        let running = Running::new(session, spec.limits.clone());
        let (sender, mut receiver) = mpsc::channel(WAITING_CONNECTIONS);
        let deadline = spec.limits.connect_deadline;
        // before the request, as connections may come before its answer; a port that the server is to choose is not known
        // before
        let early = (spec.listen.port != 0).then(|| session.register(&spec.listen, sender.clone()));
        let listen = match session.listen(&spec.listen).await? {
            ListenAnswer::Listening(port) => Endpoint::new(spec.listen.host.clone(), port),
            ListenAnswer::Denied => {
                let denial = why_denied(session, &spec.listen, deadline).await?;
                return Err(ForwardError::Denied { listen: spec.listen, denial });
            }
        };
        let registration = early.unwrap_or_else(|| session.register(&listen, sender));
        let listener = FarListener { session: session.clone(), listen, _registration: registration, listens: true };
        if let Err(error) = prove(session, &listener.listen, &mut receiver, deadline).await {
            listener.stop().await;
            return Err(error);
        }
        let is_open_to_others = is_open_to_others(session, &listener.listen, &mut receiver).await;
        let context = running.context().clone();
        running.context().spawn(take_all(receiver, spec.target, context));
        Ok(Self { listener, running, is_open_to_others })
    }

    /// Whether the server listens at all its addresses although it was asked to listen for programs on itself only, as sshd
    /// does with `GatewayPorts yes`. False where that cannot be tried.
    pub fn is_open_to_others(&self) -> bool {
        self.is_open_to_others
    }

    /// Where the server listens.
    pub fn address(&self) -> &Endpoint {
        &self.listener.listen
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
        self.listener.stop().await;
        self.running.stop(drain_deadline).await
    }
}

/// The server's port. Dropped, nobody takes its connections any more, and the server is asked to give it up.
struct FarListener {
    session: Session,
    listen: Endpoint,
    _registration: Registration,
    listens: bool,
}

impl FarListener {
    async fn stop(mut self) {
        self.listens = false;
        if self.session.end().is_none() {
            self.session.stop_listening(&self.listen).await;
        }
    }
}

impl Drop for FarListener {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.listens && self.session.end().is_none() {
            let (session, listen) = (self.session.clone(), self.listen.clone());
            runtime.spawn(async move { session.stop_listening(&listen).await });
        }
    }
}

impl fmt::Debug for RemoteForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteForward").field("listen", &self.listener.listen).finish_non_exhaustive()
    }
}

/// Tries what the server would do instead.
async fn why_denied(session: &Session, listen: &Endpoint, deadline: Duration) -> Result<Denial, ForwardError> {
    let loopback = Endpoint::new("127.0.0.1", listen.port);
    let someone_listens = match session.check_target(&loopback, deadline).await {
        Ok(()) => true,
        Err(ChannelError::SessionEnded(end)) => return Err(end.into()),
        Err(_) => false,
    };
    if someone_listens {
        return Ok(Denial::PortTaken);
    }
    let elsewhere = Endpoint::new(listen.host.clone(), 0);
    let ListenAnswer::Listening(port) = session.listen(&elsewhere).await? else { return Ok(Denial::NotAllowed) };
    session.stop_listening(&Endpoint::new(elsewhere.host, port)).await;
    Ok(if listen.port < 1024 { Denial::PrivilegedPort } else { Denial::Unknown })
}

/// Whether connections to where the server should listen come here. The first one that does is refused: it is the trial.
async fn prove(
    session: &Session,
    listen: &Endpoint,
    receiver: &mut mpsc::Receiver<Incoming>,
    deadline: Duration,
) -> Result<(), ForwardError> {
    let Some(trial) = Trial::of(&listen.host) else { return Ok(()) };
    let target = Endpoint::new(trial.host, listen.port);
    match session.open(&target, &Endpoint::new("127.0.0.1", 0), deadline).await {
        Ok(_connection) => match time::timeout(deadline, receiver.recv()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ForwardError::Denied { listen: listen.clone(), denial: Denial::PortTaken }),
        },
        Err(ChannelError::SessionEnded(end)) => Err(end.into()),
        Err(ChannelError::ConnectFailed { detail: Some(detail), .. })
            if trial.for_others && detail.contains("refused") =>
        {
            Err(ForwardError::LoopbackOnly { listen: listen.clone() })
        }
        // the server may not try it, or does not say what came of it
        Err(_) => Ok(()),
    }
}

async fn is_open_to_others(session: &Session, listen: &Endpoint, receiver: &mut mpsc::Receiver<Incoming>) -> bool {
    if !matches!(listen.host.as_str(), "localhost" | "127.0.0.1" | "::1") {
        return false;
    }
    let other = Endpoint::new(SECOND_LOOPBACK, listen.port);
    match session.open(&other, &Endpoint::new("127.0.0.1", 0), OPEN_DEADLINE).await {
        // somebody else may have that address
        Ok(_connection) => time::timeout(OPEN_DEADLINE, receiver.recv()).await.is_ok(),
        Err(_) => false,
    }
}

/// A connection of the server to itself that tells where it listens.
#[derive(Debug, PartialEq, Eq)]
struct Trial {
    host: String,
    /// Others than the server itself are to reach it.
    for_others: bool,
}

impl Trial {
    /// `None` where there is nothing to tell: sshd listens at exactly such an address, or says no.
    fn of(listen_host: &str) -> Option<Self> {
        let (host, for_others) = match listen_host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) if address.is_unspecified() => (SECOND_LOOPBACK, true),
            Ok(address) if address.is_loopback() || address.is_unspecified() => return None,
            Ok(_) => (listen_host, true),
            Err(_) if listen_host.is_empty() || listen_host == "*" => (SECOND_LOOPBACK, true),
            Err(_) if listen_host == "localhost" => (FIRST_LOOPBACK, false),
            Err(_) => return None,
        };
        Some(Self { host: host.to_owned(), for_others })
    }
}

async fn take_all(mut receiver: mpsc::Receiver<Incoming>, target: Endpoint, context: Context) {
    loop {
        let incoming = tokio::select! {
            () = context.stop.cancelled() => return,
            _ = context.session.ended() => return,
            incoming = receiver.recv() => incoming,
        };
        let Some(incoming) = incoming else { return };
        let Some(place) = context.place() else {
            incoming.reply.reject(ChannelOpenFailure::ResourceShortage).await;
            continue;
        };
        let (target, context_of_task) = (target.clone(), context.clone());
        context.spawn(async move {
            connect_and_relay(incoming, &target, &context_of_task).await;
            drop(place);
        });
    }
}

async fn connect_and_relay(incoming: Incoming, target: &Endpoint, context: &Context) {
    let connected = tokio::select! {
        () = context.abort.cancelled() => return,
        connected = transport::connect(target, context.limits.connect_deadline) => connected,
    };
    match connected {
        Ok(near) => {
            let _ = near.set_nodelay(true);
            incoming.reply.accept().await;
            let far = FarStream::new(incoming.channel, &context.session);
            let reader = context.session.near_reader();
            relay::relay(near, far, TargetSide::Near, context.counters.opened(), reader, &context.abort).await;
        }
        Err(error) => {
            tracing::debug!(originator = %incoming.originator, %target, %error, "cannot serve a forwarded connection");
            context.counters.failed(ConnectionFault::Target { what: error.to_string() });
            incoming.reply.reject(ChannelOpenFailure::ConnectFailed).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_where_to_try_whether_they_are_reached() {
        let table = [
            ("localhost", Some(("127.0.0.1", false))),
            ("127.0.0.1", None),
            ("::1", None),
            ("::", None),
            ("", Some(("127.0.0.2", true))),
            ("*", Some(("127.0.0.2", true))),
            ("0.0.0.0", Some(("127.0.0.2", true))),
            ("10.0.0.1", Some(("10.0.0.1", true))),
            ("npu.example", None),
        ];
        for (listen, expected) in table {
            let expected = expected.map(|(host, for_others)| Trial { host: host.to_owned(), for_others });
            assert_eq!(Trial::of(listen), expected, "{listen}");
        }
    }
}
