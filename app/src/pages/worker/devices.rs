//! The devices, grouped by card.

use super::ask::Networks;
use crate::fleet::devices::{memory_percent, readings_are_current};
use crate::fleet::store::WorkerCell;
use crate::format::{self, Span};
use crate::i18n::{Messages, use_text};
use crate::pages::workers::DevicesLine;
use crate::reactive::memo;
use crate::widgets::Meter;
use crate::widgets::state::health_class;
use api::{DeviceHealth, DeviceView, WorkerState, WorkerView};
use leptos::prelude::*;

/// Stands for a figure that is not known.
const UNKNOWN: &str = "–";

/// A row for each chip, grouped by card.
#[component]
pub fn Devices(
    /// Whose.
    worker: WorkerCell,
    /// What the stream does not carry.
    networks: Memo<Networks>,
) -> impl IntoView {
    let text = use_text();
    // The rows stay while figures change.
    let layout = {
        let worker = worker.clone();
        memo(move || worker.with(|worker| cards(worker.devices.as_deref().unwrap_or_default())))
    };
    let driver = {
        let worker = worker.clone();
        memo(move || worker.with(|worker| worker.devices.as_ref()?.first()?.driver_version.clone()))
    };
    let stale = {
        let worker = worker.clone();
        move || worker.with(|worker| worker.devices_stale_s)
    };
    let line = worker.clone();
    view! {
        <section class="panel section devices">
            <div class="section-head">
                <h2>{text.of(|m| m.worker.devices)}</h2>
                <span class="muted"><DevicesLine worker=line/></span>
                {move || driver.get().map(|driver| view! { <span class="muted">{text.of(|m| m.worker.driver)}" "{driver}</span> }.into_any())}
            </div>
            {move || stale().map(|age_s| view! {
                <p class="note warning">{move || (text.get().workers.stale)(&(text.get().words.span)(Span::of_seconds(age_s)))}</p>
            }.into_any())}
            {move || {
                let worker = worker.clone();
                (!layout.read().is_empty()).then(|| view! {
                    <div class="table-scroll">
                        <table class="devices-table">
                            <Head/>
                            {layout
                                .get()
                                .into_iter()
                                .map(|card| view! { <Card worker=worker.clone() card networks/> }.into_any())
                                .collect_view()}
                        </table>
                    </div>
                }.into_any())
            }}
        </section>
    }
    .into_any()
}

#[component]
fn Head() -> impl IntoView {
    let text = use_text();
    let column = move |label: fn(&Messages) -> &'static str| {
        view! { <th scope="col">{move || label(text.get())}</th> }.into_any()
    };
    view! {
        <thead>
            <tr>
                {column(|m| m.worker.index)}
                {column(|m| m.worker.model)}
                {column(|m| m.worker.health)}
                {column(|m| m.worker.utilisation)}
                {column(|m| m.worker.memory)}
                {column(|m| m.worker.temperature)}
                {column(|m| m.worker.power)}
                {column(|m| m.worker.bus)}
                {column(|m| m.worker.network)}
            </tr>
        </thead>
    }
    .into_any()
}

/// The places of the devices of one card.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CardPlaces {
    card: Option<u32>,
    places: Vec<usize>,
}

fn cards(devices: &[DeviceView]) -> Vec<CardPlaces> {
    let mut cards: Vec<CardPlaces> = Vec::new();
    for (place, device) in devices.iter().enumerate() {
        match cards.iter_mut().find(|known| known.card == device.card) {
            Some(known) => known.places.push(place),
            None => cards.push(CardPlaces { card: device.card, places: vec![place] }),
        }
    }
    cards
}

#[component]
fn Card(worker: WorkerCell, card: CardPlaces, networks: Memo<Networks>) -> impl IntoView {
    let text = use_text();
    let CardPlaces { card, places } = card;
    let title = move || {
        let words = &text.get().worker;
        card.map_or_else(|| words.card_unknown.to_owned(), words.card)
    };
    // A card with one chip needs no line of its own.
    let head = (places.len() > 1)
        .then(|| view! { <tr class="device-card"><th colspan="9" scope="rowgroup">{title}</th></tr> }.into_any());
    view! {
        <tbody>
            {head}
            {places.into_iter().map(|place| view! { <Chip worker=worker.clone() place networks/> }.into_any()).collect_view()}
        </tbody>
    }
    .into_any()
}

