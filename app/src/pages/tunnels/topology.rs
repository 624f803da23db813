//! Who is led to whom: the server, the agents, and behind each its workers, with the state of what is between them.

use super::agents::revoked_note;
use super::query::TunnelQuery;
use super::state::{Seen, badness};
use crate::drawn::Asked;
use crate::icon::Icon;
use api::{AgentPlace, ForwardReport, ForwardRole, ForwardState, TunnelAgent};
use leptos::prelude::*;
use std::collections::BTreeMap;

/// Of what is behind one agent so much is drawn at first: more fills the window, and hides the agent below it.
const DRAWN_ENDS: usize = 24;

/// A drawing that is a list to whoever cannot see it, and on a phone. Agents with trouble come first.
pub fn topology(agents: &[TunnelAgent], asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    let agents = worst_first(agents);
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

fn worst_first(agents: &[TunnelAgent]) -> Vec<&TunnelAgent> {
    let badness_of = |agent: &TunnelAgent| {
        let worst = agent.report.forwards.iter().map(|forward| badness(forward.state)).max();
        (!agent.is_connected, worst)
    };
    let mut agents: Vec<&TunnelAgent> = agents.iter().collect();
    agents.sort_by_key(|agent| std::cmp::Reverse(badness_of(agent)));
    agents
}

fn branch(agent: &TunnelAgent, asked: &Asked) -> AnyView {
    let ends = ends(agent);
    let leaves = |ends: &[End]| ends.iter().map(|end| leaf(end, agent, asked)).collect_view();
    let (drawn, more) = ends.split_at_checked(DRAWN_ENDS).unwrap_or((&ends, &[]));
    let more = (!more.is_empty()).then(|| {
        let troubled = more.iter().filter(|end| end.seen(agent).is_trouble()).count();
        let summary = (asked.messages().tunnels.more_ends)(more.len(), troubled);
        view! {
            <details class="topology-more">
                <summary>{summary}</summary>
                <ul class="topology-ends">{leaves(more)}</ul>
            </details>
        }
        .into_any()
    });
    view! {
        <li class="topology-agent" data-key=agent.name.clone()>
            {trunk(agent, asked)}
            <div>
                <p class="node">
                    <strong class="mono">{agent.name.clone()}</strong>
                    <small class="muted">{place(&agent.report.place, asked)} " · " {agent.hostname.clone()}</small>
                </p>
                {revoked_note(agent.report.revoked_ms(), asked)}
            </div>
            <div class="topology-behind"><ul class="topology-ends">{leaves(drawn)}</ul>{more}</div>
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

impl End {
    fn seen(&self, agent: &TunnelAgent) -> Seen {
        Seen { state: self.state, is_current: agent.is_connected }
    }
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
    let seen = end.seen(agent);
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
    fn agents_that_somebody_should_look_at_come_first() {
        let mut gone = agent("gone", Vec::new());
        gone.is_connected = false;
        let up = agent("up", vec![ForwardReport::example("a", ForwardState::Up)]);
        let states = [ForwardState::Up, ForwardState::Down].map(|state| ForwardReport::example("b", state));
        let agents = [agent("empty", Vec::new()), up, agent("down", states.into()), gone];
        let names: Vec<_> = worst_first(&agents).into_iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["gone", "down", "up", "empty"]);
    }

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
