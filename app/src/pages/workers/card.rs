//! The card of one worker. It has the same height whatever it holds.

use super::chip_tip::ChipTip;
use crate::copy::CopyButton;
use crate::fleet::devices::{ModelCount, models};
use crate::fleet::list::state_tag;
use crate::fleet::store::WorkerCell;
use crate::fleet::trouble;
use crate::fleet::use_fleet;
use crate::format::{self, Span};
use crate::i18n::{Messages, ReasonContext, reason_text, use_text};
use crate::icon::Icon;
use crate::manage::MenuButton;
use crate::paths;
use crate::reactive::memo;
use crate::widgets::{DeviceBars, Metric, Moment, StateBadge, use_zone};
use api::{ConditionKind, Severity, WorkerBrief, WorkerState, WorkerView};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

/// The card of one worker: the whole of it leads to the worker's page.
#[component]
fn WorkerCard(worker: WorkerCell) -> impl IntoView {
    let text = use_text();
    let id = worker.with_untracked(|worker| worker.id);
    let read = {
        let worker = worker.clone();
        move |pick: fn(&WorkerView) -> String| {
            let worker = worker.clone();
            Signal::derive(move || worker.with(pick))
        }
    };
    let name = read(|worker| worker.name.clone());
    let state = {
        let worker = worker.clone();
        Signal::derive(move || worker.with(|worker| worker.state))
    };
    view! {
        <li class="card panel" data-state=move || state_tag(state.get())>
            <div class="card-head">
                <h2 class="card-name mono">
                    <a class="card-link" href=paths::worker(id) title=name>{name}</a>
                </h2>
                <CopyButton text=name compact=true label=Signal::derive(move || text.get().workers.copy_name.to_owned())/>
                <StateBadge state/>
                <MenuButton id name/>
            </div>
            <p class="card-place">
                <span class="mono">{read(|worker| worker.ip.clone())}</span>
                <SystemOrLabels worker=worker.clone()/>
            </p>
            <CauseOrLabels worker=worker.clone()/>
            <p class="card-devices"><DevicesLine worker=worker.clone()/></p>
            <Bars worker=worker.clone()/>
            <CardFoot worker/>
        </li>
    }
    .into_any()
}

/// The card of a worker of which everything is known.
pub fn whole(worker: WorkerCell) -> AnyView {
    view! { <WorkerCard worker/> }.into_any()
}

/// The card of a worker of which everything is on its way.
pub fn blank(worker: WorkerBrief) -> AnyView {
    let WorkerBrief { id, name, state, os, .. } = worker;
    view! {
        <li class="card panel blank" aria-busy="true" data-state=state_tag(state)>
            <div class="card-head">
                <h2 class="card-name mono"><a class="card-link" href=paths::worker(id)>{name}</a></h2>
                <StateBadge state=Signal::derive(move || state)/>
            </div>
            <p class="card-place">{os}</p>
        </li>
    }
    .into_any()
}

/// The operating system; the labels when a cause of trouble has taken their line.
#[component]
fn SystemOrLabels(worker: WorkerCell) -> impl IntoView {
    let system = {
        let worker = worker.clone();
        memo(move || {
            let worker = worker.read();
            let has_cause = !trouble::causes(worker.state, &worker.conditions).is_empty();
            (!has_cause || worker.labels.is_empty()).then(|| worker.os.clone())
        })
    };
    move || match system.get() {
        Some(system) => view! { <span class="card-os" title=system.clone()>{system.clone()}</span> }.into_any(),
        None => view! { <Labels worker=worker.clone()/> }.into_any(),
    }
}

/// The worst cause of trouble in a line; the labels when there is none.
#[component]
fn CauseOrLabels(worker: WorkerCell) -> impl IntoView {
    let (text, zone, fleet) = (use_text(), use_zone(), use_fleet());
    let cause = {
        let worker = worker.clone();
        memo(move || {
            let worker = worker.read();
            let causes = trouble::causes(worker.state, &worker.conditions);
            let first = causes.first()?;
            Some((trouble::severity(worker.state, first), first.reason.clone(), worker.os.clone(), causes.len() - 1))
        })
    };
    move || match cause.get() {
        Some((severity, reason, os, others)) => {
            let sentence = Signal::derive(move || {
                let context = ReasonContext { now_ms: fleet.now_ms(), zone: zone.get(), os: &os, also: None };
                reason_text(&reason, text.language(), &context).what
            });
            let is_error = severity == Severity::Error;
            view! {
                <p class="card-cause" class:error=is_error title=sentence>
                    {if is_error { Icon::NotReady.view() } else { Icon::Warning.view() }}
                    <span>{sentence}</span>
                    {(others > 0).then(|| view! { <span class="card-more">{format!("+{others}")}</span> }.into_any())}
                </p>
            }
            .into_any()
        }
        None => view! { <Labels worker=worker.clone()/> }.into_any(),
    }
}

