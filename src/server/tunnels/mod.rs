//! Tunnel agents, which keep SSH forwards alive and tell of them: who may be one, what they tell, and which workers
//! depend on it.
//!
//! An agent's rows are decided one at a time under one lock; there are few agents, and they come seldom. What they tell is
//! in memory and reaches the database with the flusher's batches.

pub mod check;
mod dependence;
pub mod facts;
mod listen;
pub mod renewal;
mod rules;

use crate::server::error::ApiError;
use crate::server::links::Links;
use crate::server::membership::Proof;
use crate::server::registry::Registry;
use crate::server::registry::facts::TunnelsFact;
use crate::server::registry::time::TICK;
use crate::server::store::Store;
use crate::server::store::tunnel_agents::{StoredTunnelAgent, TUNNEL_REPORTS_A_STATEMENT};
use crate::server::supervisor::Job;
use crate::ssh_authority::RevokedKeys;
use api::{TunnelAgent, TunnelAgentId, TunnelAgentRequest, TunnelReport, WorkerId, WorkerTunnel};
use facts::{AgentFacts, AgentStanding, Unsaved, view};
use link::LinkHandle;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio::time::{MissedTickBehavior, interval};

/// All tunnel agents. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Tunnels(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    registry: Registry,
    store: Store,
    links: Links,
    agents: RwLock<BTreeMap<TunnelAgentId, Arc<Agent>>>,
    /// Held while a row is decided and written.
    deciding: tokio::sync::Mutex<()>,
    /// Something changed that workers have to be told of.
    has_news: AtomicBool,
    /// The keys that the certificate authority has revoked.
    revoked: RwLock<RevokedKeys>,
}

/// One tunnel agent.
#[derive(Debug)]
pub struct Agent {
    id: TunnelAgentId,
    facts: Mutex<AgentFacts>,
}

impl Agent {
    fn of(facts: AgentFacts) -> Arc<Self> {
        Arc::new(Self { id: facts.row.id, facts: Mutex::new(facts) })
    }

    /// Its row.
    pub fn id(&self) -> TunnelAgentId {
        self.id
    }

    /// What is known of it.
    pub fn facts(&self) -> MutexGuard<'_, AgentFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tunnels {
    /// Of the agents that the database knows.
    pub fn new(registry: Registry, store: Store, links: Links, stored: Vec<StoredTunnelAgent>) -> Self {
        let moment = registry.moment();
        let agents = stored.into_iter().map(|stored| Agent::of(AgentFacts::stored(stored, &moment)));
        let agents = RwLock::new(agents.map(|agent| (agent.id(), agent)).collect());
        let deciding = tokio::sync::Mutex::default();
        let revoked = RwLock::default();
        Self(Arc::new(Shared { registry, store, links, agents, deciding, has_news: AtomicBool::new(true), revoked }))
    }

    /// Whether an agent has this key.
    pub fn knows_key(&self, key: &link::PublicKey) -> bool {
        self.all().iter().any(|agent| agent.facts().row.link_key == *key)
    }

    /// Lets an agent in that has proved to own `key`.
    pub async fn admit(
        &self,
        request: TunnelAgentRequest,
        proof: Proof,
        key: link::PublicKey,
    ) -> Result<Arc<Agent>, ApiError> {
        let _deciding = self.0.deciding.lock().await;
        let moment = self.0.registry.moment();
        let known: Vec<AgentFacts> = self.all().iter().map(|agent| agent.facts().clone()).collect();
        let decision = rules::admit(&known, &request, proof, key, &moment, self.0.registry.policy())?;
        let mut row = decision.row;
        let is_decided = decision.displaced.is_none() && known.iter().any(|facts| facts.row == row);
        if !is_decided {
            row.id = self.0.store.write_tunnel_agent(&row, decision.displaced).await?;
        }
        if let Some(displaced) = decision.displaced {
            self.forget(displaced);
        }
        let mut agents = self.0.agents.write().unwrap_or_else(PoisonError::into_inner);
        let agent = agents.entry(row.id).or_insert_with(|| Agent::of(AgentFacts::new(row.clone(), moment.now)));
        agent.facts().row = row;
        Ok(Arc::clone(agent))
    }

    /// An administrator deletes an agent, which ends its link and revokes its key; false when there is no such agent.
    pub async fn delete(&self, id: TunnelAgentId) -> Result<bool, ApiError> {
        let _deciding = self.0.deciding.lock().await;
        if self.get(id).is_none() {
            return Ok(false);
        }
        self.0.store.delete_tunnel_agent(id).await?;
        self.forget(id);
        Ok(true)
    }

    fn forget(&self, id: TunnelAgentId) {
        self.0.agents.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        self.0.links.revoke_agent(id);
        self.note_news();
    }

    /// An agent's link stands.
    pub fn link_opened(&self, id: TunnelAgentId, link: &LinkHandle) {
        // it may have been deleted while its link was being made
        let Some(agent) = self.get(id) else { return link.revoke() };
        {
            let mut facts = agent.facts();
            if facts.row.link_key != link.worker_key() {
                drop(facts);
                return link.revoke();
            }
            facts.standing = AgentStanding::Connected { since: self.0.registry.clock().now() };
        }
        self.note_news();
        // it ends with the link
        tokio::spawn(listen::listen(link.clone(), agent, self.clone()));
    }

