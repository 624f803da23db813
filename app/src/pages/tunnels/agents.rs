//! The agents, and the certificates that they log in with.

use super::topology::place;
use crate::drawn::Asked;
use crate::format::{self, Span};
use crate::i18n::tunnels::refused_config;
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
    let refused = refused_config(&agent.report, asked.language()).map(str::to_owned).map(|why| {
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
    let standing = standing(told, asked.now_ms);
    let (severity, validity) = validity(&standing, asked);
    let status = if standing == Standing::Absent { ConditionStatus::Unknown } else { ConditionStatus::True };
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

/// How a key's certificate stands.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// Taken back since then, whatever it says itself.
    Revoked(i64),
    /// There is none that can be read.
    Absent,
    /// Not good before then.
    NotYet(i64),
    /// Good without an end.
    ForEver,
    /// Good until then, or not any more.
    Until(i64, Severity),
}

/// By the server's clock: the agent's may be wrong.
fn standing(told: &CertificateReport, now_ms: i64) -> Standing {
    if let Some(revoked_ms) = told.revoked_ms {
        return Standing::Revoked(revoked_ms);
    }
    let Some(CertificateView { valid_after_ms, valid_before_ms, .. }) = told.certificate else {
        return Standing::Absent;
    };
    match valid_before_ms {
        _ if valid_after_ms > now_ms => Standing::NotYet(valid_after_ms),
        None => Standing::ForEver,
        Some(end_ms) => Standing::Until(end_ms, severity_of(valid_after_ms, end_ms, now_ms)),
    }
}

/// Says of an agent that it logs in with a revoked certificate; nothing when it does not.
pub fn revoked_note(revoked_ms: Option<i64>, asked: &Asked) -> Option<AnyView> {
    let text = (asked.messages().tunnels.agent_revoked)(&time(revoked_ms?, asked));
    let status = ConditionStatus::True;
    Some(view! { <p class="next-step"><SeverityIcon severity=Severity::Error status/> " " {text}</p> }.into_any())
}

/// How a certificate stands, in words.
fn validity(standing: &Standing, asked: &Asked) -> (Severity, String) {
    let words = &asked.messages().tunnels;
    let until =
        |end_ms: &i64| (time(*end_ms, asked), (asked.messages().words.span)(Span::between(asked.now_ms, *end_ms)));
    match standing {
        Standing::Revoked(since_ms) => (Severity::Error, (words.revoked)(&time(*since_ms, asked))),
        Standing::Absent => (Severity::Ok, words.no_certificate.to_owned()),
        Standing::NotYet(begin_ms) => (Severity::Warning, (words.not_yet_valid)(&time(*begin_ms, asked))),
        Standing::ForEver => (Severity::Ok, words.valid_for_ever.to_owned()),
        Standing::Until(end_ms, Severity::Error) => (Severity::Error, (words.expired)(&time(*end_ms, asked))),
        Standing::Until(end_ms, Severity::Warning) => {
            let (end, left) = until(end_ms);
            (Severity::Warning, (words.expires_soon)(&end, &left))
        }
        Standing::Until(end_ms, Severity::Ok) => {
            let (end, left) = until(end_ms);
            (Severity::Ok, (words.valid_until)(&end, &left))
        }
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
    fn a_certificate_that_was_revoked_is_not_said_to_be_good_or_to_expire() {
        let valid = CertificateView {
            key_id: "a".to_owned(),
            serial: 1,
            principals: Vec::new(),
            authority: String::new(),
            valid_after_ms: 0,
            valid_before_ms: Some(900),
        };
        let told = |revoked_ms| CertificateReport {
            key_file: "/k".to_owned(),
            public_key: String::new(),
            certificate: Some(valid.clone()),
            revoked_ms,
        };
        for now_ms in [10, 700, 1_000] {
            assert_eq!(standing(&told(Some(5)), now_ms), Standing::Revoked(5));
        }
        assert_eq!(standing(&told(None), 700), Standing::Until(900, Severity::Warning));
        assert_eq!(standing(&CertificateReport { certificate: None, ..told(Some(5)) }, 700), Standing::Revoked(5));
    }

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
