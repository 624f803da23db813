//! Host and reach, as lists of facts.

use super::ask::HostDetail;
use crate::fleet::store::WorkerCell;
use crate::fleet::use_fleet;
use crate::format::{self, Span, Zone};
use crate::i18n::{Messages, use_text};
use crate::pages::workers::Heartbeat;
use crate::reactive::memo;
use crate::widgets::{Meter, use_zone};
use api::{ConditionKind, LinkReadings, Reason, WorkerView};
use leptos::prelude::*;

/// A fact: name, value, and how full something is.
#[derive(Clone, Debug, PartialEq)]
struct Fact {
    name: String,
    value: String,
    percent: Option<f64>,
}

impl Fact {
    fn new(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.into(), percent: None }
    }

    fn used(name: &str, used: u64, total: u64, messages: &Messages) -> Self {
        let value = (messages.worker.used_of_total)(&format::gib(used), &format::gib(total));
        let percent = (total > 0).then(|| used as f64 / total as f64 * 100.0);
        Self { name: name.to_owned(), value, percent }
    }

    fn view(self) -> impl IntoView {
        let Self { name, value, percent } = self;
        let is_empty = value.is_empty();
        view! {
            <dt>{name}</dt>
            <dd>
                {percent.map(|percent| view! { <Meter percent=Signal::stored(Some(percent))/> }.into_any())}
                <span class:muted=is_empty>{if is_empty { "–".to_owned() } else { value }}</span>
            </dd>
        }
        .into_any()
    }
}

/// Processors, memory, file systems, operating system, versions.
#[component]
pub fn HostFacts(
    /// Whose.
    worker: WorkerCell,
    /// What it reported last.
    host: Memo<HostDetail>,
) -> impl IntoView {
    let (text, zone) = (use_text(), use_zone());
    let facts = memo(move || {
        let worker = worker.read();
        host.with(|host| host_facts(&worker, host, text.get(), zone.get()))
    });
    view! {
        <section class="panel section host">
            <h2>{text.of(|m| m.worker.host)}</h2>
            <dl class="facts">{move || facts.get().into_iter().map(Fact::view).collect_view()}</dl>
        </section>
    }
    .into_any()
}

fn host_facts(worker: &WorkerView, host: &HostDetail, messages: &'static Messages, zone: Zone) -> Vec<Fact> {
    let words = &messages.worker;
    let mut facts = vec![Fact::new(words.hostname, worker.hostname.clone())];
    let os = if host.os.is_empty() { &worker.os } else { &host.os };
    facts.push(Fact::new(words.operating_system, os.clone()));
    facts.push(Fact::new(words.kernel, host.kernel.clone()));
    if let Some(uptime_s) = host.uptime_s {
        facts.push(Fact::new(words.uptime, (messages.words.span)(Span::of_seconds(uptime_s))));
    }
    if let Some((count, percent)) = worker.host.cpu_count.zip(worker.host.cpu_percent) {
        let value = (words.processors_value)(&count.to_string(), &format::percent(percent));
        facts.push(Fact { percent: Some(percent), ..Fact::new(words.processors, value) });
    } else if let Some(count) = worker.host.cpu_count {
        facts.push(Fact::new(words.processors, count.to_string()));
    }
    if let Some((used, total)) = worker.host.memory_used_bytes.zip(worker.host.memory_total_bytes) {
        facts.push(Fact::used(words.main_memory, used, total, messages));
    }
    if let Some(swap) = host.swap {
        facts.push(Fact::used(words.swap, swap.used, swap.total, messages));
    }
    for (mount_point, space) in &host.file_systems {
        facts.push(Fact::used(&(words.file_system)(mount_point), space.used, space.total, messages));
    }
    facts.push(Fact::new(words.version, worker.version.clone().unwrap_or_else(|| words.version_unknown.to_owned())));
    facts.push(Fact::new(words.worker_id, worker.uuid.to_string()));
    facts.push(Fact::new(words.joined, format::full_time(worker.joined_ms, zone)));
    facts
}

