//! The devices of all workers: which of them a query shows, and in which order. One pass over the registry, in which
//! nothing of a device is copied that is not on the page: a fleet has tens of thousands.

use super::assess::{self, Liveness, Policy};
use super::facts::{Facts, is_unhealthy};
use super::time::Moment;
use super::{Registry, Worker};
use api::{DeviceHealth, GpuDevice, PciDevice};
use app::fleet::device_list::{
    DeviceList, DeviceQuery, DeviceRow, DeviceSort, ListedDevice, ModelTotals, ReadingsTime,
};
use app::fleet::list::{lower, natural_key};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// From here on somebody computes on a device, in percent.
const BUSY_PERCENT: f64 = 1.0;

/// Names come from workers: whoever invents one for each device shall not slow this down.
const MOST_VENDORS: usize = 100;

/// The page that a query asks for.
pub fn list(registry: &Registry, query: &DeviceQuery) -> DeviceList {
    let moment = registry.moment();
    let workers: Vec<Arc<Worker>> = registry.all().into_iter().rev().collect();
    let mut pass = Pass::new(query);
    for worker in &workers {
        pass.visit(&worker.facts(), &moment, registry.policy());
    }
    let mut found = pass.ranked();
    let matching = found.len();
    let pages = matching.div_ceil(DeviceQuery::ROWS).max(1);
    let page = query.page.clamp(1, pages);
    let before = (page - 1) * DeviceQuery::ROWS;
    let rows = sorted_part(&mut found, before..matching.min(before + DeviceQuery::ROWS));
    // a report that came in between may have fewer devices
    let row = |found: &Found| row(&workers.get(found.worker)?.facts(), found.place, &moment, registry.policy());
    DeviceList { workers: workers.len(), matching, page, rows: rows.iter().filter_map(row).collect(), ..pass.totals() }
}

/// A device that the query shows. Ordered as the list is; devices alike are ordered by worker and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    rank: u64,
    /// Which of the visited workers.
    worker: usize,
    place: Place,
}

/// Where a device is in its worker's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Driven(usize),
    Undriven(usize),
}

/// What is not known comes last, whichever way the order goes.
const UNKNOWN: u64 = u64::MAX;

/// Numbers of the same order.
fn rank(value: Option<f64>, is_descending: bool) -> u64 {
    const SIGN: u64 = 1 << 63;
    let Some(value) = value.filter(|value| !value.is_nan()) else { return UNKNOWN };
    let bits = value.to_bits();
    let ascending = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    let rank = if is_descending { !ascending } else { ascending };
    rank.min(UNKNOWN - 1)
}

/// The part of the list in its order; the rest stays in none.
fn sorted_part(found: &mut [Found], part: Range<usize>) -> &[Found] {
    if part.end < found.len() {
        found.select_nth_unstable(part.end);
    }
    let Some(until) = found.get_mut(..part.end) else { return &[] };
    if part.start > 0 && part.start < until.len() {
        until.select_nth_unstable(part.start);
    }
    let Some(part) = until.get_mut(part.start..) else { return &[] };
    part.sort_unstable();
    part
}

/// One look at all devices.
struct Pass<'a> {
    query: &'a DeviceQuery,
    words: Vec<String>,
    /// For each word, whether what is known of the visited worker has it.
    is_in_worker: Vec<bool>,
    /// How many workers were visited.
    visited: usize,
    /// What orders the visited workers, when the query orders by them.
    worker_keys: Vec<String>,
    models: Vec<ModelTotals>,
    places_of_models: HashMap<String, usize>,
    vendors: Vec<(String, usize)>,
    all: usize,
    trouble: usize,
    found: Vec<Found>,
}

impl<'a> Pass<'a> {
    fn new(query: &'a DeviceQuery) -> Self {
        let words: Vec<String> = lower(&query.search).split_whitespace().map(str::to_owned).collect();
        Self {
            query,
            is_in_worker: vec![false; words.len()],
            words,
            visited: 0,
            worker_keys: Vec::new(),
            models: Vec::new(),
            places_of_models: HashMap::new(),
            vendors: Vec::new(),
            all: 0,
            trouble: 0,
            found: Vec::new(),
        }
    }

