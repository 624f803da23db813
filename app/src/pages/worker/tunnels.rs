//! The tunnels that a worker depends on.

use crate::drawn::Asked;
use crate::pages::tunnels::agents::revoked_note;
use crate::pages::tunnels::state::{Seen, since, why};
use crate::paths;
use api::{WorkerTunnel, WorkerView};
use leptos::prelude::*;

/// A card with each tunnel that the worker depends on; nothing when there is none.
pub fn tunnels(worker: &WorkerView, tunnels: &[WorkerTunnel], asked: &Asked) -> Option<AnyView> {
    if tunnels.is_empty() {
        return None;
    }
    let words = &asked.messages().tunnels;
    let all = format!("{}?worker={}", paths::TUNNELS, paths::escape_query(&worker.name));
    Some(
        view! {
            <section class="panel section conditions">
                <div class="section-head"><h2>{words.of_worker}</h2><a href=all>{words.all_of_worker}</a></div>
                <ul class="worker-tunnels">{tunnels.iter().map(|tunnel| row(tunnel, asked)).collect_view()}</ul>
            </section>
        }
        .into_any(),
    )
}

fn row(tunnel: &WorkerTunnel, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    let WorkerTunnel { agent_id, agent, is_connected, reported_ms, forward, revoked_ms } = tunnel;
    let seen = Seen { state: forward.state, is_current: *is_connected };
    view! {
        <li class="worker-tunnel" data-key=format!("{agent_id} {}", forward.id)>
            <div>
                <span class="mono">{forward.id.clone()}</span> " "
                <small class="muted">{(words.role)(forward.role)} " · " {words.agent} " " <span class="mono">{agent.clone()}</span></small>
            </div>
            <div>
                <p>{seen.badge(asked)} " " {since(forward, Some(*reported_ms), asked)}</p>
                {why(forward, asked)}
                {revoked_note(*revoked_ms, asked)}
            </div>
        </li>
    }
    .into_any()
}
