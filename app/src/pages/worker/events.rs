//! What changed about a worker, newest first.

use crate::fleet::use_fleet;
use crate::format::{self, Span};
use crate::i18n::{ReasonContext, Text, reason_text, use_text};
use crate::icon::Icon;
use crate::reactive::When;
use crate::widgets::state::state_icon;
use crate::widgets::use_zone;
use api::{Reason, Severity, WorkerEvent, WorkerEventKind};
use leptos::prelude::*;

/// What changed about a worker.
#[component]
pub fn Events(
    /// Newest first.
    events: Memo<Vec<WorkerEvent>>,
) -> impl IntoView {
    let (text, zone, fleet) = (use_text(), use_zone(), use_fleet());
    let row = move |event: WorkerEvent| {
        let at_ms = event.at_ms;
        let (class, icon) = sign(&event.change);
        view! {
            <li class="event">
                <time datetime=format::machine_time(at_ms) title=move || format::full_time(at_ms, zone.get())>
                    {move || format::short_time(at_ms, fleet.now_ms(), zone.get())}
                </time>
                <span class=class>{icon.view()}</span>
                <span>{move || sentence(&event, text, zone.get())}</span>
            </li>
        }
        .into_any()
    };
    view! {
        <section class="panel section events">
            <h2>{text.of(|m| m.worker.events)}</h2>
            <When holds=move || events.read().is_empty()>
                <p class="muted">{text.of(|m| m.worker.no_events)}</p>
            </When>
            <ul>{move || events.get().into_iter().map(row).collect_view()}</ul>
        </section>
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

/// What happened, in the user's language.
fn sentence(event: &WorkerEvent, text: Text, zone: format::Zone) -> String {
    let messages = text.get();
    let words = &messages.worker;
    // As it was then: the age of a lost heartbeat is counted up to the event.
    let context = ReasonContext { now_ms: event.at_ms, zone, os: "", also: None };
    let what = |reason: &Reason| reason_text(reason, text.language(), &context).what;
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
