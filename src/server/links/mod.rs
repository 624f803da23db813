//! Workers' links on the server: who may have one, what workers tell over it, what is known of those that stand, and
//! how they end.
//!
//! The link itself, from its encryption to its requests, is the crate `link`.

mod gatekeeper;
mod observer;
mod route;
mod status;

pub use route::routes;

use crate::config::ServerConfig;
use crate::data_dir::LINK_KEY;
use crate::server::auth::Auth;
use crate::server::membership::Membership;
use crate::server::registry::Registry;
use crate::server::watching::Watching;
use api::{LinkCarrier, LinkLoss, WorkerId};
use gatekeeper::WorkerGatekeeper;
use link::{Acceptor, Carrier, CloseReason, Drain, KeyError, KeyPair, LinkHandle, Tuning};
use observer::FactObserver;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Requests over links may end for so long when the server stops; as long as those of browsers and programs.
const DRAIN_DEADLINE: Duration = Duration::from_secs(5);

/// Why links cannot be taken.
#[derive(Debug, Error)]
pub enum LinksError {
    /// The server's key pair.
    #[error("the server's key for links cannot be used: {0}")]
    Key(#[from] KeyError),
    /// The encryption.
    #[error("the encryption of links cannot be set up: {0}")]
    Encryption(#[from] rustls::Error),
}

/// The links that stand, by worker. Cloning it clones a handle.
#[derive(Clone, Debug, Default)]
pub struct Links(link::Registry);

impl Links {
    /// A worker's.
    pub fn get(&self, id: WorkerId) -> Option<LinkHandle> {
        self.0.get(&link_id(id))
    }

    /// How many stand.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Ends a worker's, which was deleted or whose place another host took.
    pub fn revoke(&self, id: WorkerId) {
        if let Some(link) = self.get(id) {
            link.revoke();
        }
    }

    /// Ends all in good order: workers hear when to come back, and no new link begins.
    pub async fn drain(&self) {
        let drained = self.0.drain(Drain { deadline: DRAIN_DEADLINE, ..Drain::default() }).await;
        if drained.orderly + drained.cut_off > 0 {
            tracing::info!(drained.orderly, drained.cut_off, "the links of workers have ended");
        }
    }

    /// Takes links under the server's key, which is made when it is not there.
    pub fn acceptor(
        &self,
        config: &ServerConfig,
        auth: &Auth,
        registry: &Registry,
        membership: &Membership,
        watching: &Watching,
    ) -> Result<Acceptor, LinksError> {
        let keys = KeyPair::load_or_make(&config.data_dir.join(LINK_KEY))?;
        let gatekeeper = WorkerGatekeeper {
            token: link::JoinToken::new(auth.join_token().expose()),
            registry: registry.clone(),
            membership: membership.clone(),
        };
        let observer = FactObserver { registry: registry.clone(), links: self.clone(), watching: watching.clone() };
        let tuning = Tuning { key_rotation: config.key_rotation, ..Tuning::default() };
        Ok(Acceptor::new(&keys, Arc::new(gatekeeper), Arc::new(observer), self.0.clone(), tuning)?)
    }
}

/// What a link of this worker is called.
fn link_id(id: WorkerId) -> Box<str> {
    id.0.to_string().into()
}

/// The worker that a link is called after.
fn worker_of(link: &LinkHandle) -> Option<WorkerId> {
    link.id().parse().ok().map(WorkerId)
}

fn carrier(link: &LinkHandle) -> LinkCarrier {
    match link.carrier() {
        Carrier::Stream => LinkCarrier::Stream,
        Carrier::WebSocket => LinkCarrier::WebSocket,
    }
}

fn loss(reason: &CloseReason) -> LinkLoss {
    match reason {
        CloseReason::Silent => LinkLoss::Silent,
        CloseReason::Broken(_) => LinkLoss::Broken,
        CloseReason::ClosedByWorker | CloseReason::Replaced | CloseReason::Revoked | CloseReason::Stopping => {
            LinkLoss::Closed
        }
    }
}
