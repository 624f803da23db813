//! What is wrong, in a few lines: cause, since, next step. It goes by itself when the trouble goes.

use crate::fleet::trouble::{NamedWorker, Trouble, TroubleLine};
use crate::fleet::use_fleet;
use crate::format::{self, Zone};
use crate::i18n::reasons::is_failed_probe;
use crate::i18n::{Language, ReasonContext, ReasonText, reason_text, use_text};
use crate::icon::Icon;
use crate::paths;
use crate::reactive::{When, each, effect, memo};
use crate::widgets::{NextStep, use_zone};
use api::{Reason, Severity, WorkerId};
use leptos::prelude::*;
use std::mem::{Discriminant, discriminant};

/// More lines than these are folded away.
const MAX_LINES: usize = 3;
/// A line that many workers share names this many before it is unfolded.
const MAX_NAMES: usize = 4;

/// What is wrong with the fleet.
#[component]
pub fn Banner() -> impl IntoView {
    let text = use_text();
    let fleet = use_fleet();
    let trouble = fleet.trouble();
    let has_errors = memo(move || !trouble.read().errors.is_empty());
    let has_warnings = memo(move || !trouble.read().warnings.is_empty());
    let counted = move || {
        trouble.with(|trouble| {
            let (not_ready, unreachable) = (trouble.not_ready_workers, trouble.unreachable_workers);
            (not_ready, unreachable, trouble.error_workers - not_ready - unreachable)
        })
    };
    let say = move |(not_ready, unreachable, other)| (text.get().workers.banner_errors)(not_ready, unreachable, other);
    let headline = move || say(counted());
    let warning_headline = move || {
        trouble.with(|trouble| match trouble.warning_workers {
            0 => (text.get().workers.banner_warnings)(warned_workers(trouble)),
            workers => (text.get().workers.banner_warnings)(workers),
        })
    };
    // Read out once, when trouble begins; what changes afterwards can be read in the banner.
    let announced = RwSignal::new(None);
    effect(move || announced.set(has_errors.get().then(|| untrack(counted))));
    view! {
        <div class="visually-hidden" role="alert">{move || announced.get().map(say)}</div>
        {move || has_errors.get().then(|| view! {
            <details class="banner errors" open>
                <summary>{Icon::NotReady.view()}<strong>{headline}</strong><span class="fold">{Icon::Down.view()}</span></summary>
                <Lines trouble severity=Severity::Error/>
            </details>
        }.into_any())}
        {move || has_warnings.get().then(|| view! {
            <details class="banner warnings">
                <summary>{Icon::Warning.view()}<strong>{warning_headline}</strong><span class="fold">{Icon::Down.view()}</span></summary>
                <Lines trouble severity=Severity::Warning/>
            </details>
        }.into_any())}
    }
    .into_any()
}

/// Warnings of workers that have errors too are counted with those; then the lines are counted.
fn warned_workers(trouble: &Trouble) -> usize {
    trouble.warnings.iter().map(|line| line.worker_count).max().unwrap_or(0)
}

fn lines_of(trouble: &Trouble, severity: Severity) -> &[TroubleLine] {
    match severity {
        Severity::Error => &trouble.errors,
        Severity::Ok | Severity::Warning => &trouble.warnings,
    }
}

/// What tells lines apart while their figures change: cause and first worker.
type LineKey = (Option<WorkerId>, Discriminant<Reason>, bool);

fn key(line: &TroubleLine) -> LineKey {
    (line.workers.first().map(|worker| worker.id), discriminant(&line.reason), line.worker_count > 1)
}

#[component]
fn Lines(trouble: Memo<Trouble>, severity: Severity) -> impl IntoView {
    let text = use_text();
    let keys = memo(move || trouble.with(|trouble| lines_of(trouble, severity).iter().map(key).collect::<Vec<_>>()));
    let hidden_count = move || keys.read().len().saturating_sub(MAX_LINES);
    let part = move |skip: usize, take: usize| {
        Signal::derive(move || keys.read().iter().skip(skip).take(take).copied().collect::<Vec<_>>())
    };
    let line = move |key: LineKey| view! { <Line trouble severity line_key=key/> }.into_any();
    view! {
        <ul class="banner-lines">{each(part(0, MAX_LINES), line)}</ul>
        <When holds=move || hidden_count() != 0>
            <details class="banner-more">
                <summary>{move || (text.get().workers.more_lines)(hidden_count())}</summary>
                <ul class="banner-lines">{each(part(MAX_LINES, usize::MAX), line)}</ul>
            </details>
        </When>
    }
    .into_any()
}

