//! What the devices of each model amount to. Pressing a model shows its devices alone.

use super::list::{Page, count};
use crate::fleet::device_list::ModelTotals;
use crate::format;
use crate::i18n::Messages;
use crate::widgets::Meter;
use leptos::prelude::*;

/// Names come from workers, which may invent many.
const MOST: usize = 12;

/// A line for each model.
pub fn models(page: &Page) -> AnyView {
    let (models, messages) = (&page.list.models, page.messages);
    let more = models.len().saturating_sub(MOST);
    let more = (more > 0).then(|| view! { <li class="muted">{(messages.devices.more_models)(more)}</li> }.into_any());
    view! {
        <ul class="models" aria-label=messages.devices.models>
            {models.iter().take(MOST).map(|totals| model(page, totals)).collect_view()}
            {more}
        </ul>
    }
    .into_any()
}

fn model(page: &Page, totals: &ModelTotals) -> AnyView {
    let is_chosen = page.query.model.as_ref() == Some(&totals.name);
    let address = page.address(|query| query.model = (!is_chosen).then(|| totals.name.clone()));
    let messages = page.messages;
    let name = if totals.name.is_empty() { messages.words.unknown } else { totals.name.as_str() };
    let unhealthy = (totals.unhealthy > 0).then(|| {
        view! { <span class="health error number">{(messages.devices.unhealthy)(&count(totals.unhealthy))}</span> }
            .into_any()
    });
    view! {
        <li data-key=totals.name.clone()>
            <a class="model panel" data-noscroll="" href=address aria-current=is_chosen.then_some("true")>
                <strong>{name.to_owned()}</strong>
                <span class="number">{(messages.devices.device_count)(&count(totals.count))}</span>
                <Meter percent=Signal::stored(memory_percent(totals))/>
                <span class="muted">{memory(totals, messages)}</span>
                {unhealthy}
                <span class="muted">{work(totals, messages)}</span>
            </a>
        </li>
    }
    .into_any()
}

/// How many are busy, free and unknown.
fn work(totals: &ModelTotals, messages: &Messages) -> String {
    let words = &messages.devices;
    let unknown = totals.count.saturating_sub(totals.busy + totals.free);
    let parts = [
        (totals.busy > 0 || totals.free > 0).then(|| (words.busy)(&count(totals.busy))),
        (totals.busy > 0 || totals.free > 0).then(|| (words.free)(&count(totals.free))),
        (unknown > 0).then(|| (words.unknown)(&count(unknown))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn memory_percent(totals: &ModelTotals) -> Option<f64> {
    let (used, total) = totals.memory_used_bytes.zip(totals.memory_total_bytes)?;
    (total > 0).then(|| used as f64 / total as f64 * 100.0)
}

fn memory(totals: &ModelTotals, messages: &Messages) -> Option<String> {
    let total = format::gib(totals.memory_total_bytes?);
    Some(match totals.memory_used_bytes {
        Some(used) => (messages.worker_facts.used_of_total)(&format::gib(used), &total),
        None => (messages.devices.memory_in_all)(&total),
    })
}
