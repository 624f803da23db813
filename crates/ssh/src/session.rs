//! A session with a server: what forwards go over.

mod authenticate;
mod client;
mod closings;
mod connect;
mod far_stream;
mod incoming;
mod open_failures;
mod own_key;
mod shared;
mod slow_readers;

pub use connect::Connector;
pub(crate) use far_stream::FarStream;
pub(crate) use incoming::{Incoming, Registration};
pub(crate) use slow_readers::NearReader;

use crate::address::{Endpoint, HopName};
use crate::end::SessionEnd;
use crate::error::ChannelError;
use crate::io::BoxedIo;
use crate::tuning::Tuning;
use crate::wire::{Greeting, Traffic};
use client::Client;
use russh::client::Handle;
use russh::{ChannelOpenFailure, Disconnect};
use shared::Shared;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{self, Instant};

/// How long a server may take over a goodbye.
const GOODBYE_DEADLINE: Duration = Duration::from_secs(1);

/// A session with a server, logged in. Clones are the same session; it ends when the last one is dropped, and what was being
/// connected over it has been decided. [`stop`](Self::stop) ends it at once.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    handle: Handle<Client>,
    shared: Arc<Shared>,
    via: Option<Session>,
    tuning: Tuning,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("hop", &self.shared.hop).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.end_with(SessionEnd::Stopped);
    }
}

/// What the server says to the wish that it listens for this side.
pub(crate) enum ListenAnswer {
    /// It listens at this port.
    Listening(u16),
    /// It does not. The protocol has no place for a reason.
    Denied,
}

impl Session {
    /// Who is logged in where.
    pub fn name(&self) -> &HopName {
        &self.inner.shared.hop
    }

    /// The session with the bastion that carries this one.
    pub fn via(&self) -> Option<&Session> {
        self.inner.via.as_ref()
    }

    /// What the server says it is, e.g. `SSH-2.0-OpenSSH_9.2p1 Debian-2`.
    pub fn server_version(&self) -> Option<String> {
        match self.inner.shared.pulse.greeting() {
            Greeting::Ssh(line) => Some(line),
            _ => None,
        }
    }

    /// Bytes that went over it.
    pub fn traffic(&self) -> Traffic {
        self.inner.shared.pulse.traffic()
    }