#[component]
fn Line(trouble: Memo<Trouble>, severity: Severity, line_key: LineKey) -> impl IntoView {
    let (text, zone, fleet) = (use_text(), use_zone(), use_fleet());
    let line = memo(move || {
        trouble.with(|trouble| lines_of(trouble, severity).iter().find(|line| key(line) == line_key).cloned())
    });
    let words = memo(move || {
        let line = line.get()?;
        Some(words_of(&line, text.language(), fleet.now_ms(), zone.get()))
    });
    let word = move |pick: fn(&ReasonText) -> String| move || words.read().as_ref().map(pick).unwrap_or_default();
    // A cause that many share is named by its title: its sentence has the figures of one of them.
    let title = move || {
        let is_shared = line.read().as_ref().is_some_and(|line| line.worker_count > 1);
        is_shared.then(|| view! { <strong>{word(|words| words.title.to_owned())}</strong> " " }.into_any())
    };
    let alike = move || {
        let repeats = line.read().as_ref().filter(|line| line.worker_count == 1).map_or(0, |line| line.repeats);
        (repeats > 0).then(|| (text.get().workers.more_alike)(repeats))
    };
    let since = move || {
        let line = line.read();
        let line = line.as_ref()?;
        // The sentence says when.
        let is_said = line.worker_count == 1
            && matches!(
                line.reason,
                Reason::HeartbeatLost { .. } | Reason::WorkerStopped { .. } | Reason::TunnelDown { .. }
            );
        let since_ms = line.since_ms.filter(|_| !is_said)?;
        Some((text.get().words.since)(&format::short_time(since_ms, fleet.now_ms(), zone.get())))
    };
    let commands =
        Signal::derive(move || words.read().as_ref().map(|words| words.commands.clone()).unwrap_or_default());
    view! {
        <li class="banner-line">
            <Names line/>
            <div class="banner-text">
                <p>
                    {title} {word(|words| words.what.clone())} " " {alike} " " <span class="banner-since">{since}</span>
                </p>
                <NextStep next_step=Signal::derive(word(|words| words.next_step.clone())) lines=commands/>
            </div>
        </li>
    }
    .into_any()
}

/// The text of a line. What is one worker's own says nothing about the others, so a line that many share goes without.
fn words_of(line: &TroubleLine, language: Language, now_ms: i64, zone: Zone) -> ReasonText {
    let is_shared = line.worker_count > 1;
    let os = if is_shared { "" } else { &line.os };
    let context = ReasonContext { now_ms, zone, os, also: line.also.as_ref() };
    let words = reason_text(&line.reason, language, &context);
    if !is_shared {
        return words;
    }
    let commands = if is_failed_probe(&line.reason) { Vec::new() } else { words.commands };
    ReasonText { what: String::new(), commands, ..words }
}

/// The workers of a line, as links.
#[component]
fn Names(line: Memo<Option<TroubleLine>>) -> impl IntoView {
    let text = use_text();
    let link =
        |worker: NamedWorker| view! { <a class="mono" href=paths::worker(worker.id)>{worker.name}</a> " " }.into_any();
    move || {
        let TroubleLine { workers, worker_count, .. } = line.get()?;
        if worker_count == 1 {
            return Some(
                view! { <p class="banner-names">{workers.into_iter().map(link).collect_view()}</p> }.into_any(),
            );
        }
        let (first, rest): (Vec<_>, Vec<_>) =
            workers.into_iter().enumerate().partition(|(place, _)| *place < MAX_NAMES);
        let further = worker_count - first.len();
        let links = move |workers: Vec<(usize, NamedWorker)>| {
            workers.into_iter().map(|(_, worker)| link(worker)).collect_view()
        };
        Some(
            view! {
                <div class="banner-names">
                    <p><strong>{move || (text.get().workers.worker_count)(worker_count)}</strong></p>
                    <p>{links(first)}</p>
                    <details>
                        <summary>{move || (text.get().workers.more_workers)(further)}</summary>
                        <p>{links(rest)}</p>
                    </details>
                </div>
            }
            .into_any(),
        )
    }
}
