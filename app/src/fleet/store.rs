//! What the browser knows of the fleet: a signal for each worker, so that a change repaints one card and no other.

use crate::browser;
use crate::fleet::ListQuery;
use crate::fleet::trouble::{Counts, Trouble};
use crate::order::sort;
use crate::reactive::memo;
use api::{FleetSnapshot, FleetUpdate, ReadingsUpdate, WorkerId, WorkerView};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// One worker; changes with it.
pub type WorkerCell = ArcRwSignal<WorkerView>;

/// As much of the fleet as a page is rendered with: the first rows, and what is known of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetPart {
    /// The server's clock, in milliseconds since 1970.
    pub server_time_ms: i64,
    /// The rows of this page, in their order.
    pub workers: Vec<WorkerView>,
    /// How many rows there are on all pages.
    pub matching: usize,
    /// Of all workers.
    pub counts: Counts,
    /// Of all workers.
    pub trouble: Trouble,
}

impl FleetPart {
    /// Rows a page.
    pub const ROWS: usize = 50;

    /// The part of a snapshot that a query asks for.
    pub fn of(snapshot: FleetSnapshot, query: &ListQuery) -> Self {
        let counts = Counts::of(snapshot.workers.iter());
        let trouble = Trouble::of(snapshot.workers.iter());
        let mut workers: Vec<WorkerView> = snapshot.workers.into_iter().filter(|worker| query.shows(worker)).collect();
        sort(&mut workers, |left, right| query.compare(left, right));
        let matching = workers.len();
        let before = query.page.saturating_sub(1).saturating_mul(Self::ROWS);
        let workers = workers.into_iter().skip(before).take(Self::ROWS).collect();
        Self { server_time_ms: snapshot.server_time_ms, workers, matching, counts, trouble }
    }

    /// How many pages the rows fill.
    pub const fn pages(&self) -> usize {
        self.matching.div_ceil(Self::ROWS)
    }
}

/// How the event stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It has never been open.
    Connecting,
    /// It delivers.
    Live,
    /// It broke at this moment of the server's clock, in milliseconds since 1970, and is being opened again.
    Broken(i64),
}

/// How much of the fleet is known.
#[derive(Clone, Debug, PartialEq)]
enum Extent {
    Nothing,
    /// What the page was rendered with.
    Part(FleetPart),
    /// Every worker.
    Whole,
}

/// What the browser knows of the fleet. A context of the whole app, so that it outlives a change of page.
#[derive(Clone, Copy)]
pub struct Fleet {
    known: Known,
    counts: Memo<Counts>,
    trouble: Memo<Trouble>,
    now_ms: RwSignal<i64>,
    /// The server's clock at a moment of the browser's monotonic clock; the browser's own time of day is not used.
    anchor: StoredValue<Option<(i64, f64)>>,
    connection: RwSignal<Connection>,
    /// Workers in trouble, as asked for while the page is hidden and the stream is closed.
    troubled_while_hidden: RwSignal<Option<usize>>,
}

/// The workers that are known.
#[derive(Clone, Copy)]
struct Known {
    cells: StoredValue<HashMap<WorkerId, WorkerCell>>,
    /// All of them, in the order in which they became known.
    members: RwSignal<Vec<WorkerId>>,
    extent: RwSignal<Extent>,
    /// Counts what may change counts and banner: everything but readings and heartbeats.
    changes: RwSignal<u64>,
}

impl Known {
    fn worker(self, id: WorkerId) -> Option<WorkerCell> {
        self.cells.with_value(|cells| cells.get(&id).cloned())
    }

    fn part<T>(self, read: impl FnOnce(&FleetPart) -> T) -> Option<T> {
        self.extent.with(|extent| match extent {
            Extent::Part(part) => Some(read(part)),
            Extent::Nothing | Extent::Whole => None,
        })
    }

    fn over_all<T>(self, read: impl FnOnce(&[&WorkerView]) -> T) -> T {
        self.changes.track();
        let cells: Vec<WorkerCell> =
            self.members.with(|members| members.iter().filter_map(|id| self.worker(*id)).collect());
        let guards: Vec<_> = cells.iter().map(ReadUntracked::read_untracked).collect();
        let workers: Vec<&WorkerView> = guards.iter().map(|guard| &**guard).collect();
        read(&workers)
    }