    /// An agent's link is no more.
    pub fn link_closed(&self, id: TunnelAgentId) {
        let Some(agent) = self.get(id) else { return };
        {
            let mut facts = agent.facts();
            // asked while the facts are held: a newer link that stands by now has told of itself, or is about to
            if self.0.links.agent(id).is_some() {
                return;
            }
            facts.standing = AgentStanding::Gone { since: self.0.registry.clock().now() };
        }
        self.note_news();
    }

    fn hear(&self, agent: &Agent, report: TunnelReport) {
        agent.facts().hear(report, self.0.registry.clock().now());
        self.note_news();
    }

    fn note_news(&self) {
        self.0.has_news.store(true, Ordering::Release);
    }

    fn get(&self, id: TunnelAgentId) -> Option<Arc<Agent>> {
        self.0.agents.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn all(&self) -> Vec<Arc<Agent>> {
        self.0.agents.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// All agents as they are now, by name.
    pub fn agents(&self) -> Vec<TunnelAgent> {
        let moment = self.0.registry.moment();
        let revoked = self.revoked();
        let mut agents: Vec<TunnelAgent> =
            self.all().iter().map(|agent| view(&agent.facts(), &moment, &revoked)).collect();
        agents.sort_by(|left, right| left.name.cmp(&right.name));
        agents
    }

    /// One agent as it is now.
    pub fn agent(&self, id: TunnelAgentId) -> Option<TunnelAgent> {
        let moment = self.0.registry.moment();
        self.get(id).map(|agent| view(&agent.facts(), &moment, &self.revoked()))
    }

    /// These keys are revoked.
    pub fn set_revoked(&self, revoked: RevokedKeys) {
        *self.0.revoked.write().unwrap_or_else(PoisonError::into_inner) = revoked;
    }

    fn revoked(&self) -> RevokedKeys {
        self.0.revoked.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The forwards that a worker depends on, of all agents; None when there is no such worker.
    pub fn of_worker(&self, id: WorkerId) -> Option<Vec<WorkerTunnel>> {
        let worker = self.0.registry.get(id)?.facts().row.name.clone();
        let (moment, revoked) = (self.0.registry.moment(), self.revoked());
        let mut tunnels = Vec::new();
        for agent in self.all() {
            let facts = agent.facts();
            let Some(told) = &facts.told else { continue };
            let revoked_ms = facts::marked(&told.report, &revoked).revoked_ms();
            let forwards = dependence::forwards_of(&worker, &told.report).into_iter();
            tunnels.extend(forwards.map(|forward| WorkerTunnel {
                agent_id: agent.id(),
                agent: facts.row.name.clone(),
                is_connected: facts.is_connected(),
                reported_ms: moment.wall_ms(told.at),
                forward: forward.clone(),
                revoked_ms,
            }));
        }
        Some(tunnels)
    }

    /// Writes what was told; all of it when the server ends, else that of agents whose turn it is.
    pub async fn flush(&self, is_end: bool) -> Result<(), sqlx::Error> {
        let moment = self.0.registry.moment();
        let agents = self.all();
        for some in agents.chunks(TUNNEL_REPORTS_A_STATEMENT) {
            let (mut rows, mut written) = (Vec::new(), Vec::new());
            for agent in some {
                if let Some(Unsaved { row, told }) = agent.facts().unsaved(&moment, is_end) {
                    rows.push(row);
                    written.push((agent, told));
                }
            }
            self.0.store.write_tunnel_reports(&rows).await?;
            for (agent, told) in written {
                agent.facts().note_saved(&told, moment.now);
            }
        }
        Ok(())
    }

    fn troubles(&self) -> HashMap<String, TunnelsFact> {
        let known: Vec<AgentFacts> = self.all().iter().map(|agent| agent.facts().clone()).collect();
        dependence::troubles(&known)
    }
}

/// Tells workers' facts which of their tunnels do not work, for ever.
pub async fn run(tunnels: Tunnels, job: Job) -> Infallible {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut troubles, mut told) = (HashMap::new(), HashSet::new());
    // after a panic of an earlier run nobody knows any more whom that one told
    tunnels.note_news();
    loop {
        tick.tick().await;
        if tunnels.0.has_news.swap(false, Ordering::AcqRel) {
            troubles = tunnels.troubles();
        }
        // workers join and are renamed while their tunnels stay as they are, so those in trouble are told each time
        told = tell(&tunnels.0.registry, &troubles, &told);
        job.succeeded();
    }
}

/// Tells the workers that are in trouble, and those that were. Gives the former.
fn tell(
    registry: &Registry,
    troubles: &HashMap<String, TunnelsFact>,
    told_before: &HashSet<WorkerId>,
) -> HashSet<WorkerId> {
    let mut told = HashSet::with_capacity(troubles.len());
    for (name, fact) in troubles {
        if let Some(worker) = registry.by_name(name) {
            worker.facts().tell_tunnels(fact.clone());
            told.insert(worker.id());
        }
    }
    for id in told_before.difference(&told) {
        if let Some(worker) = registry.get(*id) {
            worker.facts().tell_tunnels(TunnelsFact::default());
        }
    }
    told
}