    fn visit(&mut self, facts: &Facts, moment: &Moment, policy: &Policy) {
        self.look_at_worker(facts);
        let readings = readings_time(facts, moment, policy);
        let report = &facts.status.reported;
        for (place, device) in report.gpu_devices.iter().flatten().enumerate() {
            let model = self.count(device, readings);
            if self.shows(device, readings) {
                let rank = self.rank(device, model, readings);
                self.found.push(Found { rank, worker: self.visited, place: Place::Driven(place) });
            }
        }
        for (place, device) in report.undriven_devices.iter().enumerate() {
            self.all += 1;
            self.trouble += 1;
            count_vendor(&mut self.vendors, &device.vendor);
            if self.shows_undriven(device) {
                let rank = self.rank_of_undriven();
                self.found.push(Found { rank, worker: self.visited, place: Place::Undriven(place) });
            }
        }
        self.visited += 1;
    }

    fn look_at_worker(&mut self, facts: &Facts) {
        if self.query.sort == DeviceSort::Worker {
            self.worker_keys.push(natural_key(&facts.row.name));
        }
        if !self.words.is_empty() {
            let text = worker_text(facts);
            self.is_in_worker.clear();
            self.is_in_worker.extend(self.words.iter().map(|word| text.contains(word)));
        }
    }

    /// Adds it to the totals; gives the place of its model.
    fn count(&mut self, device: &GpuDevice, readings: ReadingsTime) -> usize {
        self.all += 1;
        self.trouble += usize::from(is_in_trouble(device, readings));
        count_vendor(&mut self.vendors, &device.vendor);
        let place = self.place_of_model(&device.name);
        if let Some(model) = self.models.get_mut(place) {
            add_to_model(model, device, readings);
        }
        place
    }

    fn place_of_model(&mut self, name: &str) -> usize {
        if let Some(place) = self.places_of_models.get(name) {
            return *place;
        }
        let place = self.models.len();
        self.places_of_models.insert(name.to_owned(), place);
        self.models.push(ModelTotals { name: name.to_owned(), ..ModelTotals::default() });
        place
    }

    fn shows(&self, device: &GpuDevice, readings: ReadingsTime) -> bool {
        let query = self.query;
        query.model.as_ref().is_none_or(|model| *model == device.name)
            && query.vendor.as_ref().is_none_or(|vendor| *vendor == device.vendor)
            && (!query.only_trouble || is_in_trouble(device, readings))
            && self.finds([&device.name, &device.vendor, device.bus_id.as_deref().unwrap_or_default()])
    }

    /// It has no model, and is trouble.
    fn shows_undriven(&self, device: &PciDevice) -> bool {
        let query = self.query;
        query.model.is_none()
            && query.vendor.as_ref().is_none_or(|vendor| *vendor == device.vendor)
            && self.finds([&device.pci_id, &device.vendor, &device.bus_id])
    }

    /// Whether each word is in what is known of the worker or in one of these.
    fn finds(&self, texts: [&str; 3]) -> bool {
        self.words
            .iter()
            .zip(&self.is_in_worker)
            .all(|(word, is_in_worker)| *is_in_worker || texts.iter().any(|text| contains(text, word)))
    }

    /// By number for models; [`Self::ranked`] makes an order of that, when all are known. Likewise for workers.
    fn rank(&self, device: &GpuDevice, model: usize, readings: ReadingsTime) -> u64 {
        let is_descending = self.query.is_descending();
        let of_now = |value: Option<f64>| rank(value.filter(|_| readings == ReadingsTime::Current), is_descending);
        match self.query.sort {
            DeviceSort::Worker => self.visited as u64,
            DeviceSort::Model => model as u64,
            DeviceSort::Device => rank(Some(f64::from(device.index)), is_descending),
            DeviceSort::Use => of_now(device.core.as_ref().and_then(|core| core.utilization_rate)),
            DeviceSort::Memory => of_now(memory_percent(device)),
            DeviceSort::Temperature => of_now(device.temperature),
            DeviceSort::Power => of_now(device.power_w),
            DeviceSort::Health => rank(sickness(device), is_descending),
        }
    }

