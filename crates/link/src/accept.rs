//! The server's side: HTTP requests become links.

use crate::driver::{self, Begun};
use crate::encryption;
use crate::handle::{CloseReason, LinkHandle};
use crate::handshake::{AcceptError, Gatekeeper, ServerSide};
use crate::io::BoxedIo;
use crate::jitter;
use crate::keys::KeyPair;
use crate::log_limit::{LogLimit, Turn};
use crate::meter::Traffic;
use crate::refusal::Refusal;
use crate::registry::Registry;
use crate::tuning::Tuning;
use crate::upgrade::{self, Asked, Carrier};
use crate::websocket::WebSocketIo;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::protocol::Role;
use tracing::{debug, info, warn};

/// How many handshakes may be under way. Each holds some 40 KiB until its deadline at most.
const MAX_HANDSHAKES: usize = 2048;

/// When a worker that came at a bad moment is to come back, at most.
const BUSY_RETRY: Duration = Duration::from_secs(5);

/// Told of links as they come and go, outside of any lock. Must not block.
pub trait LinkObserver: Send + Sync {
    /// The link stands and can be used.
    fn opened(&self, link: &LinkHandle);
    /// The link is no more. It comes after `opened` of the same link; `opened` of a newer link may come before.
    fn closed(&self, link: &LinkHandle, reason: &CloseReason);
}

/// Takes links. Cloning it clones a handle.
#[derive(Clone)]
pub struct Acceptor {
    shared: Arc<Shared>,
}

struct Shared {
    handshakes: ServerSide,
    observer: Arc<dyn LinkObserver>,
    registry: Registry,
    tuning: Tuning,
    under_way: Arc<Semaphore>,
    log_limit: LogLimit,
}

impl Acceptor {
    /// Takes links in the name of `keys`, lets in whom `gatekeeper` lets in, and keeps them in `registry`.
    pub fn new(
        keys: &KeyPair,
        gatekeeper: Arc<dyn Gatekeeper>,
        observer: Arc<dyn LinkObserver>,
        registry: Registry,
        tuning: Tuning,
    ) -> Result<Self, rustls::Error> {
        let handshakes = ServerSide {
            tls: TlsAcceptor::from(Arc::new(encryption::server_config(keys)?)),
            key: keys.public(),
            gatekeeper,
            key_rotation: tuning.key_rotation,
        };
        let under_way = Arc::new(Semaphore::new(MAX_HANDSHAKES));
        Ok(Self {
            shared: Arc::new(Shared {
                handshakes,
                observer,
                registry,
                tuning,
                under_way,
                log_limit: LogLimit::default(),
            }),
        })
    }

    /// Answers a request at [`LINK_PATH`](crate::LINK_PATH), and makes a link of its connection once the answer is
    /// sent. What becomes of that is in the log and with the observer.
    ///
    /// The connection has to be HTTP/1.1 served with upgrades, its socket set up with
    /// [`tune_socket`](crate::tune_socket).
    pub fn respond<B>(&self, mut request: Request<B>, peer: SocketAddr) -> Response<Full<Bytes>> {
        let (carrier, websocket_accept) = match upgrade::asked(&request) {
            Asked::Link { carrier, websocket_accept } => (carrier, websocket_accept),
            Asked::Other(problem) => {
                debug!(%peer, ?problem, "a request for a link is none");
                return upgrade::no_link(problem);
            }
        };
        let permit = Arc::clone(&self.shared.under_way).try_acquire_owned().ok();
        let Some(permit) = permit.filter(|_| !self.shared.registry.is_draining()) else {
            debug!(%peer, "no more links for the moment");
            return upgrade::busy(jitter::up_to(BUSY_RETRY));
        };
        let on_upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(self.clone().take(on_upgrade, carrier, peer, permit));
        upgrade::switching(carrier, websocket_accept.as_deref())
    }

    /// The links that stand.
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// Goes through the handshake and leaves the link to a task of its own, so that an idle link does not carry the
    /// handshake's memory.
    async fn take(self, on_upgrade: OnUpgrade, carrier: Carrier, peer: SocketAddr, permit: OwnedSemaphorePermit) {
        let deadline = self.shared.tuning.handshake_deadline;
        let begun = tokio::time::timeout(deadline, self.begin(on_upgrade, carrier, peer)).await;
        drop(permit);
        match begun.unwrap_or(Err(AcceptError::Deadline(deadline))) {
            Ok(begun) => {
                tokio::spawn(self.keep(begun));
            }
            Err(AcceptError::Answered) => debug!(%peer, "a question was answered"),
            Err(error) => self.log_failure(peer, &error),
        }
    }

    fn log_failure(&self, peer: SocketAddr, error: &AcceptError) {
        let unlogged = match self.shared.log_limit.take(Instant::now()) {
            Turn::Log { unlogged } => unlogged,
            Turn::Skip => return debug!(%peer, "no link came of a connection: {error}"),
        };
        if unlogged > 0 {
            warn!("{unlogged} more connections came to no link, which were not logged");
        }
        match error {
            AcceptError::Refused(Refusal::Declined { detail }) => {
                let why = String::from_utf8_lossy(detail);
                warn!(%peer, %why, "a worker was declined");
            }
            AcceptError::Refused(refusal) => {
                warn!(%peer, reason = refusal.name(), "a worker was refused its link: {refusal}");
            }
            error => warn!(%peer, "no link came of a connection: {error}"),
        }
    }

    async fn begin(&self, on_upgrade: OnUpgrade, carrier: Carrier, peer: SocketAddr) -> Result<Begun, AcceptError> {
        let io = upgraded(on_upgrade, carrier).await?;
        let traffic = Traffic::new();
        let accepted = self.shared.handshakes.receive(io, peer, &traffic).await?;
        let begun = driver::begin(accepted, carrier, traffic, &self.shared.tuning).await?;
        if !self.shared.registry.insert(&begun.handle) {
            return Err(AcceptError::TooLate);
        }
        Ok(begun)
    }

    async fn keep(self, begun: Begun) {
        let Shared { registry, observer, .. } = &*self.shared;
        let link = begun.handle.clone();
        info!(id = link.id(), peer = %link.peer(), carrier = ?link.carrier(), "link opened");
        observer.opened(&link);
        let reason = begun.run().await;
        registry.remove(&link);
        info!(id = link.id(), peer = %link.peer(), "link closed: {reason}");
        observer.closed(&link, &reason);
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").field("registry", &self.shared.registry).finish_non_exhaustive()
    }
}

/// The stream that is left of an HTTP connection once the answer to the upgrade is sent.
async fn upgraded(on_upgrade: OnUpgrade, carrier: Carrier) -> Result<BoxedIo, AcceptError> {
    let io: BoxedIo = Box::new(TokioIo::new(on_upgrade.await.map_err(AcceptError::Upgrade)?));
    Ok(match carrier {
        Carrier::Stream => io,
        Carrier::WebSocket => Box::new(WebSocketIo::new(io, Role::Server).await),
    })
}
