//! Host and reach, as lists of facts.

use crate::drawn::Asked;
use crate::format::{self, Span};
use crate::i18n::Messages;
use crate::widgets::Meter;
use api::{ConditionKind, KernelInfo, LinkReadings, Reason, WorkerStatus, WorkerView};
use leptos::prelude::*;

/// What a worker reported of its host, as far as the page shows it and a view of the worker does not have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostDetail {
    /// Name and version of the operating system; empty when unknown.
    os: String,
    /// Release and architecture of the kernel; empty when unknown.
    kernel: String,
    uptime_s: Option<u64>,
    swap: Option<SpaceUsed>,
    /// Where file systems are mounted, and how full they are.
    file_systems: Vec<(String, SpaceUsed)>,
}

/// How full something is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpaceUsed {
    used: u64,
    total: u64,
}

impl SpaceUsed {
    fn of(used: Option<u64>, total: Option<u64>) -> Option<Self> {
        let (used, total) = used.zip(total)?;
        (total > 0).then_some(Self { used, total })
    }
}

impl HostDetail {
    /// Of what the worker reported last.
    pub fn of(status: &WorkerStatus) -> Self {
        let file_systems = status.filesystem.iter().flatten().filter_map(|file_system| {
            let space = SpaceUsed::of(file_system.used, file_system.total)?;
            Some((file_system.mount_point.clone(), space))
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a negative time becomes zero")]
        let uptime_s =
            status.uptime.as_ref().and_then(|uptime| uptime.uptime).map(|uptime_ms| (uptime_ms / 1000.0) as u64);
        Self {
            os: status.os.as_ref().map(|os| join(&[&os.name, &os.version])).unwrap_or_default(),
            kernel: status.kernel.as_ref().map(kernel_name).unwrap_or_default(),
            uptime_s,
            swap: status.swap.as_ref().and_then(|swap| SpaceUsed::of(swap.used, swap.total)),
            file_systems: file_systems.collect(),
        }
    }
}

/// The release, which names the architecture on some systems and not on others.
fn kernel_name(kernel: &KernelInfo) -> String {
    if kernel.release.ends_with(&kernel.architecture) {
        return kernel.release.clone();
    }
    join(&[&kernel.release, &kernel.architecture])
}

fn join(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

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
        let value = (messages.worker_facts.used_of_total)(&format::gib(used), &format::gib(total));
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
pub fn host(worker: &WorkerView, detail: &HostDetail, asked: &Asked) -> AnyView {
    let facts = host_facts(worker, detail, asked);
    view! {
        <section class="panel section host">
            <h2>{asked.messages().worker_facts.host}</h2>
            <dl class="facts">{facts.into_iter().map(Fact::view).collect_view()}</dl>
        </section>
    }
    .into_any()
}

fn host_facts(worker: &WorkerView, host: &HostDetail, asked: &Asked) -> Vec<Fact> {
    let messages = asked.messages();
    let words = &messages.worker_facts;
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
    facts.push(Fact::new(words.joined, format::full_time(worker.joined_ms, asked.zone)));
    facts
}

/// How the server and the worker reach one another.
pub fn reach(worker: &WorkerView, asked: &Asked) -> AnyView {
    let messages = asked.messages();
    let facts = std::iter::once(heartbeat(worker, asked)).chain(reach_facts(worker, asked));
    view! {
        <section class="panel section reach">
            <h2>{messages.worker_facts.reach}</h2>
            <dl class="facts">{facts.map(Fact::view).collect_view()}</dl>
        </section>
    }
    .into_any()
}

fn heartbeat(worker: &WorkerView, asked: &Asked) -> Fact {
    let words = asked.messages();
    let heard = worker.heartbeat_ms.map(|time_ms| {
        let ago = (words.words.ago)(Span::between(time_ms, asked.now_ms));
        format!("{ago} · {}", format::short_time(time_ms, asked.now_ms, asked.zone))
    });
    Fact::new(words.worker_facts.last_heartbeat, heard.unwrap_or_default())
}

fn reach_facts(worker: &WorkerView, asked: &Asked) -> Vec<Fact> {
    let messages = asked.messages();
    let words = &messages.worker_facts;
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
    let mut facts = link_facts(worker, asked);
    facts.extend([
        Fact::new(words.probe_address, address),
        Fact::new(words.round_trip, round_trip.unwrap_or_default()),
        Fact::new(words.clock, clock.unwrap_or_default()),
    ]);
    facts
}

/// Nothing of workers that never had a link.
fn link_facts(worker: &WorkerView, asked: &Asked) -> Vec<Fact> {
    let messages = asked.messages();
    let words = &messages.worker_facts;
    let Some(link) = &worker.link else {
        let had_one = worker.conditions.iter().any(|condition| condition.kind == ConditionKind::Link);
        return if had_one { vec![Fact::new(messages.words.link, words.no_link)] } else { Vec::new() };
    };
    let LinkReadings { round_trip_ms, received_bytes, sent_bytes } = link.readings;
    let since = format::short_time(link.since_ms, asked.now_ms, asked.zone);
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
