//! Meters: a small bar for each device, and a long bar for one figure. They are drawn with SVG attributes, so that no
//! inline style is needed. What is not known or not current is hatched, never zero.

use crate::fleet::devices::{self, DeviceSummary, readings_are_current};
use crate::fleet::store::WorkerCell;
use crate::format;
use crate::i18n::{Messages, use_text};
use crate::reactive::memo;
use api::{DeviceView, WorkerView};
use leptos::prelude::*;
use std::fmt::Write;

/// From here on a meter is coloured as high, in percent.
const HIGH_PERCENT: f64 = 65.0;
/// From here on a meter is coloured as full, in percent.
const FULL_PERCENT: f64 = 90.0;
/// A temperature that fills its meter, in degrees Celsius: vendors throttle at about 105.
const HOTTEST_C: f64 = 105.0;

const BAR_HEIGHT: u32 = 18;
const BAR_WIDTH: usize = 9;
const BAR_GAP: usize = 3;
const MAX_WIDTH: usize = 165;

/// What a row of bars shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Use of the computing cores.
    Use,
    /// Use of device memory.
    Memory,
    /// Temperature.
    Temperature,
}

impl Metric {
    /// The figure of one device as a share of its meter, in percent.
    pub fn percent(self, device: &DeviceView) -> Option<f64> {
        match self {
            Self::Use => device.readings.use_percent,
            Self::Memory => devices::memory_percent(device),
            Self::Temperature => device.readings.temperature_c.map(|degrees| degrees / HOTTEST_C * 100.0),
        }
    }

    /// The figure of one device in words.
    pub fn device_value(self, device: &DeviceView, messages: &Messages) -> String {
        let value = match self {
            Self::Use => device.readings.use_percent.map(|percent| format!("{} %", format::percent(percent))),
            Self::Memory => memory_value(device.readings.memory_used_bytes, device.memory_total_bytes),
            Self::Temperature => device.readings.temperature_c.map(|degrees| format!("{} °C", format::whole(degrees))),
        };
        value.unwrap_or_else(|| messages.workers.no_reading.to_owned())
    }

    /// The name of the figure.
    pub fn label(self, summary: &DeviceSummary, messages: &Messages) -> &'static str {
        match self {
            Self::Use => messages.workers.utilisation,
            Self::Memory => messages.memory_word(summary.memory_kind),
            Self::Temperature => messages.workers.temperature,
        }
    }

    /// The figure of all devices; None when none is known.
    pub fn value(self, summary: &DeviceSummary, messages: &Messages) -> Option<String> {
        match self {
            Self::Use => summary.mean_use_percent.map(|percent| format!("{} %", format::percent(percent))),
            Self::Memory => memory_value(summary.memory_used_bytes, summary.memory_total_bytes),
            Self::Temperature => {
                summary.max_temperature_c.map(|degrees| (messages.workers.hottest)(&format::whole(degrees)))
            }
        }
    }
}

fn memory_value(used: Option<u64>, total: Option<u64>) -> Option<String> {
    Some(format!("{} / {} GiB", format::gib(used?), format::gib(total?)))
}

/// Outlines of all bars of one row, by level.
#[derive(Debug, Default, PartialEq, Eq)]
struct BarPaths {
    ground: String,
    low: String,
    high: String,
    full: String,
    unknown: String,
}

impl BarPaths {
    fn of(percents: &[Option<f64>]) -> Self {
        let mut paths = Self::default();
        for (place, percent) in percents.iter().enumerate() {
            let left = place * (BAR_WIDTH + BAR_GAP);
            let Some(percent) = percent.map(|percent| percent.clamp(0.0, 100.0)) else {
                add_bar(&mut paths.unknown, left, f64::from(BAR_HEIGHT));
                continue;
            };
            add_bar(&mut paths.ground, left, f64::from(BAR_HEIGHT));
            let of_level = match percent {
                p if p >= FULL_PERCENT => &mut paths.full,
                p if p >= HIGH_PERCENT => &mut paths.high,
                _ => &mut paths.low,
            };
            // Half a percent and more can be seen.
            let height = if percent < 0.5 { 0.0 } else { (percent / 100.0 * f64::from(BAR_HEIGHT)).max(1.0) };
            add_bar(of_level, left, height);
        }
        paths
    }
}

fn add_bar(path: &mut String, left: usize, height: f64) {
    if height > 0.0 {
        // Writing to a string cannot fail.
        let (top, height) = (format::tenths(f64::from(BAR_HEIGHT) - height), format::tenths(height));
        let _ = write!(path, "M{left} {top}h{BAR_WIDTH}v{height}h-{BAR_WIDTH}z");
    }
}