    /// Like [`Known::over_all`]; the empty value while not all workers are known, since some say nothing about all.
    fn over_whole<T: Default>(self, read: impl FnOnce(&[&WorkerView]) -> T) -> T {
        let is_whole = self.extent.with(|extent| *extent == Extent::Whole);
        if is_whole { self.over_all(read) } else { T::default() }
    }

    fn bump_changes(self) {
        self.changes.update(|count| *count += 1);
    }

    fn put_all(self, workers: Vec<WorkerView>) {
        let mut new = Vec::new();
        for worker in workers {
            match self.worker(worker.id) {
                Some(cell) if *cell.read_untracked() == worker => {}
                Some(cell) => cell.set(worker),
                None => {
                    new.push(worker.id);
                    self.cells.update_value(|cells| {
                        cells.insert(worker.id, ArcRwSignal::new(worker));
                    });
                }
            }
        }
        if !new.is_empty() {
            self.members.update(|members| members.extend(new));
        }
    }

    fn remove_all(self, gone: &[WorkerId]) {
        if gone.is_empty() {
            return;
        }
        self.members.update(|members| members.retain(|id| !gone.contains(id)));
        self.cells.update_value(|cells| cells.retain(|id, _| !gone.contains(id)));
    }
}

impl Default for Fleet {
    fn default() -> Self {
        let known = Known {
            cells: StoredValue::default(),
            members: RwSignal::default(),
            extent: RwSignal::new(Extent::Nothing),
            changes: RwSignal::new(0),
        };
        Self {
            known,
            counts: memo(move || {
                let of_part = known.part(|part| part.counts);
                of_part.unwrap_or_else(|| known.over_whole(|workers| Counts::of(workers.iter().copied())))
            }),
            trouble: memo(move || {
                let of_part = known.part(|part| part.trouble.clone());
                of_part.unwrap_or_else(|| known.over_whole(|workers| Trouble::of(workers.iter().copied())))
            }),
            now_ms: RwSignal::new(0),
            anchor: StoredValue::new(None),
            connection: RwSignal::new(Connection::Connecting),
            troubled_while_hidden: RwSignal::new(None),
        }
    }
}

impl Fleet {
    /// Every known worker, in the order in which it became known; tracks it.
    pub fn members(self) -> Vec<WorkerId> {
        self.known.members.get()
    }

    /// One worker, if it is known. Does not track; the signal that it gives does.
    pub fn worker(self, id: WorkerId) -> Option<WorkerCell> {
        self.known.worker(id)
    }

    /// Whether every worker is known; tracks it.
    pub fn is_whole(self) -> bool {
        self.known.extent.with(|extent| *extent == Extent::Whole)
    }

    /// Whether every worker is known; does not track it.
    pub fn is_whole_untracked(self) -> bool {
        self.known.extent.with_untracked(|extent| *extent == Extent::Whole)
    }

    /// What the page was rendered with, until every worker is known; tracks it.
    pub fn part<T>(self, read: impl FnOnce(&FleetPart) -> T) -> Option<T> {
        self.known.part(read)
    }

    /// Workers by state; tracks every change that can change it.
    pub fn counts(self) -> Counts {
        self.counts.get()
    }

    /// What is wrong.
    pub fn trouble(self) -> Memo<Trouble> {
        self.trouble
    }

    /// Workers that errors concern, for the title of the browser's tab; tracks it.
    pub fn troubled(self) -> usize {
        self.troubled_while_hidden.get().unwrap_or_else(|| self.trouble.read().error_workers)
    }

    /// Reads all known workers; tracks every change but readings and heartbeats.
    pub fn over_all<T>(self, read: impl FnOnce(&[&WorkerView]) -> T) -> T {
        self.known.over_all(read)
    }

    /// The server's clock, in milliseconds since 1970; tracks it, once a second.
    pub fn now_ms(self) -> i64 {
        self.now_ms.get()
    }

    /// How the event stream is; tracks it.
    pub fn connection(self) -> Connection {
        self.connection.get()
    }

