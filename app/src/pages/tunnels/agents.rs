//! The agents, and the certificates that they log in with.

use super::topology::place;
use crate::drawn::Asked;
use crate::format::{self, Span};
use crate::icon::Icon;
use crate::paths;
use crate::session::{UiError, authorised, not_found};
use crate::widgets::SeverityIcon;
use api::{CertificateReport, CertificateView, ConditionStatus, Severity, TunnelAgent, TunnelAgentId};
use leptos::prelude::*;
use leptos::server_fn::ServerFn;

/// Deletes an agent, and leads back to the page.
#[server(endpoint = "delete_tunnel_agent")]
pub async fn delete_tunnel_agent(
    /// Which.
    id: TunnelAgentId,
) -> Result<(), UiError> {
    let caller = authorised().await?;
    if !caller.backend.delete_tunnel_agent(id).await? {
        return Err(not_found());
    }
    leptos_axum::redirect(paths::TUNNELS);
    Ok(())
}

/// A card for each agent.
pub fn agents(agents: &[TunnelAgent], asked: &Asked) -> AnyView {
    view! {
        <section class="panel section">
            <h2>{asked.messages().tunnels.agents}</h2>
            <ul class="tunnel-agents">{agents.iter().map(|agent| card(agent, asked)).collect_view()}</ul>
        </section>
    }
    .into_any()
}

fn time(time_ms: i64, asked: &Asked) -> String {
    format::short_time(time_ms, asked.now_ms, asked.zone)
}

fn card(agent: &TunnelAgent, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    let connection = match (agent.is_connected, agent.since_ms) {
        (true, since_ms) => (words.connected_since)(&since_ms.map(|ms| time(ms, asked)).unwrap_or_default()),
        (false, Some(since_ms)) => (words.gone_since)(&time(since_ms, asked)),
        (false, None) => words.not_come.to_owned(),
    };
    let (tag, icon) = if agent.is_connected { ("ready", Icon::Ready) } else { ("not_ready", Icon::NotReady) };
    let told = agent.reported_ms.map_or_else(|| words.told_nothing.to_owned(), |ms| (words.told_at)(&time(ms, asked)));
    let gone = (!agent.is_connected).then(|| {
        view! {
            <p class="next-step">{words.gone_hint}</p>
            {delete_form(agent, asked)}
        }
        .into_any()
    });
    let refused = agent.report.refused_config.clone().map(|why| {
        view! {
            <div class="note warning"><p>{words.refused_config}</p><pre class="refused-config">{why}</pre></div>
        }
        .into_any()
    });
    view! {
        <li data-key=agent.id.to_string()>
            <p class="tunnel-agent-head">
                <strong class="mono">{agent.name.clone()}</strong>
                <span class="state" data-state=tag>{icon.view()}<span>{connection}</span></span>
            </p>
            <p class="muted">
                {place(&agent.report.place, asked)} " · " {agent.hostname.clone()} " · gpustack " {agent.version.clone()} " · " {told}
            </p>
            {refused}
            {gone}
        </li>
    }
    .into_any()
}

/// A plain form, which works without JavaScript as well as with it.
fn delete_form(agent: &TunnelAgent, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    view! {
        <details class="commands">
            <summary><span class="unfold">{words.delete}</span></summary>
            <form class="tunnel-delete" method="post" action=DeleteTunnelAgent::PATH>
                <input type="hidden" name="id" value=agent.id.to_string()/>
                <span class="muted">{words.delete_hint}</span>
                <button class="button danger">{words.delete} " " {agent.name.clone()}</button>
            </form>
        </details>
    }
    .into_any()
}

/// All certificates of all agents; nothing when there is none.
pub fn certificates(agents: &[TunnelAgent], asked: &Asked) -> Option<AnyView> {
    let words = &asked.messages().tunnels;
    let all = || agents.iter().flat_map(|agent| agent.report.certificates.iter().map(move |told| (agent, told)));
    all().next()?;
    let rows = all().map(|(agent, told)| certificate(agent, told, asked)).collect_view();
    Some(
        view! {
            <section class="panel section">
                <h2>{words.certificates}</h2>
                <div class="table-scroll">
                    <table class="devices-table certificates-table" aria-label=words.certificates>
                        <thead><tr>
                            <th scope="col">{words.certificate_of}</th>
                            <th scope="col">{words.certificate_for}</th>
                            <th scope="col">{words.certificate_valid}</th>
                        </tr></thead>
                        <tbody>{rows}</tbody>
                    </table>
                </div>
            </section>
        }
        .into_any(),
    )
}

fn certificate(agent: &TunnelAgent, told: &CertificateReport, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    let (severity, validity) = told
        .certificate
        .as_ref()
        .map_or_else(|| (Severity::Ok, words.no_certificate.to_owned()), |certificate| validity(certificate, asked));
    let status = if told.certificate.is_none() { ConditionStatus::Unknown } else { ConditionStatus::True };
    let whom = told.certificate.as_ref().map(|certificate| {
        let what = format!("{} · #{}", certificate.key_id, certificate.serial);
        view! { <span>{certificate.principals.join(", ")}</span> <small class="muted">{what}</small> }.into_any()
    });
    view! {
        <tr data-key=format!("{} {}", agent.id, told.key_file)>
            <th scope="row">
                <span class="mono">{told.key_file.clone()}</span>
                <small class="muted">{words.agent} " " <span class="mono">{agent.name.clone()}</span></small>
            </th>
            <td>{whom}</td>
            <td><SeverityIcon severity status/> " " {validity}</td>
        </tr>
    }
    .into_any()
}

/// How much longer a certificate is good, by the server's clock: the agent's may be wrong.
fn validity(certificate: &CertificateView, asked: &Asked) -> (Severity, String) {
    let (words, now_ms) = (&asked.messages().tunnels, asked.now_ms);
    if certificate.valid_after_ms > now_ms {
        return (Severity::Warning, (words.not_yet_valid)(&time(certificate.valid_after_ms, asked)));
    }
    let Some(end_ms) = certificate.valid_before_ms else { return (Severity::Ok, words.valid_for_ever.to_owned()) };
    let (until, left) = (time(end_ms, asked), (asked.messages().words.span)(Span::between(now_ms, end_ms)));
    match severity_of(certificate.valid_after_ms, end_ms, now_ms) {
        Severity::Error => (Severity::Error, (words.expired)(&until)),
        Severity::Warning => (Severity::Warning, (words.expires_soon)(&until, &left)),
        Severity::Ok => (Severity::Ok, (words.valid_until)(&until, &left)),
    }
}

/// Worth a warning when less than a third of a certificate's life is left, an error when nothing is.
fn severity_of(begin_ms: i64, end_ms: i64, now_ms: i64) -> Severity {
    if end_ms <= now_ms {
        return Severity::Error;
    }
    let is_late = end_ms.saturating_sub(now_ms) < end_ms.saturating_sub(begin_ms) / 3;
    if is_late { Severity::Warning } else { Severity::Ok }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_warned_of_in_the_last_third_of_its_life() {
        let table = [
            (0, Severity::Ok),
            (600, Severity::Ok),
            (601, Severity::Warning),
            (899, Severity::Warning),
            (900, Severity::Error),
            (2_000, Severity::Error),
        ];
        for (now_ms, expected) in table {
            assert_eq!(severity_of(0, 900, now_ms), expected, "{now_ms}");
        }
    }
}