/// The labels as chips.
#[component]
pub fn Labels(
    /// Whose.
    worker: WorkerCell,
) -> impl IntoView {
    let remark = {
        let worker = worker.clone();
        move || worker.with(|worker| worker.maintenance.message.clone().filter(|_| worker.maintenance.enabled))
    };
    let labels = memo(move || worker.with(|worker| worker.labels.clone()));
    view! {
        <span class="labels">
            {move || remark().map(|remark| view! { <span class="remark" title=remark.clone()>{remark.clone()}</span> }.into_any())}
            {move || {
                labels
                    .get()
                    .into_iter()
                    .map(|(key, value)| view! { <span class="label">{key}"="{value}</span> }.into_any())
                    .collect_view()
            }}
        </span>
    }
    .into_any()
}

/// The devices in one line: `8 × 910B3 · 64 GiB`.
#[component]
pub fn DevicesLine(
    /// Whose.
    worker: WorkerCell,
) -> impl IntoView {
    let text = use_text();
    let line = memo(move || devices_line(&worker.read(), text.get()));
    let stale = move || line.with(|line| line.stale.clone());
    view! {
        <span class:muted=move || line.with(|line| line.is_placeholder)>{move || line.with(|line| line.text.clone())}</span>
        {move || stale().map(|stale| view! { <span class="stale">{stale}</span> }.into_any())}
    }
    .into_any()
}

#[derive(Debug, PartialEq)]
struct LineText {
    text: String,
    is_placeholder: bool,
    stale: Option<String>,
}

fn devices_line(worker: &WorkerView, messages: &Messages) -> LineText {
    let placeholder = |text: &str| LineText { text: text.to_owned(), is_placeholder: true, stale: None };
    let Some(devices) = &worker.devices else {
        let cannot_be_read = worker
            .conditions
            .iter()
            .any(|condition| condition.kind == ConditionKind::Devices && condition.severity != Severity::Ok);
        let is_expected = matches!(worker.state, WorkerState::Ready | WorkerState::Pending) && !cannot_be_read;
        let words = &messages.workers;
        return placeholder(if is_expected { words.devices_awaited } else { words.devices_unknown });
    };
    let models = models(devices);
    let Some(first) = models.first() else { return placeholder(messages.workers.no_devices) };
    let mut text = model_text(first);
    if models.len() > 1 {
        text.push(' ');
        text.push_str(&(messages.workers.more_models)(models.len() - 1));
    }
    let stale = worker
        .devices_stale_s
        .map(|age_s| (messages.workers.stale_short)(&(messages.words.span)(Span::of_seconds(age_s))));
    LineText { text, is_placeholder: false, stale }
}

/// `8 × 910B3 · 64 GiB`.
pub fn model_text(model: &ModelCount) -> String {
    let devices = format!("{} × {}", model.count, model.name);
    match model.memory_bytes {
        Some(bytes) => format!("{devices} · {} GiB", format::gib(bytes)),
        None => devices,
    }
}

