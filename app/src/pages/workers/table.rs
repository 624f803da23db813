//! The workers as a table, for many of them.

use super::card::{DevicesLine, Heartbeat};
use super::chip_tip::ChipTip;
use super::rows::{self, Shown};
use crate::fleet::devices::DeviceSummary;
use crate::fleet::list::state_tag;
use crate::fleet::store::WorkerCell;
use crate::fleet::trouble;
use crate::fleet::{ListQuery, Sort, use_fleet};
use crate::format;
use crate::i18n::{Messages, ReasonContext, reason_text, use_text};
use crate::icon::Icon;
use crate::manage::MenuButton;
use crate::paths;
use crate::reactive::{each_worker, memo};
use crate::widgets::{DeviceBars, Meter, Metric, StateBadge, use_zone};
use api::{Severity, WorkerBrief, WorkerView};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

const COLUMNS: &str = "10";
/// All but state and name.
const BLANK_COLUMNS: &str = "8";

/// A row for each worker.
#[component]
pub fn WorkerTable(
    /// For the links that sort.
    query: Memo<ListQuery>,
    /// Which.
    shown: Shown,
) -> impl IntoView {
    let text = use_text();
    let fleet = use_fleet();
    let table = NodeRef::<html::Table>::new();
    let visible = rows::use_visible(table, shown.ids, ".worker-row", rows::Spacing::Elements);
    let sorted =
        move |sort: Sort, label: fn(&Messages) -> &'static str| view! { <SortedColumn query sort label/> }.into_any();
    view! {
        <div class="table-scroll panel">
            <table class="workers-table" node_ref=table aria-rowcount=move || (shown.ids.read().len() + 1).to_string()>
                <thead>
                    <tr>
                        {sorted(Sort::State, |m| m.workers.column_state)}
                        {sorted(Sort::Name, |m| m.workers.column_worker)}
                        <th scope="col">{text.of(|m| m.workers.column_address)}</th>
                        <th scope="col">{text.of(|m| m.workers.column_devices)}</th>
                        {sorted(Sort::Use, |m| m.workers.utilisation)}
                        {sorted(Sort::Memory, |m| m.words.memory)}
                        {sorted(Sort::Temperature, |m| m.workers.temperature)}
                        {sorted(Sort::Heartbeat, |m| m.words.heartbeat)}
                        {sorted(Sort::Clock, |m| m.words.clock)}
                        <th scope="col"><span class="visually-hidden">{text.of(|m| m.workers.column_menu)}</span></th>
                    </tr>
                </thead>
                <tbody aria-hidden="true"><tr><td class="space space-before" colspan=COLUMNS></td></tr></tbody>
                <tbody>
                    {each_worker(visible, move |id| fleet.view_of(id, whole_row, blank_row))}
                </tbody>
                <tbody aria-hidden="true"><tr><td class="space space-after" colspan=COLUMNS></td></tr></tbody>
            </table>
        </div>
    }
    .into_any()
}

/// A column's head, which sorts by it, and the other way round when pressed again.
#[component]
fn SortedColumn(query: Memo<ListQuery>, sort: Sort, label: fn(&Messages) -> &'static str) -> impl IntoView {
    let text = use_text();
    let address = move || {
        let query = query.get();
        let reversed = query.sort == sort && !query.reversed;
        ListQuery { sort, reversed, page: 1, ..query }.address()
    };
    let order = move || {
        let query = query.read();
        (query.sort == sort).then_some(if query.reversed { "descending" } else { "ascending" })
    };
    view! {
        <th scope="col" aria-sort=order>
            <a href=address>
                {move || label(text.get())}
                <span class="sort-mark" class:reversed=move || order() == Some("descending")>{Icon::Down.view()}</span>
            </a>
        </th>
    }
    .into_any()
}

/// The row of a worker of which everything is known.
fn whole_row(worker: WorkerCell) -> AnyView {
    view! { <Row worker/> }.into_any()
}

