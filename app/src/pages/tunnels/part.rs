//! The page from above: topology, forwards, agents with their certificates.

use super::query::TunnelQuery;
use super::{agents, forwards, topology};
use crate::drawn::Asked;
use crate::icon::Icon;
use crate::paths;
use crate::session::UiError;
use api::TunnelAgent;
use leptos::prelude::*;

/// All tunnels, as the address asks for them.
pub async fn draw(asked: &Asked) -> Result<String, UiError> {
    let agents = asked.backend.tunnel_agents().await;
    let query = TunnelQuery::read(|key| asked.value(key));
    Ok(asked.render(|| page(&agents, &query, asked)))
}

fn page(agents: &[TunnelAgent], query: &TunnelQuery, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    if agents.is_empty() {
        return empty(asked);
    }
    view! {
        <div class="tunnels-page">
            <h1 class="visually-hidden">{asked.messages().frame.tunnels}</h1>
            <p class="muted">{words.lead}</p>
            {topology::topology(agents, asked)}
            {forwards::forwards(agents, query, asked)}
            {agents::agents(agents, asked)}
            {agents::certificates(agents, asked)}
        </div>
    }
    .into_any()
}

fn empty(asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    let commands = "gpustack tunnel plan --config tunnels.yaml\ngpustack tunnel trust --config tunnels.yaml\ngpustack tunnel run --config tunnels.yaml";
    let add = format!("{}?network=tunnels", paths::ADD_WORKER);
    view! {
        <section class="empty panel">
            <span class="empty-icon">{Icon::Probe.view()}</span>
            <h1>{words.empty_title}</h1>
            <p class="muted">{words.empty_text}</p>
            <p class="muted">{words.empty_commands}</p>
            <div class="commands-body"><pre><code>{commands}</code></pre></div>
            <a class="button primary" href=add>{words.empty_add}</a>
        </section>
    }
    .into_any()
}
