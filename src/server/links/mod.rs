//! The links of workers and tunnel agents on the server: who may have one, what workers tell over it, what is known of those that stand, and
//! how they end.
//!
//! The link itself, from its encryption to its requests, is the crate `link`.

mod gatekeeper;
mod observer;
mod route;
mod status;

pub use route::routes;

use crate::config::ServerConfig;
use crate::server::auth::Auth;
use crate::server::membership::Membership;
use crate::server::registry::Registry;
use crate::server::tunnels::Tunnels;
use crate::server::watching::Watching;
use api::{LinkCarrier, LinkLoss, TunnelAgentId, WorkerId};
use gatekeeper::LinkGatekeeper;
use link::{Acceptor, Carrier, CloseReason, Drain, KeyError, KeyPair, LinkHandle, Tuning};
use observer::FactObserver;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Requests over links may end for so long when the server stops; as long as those of browsers and programs.
const DRAIN_DEADLINE: Duration = Duration::from_secs(5);

/// Before the number of a tunnel agent; a worker's link is called by its number alone.
const AGENT_PREFIX: &str = "tunnel-";

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

/// The links that stand, of workers and tunnel agents. Cloning it clones a handle.
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

    /// A tunnel agent's.
    pub fn agent(&self, id: TunnelAgentId) -> Option<LinkHandle> {
        self.0.get(&agent_link_id(id))
    }

    /// Ends a tunnel agent's, which was deleted.
    pub fn revoke_agent(&self, id: TunnelAgentId) {
        if let Some(link) = self.agent(id) {
            link.revoke();
        }
    }

    /// Ends all in good order: those who dialled them hear when to come back, and no new link begins.
    pub async fn drain(&self) {
        let drained = self.0.drain(Drain { deadline: DRAIN_DEADLINE, ..Drain::default() }).await;
        if drained.orderly + drained.cut_off > 0 {
            tracing::info!(drained.orderly, drained.cut_off, "all links have ended");
        }
    }

    /// Takes links in the name of these keys.
    pub fn acceptor(
        &self,
        keys: &KeyPair,
        config: &ServerConfig,
        auth: &Auth,
        hosts: Hosts<'_>,
    ) -> Result<Acceptor, LinksError> {
        let Hosts { registry, membership, tunnels, watching } = hosts;
        let gatekeeper = LinkGatekeeper {
            token: link::JoinToken::new(auth.join_token().expose()),
            registry: registry.clone(),
            membership: membership.clone(),
            tunnels: tunnels.clone(),
        };
        let observer = FactObserver {
            registry: registry.clone(),
            tunnels: tunnels.clone(),
            links: self.clone(),
            watching: watching.clone(),
        };
        let tuning = Tuning { key_rotation: config.key_rotation, ..Tuning::default() };
        Ok(Acceptor::new(keys, Arc::new(gatekeeper), Arc::new(observer), self.0.clone(), tuning)?)
    }
}

/// Who may have a link, and who hears of it.
#[derive(Clone, Copy, Debug)]
pub struct Hosts<'a> {
    /// All workers.
    pub registry: &'a Registry,
    /// Decides about them.
    pub membership: &'a Membership,
    /// All tunnel agents.
    pub tunnels: &'a Tunnels,
    /// At which workers somebody looks.
    pub watching: &'a Watching,
}

/// What a link of this tunnel agent is called.
fn agent_link_id(id: TunnelAgentId) -> Box<str> {
    format!("{AGENT_PREFIX}{id}").into()
}

/// The tunnel agent that a link is called after.
fn agent_of(link: &LinkHandle) -> Option<TunnelAgentId> {
    link.id().strip_prefix(AGENT_PREFIX)?.parse().ok().map(TunnelAgentId)
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
