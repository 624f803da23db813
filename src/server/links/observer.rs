//! Puts what happens to links among the facts about their workers, and begins to listen to them.

use super::{Links, agent_of, carrier, loss, status, worker_of};
use crate::server::registry::{Registry, Worker};
use crate::server::tunnels::Tunnels;
use crate::server::watching::Watching;
use link::{CloseReason, LinkHandle, LinkObserver};
use std::sync::Arc;

/// Notes links as they come and go.
pub struct FactObserver {
    pub registry: Registry,
    pub tunnels: Tunnels,
    pub links: Links,
    pub watching: Watching,
}

impl FactObserver {
    fn worker(&self, link: &LinkHandle) -> Option<Arc<Worker>> {
        self.registry.get(worker_of(link)?)
    }
}

impl LinkObserver for FactObserver {
    fn opened(&self, link: &LinkHandle) {
        if let Some(agent) = agent_of(link) {
            return self.tunnels.link_opened(agent, link);
        }
        // the worker may have been deleted, or have lost its place, while its link was being made
        let Some(worker) = self.worker(link) else { return link.revoke() };
        {
            let mut facts = worker.facts();
            if facts.row.link_key != Some(link.worker_key()) {
                drop(facts);
                return link.revoke();
            }
            facts.link_opened(link.peer(), carrier(link), self.registry.clock().now());
        }
        worker.link_probe.probe_now();
        // it ends with the link
        tokio::spawn(status::listen(link.clone(), worker, self.registry.clone(), self.watching.clone()));
    }

    fn closed(&self, link: &LinkHandle, reason: &CloseReason) {
        if *reason == CloseReason::Stopping {
            // the server's own doing, and nothing to tell of a worker
            return;
        }
        if let Some(agent) = agent_of(link) {
            return self.tunnels.link_closed(agent);
        }
        let Some(worker) = self.worker(link) else { return };
        {
            let mut facts = worker.facts();
            // asked while the facts are held: a newer link that stands by now has told of itself, or is about to
            if self.links.get(worker.id()).is_some() {
                return;
            }
            facts.link_closed(loss(reason), self.registry.clock().now());
        }
        // whether it can be reached at all depends on the direct way now
        worker.probe.probe_now();
    }
}
