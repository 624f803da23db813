//! A row for each device.

use super::list::Page;
use crate::fleet::device_list::{DeviceRow, DeviceSort, ListedDevice, ReadingsTime};
use crate::fleet::list::state_tag;
use crate::format::{self, Span};
use crate::i18n::Messages;
use crate::icon::Icon;
use crate::paths;
use crate::widgets::Meter;
use crate::widgets::state::{health_class, state_icon};
use api::{DeviceHealth, GpuDevice, PciDevice, ReadingKind};
use leptos::prelude::*;

/// Stands for a figure that is not known.
const UNKNOWN: &str = "–";

/// The list.
pub fn rows(page: &Page) -> AnyView {
    let messages = page.messages;
    view! {
        <div class="panel table-scroll">
            <table class="devices-table fleet-devices" aria-label=messages.devices.list>
                <thead><tr>{DeviceSort::ALL.map(|sort| column(page, sort)).collect_view()}</tr></thead>
                <tbody>{page.list.rows.iter().map(|device| row(device, messages)).collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// A column's head, which sorts by it, and the other way round when pressed again.
fn column(page: &Page, sort: DeviceSort) -> AnyView {
    let query = &page.query;
    let is_chosen = query.sort == sort;
    let address = page.address(|query| {
        query.reversed = is_chosen && !query.reversed;
        query.sort = sort;
    });
    let order = is_chosen.then_some(if query.is_descending() { "descending" } else { "ascending" });
    let class = if query.is_descending() { "sort-mark" } else { "sort-mark reversed" };
    let mark = is_chosen.then(|| view! { <span class=class>{Icon::Down.view()}</span> }.into_any());
    view! {
        <th scope="col" aria-sort=order>
            <a data-noscroll="" href=address>{column_word(sort, page.messages)} " " {mark}</a>
        </th>
    }
    .into_any()
}

const fn column_word(sort: DeviceSort, messages: &Messages) -> &'static str {
    let words = &messages.worker;
    match sort {
        DeviceSort::Worker => messages.workers.column_worker,
        DeviceSort::Device => words.index,
        DeviceSort::Model => words.model,
        DeviceSort::Use => words.utilisation,
        DeviceSort::Memory => words.memory,
        DeviceSort::Temperature => words.temperature,
        DeviceSort::Power => words.power,
        DeviceSort::Health => words.health,
    }
}

fn row(row: &DeviceRow, messages: &'static Messages) -> AnyView {
    let worker = worker(row, messages);
    match &row.device {
        ListedDevice::Driven(device) => driven_row(row, worker, device, messages),
        ListedDevice::Undriven(device) => undriven_row(row, worker, device, messages),
    }
}

fn worker(row: &DeviceRow, messages: &'static Messages) -> AnyView {
    let state = row.worker_state;
    view! {
        <th scope="row">
            <span class="state" data-state=state_tag(state) title=messages.state_word(state)>
                {state_icon(state).view()}
                <span class="visually-hidden">{messages.state_word(state)}</span>
            </span>
            " "
            <a class="row-link mono" href=paths::worker(row.worker)>{row.worker_name.clone()}</a>
        </th>
    }
    .into_any()
}

fn driven_row(row: &DeviceRow, worker: AnyView, device: &GpuDevice, messages: &'static Messages) -> AnyView {
    let is_old = row.readings != ReadingsTime::Current;
    let figures = Figures { device, is_old, messages };
    view! {
        <tr data-key=format!("{}:{}", row.worker, device.index) class:old=is_old>
            {worker}
            <td>"#" {device.index} " " <small class="mono muted">{ids(device, messages)}</small></td>
            <td>{device.name.clone()} " " <small class="muted">{device.vendor.clone()}</small></td>
            {figures.utilisation()}
            {figures.memory()}
            <td class="number">{figures.temperature()}</td>
            <td class="number">{figures.power()}</td>
            <td>{figures.health()} " " {age(row.readings, messages)}</td>
        </tr>
    }
    .into_any()
}

fn undriven_row(row: &DeviceRow, worker: AnyView, device: &PciDevice, messages: &'static Messages) -> AnyView {
    let why = messages.devices.no_driver_why;
    view! {
        <tr data-key=format!("{}:{}", row.worker, device.bus_id)>
            {worker}
            <td><small class="mono muted">{device.bus_id.clone()}</small></td>
            <td>{device.vendor.clone()} " " <small class="mono muted">{device.pci_id.clone()}</small></td>
            {metered("metered", None, dash(why))}
            {metered("metered wide", None, dash(why))}
            <td class="number">{dash(why)}</td>
            <td class="number">{dash(why)}</td>
            <td><span class="health warning" title=why>{messages.devices.no_driver}</span></td>
        </tr>
    }
    .into_any()
}

/// Where it is on its host, besides its index.
fn ids(device: &GpuDevice, messages: &Messages) -> String {
    let card = match (device.device_index, device.device_chip_index) {
        (Some(card), Some(chip)) => Some((messages.worker.chip_on_card)(card, chip)),
        (Some(card), None) if card != device.index => Some((messages.worker.card)(card)),
        _ => None,
    };
    // it says nothing where all chips are given to the worker
    let physical = device.physical_index.filter(|physical| *physical != device.index).map(messages.devices.physical);
    [card, physical, device.bus_id.clone()].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Readings of a device, each a figure or a dash that says why there is none.
struct Figures<'a> {
    device: &'a GpuDevice,
    is_old: bool,
    messages: &'static Messages,
}

impl Figures<'_> {
    fn utilisation(&self) -> AnyView {
        let percent = self.device.core.as_ref().and_then(|core| core.utilization_rate);
        let figure =
            self.figure(ReadingKind::Utilization, percent.map(|percent| format!("{} %", format::percent(percent))));
        metered("metered", percent, figure)
    }

    fn memory(&self) -> AnyView {
        let memory = self.device.memory.as_ref();
        let (used, total) = (memory.and_then(|memory| memory.used), memory.and_then(|memory| memory.total));
        let percent =
            used.zip(total).filter(|(_, total)| *total > 0).map(|(used, total)| used as f64 / total as f64 * 100.0);
        let figure = match (used, total) {
            (Some(used), Some(total)) => format!("{} / {} GiB", format::gib(used), format::gib(total)).into_any(),
            (None, Some(total)) => {
                view! { {self.absent(ReadingKind::MemoryUsed)} {format!(" / {} GiB", format::gib(total))} }.into_any()
            }
            (Some(used), None) => format!("{} GiB", format::gib(used)).into_any(),
            (None, None) => self.absent(ReadingKind::Memory),
        };
        metered("metered wide", percent, figure)
    }

    fn temperature(&self) -> AnyView {
        let degrees = self.device.temperature;
        self.figure(ReadingKind::Temperature, degrees.map(|degrees| format!("{} °C", format::whole(degrees))))
    }

    fn power(&self) -> AnyView {
        self.figure(ReadingKind::Power, self.device.power_w.map(|watts| format!("{} W", format::whole(watts))))
    }

    fn health(&self) -> AnyView {
        let Some(health) = self.device.health else { return self.absent(ReadingKind::Health) };
        let class = match health {
            // a hundred green words would hide the one that is not
            DeviceHealth::Ok => "muted",
            _ if self.is_old => health_class(DeviceHealth::Unknown),
            health => health_class(health),
        };
        let codes = self.device.error_codes.join(" ");
        view! {
            <span class=class>{self.messages.health_word(health)}</span>
            " "
            {(!codes.is_empty()).then(|| view! { <small class="mono">{codes}</small> }.into_any())}
        }
        .into_any()
    }

    fn figure(&self, kind: ReadingKind, figure: Option<String>) -> AnyView {
        figure.map_or_else(|| self.absent(kind), IntoAny::into_any)
    }

    fn absent(&self, kind: ReadingKind) -> AnyView {
        let why = self.device.absent.iter().find(|absent| absent.reading == kind).map(|absent| absent.why);
        dash((self.messages.devices.absent)(why))
    }
}

fn metered(class: &'static str, percent: Option<f64>, figure: AnyView) -> AnyView {
    view! { <td class=class><Meter percent=Signal::stored(percent)/><span>{figure}</span></td> }.into_any()
}

fn dash(why: &'static str) -> AnyView {
    view! { <abbr class="muted" title=why>{UNKNOWN}</abbr> }.into_any()
}

/// How old readings are that are not of now, and why.
fn age(readings: ReadingsTime, messages: &Messages) -> Option<AnyView> {
    let (age_s, why) = match readings {
        ReadingsTime::Current => return None,
        ReadingsTime::ToolSilent { age_s } => (Some(age_s), messages.devices.tool_silent),
        ReadingsTime::WorkerSilent { age_s } => (age_s, messages.devices.worker_silent),
    };
    let old = |age_s| (messages.workers.stale_short)(&(messages.words.span)(Span::of_seconds(age_s)));
    let text = age_s.map_or_else(|| messages.devices.last_known.to_owned(), old);
    Some(view! { <span class="stale" title=why>{text}</span> }.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::html_of;
    use crate::fleet::device_list::{DeviceList, DeviceQuery};
    use crate::i18n::Language;
    use api::{AbsentReading, AbsentWhy, DeviceMemory, WorkerId, WorkerState};

    fn drawn(device: ListedDevice, readings: ReadingsTime) -> String {
        let row = DeviceRow {
            worker: WorkerId(3),
            worker_name: "npu-1".to_owned(),
            worker_state: WorkerState::Ready,
            device,
            readings,
        };
        let list = DeviceList { rows: vec![row], ..DeviceList::default() };
        let page = Page { query: DeviceQuery::default(), list, messages: Language::En.messages() };
        html_of(Language::En, || rows(&page))
    }

    fn driven(device: GpuDevice) -> String {
        drawn(ListedDevice::Driven(Box::new(device)), ReadingsTime::Current)
    }

    #[test]
    fn a_reading_that_is_absent_is_a_dash_that_says_why_and_never_zero() {
        let memory = Some(DeviceMemory { total: Some(64 << 30), ..DeviceMemory::default() });
        let absent = vec![AbsentReading { reading: ReadingKind::Power, why: AbsentWhy::Forbidden }];
        let html = driven(GpuDevice { memory, absent, ..GpuDevice::default() });
        assert!(html.contains("title=\"The worker may not read this.\" class=\"muted\">–</abbr>"), "{html}");
        assert!(html.contains("title=\"The worker does not tell this.\" class=\"muted\">–</abbr> / 64 GiB"), "{html}");
        for zero in ["0 %", "0 W", "0 °C"] {
            assert!(!html.contains(zero), "{html}");
        }
    }

    #[test]
    fn readings_that_are_not_of_now_say_how_old_they_are() {
        for (readings, word) in [
            (ReadingsTime::ToolSilent { age_s: 187 }, "3 min 7 s old"),
            (ReadingsTime::WorkerSilent { age_s: Some(86_400 * 3) }, "3 days old"),
            (ReadingsTime::WorkerSilent { age_s: None }, "last known"),
        ] {
            let html = drawn(ListedDevice::Driven(Box::default()), readings);
            assert!(html.contains(word) && html.contains("class=\"old\""), "{html}");
        }
    }

    #[test]
    fn what_a_worker_tells_is_text_whatever_it_is() {
        let evil = "\"><script>alert(1)</script><!>";
        let device = GpuDevice {
            name: evil.to_owned(),
            vendor: evil.to_owned(),
            bus_id: Some(evil.to_owned()),
            error_codes: vec![evil.to_owned()],
            health: Some(DeviceHealth::Critical),
            ..GpuDevice::default()
        };
        let html = driven(device);
        assert!(!html.contains("<script") && !html.contains("<!"), "{html}");
        assert_eq!(html.matches("&lt;script&gt;alert(1)&lt;/script&gt;&lt;!&gt;").count(), 4, "{html}");
    }

    #[test]
    fn a_device_without_a_driver_is_present() {
        let device = PciDevice {
            bus_id: "0000:c1:00.0".to_owned(),
            vendor: "Huawei".to_owned(),
            pci_id: "19e5:d802".to_owned(),
        };
        let html = drawn(ListedDevice::Undriven(device), ReadingsTime::Current);
        for word in ["Present, no driver", "0000:c1:00.0", "19e5:d802"] {
            assert!(html.contains(word), "{html}");
        }
    }
}