    fn rank_of_undriven(&self) -> u64 {
        match self.query.sort {
            DeviceSort::Worker => self.visited as u64,
            DeviceSort::Health => rank(Some(UNUSABLE), self.query.is_descending()),
            _ => UNKNOWN,
        }
    }

    /// What was found, ready to be sorted.
    fn ranked(&mut self) -> Vec<Found> {
        let is_descending = self.query.is_descending();
        let ranks = match self.query.sort {
            DeviceSort::Worker => ranks(&self.worker_keys, is_descending),
            DeviceSort::Model => {
                let keys: Vec<String> = self.models.iter().map(|model| natural_key(&model.name)).collect();
                ranks(&keys, is_descending)
            }
            _ => return std::mem::take(&mut self.found),
        };
        let mut found = std::mem::take(&mut self.found);
        for found in &mut found {
            let number = usize::try_from(found.rank).unwrap_or(usize::MAX);
            found.rank = ranks.get(number).copied().unwrap_or(UNKNOWN);
        }
        found
    }

    /// Everything but the page.
    fn totals(self) -> DeviceList {
        let (mut models, mut vendors) = (self.models, self.vendors);
        models.sort_by(|left, right| right.count.cmp(&left.count).then_with(|| left.name.cmp(&right.name)));
        vendors.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        DeviceList { all: self.all, trouble: self.trouble, vendors, models, ..DeviceList::default() }
    }
}

/// For each key its place among all of them.
fn ranks(keys: &[String], is_descending: bool) -> Vec<u64> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by(|left, right| keys.get(*left).cmp(&keys.get(*right)));
    let mut ranks = vec![UNKNOWN; keys.len()];
    for (rank, number) in order.iter().enumerate() {
        let rank = if is_descending { keys.len() - rank } else { rank };
        if let Some(place) = ranks.get_mut(*number) {
            *place = rank as u64;
        }
    }
    ranks
}

/// What people search for, in lower case.
fn worker_text(facts: &Facts) -> String {
    let row = &facts.row;
    let mut text = lower(&row.name);
    text.extend([" ", &lower(&row.hostname), " ", &row.ip]);
    for (key, value) in &row.labels {
        text.extend([" ", &lower(key), "=", &lower(value)]);
    }
    text
}

/// Whether a text has a word that is in lower case. Models, vendors and addresses are ASCII; what is not is found as it
/// is written. Without copying anything.
fn contains(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len().max(1)).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

fn count_vendor(vendors: &mut Vec<(String, usize)>, vendor: &str) {
    if vendor.is_empty() {
        return;
    }
    if let Some(known) = vendors.iter_mut().find(|known| known.0 == vendor) {
        known.1 += 1;
    } else if vendors.len() < MOST_VENDORS {
        vendors.push((vendor.to_owned(), 1));
    }
}

fn add_to_model(model: &mut ModelTotals, device: &GpuDevice, readings: ReadingsTime) {
    model.count += 1;
    model.unhealthy += usize::from(is_unhealthy(device));
    let is_current = readings == ReadingsTime::Current;
    match is_busy(device).filter(|_| is_current) {
        Some(true) => model.busy += 1,
        Some(false) => model.free += 1,
        None => {}
    }
    let Some(memory) = &device.memory else { return };
    match (memory.used.filter(|_| is_current), memory.total, model.memory_used_bytes) {
        (Some(used), Some(total), Some(before)) => {
            model.memory_used_bytes = Some(before.saturating_add(used));
            model.memory_total_bytes = Some(sum(model.memory_total_bytes, total));
        }
        // the first that tells: memory of those that do not is not counted any more
        (Some(used), Some(total), None) => {
            model.memory_used_bytes = Some(used);
            model.memory_total_bytes = Some(total);
        }
        (None, Some(total), None) => model.memory_total_bytes = Some(sum(model.memory_total_bytes, total)),
        _ => {}
    }
}