#[component]
fn Chip(worker: WorkerCell, place: usize, networks: Memo<Networks>) -> impl IntoView {
    let text = use_text();
    let chip = memo(move || worker.with(|worker| ChipFacts::of(worker, place)));
    let fact = move |pick: fn(&ChipFacts) -> Option<String>| {
        move || chip.read().as_ref().and_then(pick).unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let percent =
        move |pick: fn(&ChipFacts) -> Option<f64>| Signal::derive(move || chip.read().as_ref().and_then(pick));
    let index = move || chip.read().as_ref().map(|chip| chip.device.index);
    let position = move || {
        let (card, chip) = chip.read().as_ref().and_then(|chip| chip.device.card.zip(chip.device.chip))?;
        Some((text.get().worker.chip_on_card)(card, chip))
    };
    let health = move || {
        let (health, is_past) = chip.read().as_ref().and_then(|chip| Some((chip.device.health?, chip.is_past)))?;
        let class = health_class(if is_past { DeviceHealth::Unknown } else { health });
        Some(view! { <span class=class>{move || text.get().health_word(health)}</span> }.into_any())
    };
    let network = move || {
        let index = index()?;
        networks
            .with(|networks| networks.iter().find(|(device, _)| *device == index).map(|(_, network)| network.clone()))
    };
    view! {
        <tr>
            <th scope="row" title=position>{index}</th>
            <td>{fact(|chip| Some(chip.device.name.clone()))}</td>
            <td>{health}</td>
            <td class="metered">
                <Meter percent=percent(|chip| chip.use_percent)/>
                <span>{fact(|chip| chip.use_percent.map(|percent| format!("{} %", format::percent(percent))))}</span>
            </td>
            <td class="metered wide">
                <Meter percent=percent(|chip| chip.memory_percent)/>
                <span>{fact(|chip| chip.memory.clone())}</span>
            </td>
            <td class="number">{fact(|chip| chip.temperature.clone())}</td>
            <td class="number">{fact(|chip| chip.power.clone())}</td>
            <td class="mono">{fact(|chip| chip.device.bus_id.clone())}</td>
            <td class="mono">{network}</td>
        </tr>
    }
    .into_any()
}

/// What a row shows; readings that are not current are absent.
#[derive(Clone, Debug, PartialEq)]
struct ChipFacts {
    device: DeviceView,
    use_percent: Option<f64>,
    memory_percent: Option<f64>,
    memory: Option<String>,
    temperature: Option<String>,
    power: Option<String>,
    /// The worker is not heard: what is shown was so when it last was.
    is_past: bool,
}

impl ChipFacts {
    fn of(worker: &WorkerView, place: usize) -> Option<Self> {
        let device = worker.devices.as_ref()?.get(place)?.clone();
        let readings = if readings_are_current(worker) { device.readings } else { api::DeviceReadings::default() };
        let used = readings.memory_used_bytes.map_or_else(|| UNKNOWN.to_owned(), format::gib);
        Some(Self {
            use_percent: readings.use_percent,
            memory_percent: memory_percent(&DeviceView { readings, ..device.clone() }),
            memory: device.memory_total_bytes.map(|total| format!("{used} / {} GiB", format::gib(total))),
            temperature: readings.temperature_c.map(|degrees| format!("{} °C", format::whole(degrees))),
            power: readings.power_w.map(|watts| format!("{} W", format::whole(watts))),
            is_past: worker.state == WorkerState::NotReady,
            device,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::list::tests::{device, worker};

    #[test]
    fn chips_are_grouped_by_their_card() {
        let on = |card: Option<u32>, index: u32| DeviceView { card, ..device(index) };
        let groups = cards(&[on(Some(2), 0), on(Some(2), 1), on(Some(5), 2), on(None, 3)]);
        let expected = [(Some(2), vec![0, 1]), (Some(5), vec![2]), (None, vec![3])];
        assert_eq!(groups.into_iter().map(|group| (group.card, group.places)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_not_known_is_a_dash_and_never_zero() {
        let mut stale = worker(1, "a");
        stale.devices_stale_s = Some(99);
        let chip = ChipFacts::of(&stale, 0).unwrap();
        assert_eq!(chip.memory.as_deref(), Some("– / 64 GiB"));
        assert_eq!((chip.use_percent, chip.memory_percent, chip.temperature), (None, None, None));
    }
}