/// One row of bars with its name and its figure.
#[component]
pub fn DeviceBars(
    /// Of whom.
    worker: WorkerCell,
    /// What.
    metric: Metric,
    /// Without name and figure.
    #[prop(optional)]
    bare: bool,
) -> impl IntoView {
    let text = use_text();
    let row = memo(move || RowOfBars::of(&worker.read(), metric, text.get()));
    let path = move |pick: fn(&BarPaths) -> &String| move || row.with(|row| pick(&row.paths).clone());
    let svg = view! {
        <svg
            class="device-bars"
            role="img"
            preserveAspectRatio="none"
            height=BAR_HEIGHT.to_string()
            width=move || row.with(|row| row.width.min(MAX_WIDTH).to_string())
            viewBox=move || row.with(|row| format!("0 0 {} {BAR_HEIGHT}", row.width))
            aria-label=move || row.with(|row| row.description.clone())
        >
            <path class="bar-ground" d=path(|p| &p.ground)></path>
            <path class="bar-low" d=path(|p| &p.low)></path>
            <path class="bar-high" d=path(|p| &p.high)></path>
            <path class="bar-full" d=path(|p| &p.full)></path>
            <path fill="url(#hatch)" d=path(|p| &p.unknown)></path>
        </svg>
    }
    .into_any();
    if bare {
        return svg.into_any();
    }
    view! {
        <span class="bars-label">{move || row.with(|row| row.label)}</span>
        {svg}
        <span class="bars-value" class:muted=move || row.with(|row| !row.is_known)>
            {move || row.with(|row| row.value.clone())}
        </span>
    }
    .into_any()
}

#[derive(Debug, PartialEq)]
struct RowOfBars {
    paths: BarPaths,
    width: usize,
    label: &'static str,
    value: String,
    is_known: bool,
    description: String,
}

impl RowOfBars {
    fn of(worker: &WorkerView, metric: Metric, messages: &'static Messages) -> Self {
        let all = worker.devices.as_deref().unwrap_or_default();
        let is_current = readings_are_current(worker);
        let percents: Vec<Option<f64>> =
            all.iter().map(|device| metric.percent(device).filter(|_| is_current)).collect();
        let summary = DeviceSummary::of_worker(worker);
        let label = metric.label(&summary, messages);
        let value = metric.value(&summary, messages);
        let is_known = value.is_some();
        let value = value
            .unwrap_or_else(|| if all.is_empty() { String::new() } else { messages.workers.no_reading.to_owned() });
        let each: Vec<String> = all
            .iter()
            .filter(|_| is_current)
            .map(|device| (messages.workers.device_value)(device.index, &metric.device_value(device, messages)))
            .collect();
        let description = (messages.workers.bars_text)(label, &value, &each.join(", "));
        let width = (all.len() * (BAR_WIDTH + BAR_GAP)).saturating_sub(BAR_GAP).max(BAR_WIDTH);
        Self { paths: BarPaths::of(&percents), width, label, value, is_known, description }
    }
}

/// A long bar for one figure; hatched when it is not known.
#[component]
pub fn Meter(
    /// Percent, 0 to 100.
    #[prop(into)]
    percent: Signal<Option<f64>>,
) -> impl IntoView {
    let class = move || match percent.get() {
        Some(percent) if percent >= FULL_PERCENT => "bar-full",
        Some(percent) if percent >= HIGH_PERCENT => "bar-high",
        _ => "bar-low",
    };
    // The figure stands beside it.
    view! {
        <svg class="meter" aria-hidden="true" viewBox="0 0 100 6" preserveAspectRatio="none">
            <rect
                class="bar-ground"
                width="100"
                height="6"
                fill=move || percent.get().is_none().then_some("url(#hatch)")
                class:unknown=move || percent.get().is_none()
            ></rect>
            <rect class=class height="6" width=move || format::tenths(percent.get().unwrap_or(0.0).clamp(0.0, 100.0))></rect>
        </svg>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::list::tests::{device, worker};
    use crate::i18n::Language;
    use api::DeviceReadings;

    #[test]
    fn an_unknown_device_is_hatched_and_has_no_ground() {
        let paths = BarPaths::of(&[Some(50.0), None]);
        assert_eq!(paths.ground, "M0 0.0h9v18.0h-9z");
        assert_eq!(paths.low, "M0 9.0h9v9.0h-9z");
        assert_eq!(paths.unknown, "M12 0.0h9v18.0h-9z");
    }

    #[test]
    fn colours_turn_at_their_thresholds() {
        let level = |percent| {
            let paths = BarPaths::of(&[Some(percent)]);
            [!paths.low.is_empty(), !paths.high.is_empty(), !paths.full.is_empty()]
        };
        assert_eq!(level(64.9), [true, false, false]);
        assert_eq!(level(65.0), [false, true, false]);
        assert_eq!(level(89.9), [false, true, false]);
        assert_eq!(level(90.0), [false, false, true]);
        assert_eq!(level(0.0), [false, false, false]);
    }

    #[test]
    fn bars_have_a_text_alternative() {
        let messages = Language::En.messages();
        let row = RowOfBars::of(&worker(1, "a"), Metric::Use, messages);
        assert_eq!(row.description, "Use: 10 %. device 0: 10 %, device 1: 10 %");
        let mut without_readings = worker(1, "a");
        without_readings.devices = Some(vec![DeviceView { readings: DeviceReadings::default(), ..device(0) }]);
        let row = RowOfBars::of(&without_readings, Metric::Memory, messages);
        assert_eq!(row.value, "no reading");
    }
}
