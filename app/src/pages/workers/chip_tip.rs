//! The one tooltip of a page, with everything about one chip.

use crate::browser;
use crate::fleet::devices::readings_are_current;
use crate::fleet::store::WorkerCell;
use crate::format::{self, Span};
use crate::i18n::{Messages, use_text};
use crate::reactive::effect;
use api::{DeviceView, WorkerView};
use leptos::html;
use leptos::prelude::*;
use web_sys::{DomRect, HtmlDivElement};

/// Which chip is looked at. A context of the pages that show bars.
#[derive(Clone, Copy)]
pub struct ChipTip(RwSignal<Option<Tip>>);

#[derive(Clone)]
struct Tip {
    worker: WorkerCell,
    /// Place in the list of devices.
    place: usize,
    /// Where the bars are: middle of the chip's bar and upper edge, in CSS pixels of the window.
    x: f64,
    y: f64,
}

impl ChipTip {
    /// Provides it to the views below.
    pub fn provide() -> Self {
        let tip = Self(RwSignal::new(None));
        provide_context(tip);
        tip
    }

    /// Shows the chip whose bar is under a point of the window, if there is one. `bars` is where the bars are.
    pub fn point(self, worker: &WorkerCell, bars: &DomRect, x: f64, y: f64) {
        let count = device_count(worker);
        if count == 0 || x < bars.left() || x > bars.right() || y < bars.top() || y > bars.bottom() {
            self.hide();
            return;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the bars, by the check above"
        )]
        let place = ((x - bars.left()) / bars.width() * count as f64) as usize;
        self.show(worker, bars, place.min(count - 1));
    }

    /// Shows the chip at a place.
    pub fn show(self, worker: &WorkerCell, bars: &DomRect, place: usize) {
        let count = device_count(worker).max(1);
        let is_this = |tip: &Tip| tip.place == place && tip.worker == *worker && (tip.y - bars.top()).abs() < 1.0;
        // Events still come from bars whose page has been left; then there is nothing to show it in.
        let is_shown = self.0.try_with_untracked(|tip| tip.as_ref().is_some_and(is_this));
        if is_shown == Some(false) {
            let x = bars.left() + (place as f64 + 0.5) / count as f64 * bars.width();
            self.0.set(Some(Tip { worker: worker.clone(), place, x, y: bars.top() }));
        }
    }

    /// Shows the chip `step` places further, round and round.
    pub fn step(self, worker: &WorkerCell, bars: &DomRect, step: isize) {
        let count = device_count(worker);
        if count == 0 {
            return;
        }
        let place_of = |tip: &Option<Tip>| tip.as_ref().filter(|tip| tip.worker == *worker).map(|tip| tip.place);
        let place = self.0.try_with_untracked(place_of).flatten();
        let next = place.map_or(0, |place| place.wrapping_add_signed(step).wrapping_add(count) % count);
        self.show(worker, bars, next);
    }

    /// Shows nothing. The bars may lose the focus because their page is left: then there is nothing to hide.
    pub fn hide(self) {
        if self.0.try_with_untracked(Option::is_some) == Some(true) {
            self.0.set(None);
        }
    }
}

fn device_count(worker: &WorkerCell) -> usize {
    worker.with_untracked(|worker| worker.devices.as_ref().map_or(0, Vec::len))
}

/// Shows the chip that is looked at.
#[component]
pub fn ChipTipView(
    /// Which.
    tip: ChipTip,
) -> impl IntoView {
    let text = use_text();
    let element = NodeRef::<html::Div>::new();
    effect(move || {
        if let (Some(element), Some(tip)) = (element.get(), tip.0.get()) {
            place(&element, &tip);
        }
    });
    let content = move || {
        let tip = tip.0.get()?;
        let worker = tip.worker.read();
        let device = worker.devices.as_ref()?.get(tip.place)?;
        Some(
            view! { <div class="chip-tip panel" node_ref=element>{facts(&worker, device, text.get())}</div> }
                .into_any(),
        )
    };
    view! { <div role="status">{content}</div> }.into_any()
}

fn facts(worker: &WorkerView, device: &DeviceView, messages: &'static Messages) -> impl IntoView + use<> {
    let words = &messages.worker;
    let readings = &device.readings;
    let stale =
        worker.devices_stale_s.map(|age_s| (messages.workers.stale)(&(messages.words.span)(Span::of_seconds(age_s))));
    let is_current = readings_are_current(worker);
    let reading = move |value: Option<String>| {
        value.filter(|_| is_current).unwrap_or_else(|| messages.workers.no_reading.to_owned())
    };
    let memory = device.readings.memory_used_bytes.zip(device.memory_total_bytes);
    let rows = [
        (
            messages.workers.utilisation,
            Some(reading(readings.use_percent.map(|percent| format!("{} %", format::percent(percent))))),
        ),
        (
            messages.memory_word(device.memory_kind),
            Some(reading(memory.map(|(used, total)| format!("{} / {} GiB", format::gib(used), format::gib(total))))),
        ),
        (
            words.temperature,
            Some(reading(readings.temperature_c.map(|degrees| format!("{} °C", format::whole(degrees))))),
        ),
        (words.power, readings.power_w.filter(|_| is_current).map(|watts| format!("{} W", format::whole(watts)))),
        (words.health, device.health.map(|health| messages.health_word(health).to_owned())),
        (words.bus, device.bus_id.clone()),
        (words.driver, device.driver_version.clone()),
    ];
    let place = match (device.card, device.chip) {
        (Some(card), Some(chip)) => (words.chip_on_card)(card, chip),
        (Some(card), None) => (words.card)(card),
        _ => String::new(),
    };
    view! {
        <p class="chip-tip-title"><strong>{(words.device)(device.index)}</strong> " " {device.vendor.clone()} " " {device.name.clone()}</p>
        <p class="muted">{place}</p>
        {stale.map(|stale| view! { <p class="stale">{stale}</p> }.into_any())}
        <dl>
            {rows
                .into_iter()
                .filter_map(|(name, value)| value.map(|value| view! { <dt>{name}</dt> <dd>{value}</dd> }.into_any()))
                .collect_view()}
        </dl>
    }.into_any()
}

/// Puts the tooltip above the bar, or below it where there is no room, and within the window.
fn place(element: &HtmlDivElement, tip: &Tip) {
    let size = element.get_bounding_client_rect();
    let window_width = window().inner_width().ok().and_then(|width| width.as_f64()).unwrap_or(f64::MAX);
    let left = (tip.x - size.width() / 2.0).min(window_width - size.width() - 8.0).max(8.0);
    let above = tip.y - size.height() - 8.0;
    let top = if above < 8.0 { tip.y + 30.0 } else { above };
    browser::set_pixels(element, "left", left);
    browser::set_pixels(element, "top", top);
}