fn sum(before: Option<u64>, more: u64) -> u64 {
    before.unwrap_or(0).saturating_add(more)
}

/// Whether somebody computes on it; None when nobody can say.
fn is_busy(device: &GpuDevice) -> Option<bool> {
    let use_percent = device.core.as_ref().and_then(|core| core.utilization_rate);
    match (&device.processes, use_percent) {
        (Some(processes), _) if !processes.is_empty() => Some(true),
        (_, Some(use_percent)) => Some(use_percent >= BUSY_PERCENT),
        (Some(_), None) => Some(false),
        (None, None) => None,
    }
}

fn is_in_trouble(device: &GpuDevice, readings: ReadingsTime) -> bool {
    is_unhealthy(device) || !device.error_codes.is_empty() || matches!(readings, ReadingsTime::ToolSilent { .. })
}

/// How sick something is that nobody can use.
const UNUSABLE: f64 = 2.5;

/// How sick a device is, by its vendor's tool.
fn sickness(device: &GpuDevice) -> Option<f64> {
    let by_health = match device.health? {
        DeviceHealth::Ok => 0.0,
        DeviceHealth::Unknown => 1.0,
        DeviceHealth::Warning => 2.0,
        DeviceHealth::Critical => 3.0,
    };
    Some(if device.error_codes.is_empty() { by_health } else { f64::max(by_health, 2.0) })
}

fn memory_percent(device: &GpuDevice) -> Option<f64> {
    let memory = device.memory.as_ref()?;
    let (used, total) = memory.used.zip(memory.total)?;
    (total > 0).then(|| used as f64 / total as f64)
}

fn readings_time(facts: &Facts, moment: &Moment, policy: &Policy) -> ReadingsTime {
    match assess::liveness(facts, moment, policy) {
        Liveness::Lost { .. } | Liveness::Awaited => {
            let heard_ms = assess::last_heartbeat_ms(facts, moment);
            let age_ms = heard_ms.map(|heard_ms| moment.wall_ms(moment.now).saturating_sub(heard_ms));
            ReadingsTime::WorkerSilent { age_s: age_ms.map(|age_ms| u64::try_from(age_ms / 1000).unwrap_or(0)) }
        }
        Liveness::Heard { .. } | Liveness::Excused => match facts.status.reported.devices_stale_s {
            Some(age_s) => ReadingsTime::ToolSilent { age_s },
            None => ReadingsTime::Current,
        },
    }
}

