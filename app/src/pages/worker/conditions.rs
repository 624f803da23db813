//! The conditions as a checklist.

use crate::fleet::store::WorkerCell;
use crate::fleet::trouble::also;
use crate::fleet::use_fleet;
use crate::format;
use crate::i18n::{ReasonContext, ReasonText, reason_text, use_text};
use crate::order::sort;
use crate::paths;
use crate::reactive::{When, each, memo};
use crate::widgets::{NextStep, SeverityIcon, use_zone};
use api::{Condition, ConditionKind, ConditionStatus, Reason, Severity, WorkerState, WorkerView};
use leptos::prelude::*;
use std::mem::{Discriminant, discriminant};

/// Tells conditions apart while their figures change.
type ConditionKey = (ConditionKind, Discriminant<Reason>, Severity, usize);

/// Each condition: whether it holds, since when, and what to do if not.
#[component]
pub fn Conditions(
    /// Whose.
    worker: WorkerCell,
) -> impl IntoView {
    let text = use_text();
    let id = worker.with_untracked(|worker| worker.id);
    let conditions = {
        let worker = worker.clone();
        memo(move || {
            let mut conditions = worker.with(|worker| worker.conditions.clone());
            sort(&mut conditions, |left, right| right.severity.cmp(&left.severity));
            conditions
        })
    };
    let keys = move || conditions.with(|conditions| keys(conditions));
    view! {
        <section class="panel section conditions">
            <div class="section-head">
                <h2>{text.of(|m| m.worker.conditions)}</h2>
                <a href=paths::host(id)>{text.of(|m| m.worker.check_host)}</a>
            </div>
            <When holds=move || conditions.read().is_empty()>
                <p class="muted">{text.of(|m| m.worker.no_conditions)}</p>
            </When>
            <ul>
                {each(
                    Signal::derive(keys),
                    move |key| view! { <Row worker=worker.clone() conditions key/> }.into_any(),
                )}
            </ul>
        </section>
    }
    .into_any()
}

/// Several conditions may have one cause, as one for each unhealthy device: they are numbered.
fn keys(conditions: &[Condition]) -> Vec<ConditionKey> {
    let mut keys: Vec<ConditionKey> = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let cause = (condition.kind, discriminant(&condition.reason), condition.severity);
        let same = keys.iter().filter(|key| (key.0, key.1, key.2) == cause).count();
        keys.push((cause.0, cause.1, cause.2, same));
    }
    keys
}

/// Whether it was so when the worker was last heard, and nobody knows how it is now.
fn is_past(worker: &WorkerView, kind: ConditionKind) -> bool {
    worker.state == WorkerState::NotReady
        && matches!(kind, ConditionKind::Clock | ConditionKind::Devices | ConditionKind::Host)
}

fn seen(condition: &Condition, is_past: bool) -> (Severity, ConditionStatus) {
    if is_past { (Severity::Ok, ConditionStatus::Unknown) } else { (condition.severity, condition.status) }
}

#[component]
fn Row(worker: WorkerCell, conditions: Memo<Vec<Condition>>, key: ConditionKey) -> impl IntoView {
    let (text, zone, fleet) = (use_text(), use_zone(), use_fleet());
    let condition = memo(move || {
        conditions.with(|conditions| {
            let place = keys(conditions).iter().position(|known| *known == key)?;
            conditions.get(place).cloned()
        })
    });
    let is_past = {
        let worker = worker.clone();
        memo(move || worker.with(|worker| is_past(worker, key.0)))
    };
    let words = memo(move || {
        let condition = condition.get()?;
        let worker = worker.read();
        let also = also(&worker.conditions, &condition);
        let context = ReasonContext { now_ms: fleet.now_ms(), zone: zone.get(), os: &worker.os, also };
        let words = reason_text(&condition.reason, text.language(), &context);
        if !is_past.get() {
            return Some(words);
        }
        let what = (text.get().worker.last_known)(&words.what);
        Some(ReasonText { what, next_step: String::new(), commands: Vec::new(), ..words })
    });
    let word = move |pick: fn(&ReasonText) -> String| move || words.read().as_ref().map(pick).unwrap_or_default();
    let since = move || {
        let since_ms = condition.read().as_ref()?.since_ms?;
        Some(
            view! {
                <time datetime=format::machine_time(since_ms) title=move || format::full_time(since_ms, zone.get())>
                    {move || (text.get().words.since)(&format::short_time(since_ms, fleet.now_ms(), zone.get()))}
                </time>
            }
            .into_any(),
        )
    };
    let commands =
        Signal::derive(move || words.read().as_ref().map(|words| words.commands.clone()).unwrap_or_default());
    view! {
        <li class="condition">
            {move || {
                let (severity, status) = seen(&condition.get()?, is_past.get());
                Some(view! { <SeverityIcon severity status/> }.into_any())
            }}
            <strong class="condition-kind">{move || text.get().condition_word(key.0)}</strong>
            <div class="condition-text">
                <p>{word(|words| words.what.clone())}</p>
                <NextStep next_step=Signal::derive(word(|words| words.next_step.clone())) lines=commands/>
            </div>
            <span class="condition-since muted">{since}</span>
        </li>
    }
    .into_any()
}
