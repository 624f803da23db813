//! What the browser knows of the fleet: a few words about each of ten thousand workers, and a signal for each that is on
//! the screen, so that a change repaints one card and no other.

use crate::browser;
use crate::fleet::trouble::{Counts, Trouble};
use crate::fleet::{Filter, Member};
use crate::order::sort;
use crate::reactive::{effect, memo};
use api::{FleetSnapshot, FleetUpdate, ReadingsUpdate, WatchRequest, WatchedUpdate, WorkerBrief, WorkerId, WorkerView};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

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

/// What the browser knows of the fleet: a few words about every worker, and everything about those that are on the
/// screen. A context of the whole app, so that it outlives a change of page.
#[derive(Clone, Copy)]
pub struct Fleet {
    known: Known,
    looks: Looks,
    order: RwSignal<Vec<WorkerId>>,
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
    /// All of them, by id.
    members: StoredValue<Vec<Member>>,
    /// Their ids, likewise.
    ids: RwSignal<Vec<WorkerId>>,
    extent: RwSignal<Extent>,
    /// Counts what may change counts and banner.
    changes: RwSignal<u64>,
    /// Those of which everything is known.
    cells: StoredValue<HashMap<WorkerId, WorkerCell>>,
    /// Counts workers of which everything has become known.
    arrivals: RwSignal<u64>,
}

impl Known {
    fn part<T>(self, read: impl FnOnce(&FleetPart) -> T) -> Option<T> {
        self.extent.with(|extent| match extent {
            Extent::Part(part) => Some(read(part)),
            Extent::Nothing | Extent::Whole => None,
        })
    }

    /// The empty value while not all workers are known, since some say nothing about all.
    fn over_whole<T: Default>(self, read: impl FnOnce(&[Member]) -> T) -> T {
        self.changes.track();
        let is_whole = self.extent.with(|extent| *extent == Extent::Whole);
        if is_whole { self.members.with_value(|members| read(members)) } else { T::default() }
    }

    /// Everything about these is known now.
    fn put_views(self, workers: Vec<WorkerView>) {
        let mut has_new = false;
        for worker in workers {
            match self.cells.with_value(|cells| cells.get(&worker.id).cloned()) {
                Some(cell) if *cell.read_untracked() == worker => {}
                Some(cell) => cell.set(worker),
                None => {
                    has_new = true;
                    self.cells.update_value(|cells| {
                        cells.insert(worker.id, ArcRwSignal::new(worker));
                    });
                }
            }
        }
        if has_new {
            self.arrivals.update(|count| *count += 1);
        }
    }

    fn put_members(self, changed: Vec<WorkerBrief>) {
        let has_new = self.members.try_update_value(|members| put_in_place(members, changed)).unwrap_or_default();
        if has_new {
            self.tell_ids();
        }
    }

    fn remove(self, gone: &[WorkerId]) {
        if gone.is_empty() {
            return;
        }
        self.members.update_value(|members| members.retain(|member| !gone.contains(&member.brief.id)));
        self.cells.update_value(|cells| cells.retain(|id, _| !gone.contains(id)));
        self.tell_ids();
    }

    fn tell_ids(self) {
        self.ids.set(self.members.with_value(|members| members.iter().map(|member| member.brief.id).collect()));
    }
}

/// Replaces those that are known and adds the others; true when there are any. Members stay in the order of their ids.
fn put_in_place(members: &mut Vec<Member>, changed: Vec<WorkerBrief>) -> bool {
    let mut new = Vec::new();
    for brief in changed {
        let known = place_of(members, brief.id).and_then(|place| members.get_mut(place));
        match known {
            Some(known) if known.brief == brief => {}
            Some(known) => *known = Member::new(brief),
            None => new.push(Member::new(brief)),
        }
    }
    let has_new = !new.is_empty();
    if has_new {
        members.append(&mut new);
        sort(members, |left, right| left.brief.id.cmp(&right.brief.id));
    }
    has_new
}

fn place_of(members: &[Member], id: WorkerId) -> Option<usize> {
    members.binary_search_by(|member| member.brief.id.cmp(&id)).ok()
}