    /// How it ended, when it has.
    pub fn end(&self) -> Option<SessionEnd> {
        self.inner.shared.end.get()
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> SessionEnd {
        self.inner.shared.end.wait().await
    }

    /// Ends it, and all that goes over it, with a goodbye where that is still heard.
    pub async fn stop(&self) {
        let shared = &self.inner.shared;
        shared.end.set(SessionEnd::Stopped);
        let goodbye = async {
            if self.inner.handle.disconnect(Disconnect::ByApplication, "", "").await.is_ok() {
                shared.over.cancelled().await;
            }
        };
        let _ = time::timeout(GOODBYE_DEADLINE, goodbye).await;
        shared.cut.cancel();
    }

    /// The time that a small question takes to the server and back.
    pub async fn ping(&self) -> Result<Duration, ChannelError> {
        let begun = Instant::now();
        tokio::select! {
            end = self.ended() => Err(end.into()),
            answered = self.inner.handle.send_ping() => match answered {
                Ok(()) if self.end().is_none() => Ok(begun.elapsed()),
                _ => Err(self.inner.shared.why_ended().await.into()),
            }
        }
    }

    /// Lets the server connect to `target` and hang up again: whether a forward there would work, and if not, why.
    pub async fn check_target(&self, target: &Endpoint, deadline: Duration) -> Result<(), ChannelError> {
        self.open(target, &Endpoint::new("127.0.0.1", 0), deadline).await.map(drop)
    }

    /// Whether the server would listen at `listen` for this session. Whoever listens there already does not notice the
    /// question.
    pub async fn can_listen(&self, listen: &Endpoint) -> Result<bool, ChannelError> {
        let ListenAnswer::Listening(port) = self.listen(listen).await? else { return Ok(false) };
        self.stop_listening(&Endpoint::new(listen.host.clone(), port)).await;
        Ok(true)
    }

    /// A connection of this program's own to `target`, made by the server: to ask something there.
    pub async fn connect(&self, target: &Endpoint, deadline: Duration) -> Result<BoxedIo, ChannelError> {
        Ok(Box::new(self.open(target, &Endpoint::new("127.0.0.1", 0), deadline).await?))
    }

    /// Lets the server connect to `target`.
    pub(crate) async fn open(
        &self,
        target: &Endpoint,
        originator: &Endpoint,
        deadline: Duration,
    ) -> Result<FarStream, ChannelError> {
        if let Some(end) = self.end() {
            return Err(end.into());
        }
        let (sender, receiver) = oneshot::channel();
        let (session, to, from) = (self.clone(), target.clone(), originator.clone());
        // A task of its own: whoever waits may give up, and then somebody has to close what comes later. Where nobody
        // takes the stream, it is dropped, which closes it.
        tokio::spawn(async move { sender.send(session.open_without_deadline(&to, &from).await) });
        match time::timeout(deadline, receiver).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(_)) => Err(self.inner.shared.why_ended().await.into()),
            Err(_) => Err(ChannelError::Deadline { target: target.clone(), deadline }),
        }
    }

    async fn open_without_deadline(&self, target: &Endpoint, originator: &Endpoint) -> Result<FarStream, ChannelError> {
        let shared = &self.inner.shared;
        let opening = shared.open_failures.enter();
        let opened = self.inner.handle.channel_open_direct_tcpip(
            target.host.as_str(),
            u32::from(target.port),
            originator.host.as_str(),
            u32::from(originator.port),
        );
        let target = target.clone();
        match opened.await {
            Ok(channel) => Ok(FarStream::new(channel, self)),
            Err(russh::Error::ChannelOpenFailure(reason)) => {
                let detail = opening.server_said().await;
                Err(match reason {
                    ChannelOpenFailure::AdministrativelyProhibited => ChannelError::Prohibited { target },
                    ChannelOpenFailure::ConnectFailed => ChannelError::ConnectFailed { target, detail },
                    ChannelOpenFailure::ResourceShortage => ChannelError::ResourceShortage { target },
                    other => ChannelError::Refused { target, what: detail.unwrap_or_else(|| format!("{other:?}")) },
                })
            }
            Err(_) => Err(shared.why_ended().await.into()),
        }
    }

    /// Asks the server to listen at `listen`; at a port of its choice where that is 0.
    pub(crate) async fn listen(&self, listen: &Endpoint) -> Result<ListenAnswer, ChannelError> {
        let deadline = self.inner.tuning.request_deadline;
        let asked = self.inner.handle.tcpip_forward(listen.host.as_str(), u32::from(listen.port));
        match time::timeout(deadline, asked).await {
            // the server names the port only where it chose it
            Ok(Ok(0)) => Ok(ListenAnswer::Listening(listen.port)),
            Ok(Ok(port)) => Ok(ListenAnswer::Listening(u16::try_from(port).unwrap_or(listen.port))),
            Ok(Err(russh::Error::RequestDenied)) => Ok(ListenAnswer::Denied),
            Ok(Err(_)) => Err(self.inner.shared.why_ended().await.into()),
            Err(_) => Err(ChannelError::Deadline { target: listen.clone(), deadline }),
        }
    }

    /// Asks the server to listen no more. Where it does not answer, the end of the session does the same.
    pub(crate) async fn stop_listening(&self, listen: &Endpoint) {
        let asked = self.inner.handle.cancel_tcpip_forward(listen.host.as_str(), u32::from(listen.port));
        let _ = time::timeout(self.inner.tuning.request_deadline, asked).await;
    }

    /// Connections that come to the server at `listen` go to `sender` until what is returned is dropped.
    pub(crate) fn register(&self, listen: &Endpoint, sender: mpsc::Sender<Incoming>) -> Registration {
        Registration::new(&self.inner.shared, listen, sender)
    }

    /// Keeps an eye on who reads what comes over the session, until what is returned is dropped.
    pub(crate) fn near_reader(&self) -> Arc<NearReader> {
        self.inner.shared.slow_readers.register()
    }

    pub(crate) fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.inner))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", self.name()).field("end", &self.end()).finish_non_exhaustive()
    }
}

/// A session that does not stay for its sake.
#[derive(Debug, Default)]
pub(crate) struct WeakSession(Weak<Inner>);

impl WeakSession {
    /// The session, if it stands.
    pub fn living(&self) -> Option<Session> {
        let session = Session { inner: self.0.upgrade()? };
        session.end().is_none().then_some(session)
    }
}
