//! What changed about a worker, newest first.

use crate::drawn::Asked;
use crate::format::{self, Span};
use crate::i18n::{ReasonContext, reason_text};
use crate::icon::Icon;
use crate::widgets::state::state_icon;
use api::{Reason, Severity, WorkerEvent, WorkerEventKind};
use leptos::prelude::*;

/// What changed about a worker, newest first.
pub fn events(events: &[WorkerEvent], asked: &Asked) -> AnyView {
    let words = &asked.messages().worker_facts;
    let none = events.is_empty().then(|| view! { <p class="muted">{words.no_events}</p> }.into_any());
    view! {
        <section class="panel section events">
            <h2>{words.events}</h2>
            {none}
            <ul>{events.iter().map(|event| row(event, asked)).collect_view()}</ul>
        </section>
    }
    .into_any()
}

fn row(event: &WorkerEvent, asked: &Asked) -> AnyView {
    let at_ms = event.at_ms;
    let (class, icon) = sign(&event.change);
    let text = sentence(event, asked);
    let key = format!("{at_ms} {text}");
    view! {
        <li class="event" data-key=key>
            <time datetime=format::machine_time(at_ms) title=format::full_time(at_ms, asked.zone)>
                {format::short_time(at_ms, asked.now_ms, asked.zone)}
            </time>
            <span class=class>{icon.view()}</span>
            <span>{text}</span>
        </li>
    }
    .into_any()
}

fn sign(change: &WorkerEventKind) -> (&'static str, Icon) {
    match change {
        WorkerEventKind::Joined {} => ("severity ok", Icon::Add),
        WorkerEventKind::Replaced { .. } => ("severity unknown", Icon::User),
        WorkerEventKind::StateChanged { to, .. } => (state_class(*to), state_icon(*to)),
        WorkerEventKind::ConditionChanged { severity: Severity::Ok, .. } => ("severity ok", Icon::Check),
        WorkerEventKind::ConditionChanged { severity: Severity::Warning, .. } => ("severity warning", Icon::Warning),
        WorkerEventKind::ConditionChanged { severity: Severity::Error, .. } => ("severity error", Icon::Cross),
        WorkerEventKind::AddressChanged { .. } => ("severity unknown", Icon::Probe),
        WorkerEventKind::ServerGap { .. } => ("severity unknown", Icon::Clock),
    }
}

const fn state_class(state: api::WorkerState) -> &'static str {
    match state {
        api::WorkerState::Ready => "severity ok",
        api::WorkerState::NotReady => "severity error",
        api::WorkerState::Unreachable => "severity warning",
        api::WorkerState::Maintenance | api::WorkerState::Pending => "severity unknown",
    }
}

/// What happened, in the reader's language.
fn sentence(event: &WorkerEvent, asked: &Asked) -> String {
    let messages = asked.messages();
    let words = &messages.worker_facts;
    // As it was then: the age of a lost heartbeat is counted up to the event.
    let context = ReasonContext { now_ms: event.at_ms, zone: asked.zone, os: "", also: None };
    let what = |reason: &Reason| reason_text(reason, asked.language(), &context).what;
    match &event.change {
        WorkerEventKind::Joined {} => words.joined_event.to_owned(),
        WorkerEventKind::Replaced { hostname } => (words.replaced_event)(hostname),
        WorkerEventKind::StateChanged { from, to, reason } => {
            let change = (words.state_event)(messages.state_word(*from), messages.state_word(*to));
            match reason {
                Some(reason) => (words.state_event_because)(&change, &what(reason)),
                None => change,
            }
        }
        WorkerEventKind::ConditionChanged { reason, .. } => what(reason),
        WorkerEventKind::AddressChanged { from, to } => (words.address_event)(from, to),
        WorkerEventKind::ServerGap { seconds } => (words.gap_event)(&(messages.words.span)(Span::of_seconds(*seconds))),
    }
}
