//! Which tunnels a worker depends on, and which of them do not work. Pure.

use super::facts::AgentFacts;
use crate::server::registry::facts::{TunnelTrouble, TunnelsFact};
use crate::server::registry::time::Monotonic;
use api::{FaultCause, ForwardDirection, ForwardReport, ForwardRole, ForwardState, TunnelReport};
use std::collections::HashMap;
use std::time::Duration;

/// Forwards through forwards, one after the other; longer chains are a mistake.
const CHAIN_MAX: usize = 8;

/// More than any rank of a trouble.
const OTHER_RANK: u8 = 10;

/// The forwards of one report, and how they hang together.
struct Graph<'a> {
    forwards: &'a [ForwardReport],
    by_id: HashMap<&'a str, usize>,
    /// Those that listen on the agent's own host.
    by_listener: HashMap<&'a str, usize>,
}

impl<'a> Graph<'a> {
    fn of(report: &'a TunnelReport) -> Self {
        let forwards = &report.forwards;
        let places = || forwards.iter().enumerate();
        let local = places().filter(|(_, forward)| forward.direction == ForwardDirection::Local);
        Self {
            forwards,
            by_id: places().map(|(place, forward)| (forward.id.as_str(), place)).collect(),
            by_listener: local.map(|(place, forward)| (forward.listen.as_str(), place)).collect(),
        }
    }

    /// The forward that this one's connections go through: the one that its agent names, or the one that listens at its
    /// target, which a remote forward reaches from the agent's host.
    fn behind(&self, forward: &ForwardReport) -> Option<usize> {
        let named = match forward.fault.as_ref().map(|fault| &fault.cause) {
            Some(FaultCause::DependsOn { forward }) => self.by_id.get(forward.as_str()),
            _ => None,
        };
        let listening = || match forward.direction {
            ForwardDirection::Remote => self.by_listener.get(forward.target.as_str()),
            ForwardDirection::Local => None,
        };
        named.or_else(listening).copied()
    }

    /// The forward, and those that it goes through.
    fn chain(&self, from: usize) -> Vec<usize> {
        let mut chain = vec![from];
        while let Some(next) = chain.last().and_then(|last| self.behind(self.forwards.get(*last)?))
            && !chain.contains(&next)
            && chain.len() < CHAIN_MAX
        {
            chain.push(next);
        }
        chain
    }
}

/// The forwards that a worker depends on: those that name it, and those that they go through. In the report's order.
pub fn forwards_of<'a>(worker: &str, report: &'a TunnelReport) -> Vec<&'a ForwardReport> {
    let graph = Graph::of(report);
    let own =
        report.forwards.iter().enumerate().filter(|(_, forward)| forward.workers.iter().any(|name| name == worker));
    let mut places: Vec<usize> = own.flat_map(|(place, _)| graph.chain(place)).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().filter_map(|place| report.forwards.get(place)).collect()
}

/// What is wrong with the tunnels of each worker that has such, by the worker's name.
pub fn troubles<'a>(agents: impl IntoIterator<Item = &'a AgentFacts>) -> HashMap<String, TunnelsFact> {
    let mut found: HashMap<String, Found> = HashMap::new();
    for agent in agents {
        let Some(told) = &agent.told else { continue };
        let graph = Graph::of(&told.report);
        for (place, forward) in told.report.forwards.iter().enumerate() {
            let Some(trouble) = trouble_of(agent, &graph, place, told.at) else { continue };
            for worker in &forward.workers {
                found.entry(worker.clone()).or_default().note(forward.role, &trouble);
            }
        }
    }
    found.into_iter().map(|(worker, found)| (worker, found.fact())).collect()
}

/// A trouble, and how much it explains.
#[derive(Clone)]
struct Ranked {
    /// The lower, the better it explains that a worker is not heard.
    rank: u8,
    trouble: TunnelTrouble,
}

#[derive(Default)]
struct Found {
    to_server: Option<Ranked>,
    to_worker: Option<Ranked>,
}