fn row(facts: &Facts, place: Place, moment: &Moment, policy: &Policy) -> Option<DeviceRow> {
    let report = &facts.status.reported;
    let device = match place {
        Place::Driven(place) => ListedDevice::Driven(Box::new(report.gpu_devices.as_ref()?.get(place)?.clone())),
        Place::Undriven(place) => ListedDevice::Undriven(report.undriven_devices.get(place)?.clone()),
    };
    Some(DeviceRow {
        worker: facts.row.id,
        worker_name: facts.row.name.clone(),
        worker_state: assess::state(facts, moment, policy),
        device,
        readings: readings_time(facts, moment, policy),
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::facts;
    use super::super::tests::registry;
    use super::*;
    use crate::server::store::workers::WorkerRow;
    use api::{DeviceCore, DeviceMemory, DeviceProcess, WorkerId, WorkerStatus, WorkerUuid};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn npu(index: u32, use_percent: Option<f64>) -> GpuDevice {
        GpuDevice {
            index,
            name: "910B3".into(),
            vendor: "Huawei".into(),
            bus_id: Some(format!("0000:c{index}:00.0")),
            core: Some(DeviceCore { total: None, utilization_rate: use_percent }),
            memory: Some(DeviceMemory { total: Some(64), used: use_percent.map(|_| 16), ..DeviceMemory::default() }),
            health: Some(DeviceHealth::Ok),
            ..GpuDevice::default()
        }
    }

    fn gpu(index: u32, use_percent: Option<f64>) -> GpuDevice {
        GpuDevice { name: "H100".into(), vendor: "NVIDIA".into(), ..npu(index, use_percent) }
    }

    fn sick(health: DeviceHealth, device: GpuDevice) -> GpuDevice {
        GpuDevice { health: Some(health), ..device }
    }

    fn with_devices(devices: Vec<GpuDevice>) -> WorkerStatus {
        WorkerStatus { gpu_devices: Some(devices), ..WorkerStatus::default() }
    }

    /// Adds a worker that has just been heard.
    fn join(registry: &Registry, name: &str, status: WorkerStatus) -> Arc<Worker> {
        let number = registry.len() + 1;
        let row = WorkerRow {
            id: WorkerId(i64::try_from(number).unwrap()),
            uuid: WorkerUuid(uuid::Uuid::from_u128(number as u128)),
            name: name.into(),
            labels: BTreeMap::from([("rack".to_owned(), format!("r-{name}"))]),
            ..facts().row
        };
        let now = registry.clock().now();
        let mut facts = Facts::new(row, now);
        facts.hear(now, registry.policy().offline_timeout);
        facts.report(status, now);
        registry.insert(facts)
    }

    fn mixed_fleet() -> Registry {
        let registry = registry();
        join(&registry, "w10", with_devices(vec![npu(0, Some(50.0)), npu(1, None)]));
        join(&registry, "w2", with_devices(vec![gpu(0, Some(0.0)), sick(DeviceHealth::Warning, gpu(1, Some(90.0)))]));
        registry
    }

    /// The rows as `worker:index`.
    fn shown(registry: &Registry, query: &DeviceQuery) -> Vec<String> {
        let name = |row: &DeviceRow| match &row.device {
            ListedDevice::Driven(device) => format!("{}:{}", row.worker_name, device.index),
            ListedDevice::Undriven(device) => format!("{}:{}", row.worker_name, device.bus_id),
        };
        list(registry, query).rows.iter().map(name).collect()
    }

    fn sorted_by(sort: DeviceSort, reversed: bool) -> DeviceQuery {
        DeviceQuery { sort, reversed, ..DeviceQuery::default() }
    }

    #[test]
    fn each_filter_leaves_out_what_it_is_not_about() {
        let registry = mixed_fleet();
        let search = |words: &str| DeviceQuery { search: words.to_owned(), ..DeviceQuery::default() };
        let model = |name: &str| DeviceQuery { model: Some(name.to_owned()), ..DeviceQuery::default() };
        let vendor = |name: &str| DeviceQuery { vendor: Some(name.to_owned()), ..DeviceQuery::default() };
        let trouble = DeviceQuery { only_trouble: true, ..DeviceQuery::default() };
        let (of_w2, of_w10) = (vec!["w2:0", "w2:1"], vec!["w10:0", "w10:1"]);
        let all = [of_w2.clone(), of_w10.clone()].concat();
        for (query, expected) in [
            (DeviceQuery::default(), all.clone()),
            (search(" "), all.clone()),
            (search("h1"), of_w2.clone()),
            (search("HUAWEI"), of_w10.clone()),
            (search("rack=r-W2"), of_w2.clone()),
            (search("c1:00"), vec!["w2:1", "w10:1"]),
            (search("c1:00 nvidia w2"), vec!["w2:1"]),
            (search("nvidia w10"), vec![]),
            (model("910B3"), of_w10.clone()),
            (model("910b3"), vec![]),
            (vendor("NVIDIA"), of_w2.clone()),
            (trouble.clone(), vec!["w2:1"]),
            (DeviceQuery { model: Some("910B3".to_owned()), ..trouble }, vec![]),
        ] {
            assert_eq!(shown(&registry, &query), expected, "{query:?}");
        }
    }

    #[test]
    fn names_are_ordered_as_people_count_and_devices_by_their_place() {
        let registry = mixed_fleet();
        for (reversed, expected) in
            [(false, ["w2:0", "w2:1", "w10:0", "w10:1"]), (true, ["w10:0", "w10:1", "w2:0", "w2:1"])]
        {
            assert_eq!(shown(&registry, &sorted_by(DeviceSort::Worker, reversed)), expected);
        }
        for (reversed, expected) in
            [(false, ["w10:0", "w10:1", "w2:0", "w2:1"]), (true, ["w2:0", "w2:1", "w10:0", "w10:1"])]
        {
            assert_eq!(shown(&registry, &sorted_by(DeviceSort::Model, reversed)), expected);
        }
    }

    #[test]
    fn unknown_readings_come_last_in_both_directions() {
        let registry = mixed_fleet();
        let with = |change: fn(&mut GpuDevice)| {
            let mut device = GpuDevice { index: 9, ..GpuDevice::default() };
            change(&mut device);
            device
        };
        join(&registry, "w3", with_devices(vec![with(|device| device.temperature = Some(-3.0)), with(|_| ())]));
        join(&registry, "w4", with_devices(vec![with(|device| device.power_w = Some(300.0))]));
        for (sort, least, most) in [
            (DeviceSort::Use, "w2:0", "w2:1"),
            (DeviceSort::Temperature, "w3:9", "w3:9"),
            (DeviceSort::Power, "w4:9", "w4:9"),
            (DeviceSort::Memory, "w10:0", "w10:0"),
            (DeviceSort::Health, "w10:0", "w2:1"),
        ] {
            for (reversed, first) in [(false, most), (true, least)] {
                let rows = shown(&registry, &sorted_by(sort, reversed));
                assert_eq!(rows[0], first, "{sort:?} {reversed}");
                assert_eq!(rows.len(), 7, "{sort:?} {reversed}");
            }
        }
        assert_eq!(shown(&registry, &sorted_by(DeviceSort::Use, true))[..3], ["w2:0", "w10:0", "w2:1"]);
    }

    #[test]
    fn what_a_silent_worker_told_last_is_shown_as_such_and_counts_as_unknown() {
        let registry = mixed_fleet();
        let silent = registry.by_name("w2").unwrap();
        silent.facts().leave(registry.clock().now());
        let found = list(&registry, &sorted_by(DeviceSort::Use, false));
        let times: Vec<_> = found.rows.iter().map(|row| (row.worker_name.as_str(), row.readings)).collect();
        assert_eq!(times[0], ("w10", ReadingsTime::Current));
        assert_eq!(times[3], ("w2", ReadingsTime::WorkerSilent { age_s: Some(0) }));
        let gpus = found.models.iter().find(|model| model.name == "H100").unwrap();
        assert_eq!((gpus.count, gpus.busy, gpus.free, gpus.unhealthy), (2, 0, 0, 1));
        assert_eq!((gpus.memory_used_bytes, gpus.memory_total_bytes), (None, Some(128)));
    }

    #[test]
    fn readings_of_a_tool_that_does_not_answer_are_trouble() {
        let registry = registry();
        let stale = WorkerStatus { devices_stale_s: Some(90), ..with_devices(vec![npu(0, Some(50.0))]) };
        join(&registry, "w1", stale);
        let found = list(&registry, &DeviceQuery { only_trouble: true, ..DeviceQuery::default() });
        assert_eq!(found.rows[0].readings, ReadingsTime::ToolSilent { age_s: 90 });
        assert_eq!((found.trouble, found.models[0].busy), (1, 0));
    }

    #[test]
    fn a_device_without_a_driver_is_listed_and_is_trouble() {
        let registry = mixed_fleet();
        let undriven = PciDevice { bus_id: "0000:c7:00.0".into(), vendor: "Huawei".into(), pci_id: "19e5:d802".into() };
        join(&registry, "w3", WorkerStatus { undriven_devices: vec![undriven], ..WorkerStatus::default() });
        let name = "w3:0000:c7:00.0";
        for (query, is_shown) in [
            (DeviceQuery::default(), true),
            (DeviceQuery { only_trouble: true, ..DeviceQuery::default() }, true),
            (DeviceQuery { vendor: Some("Huawei".into()), ..DeviceQuery::default() }, true),
            (DeviceQuery { search: "19e5".into(), ..DeviceQuery::default() }, true),
            (DeviceQuery { model: Some("910B3".into()), ..DeviceQuery::default() }, false),
        ] {
            assert_eq!(shown(&registry, &query).iter().any(|row| row == name), is_shown, "{query:?}");
        }
        let found = list(&registry, &DeviceQuery::default());
        assert_eq!((found.all, found.trouble, found.models.len()), (5, 2, 2));
        assert_eq!(found.vendors, [("Huawei".to_owned(), 3), ("NVIDIA".to_owned(), 2)]);
    }

    #[test]
    fn totals_are_of_all_devices_whatever_is_filtered() {
        let registry = mixed_fleet();
        let found = list(&registry, &DeviceQuery { search: "nothing".into(), ..DeviceQuery::default() });
        assert_eq!((found.workers, found.all, found.matching, found.rows.len()), (2, 4, 0, 0));
        let npus = found.models.iter().find(|model| model.name == "910B3").unwrap();
        assert_eq!((npus.count, npus.busy, npus.free), (2, 1, 0));
        // of the one that tells
        assert_eq!((npus.memory_used_bytes, npus.memory_total_bytes), (Some(16), Some(64)));
    }

    #[test]
    fn a_device_is_busy_when_it_computes_or_a_process_holds_it() {
        let process = || DeviceProcess { pid: 1, ..DeviceProcess::default() };
        for (use_percent, processes, is_busy) in [
            (None, None, None),
            (None, Some(vec![]), Some(false)),
            (None, Some(vec![process()]), Some(true)),
            (Some(0.0), Some(vec![process()]), Some(true)),
            (Some(0.4), None, Some(false)),
            (Some(1.0), Some(vec![]), Some(true)),
        ] {
            let device = GpuDevice { processes, ..npu(0, use_percent) };
            assert_eq!(super::is_busy(&device), is_busy, "{device:?}");
        }
    }

    #[test]
    fn pages_hold_each_device_once_and_the_last_stands_in_for_those_beyond_it() {
        let registry = registry();
        for number in 0..31 {
            let devices = (0..8).map(|index| npu(index, Some(f64::from(number * 7 % 31)))).collect();
            join(&registry, &format!("w{number}"), with_devices(devices));
        }
        for sort in DeviceSort::ALL {
            let page = |page| list(&registry, &DeviceQuery { page, ..sorted_by(sort, false) });
            let mut names: Vec<_> =
                (1..=3).flat_map(|page| shown(&registry, &DeviceQuery { page, ..sorted_by(sort, false) })).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), 248, "{sort:?}");
            assert_eq!((page(3).rows.len(), page(3).pages(), page(3).before()), (48, 3, 200));
            let beyond = page(usize::MAX);
            assert_eq!((beyond.page, &beyond.rows), (3, &page(3).rows));
        }
    }

    #[test]
    fn nobody_and_nothing_make_one_empty_page() {
        let empty = list(&registry(), &DeviceQuery { page: 5, ..DeviceQuery::default() });
        assert_eq!((empty.workers, empty.page, empty.pages(), empty.rows.len()), (0, 1, 1, 0));
    }

    proptest! {
        #[test]
        fn a_part_is_what_sorting_all_would_give(ranks in proptest::collection::vec(0u64..9, 0..60), start in 0usize..70, length in 0usize..20) {
            let mut found: Vec<_> =
                ranks.iter().enumerate().map(|(worker, rank)| Found { rank: *rank, worker, place: Place::Driven(0) }).collect();
            let mut sorted = found.clone();
            sorted.sort();
            let part = start.min(found.len())..(start + length).min(found.len());
            prop_assert_eq!(sorted_part(&mut found, part.clone()), &sorted[part]);
        }

        #[test]
        fn ranks_are_ordered_as_the_values_are(left: f64, right: f64) {
            prop_assume!(!left.is_nan() && !right.is_nan());
            prop_assert_eq!(rank(Some(left), false).cmp(&rank(Some(right), false)), left.total_cmp(&right));
            prop_assert_eq!(rank(Some(left), true).cmp(&rank(Some(right), true)), right.total_cmp(&left));
            prop_assert!(rank(Some(left), true) < rank(None, true) && rank(Some(left), false) < rank(None, false));
        }
    }
}