/// How the server and the worker reach one another.
#[component]
pub fn Reach(
    /// Whose.
    worker: WorkerCell,
) -> impl IntoView {
    let (text, zone, fleet) = (use_text(), use_zone(), use_fleet());
    let facts = {
        let worker = worker.clone();
        memo(move || reach_facts(&worker.read(), text.get(), fleet.now_ms(), zone.get()))
    };
    let heartbeat_ms = memo(move || worker.with(|worker| worker.heartbeat_ms));
    let exact = move || heartbeat_ms.get().map(|time_ms| format::short_time(time_ms, fleet.now_ms(), zone.get()));
    view! {
        <section class="panel section reach">
            <h2>{text.of(|m| m.worker.reach)}</h2>
            <dl class="facts">
                <dt>{text.of(|m| m.worker.last_heartbeat)}</dt>
                <dd><span><Heartbeat time_ms=heartbeat_ms/>" "<span class="muted">{exact}</span></span></dd>
                {move || facts.get().into_iter().map(Fact::view).collect_view()}
            </dl>
        </section>
    }
    .into_any()
}

fn reach_facts(worker: &WorkerView, messages: &'static Messages, now_ms: i64, zone: Zone) -> Vec<Fact> {
    let words = &messages.worker;
    let probed = worker
        .conditions
        .iter()
        .find(|condition| condition.kind == ConditionKind::Direct)
        .and_then(|condition| probed_url(&condition.reason));
    let address = probed.map_or_else(|| format!("{}:{}", worker.ip, worker.port), Clone::clone);
    let round_trip = worker.direct_round_trip_ms.map(|value| format!("{} ms", format::milliseconds(value)));
    let offset = worker.clock_offset_ms.map(|offset_ms| messages.clock_offset(offset_ms));
    let clock = offset.map(|offset| {
        clock_error_ms(worker).map_or_else(|| offset.clone(), |error_ms| (words.clock_value)(&offset, error_ms))
    });
    let mut facts = link_facts(worker, messages, now_ms, zone);
    facts.extend([
        Fact::new(words.probe_address, address),
        Fact::new(words.round_trip, round_trip.unwrap_or_default()),
        Fact::new(words.clock, clock.unwrap_or_default()),
    ]);
    facts
}

/// Nothing of workers that never had a link.
fn link_facts(worker: &WorkerView, messages: &'static Messages, now_ms: i64, zone: Zone) -> Vec<Fact> {
    let words = &messages.worker;
    let Some(link) = &worker.link else {
        let had_one = worker.conditions.iter().any(|condition| condition.kind == ConditionKind::Link);
        return if had_one { vec![Fact::new(messages.words.link, words.no_link)] } else { Vec::new() };
    };
    let LinkReadings { round_trip_ms, received_bytes, sent_bytes } = link.readings;
    let since = format::short_time(link.since_ms, now_ms, zone);
    let round_trip = round_trip_ms.map(|value| format!("{} ms", format::milliseconds(value)));
    let traffic = (words.link_traffic_value)(&format::bytes(received_bytes), &format::bytes(sent_bytes));
    vec![
        Fact::new(messages.words.link, (words.link_value)(&since, link.carrier, &link.peer)),
        Fact::new(words.link_round_trip, round_trip.unwrap_or_default()),
        Fact::new(words.link_traffic, traffic),
    ]
}

const fn probed_url(reason: &Reason) -> Option<&String> {
    match reason {
        Reason::DirectAnswered { url, .. }
        | Reason::DirectNotProbed { url }
        | Reason::DirectRefused { url }
        | Reason::DirectTimedOut { url, .. }
        | Reason::DirectNotResolved { url, .. }
        | Reason::DirectNoRoute { url }
        | Reason::DirectClosed { url }
        | Reason::DirectWrongAnswer { url, .. }
        | Reason::DirectWrongWorker { url, .. } => Some(url),
        _ => None,
    }
}

fn clock_error_ms(worker: &WorkerView) -> Option<i64> {
    worker.conditions.iter().find_map(|condition| match condition.reason {
        Reason::ClockInSync { error_ms, .. }
        | Reason::ClockOffset { error_ms, .. }
        | Reason::ClockOffsetZone { error_ms, .. } => Some(error_ms),
        _ => None,
    })
}
