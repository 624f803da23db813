//! Who is led to whom: the server, the agents, and behind each its workers, with the state of what is between them.

use super::agents::revoked_note;
use super::query::TunnelQuery;
use super::state::{Seen, badness};
use crate::drawn::Asked;
use crate::icon::Icon;
use api::{AgentPlace, ForwardReport, ForwardRole, ForwardState, TunnelAgent};
use leptos::prelude::*;
use std::collections::BTreeMap;

/// A drawing that is a list to whoever cannot see it, and on a phone.
pub fn topology(agents: &[TunnelAgent], asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    view! {
        <section class="panel section">
            <h2>{words.topology}</h2>
            <div class="topology">
                <p class="node node-server">{Icon::Workers.view()}<strong>{words.server}</strong></p>
                <ul class="topology-agents">{agents.iter().map(|agent| branch(agent, asked)).collect_view()}</ul>
            </div>
        </section>
    }
    .into_any()
}

fn branch(agent: &TunnelAgent, asked: &Asked) -> AnyView {
    let ends = ends(agent);
    view! {
        <li class="topology-agent" data-key=agent.name.clone()>
            {trunk(agent, asked)}
            <p class="node">
                <strong class="mono">{agent.name.clone()}</strong>
                <small class="muted">{place(&agent.report.place, asked)} " · " {agent.hostname.clone()}</small>
            </p>
            {revoked_note(agent.report.revoked_ms(), asked)}
            <ul class="topology-ends">{ends.iter().map(|end| leaf(end, agent, asked)).collect_view()}</ul>
        </li>
    }
    .into_any()
}

/// Where an agent runs.
pub fn place(place: &AgentPlace, asked: &Asked) -> String {
    let words = &asked.messages().tunnels;
    match place {
        AgentPlace::Bastion => words.bastion.to_owned(),
        AgentPlace::Server => words.on_server.to_owned(),
        AgentPlace::Worker { worker } => (words.on_worker)(worker),
    }
}

/// What is between the server and an agent: its own link, and the forwards that bring the server's port to the agent.
fn trunk(agent: &TunnelAgent, asked: &Asked) -> AnyView {
    if !agent.is_connected {
        let word = asked.messages().tunnels.not_connected;
        let badge =
            view! { <span class="state" data-state="not_ready">{Icon::Unreachable.view()}<span>{word}</span></span> };
        return view! { <p class="edge" data-state="not_ready">{badge}</p> }.into_any();
    }
    let forwards = agent.report.forwards.iter().filter(|forward| forward.role == ForwardRole::ServerHere);
    let states = forwards.map(|forward| forward.state).chain(std::iter::once(ForwardState::Up));
    let seen = Seen::worst(states.map(|state| Seen { state, is_current: true }));
    seen.map(|seen| view! { <p class="edge" data-state=seen.tag()>{seen.badge(asked)}</p> }.into_any()).into_any()
}

/// What a branch of forwards ends at.
#[derive(Debug, PartialEq, Eq)]
struct End {
    /// A worker's name; a forward's id when it leads to none.
    name: String,
    is_worker: bool,
    state: ForwardState,
}

/// Worst first. What leads to the agent itself is in its trunk already.
fn ends(agent: &TunnelAgent) -> Vec<End> {
    let mut workers: BTreeMap<&str, ForwardState> = BTreeMap::new();
    let worse =
        |before: ForwardState, after: ForwardState| if badness(after) > badness(before) { after } else { before };
    let is_trunk = |forward: &&ForwardReport| forward.role == ForwardRole::ServerHere;
    for forward in agent.report.forwards.iter().filter(|forward| !is_trunk(forward)) {
        for worker in &forward.workers {
            let state = workers.entry(worker).or_insert(forward.state);
            *state = worse(*state, forward.state);
        }
    }
    let own = workers.into_iter().map(|(name, state)| End { name: name.to_owned(), is_worker: true, state });
    let others = agent.report.forwards.iter().filter(|forward| !is_trunk(forward) && forward.workers.is_empty());
    let others = others.map(|forward| End { name: forward.id.clone(), is_worker: false, state: forward.state });
    let mut ends: Vec<End> = own.chain(others).collect();
    ends.sort_by_key(|end| std::cmp::Reverse(badness(end.state)));
    ends
}

fn leaf(end: &End, agent: &TunnelAgent, asked: &Asked) -> AnyView {
    let seen = Seen { state: end.state, is_current: agent.is_connected };
    let query = TunnelQuery {
        agent: (!end.is_worker).then(|| agent.name.clone()),
        worker: end.is_worker.then(|| end.name.clone()),
        ..TunnelQuery::default()
    };
    let address = format!("{}#forwards", query.address());
    // A word for each of sixty that are well would hide the one that is not.
    let is_well = seen.state == ForwardState::Up && seen.is_current;
    let class = if is_well { "visually-hidden" } else { "topology-word" };
    view! {
        <li data-state=seen.tag() data-key=end.name.clone()>
            <a class="node" href=address>
                <span class="state" data-state=seen.tag()>{seen.icon().view()}</span>
                <span class="mono">{end.name.clone()}</span>
                <small class=class>{seen.word(asked)}</small>
            </a>
        </li>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::super::query::tests::agent;
    use super::*;

    #[test]
    fn a_worker_is_as_well_as_the_worst_forward_to_it_and_the_worst_come_first() {
        let second =
            ForwardReport { workers: vec!["npu-2".to_owned()], ..ForwardReport::example("second", ForwardState::Down) };
        let other = ForwardReport {
            workers: Vec::new(),
            role: ForwardRole::Other,
            ..ForwardReport::example("other", ForwardState::Up)
        };
        let trunk =
            ForwardReport { role: ForwardRole::ServerHere, ..ForwardReport::example("server", ForwardState::Degraded) };
        let agent = agent(
            "a",
            vec![
                trunk,
                ForwardReport::example("x", ForwardState::Up),
                ForwardReport::example("y", ForwardState::Degraded),
                second,
                other,
            ],
        );
        let found: Vec<_> = ends(&agent).into_iter().map(|end| (end.name, end.state)).collect();
        let expected = [
            ("npu-2".to_owned(), ForwardState::Down),
            ("npu-1".to_owned(), ForwardState::Degraded),
            ("other".to_owned(), ForwardState::Up),
        ];
        assert_eq!(found, expected);
    }
}