/// The row of a worker of which everything is on its way.
fn blank_row(worker: WorkerBrief) -> AnyView {
    let WorkerBrief { id, name, state, .. } = worker;
    view! {
        <tr class="worker-row blank" aria-busy="true" data-state=state_tag(state)>
            <td><StateBadge state=Signal::derive(move || state)/></td>
            <th scope="row" class="mono"><a class="row-link" href=paths::worker(id)>{name}</a></th>
            <td colspan=BLANK_COLUMNS></td>
        </tr>
    }
    .into_any()
}

#[component]
fn Row(worker: WorkerCell) -> impl IntoView {
    let text = use_text();
    let tip = use_context::<ChipTip>();
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
    let summary = {
        let worker = worker.clone();
        memo(move || worker.with(DeviceSummary::of_worker))
    };
    let facts = {
        let worker = worker.clone();
        memo(move || worker.with(|worker| (worker.heartbeat_ms, worker.clock_offset_ms)))
    };
    let value =
        move |metric: Metric| move || summary.with(|summary| metric.value(summary, text.get())).unwrap_or_default();
    let pointed = {
        let worker = worker.clone();
        move |event: ev::PointerEvent| {
            let svg = event_target::<web_sys::Element>(&event).closest(".device-bars").ok().flatten();
            match (tip, svg) {
                (Some(tip), Some(svg)) => {
                    tip.point(
                        &worker,
                        &svg.get_bounding_client_rect(),
                        f64::from(event.client_x()),
                        f64::from(event.client_y()),
                    );
                }
                (Some(tip), None) => tip.hide(),
                (None, _) => {}
            }
        }
    };
    view! {
        <tr
            class="worker-row"
            data-state=move || state_tag(state.get())
            on:pointermove=pointed
            on:pointerleave=move |_| if let Some(tip) = tip { tip.hide() }
        >
            <td><StateBadge state/><Cause worker=worker.clone()/></td>
            <th scope="row" class="mono"><a class="row-link" href=paths::worker(id) title=name>{name}</a></th>
            <td class="mono">{read(|worker| worker.ip.clone())}</td>
            <td><DevicesLine worker=worker.clone()/></td>
            <td>
                <span class="cell-bars">
                    <DeviceBars worker=worker.clone() metric=Metric::Use bare=true/>
                    <span>{value(Metric::Use)}</span>
                </span>
            </td>
            <td>
                <Meter percent=Signal::derive(move || summary.with(DeviceSummary::memory_percent))/>
                <span class="meter-value">{value(Metric::Memory)}</span>
            </td>
            <td class="number">
                {move || summary.with(|summary| summary.max_temperature_c).map(|degrees| format!("{} °C", format::whole(degrees)))}
            </td>
            <td class="number"><Heartbeat time_ms=Signal::derive(move || facts.get().0)/></td>
            <td class="number" class:warning=move || facts.get().1.is_some_and(|offset_ms| offset_ms.abs() >= 1000)>
                {move || facts.get().1.map(|offset_ms| text.get().clock_offset(offset_ms))}
            </td>
            <td class="menu-cell"><MenuButton id name/></td>
        </tr>
    }
    .into_any()
}

/// A sign that there is trouble, as grave as the worst cause, which is shown on hover.
#[component]
fn Cause(worker: WorkerCell) -> impl IntoView {
    let (text, zone, fleet) = (use_text(), use_zone(), use_fleet());
    let cause = memo(move || {
        let worker = worker.read();
        let causes = trouble::causes(worker.state, &worker.conditions);
        let worst = causes.first()?;
        Some((trouble::severity(worker.state, worst), worst.reason.clone(), worker.os.clone()))
    });
    move || {
        cause.get().map(|(severity, reason, os)| {
            let is_error = severity == Severity::Error;
            let sentence = Signal::derive(move || {
                let context = ReasonContext { now_ms: fleet.now_ms(), zone: zone.get(), os: &os, also: None };
                reason_text(&reason, text.language(), &context).what
            });
            view! {
                <span class="row-cause" class:error=is_error title=sentence>
                    {Icon::Warning.view()}
                    <span class="visually-hidden">{sentence}</span>
                </span>
            }
            .into_any()
        })
    }
}