/// At which workers the parts of a page look.
#[derive(Clone, Copy)]
struct Looks {
    /// Each under a number of its own.
    parts: RwSignal<Vec<(u64, Vec<WorkerId>)>>,
    last_number: StoredValue<u64>,
    all: Memo<Vec<WorkerId>>,
}

impl Looks {
    fn new() -> Self {
        let parts: RwSignal<Vec<(u64, Vec<WorkerId>)>> = RwSignal::default();
        let all = memo(move || {
            let mut all: Vec<WorkerId> = parts.read().iter().flat_map(|(_, ids)| ids.iter().copied()).collect();
            sort(&mut all, Ord::cmp);
            all.dedup();
            all.truncate(WatchRequest::MOST);
            all
        });
        Self { parts, last_number: StoredValue::new(0), all }
    }

    fn set(self, number: u64, ids: Vec<WorkerId>) {
        let is_known = self.parts.with_untracked(|parts| parts.iter().any(|part| part.0 == number && part.1 == ids));
        if !is_known {
            self.parts.update(|parts| {
                parts.retain(|part| part.0 != number);
                parts.push((number, ids));
            });
        }
    }
}

impl Default for Fleet {
    fn default() -> Self {
        let known = Known {
            members: StoredValue::default(),
            ids: RwSignal::default(),
            extent: RwSignal::new(Extent::Nothing),
            changes: RwSignal::new(0),
            cells: StoredValue::default(),
            arrivals: RwSignal::new(0),
        };
        Self {
            known,
            looks: Looks::new(),
            order: RwSignal::default(),
            counts: memo(move || {
                let of_part = known.part(|part| part.counts);
                of_part.unwrap_or_else(|| {
                    known.over_whole(|members| Counts::of(members.iter().map(|member| &member.brief)))
                })
            }),
            trouble: memo(move || {
                let of_part = known.part(|part| part.trouble.clone());
                of_part.unwrap_or_else(|| {
                    known.over_whole(|members| Trouble::of(members.iter().map(|member| &member.brief)))
                })
            }),
            now_ms: RwSignal::new(0),
            anchor: StoredValue::new(None),
            connection: RwSignal::new(Connection::Connecting),
            troubled_while_hidden: RwSignal::new(None),
        }
    }
}

impl Fleet {
    /// Every worker, as far as all are known, the oldest first; tracks who there is.
    pub fn members(self) -> Vec<WorkerId> {
        self.known.ids.get()
    }

    /// Everything about one worker, if it is known. Does not track; the signal that it gives does.
    pub fn worker(self, id: WorkerId) -> Option<WorkerCell> {
        self.known.cells.with_value(|cells| cells.get(&id).cloned())
    }

    /// Everything about one worker in a view, and until it is known, what is known of all.
    pub fn view_of(self, id: WorkerId, view: fn(WorkerCell) -> AnyView, blank: fn(WorkerBrief) -> AnyView) -> AnyView {
        let is_known = memo(move || {
            self.known.arrivals.track();
            self.worker(id).is_some()
        });
        let shown = move || {
            let worker = if is_known.get() { self.worker(id) } else { None };
            worker.map_or_else(|| self.brief(id).map(blank).into_any(), view)
        };
        shown.into_any()
    }

    /// All workers in the order in which the list showed them last; empty until it did.
    pub const fn order(self) -> RwSignal<Vec<WorkerId>> {
        self.order
    }

    /// A few words about one worker, if it is known. Does not track.
    fn brief(self, id: WorkerId) -> Option<WorkerBrief> {
        self.known.members.with_value(|members| {
            let member = place_of(members, id).and_then(|place| members.get(place))?;
            Some(member.brief.clone())
        })
    }

    /// Those of `ids` that a filter shows, in their order; tracks every change but readings and heartbeats.
    pub fn matching(self, ids: &[WorkerId], filter: &Filter) -> Vec<WorkerId> {
        self.known.over_whole(|members| {
            let shows = |id: &WorkerId| {
                let member = place_of(members, *id).and_then(|place| members.get(place));
                member.is_some_and(|member| filter.shows(member))
            };
            ids.iter().copied().filter(shows).collect()
        })
    }