impl Found {
    fn note(&mut self, role: ForwardRole, new: &Ranked) {
        // that something else is forwarded for a worker explains less than that its server's port is not
        let new = Ranked { rank: new.rank + if role == ForwardRole::Other { OTHER_RANK } else { 0 }, ..new.clone() };
        let place = match role {
            ForwardRole::ServerHere | ForwardRole::ServerAtWorker | ForwardRole::Other => &mut self.to_server,
            ForwardRole::WorkerHere | ForwardRole::WorkerAtServer => &mut self.to_worker,
        };
        let key = |ranked: &Ranked| (ranked.rank, ranked.trouble.since);
        if place.as_ref().is_none_or(|known| key(&new) < key(known)) {
            *place = Some(new);
        }
    }

    fn fact(self) -> TunnelsFact {
        let trouble = |ranked: Option<Ranked>| ranked.map(|ranked| ranked.trouble);
        TunnelsFact { to_server: trouble(self.to_server), to_worker: trouble(self.to_worker) }
    }
}

/// The farthest forward on the way that does not work: what is before it cannot. Where all worked when they were told of
/// last, that their agent is gone.
fn trouble_of(agent: &AgentFacts, graph: &Graph<'_>, place: usize, told: Monotonic) -> Option<Ranked> {
    let chain = graph.chain(place);
    let mut way = chain.iter().rev().filter_map(|place| graph.forwards.get(*place));
    let broken = way.find_map(|forward| match forward.state {
        ForwardState::Down => Some((0, forward)),
        ForwardState::Degraded => Some((1, forward)),
        ForwardState::Starting | ForwardState::Up | ForwardState::Unproved => None,
    });
    let name = || agent.row.name.clone();
    if let Some((rank, forward)) = broken {
        let since = told.minus(Duration::from_millis(forward.state_age_ms));
        return Some(Ranked {
            rank,
            trouble: TunnelTrouble { agent: name(), forward: Some(forward.id.clone()), since },
        });
    }
    let since = agent.gone_since()?;
    Some(Ranked { rank: 2, trouble: TunnelTrouble { agent: name(), forward: None, since } })
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{at, row};
    use super::super::facts::{AgentStanding, Told};
    use super::*;
    use api::TunnelFault;
    use std::sync::Arc;

    /// Brings the server's port to the agent's host, where the one for `npu-1` begins.
    fn first(state: ForwardState) -> ForwardReport {
        ForwardReport {
            role: ForwardRole::ServerHere,
            direction: ForwardDirection::Local,
            workers: Vec::new(),
            listen: "127.0.0.1:18090".to_owned(),
            target: "127.0.0.1:8090".to_owned(),
            ..ForwardReport::example("server", state)
        }
    }

    fn second(state: ForwardState) -> ForwardReport {
        ForwardReport { target: "127.0.0.1:18090".to_owned(), ..ForwardReport::example("npu-1.server", state) }
    }

    fn agent(standing: AgentStanding, forwards: Vec<ForwardReport>) -> AgentFacts {
        let mut facts = AgentFacts::new(row("bastion-01"), at(0));
        facts.standing = standing;
        let report = Arc::new(TunnelReport { forwards, ..TunnelReport::default() });
        facts.told = Some(Told { report, at: at(100) });
        facts
    }

    fn connected(forwards: Vec<ForwardReport>) -> AgentFacts {
        agent(AgentStanding::Connected { since: at(1) }, forwards)
    }

    fn trouble(forward: Option<&str>, since: i64) -> TunnelTrouble {
        TunnelTrouble { agent: "bastion-01".to_owned(), forward: forward.map(str::to_owned), since: at(since) }
    }

    fn to_server(agents: &[AgentFacts], worker: &str) -> Option<TunnelTrouble> {
        troubles(agents).remove(worker)?.to_server
    }

    #[test]
    fn a_worker_depends_on_what_names_it_and_on_what_that_goes_through() {
        let other = ForwardReport {
            workers: vec!["npu-2".to_owned()],
            ..ForwardReport::example("npu-2.server", ForwardState::Up)
        };
        let report = TunnelReport {
            forwards: vec![first(ForwardState::Up), second(ForwardState::Up), other],
            ..TunnelReport::default()
        };
        let ids =
            |worker| forwards_of(worker, &report).into_iter().map(|forward| forward.id.as_str()).collect::<Vec<_>>();
        assert_eq!(ids("npu-1"), ["server", "npu-1.server"]);
        assert_eq!(ids("npu-2"), ["npu-2.server"]);
        assert!(ids("npu-3").is_empty());
    }

    #[test]
    fn the_farthest_forward_that_does_not_work_is_the_cause() {
        use ForwardState::{Degraded, Down, Starting, Unproved, Up};
        let table = [
            (Up, Up, None),
            (Starting, Unproved, None),
            (Up, Down, Some("npu-1.server")),
            (Up, Degraded, Some("npu-1.server")),
            (Down, Up, Some("server")),
            (Down, Down, Some("server")),
            (Degraded, Down, Some("server")),
        ];
        for (near_server, near_worker, cause) in table {
            let agents = [connected(vec![first(near_server), second(near_worker)])];
            let expected = cause.map(|id| trouble(Some(id), 90));
            assert_eq!(to_server(&agents, "npu-1"), expected, "{near_server:?} {near_worker:?}");
        }
    }

    #[test]
    fn a_forward_that_names_the_one_it_depends_on_goes_through_that() {
        let mut dependent = ForwardReport::example("npu-1.server", ForwardState::Down);
        let cause = FaultCause::DependsOn { forward: "server".to_owned() };
        dependent.fault = Some(TunnelFault { hop: None, cause });
        let agents = [connected(vec![first(ForwardState::Down), dependent])];
        assert_eq!(to_server(&agents, "npu-1"), Some(trouble(Some("server"), 90)));
    }

    #[test]
    fn a_gone_agent_explains_only_what_nothing_that_it_told_does() {
        let gone = AgentStanding::Gone { since: at(120) };
        let up = agent(gone, vec![second(ForwardState::Up)]);
        assert_eq!(to_server(&[up], "npu-1"), Some(trouble(None, 120)));
        let down = agent(gone, vec![second(ForwardState::Down)]);
        assert_eq!(to_server(&[down], "npu-1"), Some(trouble(Some("npu-1.server"), 90)));
    }

    #[test]
    fn of_several_the_one_that_is_down_and_was_first_is_named() {
        let older = ForwardReport { state_age_ms: 50_000, ..ForwardReport::example("older", ForwardState::Degraded) };
        let late = ForwardReport::example("late", ForwardState::Down);
        let early = ForwardReport { state_age_ms: 20_000, ..ForwardReport::example("early", ForwardState::Down) };
        let agents = [connected(vec![older, late, early])];
        assert_eq!(to_server(&agents, "npu-1"), Some(trouble(Some("early"), 80)));
    }

    #[test]
    fn what_is_forwarded_besides_explains_less_than_the_way_to_the_server() {
        let other = ForwardReport { role: ForwardRole::Other, ..ForwardReport::example("metrics", ForwardState::Down) };
        let alone = connected(vec![other.clone()]);
        assert_eq!(to_server(&[alone], "npu-1").and_then(|trouble| trouble.forward).as_deref(), Some("metrics"));
        let both = connected(vec![other, ForwardReport::example("npu-1.server", ForwardState::Degraded)]);
        assert_eq!(to_server(&[both], "npu-1").and_then(|trouble| trouble.forward).as_deref(), Some("npu-1.server"));
    }

    #[test]
    fn the_way_for_health_checks_is_told_apart() {
        let back =
            ForwardReport { role: ForwardRole::WorkerAtServer, ..ForwardReport::example("back", ForwardState::Down) };
        let found = troubles(&[connected(vec![back])]).remove("npu-1").unwrap();
        assert_eq!(found, TunnelsFact { to_server: None, to_worker: Some(trouble(Some("back"), 90)) });
    }

    #[test]
    fn forwards_that_go_round_in_a_circle_are_walked_once() {
        let circle = |id: &str, on: &str| {
            let fault = TunnelFault { hop: None, cause: FaultCause::DependsOn { forward: on.to_owned() } };
            ForwardReport { fault: Some(fault), ..ForwardReport::example(id, ForwardState::Up) }
        };
        let report = TunnelReport { forwards: vec![circle("a", "b"), circle("b", "a")], ..TunnelReport::default() };
        assert_eq!(forwards_of("npu-1", &report).len(), 2);
    }
}