    /// Takes what a page was rendered with, unless more is known already.
    pub fn show_part(self, part: FleetPart) {
        if self.is_whole_untracked() {
            return;
        }
        self.set_time(part.server_time_ms);
        self.known.put_all(part.workers.clone());
        self.known.extent.set(Extent::Part(part));
    }

    /// Takes one worker, as the worker's page is rendered with, unless it is known already.
    pub fn show_worker(self, worker: WorkerView, server_time_ms: i64) {
        if self.worker(worker.id).is_some() {
            return;
        }
        self.set_time(server_time_ms);
        self.known.put_all(vec![worker]);
    }

    /// Takes every worker at one moment.
    pub fn show_snapshot(self, snapshot: FleetSnapshot) {
        self.set_time(snapshot.server_time_ms);
        let present: HashSet<WorkerId> = snapshot.workers.iter().map(|worker| worker.id).collect();
        let gone: Vec<WorkerId> = self
            .known
            .members
            .with_untracked(|members| members.iter().copied().filter(|id| !present.contains(id)).collect());
        self.known.remove_all(&gone);
        self.known.put_all(snapshot.workers);
        self.known.extent.set(Extent::Whole);
        self.troubled_while_hidden.set(None);
        self.known.bump_changes();
    }

    /// Takes what changed.
    pub fn apply(self, update: FleetUpdate) {
        self.set_time(update.server_time_ms);
        let is_more_than_readings = !update.changed.is_empty() || !update.removed.is_empty();
        self.known.remove_all(&update.removed);
        self.known.put_all(update.changed);
        for readings in update.readings {
            if let Some(cell) = self.worker(readings.id) {
                cell.update(|worker| take_readings(worker, readings));
            }
        }
        for (id, heartbeat_ms) in update.heartbeats {
            if let Some(cell) = self.worker(id) {
                cell.update(|worker| worker.heartbeat_ms = Some(heartbeat_ms));
            }
        }
        if is_more_than_readings {
            self.known.bump_changes();
        }
    }

    /// The event stream delivers.
    pub fn set_live(self) {
        if self.connection.get_untracked() != Connection::Live {
            self.connection.set(Connection::Live);
        }
    }

    /// The event stream broke.
    pub fn set_broken(self) {
        if !matches!(self.connection.get_untracked(), Connection::Broken(_)) {
            self.connection.set(Connection::Broken(self.measured_now_ms()));
        }
    }

    /// So many workers are in trouble; asked for while the stream is closed.
    pub fn set_troubled_while_hidden(self, troubled: usize) {
        self.troubled_while_hidden.set(Some(troubled));
    }

    /// Moves the clock on; called once a second.
    pub fn tick(self) {
        let now_ms = self.measured_now_ms();
        if now_ms != self.now_ms.get_untracked() {
            self.now_ms.set(now_ms);
        }
    }

    fn measured_now_ms(self) -> i64 {
        match (self.anchor.get_value(), browser::monotonic_ms()) {
            #[expect(clippy::cast_possible_truncation, reason = "milliseconds since the page was loaded fit")]
            (Some((server_ms, at_ms)), Some(monotonic_ms)) => server_ms + (monotonic_ms - at_ms) as i64,
            _ => self.now_ms.get_untracked(),
        }
    }

    fn set_time(self, server_time_ms: i64) {
        self.anchor.set_value(browser::monotonic_ms().map(|at_ms| (server_time_ms, at_ms)));
        if self.now_ms.get_untracked() == 0 {
            self.now_ms.set(server_time_ms);
        }
    }
}

fn take_readings(worker: &mut WorkerView, update: ReadingsUpdate) {
    worker.host = update.host;
    worker.clock_offset_ms = update.clock_offset_ms;
    worker.direct_round_trip_ms = update.direct_round_trip_ms;
    if let Some((link, readings)) = worker.link.as_mut().zip(update.link) {
        link.readings = readings;
    }
    for (device, readings) in worker.devices.iter_mut().flatten().zip(update.devices) {
        device.readings = readings;
    }
}