    /// How many workers a filter shows; tracks every change but readings and heartbeats.
    pub fn count_matching(self, filter: &Filter) -> usize {
        self.known.over_whole(|members| members.iter().filter(|member| filter.shows(member)).count())
    }

    /// Part of the page looks at these workers for as long as the calling component is there: the server tells everything
    /// about them, as it changes.
    pub fn look(self, ids: Signal<Vec<WorkerId>>) {
        let looks = self.looks;
        let number = looks.last_number.try_update_value(|number| {
            *number += 1;
            *number
        });
        let Some(number) = number else { return };
        // at once: what another part has just ceased to look at is not forgotten in between
        looks.set(number, ids.get_untracked());
        effect(move || looks.set(number, ids.get()));
        on_cleanup(move || {
            looks.parts.try_update(|parts| parts.retain(|part| part.0 != number));
        });
    }

    /// At which workers the page looks; tracks it.
    pub fn looked_at(self) -> Vec<WorkerId> {
        self.looks.all.get()
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
        self.known.put_views(part.workers.clone());
        self.known.extent.set(Extent::Part(part));
    }

    /// Takes one worker, as the worker's page is rendered with, unless it is known already.
    pub fn show_worker(self, worker: WorkerView, server_time_ms: i64) {
        if self.worker(worker.id).is_some() {
            return;
        }
        self.set_time(server_time_ms);
        self.known.put_views(vec![worker]);
    }

    /// Takes every worker at one moment.
    pub fn show_snapshot(self, snapshot: FleetSnapshot) {
        self.set_time(snapshot.server_time_ms);
        let mut present: Vec<WorkerId> = snapshot.workers.iter().map(|worker| worker.id).collect();
        sort(&mut present, Ord::cmp);
        let ids = self.known.ids.get_untracked();
        let gone: Vec<WorkerId> = ids.into_iter().filter(|id| present.binary_search(id).is_err()).collect();
        self.known.remove(&gone);
        self.known.put_members(snapshot.workers);
        self.known.extent.set(Extent::Whole);
        self.troubled_while_hidden.set(None);
        self.known.changes.update(|count| *count += 1);
    }

    /// Takes what changed about the fleet.
    pub fn apply(self, update: FleetUpdate) {
        self.set_time(update.server_time_ms);
        if update.changed.is_empty() && update.removed.is_empty() {
            return;
        }
        self.known.remove(&update.removed);
        self.known.put_members(update.changed);
        self.known.changes.update(|count| *count += 1);
    }

    /// Takes what changed about workers at which the page looks.
    pub fn apply_watched(self, update: WatchedUpdate) {
        self.set_time(update.server_time_ms);
        self.known.put_views(update.changed);
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
    }