/// The bars of all devices; each chip's facts are shown on hover, and on focus with the arrow keys.
#[component]
fn Bars(worker: WorkerCell) -> impl IntoView {
    let text = use_text();
    let tip = use_context::<ChipTip>();
    let bars = NodeRef::<html::Div>::new();
    let rect = move || {
        bars.try_get_untracked()
            .flatten()
            .and_then(|bars| bars.query_selector(".device-bars").ok().flatten())
            .map(|svg| svg.get_bounding_client_rect())
    };
    let has_devices = {
        let worker = worker.clone();
        memo(move || worker.with(|worker| worker.devices.as_ref().is_some_and(|devices| !devices.is_empty())))
    };
    let pointed = {
        let worker = worker.clone();
        move |event: ev::PointerEvent| {
            let target = event_target::<web_sys::Element>(&event);
            let svg = target.closest(".device-bars").ok().flatten();
            if let (Some(tip), Some(svg)) = (tip, svg) {
                tip.point(
                    &worker,
                    &svg.get_bounding_client_rect(),
                    f64::from(event.client_x()),
                    f64::from(event.client_y()),
                );
            }
        }
    };
    let keyed = {
        let worker = worker.clone();
        move |event: ev::KeyboardEvent| {
            let step = match event.key().as_str() {
                "ArrowRight" => 1,
                "ArrowLeft" => -1,
                _ => return,
            };
            event.prevent_default();
            if let (Some(tip), Some(rect)) = (tip, rect()) {
                tip.step(&worker, &rect, step);
            }
        }
    };
    let focused = {
        let worker = worker.clone();
        move |_| {
            if let (Some(tip), Some(rect)) = (tip, rect()) {
                tip.show(&worker, &rect, 0);
            }
        }
    };
    let hide = move || {
        if let Some(tip) = tip {
            tip.hide();
        }
    };
    let id = worker.with_untracked(|worker| worker.id);
    let navigate = leptos_router::hooks::use_navigate();
    let open = move |_| navigate(&paths::worker(id), leptos_router::NavigateOptions::default());
    view! {
        <div class="card-bars">
            {move || has_devices.get().then(|| {
                let (pointed, keyed, focused, open) = (pointed.clone(), keyed.clone(), focused.clone(), open.clone());
                view! {
                    <div
                        class="bars"
                        role="group"
                        tabindex="0"
                        aria-label=text.of(|m| m.workers.devices_hint)
                        node_ref=bars
                        on:pointermove=pointed
                        on:pointerleave=move |_| hide()
                        on:keydown=keyed
                        on:focus=focused
                        on:blur=move |_| hide()
                        on:click=open
                    >
                        <DeviceBars worker=worker.clone() metric=Metric::Use/>
                        <DeviceBars worker=worker.clone() metric=Metric::Memory/>
                        <DeviceBars worker=worker.clone() metric=Metric::Temperature/>
                    </div>
                }.into_any()
            })}
        </div>
    }
    .into_any()
}

/// Heartbeat, round trip, clock.
#[component]
fn CardFoot(worker: WorkerCell) -> impl IntoView {
    let text = use_text();
    let facts = memo(move || {
        worker.with(|worker| {
            let over_link = || worker.link.as_ref()?.readings.round_trip_ms;
            let round_trip_ms = worker.direct_round_trip_ms.or_else(over_link);
            (worker.heartbeat_ms, round_trip_ms.map(format::milliseconds), worker.clock_offset_ms)
        })
    });
    let heartbeat = memo(move || facts.with(|facts| facts.0));
    view! {
        <p class="card-foot">
            <span title=text.of(|m| m.words.heartbeat)>
                {Icon::Heartbeat.view()}
                <Heartbeat time_ms=heartbeat/>
            </span>
            {move || facts.with(|facts| facts.1.clone()).map(|round_trip| view! {
                <span title=text.of(|m| m.workers.round_trip)>{Icon::Probe.view()}{round_trip}" ms"</span>
            }.into_any())}
            {move || facts.with(|facts| facts.2).map(|offset_ms| view! {
                <span title=text.of(|m| m.workers.clock_offset)>
                    {Icon::Clock.view()}
                    <span class:warning=(offset_ms.abs() >= 1000)>{move || text.get().clock_offset(offset_ms)}</span>
                </span>
            }.into_any())}
        </p>
    }
    .into_any()
}

/// How long ago the last heartbeat was.
#[component]
pub fn Heartbeat(
    /// Milliseconds since 1970 by the server's clock.
    #[prop(into)]
    time_ms: Signal<Option<i64>>,
) -> impl IntoView {
    let text = use_text();
    let is_known = memo(move || time_ms.get().is_some());
    move || {
        if is_known.get() {
            return view! { <Moment time_ms=Signal::derive(move || time_ms.get().unwrap_or_default())/> }.into_any();
        }
        view! { <span class="muted">{text.of(|m| m.workers.never)}</span> }.into_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::list::tests::{device, worker};
    use crate::i18n::Language;

    #[test]
    fn devices_fit_in_one_line() {
        let mut some = worker(1, "a");
        let line = |worker: &WorkerView| devices_line(worker, Language::En.messages()).text;
        assert_eq!(line(&some), "2 × 910B3 · 64 GiB");
        some.devices = Some(vec![device(0), api::DeviceView { name: "310P3".to_owned(), ..device(1) }]);
        assert_eq!(line(&some), "1 × 910B3 · 64 GiB and 1 more model");
        some.devices = Some(Vec::new());
        assert_eq!(line(&some), "No accelerators");
        some.devices = None;
        assert_eq!(line(&some), "Looking for devices…");
        some.state = WorkerState::NotReady;
        assert_eq!(line(&some), "Devices unknown");
    }

    #[test]
    fn stale_readings_say_how_old_they_are() {
        let mut stale = worker(1, "a");
        stale.devices_stale_s = Some(150);
        assert_eq!(devices_line(&stale, Language::En.messages()).stale.as_deref(), Some("2 min 30 s old"));
    }
}