/// What is known of the fleet. [`crate::App`] provides it; outside of it, it is empty.
pub fn use_fleet() -> Fleet {
    use_context::<Fleet>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::StateFilter;
    use crate::fleet::list::tests::worker;
    use api::{DeviceReadings, HostView, WorkerState};

    fn in_owner<T>(test: impl FnOnce() -> T) -> T {
        Owner::new().with(test)
    }

    fn snapshot(workers: Vec<WorkerView>) -> FleetSnapshot {
        FleetSnapshot { sequence: 1, server_time_ms: 1_000, workers }
    }

    fn names(fleet: Fleet) -> Vec<i64> {
        fleet.known.members.get_untracked().into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn a_part_holds_one_page_and_counts_all() {
        let workers = (1..=120).map(|id| worker(id, &format!("npu-{id}"))).collect();
        let query = ListQuery { page: 3, ..ListQuery::default() };
        let part = FleetPart::of(snapshot(workers), &query);
        assert_eq!((part.workers.len(), part.matching, part.pages(), part.counts.all), (20, 120, 3, 120));
        assert_eq!(part.workers[0].name, "npu-101");
    }

    #[test]
    fn a_filter_leaves_the_counts_alone() {
        let query = ListQuery { state: Some(StateFilter::State(WorkerState::NotReady)), ..ListQuery::default() };
        let part = FleetPart::of(snapshot(vec![worker(1, "a")]), &query);
        assert_eq!((part.matching, part.counts.ready), (0, 1));
    }

    #[test]
    fn a_snapshot_removes_who_is_gone_and_keeps_the_order_of_who_stays() {
        in_owner(|| {
            let fleet = Fleet::default();
            fleet.show_snapshot(snapshot(vec![worker(2, "b"), worker(1, "a"), worker(3, "c")]));
            fleet.show_snapshot(snapshot(vec![worker(4, "d"), worker(3, "c"), worker(2, "b")]));
            assert_eq!(names(fleet), [2, 3, 4]);
        });
    }

    #[test]
    fn readings_change_a_worker_but_neither_counts_nor_banner() {
        in_owner(|| {
            let fleet = Fleet::default();
            fleet.show_snapshot(snapshot(vec![worker(1, "a")]));
            let changes = fleet.known.changes.get_untracked();
            let readings = DeviceReadings { use_percent: Some(77.0), ..DeviceReadings::default() };
            fleet.apply(FleetUpdate {
                sequence: 2,
                server_time_ms: 2_000,
                readings: vec![ReadingsUpdate {
                    id: WorkerId(1),
                    devices: vec![readings],
                    host: HostView::default(),
                    clock_offset_ms: Some(5),
                    direct_round_trip_ms: None,
                    link: None,
                }],
                heartbeats: vec![(WorkerId(1), 1_900), (WorkerId(99), 1_900)],
                ..FleetUpdate::default()
            });
            let worker = fleet.worker(WorkerId(1)).unwrap().get_untracked();
            let uses: Vec<_> = worker.devices.unwrap().iter().map(|device| device.readings.use_percent).collect();
            assert_eq!(uses, [Some(77.0), Some(10.0)]);
            assert_eq!((worker.heartbeat_ms, worker.clock_offset_ms), (Some(1_900), Some(5)));
            assert_eq!(fleet.known.changes.get_untracked(), changes);
        });
    }

    #[test]
    fn an_update_brings_and_takes_workers() {
        in_owner(|| {
            let fleet = Fleet::default();
            fleet.show_snapshot(snapshot(vec![worker(1, "a"), worker(2, "b")]));
            let mut lost = worker(2, "b");
            lost.state = WorkerState::NotReady;
            fleet.apply(FleetUpdate {
                sequence: 2,
                changed: vec![lost, worker(3, "c")],
                removed: vec![WorkerId(1)],
                ..FleetUpdate::default()
            });
            assert_eq!(names(fleet), [2, 3]);
            assert_eq!(fleet.counts().not_ready, 1);
        });
    }

    #[test]
    fn a_part_never_replaces_the_whole() {
        in_owner(|| {
            let fleet = Fleet::default();
            fleet.show_snapshot(snapshot(vec![worker(1, "a"), worker(2, "b")]));
            fleet.show_part(FleetPart::of(snapshot(vec![worker(1, "a")]), &ListQuery::default()));
            assert!(fleet.is_whole());
            assert_eq!(fleet.counts().all, 2);
        });
    }
}