    /// Takes everything about workers at which the page has begun to look, and forgets those at which it looks no more:
    /// what is not kept current must not be shown.
    pub fn show_watched(self, answer: WatchedUpdate) {
        self.apply_watched(answer);
        let looked_at = self.looks.all.get_untracked();
        self.known.cells.update_value(|cells| cells.retain(|id, _| looked_at.binary_search(id).is_ok()));
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
    use crate::fleet::list::ListQuery;
    use crate::fleet::list::tests::{brief, worker};
    use api::{DeviceReadings, HostView, WorkerState};

    fn in_owner<T>(test: impl FnOnce() -> T) -> T {
        Owner::new().with(test)
    }

    fn snapshot(workers: Vec<WorkerBrief>) -> FleetSnapshot {
        FleetSnapshot { sequence: 1, server_time_ms: 1_000, workers }
    }

    fn shown(worker: WorkerView) -> WatchedUpdate {
        WatchedUpdate { server_time_ms: 1_000, changed: vec![worker], ..WatchedUpdate::default() }
    }

    fn ids(fleet: Fleet) -> Vec<i64> {
        fleet.known.ids.get_untracked().into_iter().map(|id| id.0).collect()
    }

    fn looking_at(ids: &[i64]) -> (Fleet, RwSignal<Vec<WorkerId>>) {
        let fleet = Fleet::default();
        let looked_at = RwSignal::new(ids.iter().copied().map(WorkerId).collect());
        fleet.look(looked_at.into());
        (fleet, looked_at)
    }

    #[test]
    fn a_snapshot_removes_who_is_gone_and_brings_who_is_new() {
        in_owner(|| {
            let fleet = Fleet::default();
            fleet.show_snapshot(snapshot(vec![brief(2, "b"), brief(1, "a"), brief(3, "c")]));
            assert_eq!(ids(fleet), [1, 2, 3]);
            fleet.show_snapshot(snapshot(vec![brief(4, "d"), brief(3, "c"), brief(2, "b")]));
            assert_eq!(ids(fleet), [2, 3, 4]);
        });
    }

    #[test]
    fn readings_change_a_worker_but_neither_counts_nor_banner() {
        in_owner(|| {
            let (fleet, _) = looking_at(&[1]);
            fleet.show_snapshot(snapshot(vec![brief(1, "a")]));
            fleet.show_watched(shown(worker(1, "a")));
            let changes = fleet.known.changes.get_untracked();
            let readings = DeviceReadings { use_percent: Some(77.0), ..DeviceReadings::default() };
            fleet.apply_watched(WatchedUpdate {
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
                ..WatchedUpdate::default()
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
            fleet.show_snapshot(snapshot(vec![brief(1, "a"), brief(2, "b")]));
            let lost = WorkerBrief { state: WorkerState::NotReady, ..brief(2, "b") };
            fleet.apply(FleetUpdate {
                sequence: 2,
                changed: vec![lost, brief(3, "c")],
                removed: vec![WorkerId(1)],
                ..FleetUpdate::default()
            });
            assert_eq!(ids(fleet), [2, 3]);
            assert_eq!(fleet.counts().not_ready, 1);
        });
    }

    #[test]
    fn a_part_never_replaces_the_whole() {
        in_owner(|| {
            let fleet = Fleet::default();
            fleet.show_snapshot(snapshot(vec![brief(1, "a"), brief(2, "b")]));
            fleet.show_part(FleetPart {
                server_time_ms: 1,
                workers: vec![worker(1, "a")],
                matching: 1,
                counts: Counts::default(),
                trouble: Trouble::default(),
            });
            assert!(fleet.is_whole());
            assert_eq!(fleet.counts().all, 2);
        });
    }

    #[test]
    fn what_is_not_looked_at_any_more_is_forgotten_and_stays_in_the_list() {
        in_owner(|| {
            let (fleet, _) = looking_at(&[1]);
            fleet.show_snapshot(snapshot(vec![brief(1, "a"), brief(2, "b")]));
            fleet.show_watched(shown(worker(1, "a")));
            assert!(fleet.worker(WorkerId(1)).is_some());
            let part = fleet.looks.parts.get_untracked().first().map_or(0, |part| part.0);
            fleet.looks.set(part, vec![WorkerId(2)]);
            fleet.show_watched(shown(worker(2, "b")));
            assert!(fleet.worker(WorkerId(1)).is_none() && fleet.worker(WorkerId(2)).is_some());
            assert_eq!(ids(fleet), [1, 2]);
        });
    }

    #[test]
    fn parts_of_a_page_look_at_workers_together_and_at_no_more_than_the_server_takes() {
        in_owner(|| {
            let (fleet, _) = looking_at(&[3, 1]);
            fleet.look(Signal::derive(|| vec![WorkerId(2), WorkerId(3)]));
            assert_eq!(fleet.looked_at(), [1, 2, 3].map(WorkerId));
            fleet.look(Signal::derive(|| (0..2_000).map(WorkerId).collect()));
            assert_eq!(fleet.looked_at().len(), WatchRequest::MOST);
        });
    }

    #[test]
    fn a_filter_keeps_the_order_that_it_is_given() {
        in_owner(|| {
            let fleet = Fleet::default();
            fleet.show_snapshot(snapshot((1..=4).map(|id| brief(id, &format!("npu-{}", id % 2))).collect()));
            let filter = Filter::of(&ListQuery { search: "npu-1".to_owned(), ..ListQuery::default() });
            let order = [4, 3, 9, 2, 1].map(WorkerId);
            assert_eq!(fleet.matching(&order, &filter), [3, 1].map(WorkerId));
            assert_eq!(fleet.count_matching(&filter), 2);
        });
    }
}
