//! Tells what changed: once a second one look at all workers, one update for all browsers, more about workers at which
//! somebody looks, and a note of every change of state for the workers' pages.

use crate::server::journal::Journal;
use crate::server::registry::assess::{self, Assessment, Liveness};
use crate::server::registry::facts::Facts;
use crate::server::registry::time::{Gap, Moment, TICK};
use crate::server::registry::{Announced, Registry, Worker, view};
use crate::server::sse::Event;
use crate::server::supervisor::Job;
use crate::server::watching::Watching;
use api::{
    Condition, ConditionKind, ConditionStatus, FleetUpdate, ReadingsUpdate, Reason, WorkerEventKind, WorkerId,
    WorkerState, WorkerView,
};
use std::convert::Infallible;
use std::mem::{self, Discriminant};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::broadcast;
use tokio::time::{MissedTickBehavior, interval};

/// Updates that a slow reader may be behind; beyond, it is told to read everything anew.
const RING: usize = 16;
/// So many looks that found nothing to tell, and browsers are told that, lest they and the proxies before them take the
/// stream for dead.
const QUIET_LOOKS: u32 = 15;
/// So many workers are looked at before others have their turn on the same thread.
const LOOKS_AT_A_TIME: usize = 256;

/// The channel of updates. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Announcer {
    sequence: Arc<AtomicU64>,
    updates: broadcast::Sender<Arc<Announcement>>,
}

/// What changed within a second.
#[derive(Debug, Default)]
pub struct Announcement {
    /// A [`FleetUpdate`], shared by all browsers; None when there is nothing that concerns them all, or nobody listened.
    pub event: Option<Event>,
    /// What changed about workers at which somebody looks; each browser is told of its own.
    pub watched: Vec<Watched>,
    /// The server's clock, in milliseconds since 1970.
    pub server_time_ms: i64,
    /// Workers that changed in more than their heartbeat.
    pub touched: Vec<Arc<Worker>>,
    /// Deleted workers.
    pub removed: Vec<Arc<Worker>>,
}

/// What changed about a worker at which somebody looks.
#[derive(Debug)]
pub enum Watched {
    /// More than the following.
    Changed(Box<WorkerView>),
    /// Its readings.
    Readings(ReadingsUpdate),
    /// It was heard, at this moment of the server's clock, in milliseconds since 1970.
    Heartbeat(WorkerId, i64),
}

impl Watched {
    /// Whose.
    pub fn worker(&self) -> WorkerId {
        match self {
            Self::Changed(view) => view.id,
            Self::Readings(readings) => readings.id,
            Self::Heartbeat(worker, _) => *worker,
        }
    }
}

impl Default for Announcer {
    fn default() -> Self {
        Self { sequence: Arc::default(), updates: broadcast::channel(RING).0 }
    }
}

impl Announcer {
    /// Updates from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Announcement>> {
        self.updates.subscribe()
    }

    /// The number of the last update.
    pub fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Acquire)
    }
}

/// Announces, for ever.
pub async fn run(
    announcer: Announcer,
    registry: Registry,
    journal: Journal,
    watching: Watching,
    job: Job,
) -> Infallible {
    let mut round = Round { announcer, registry, journal, watching, wall_offset_ms: None, quiet_looks: 0 };
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        round.look().await;
        job.succeeded();
    }
}

struct Round {
    announcer: Announcer,
    registry: Registry,
    journal: Journal,
    watching: Watching,
    wall_offset_ms: Option<i64>,
    /// Since all browsers were told something.
    quiet_looks: u32,
}

/// What one look finds.
#[derive(Default)]
struct Findings {
    update: FleetUpdate,
    /// Whether anything changed that concerns all browsers; the update has it only when somebody listens.
    is_news: bool,
    announcement: Announcement,
}

impl Round {
    async fn look(&mut self) {
        if let Some(gap) = self.registry.clock().tick() {
            self.note_gap(gap);
        }
        let moment = self.registry.moment();
        // when the server's clock was set, every time that browsers have is wrong
        let clock_was_set = self.wall_offset_ms.is_some_and(|before| before != moment.wall_offset_ms);
        self.wall_offset_ms = Some(moment.wall_offset_ms);
        let is_heard = self.announcer.updates.receiver_count() > 0;
        let mut findings = Findings::default();
        for (number, worker) in self.registry.all().into_iter().enumerate() {
            if self.look_at(&worker, &moment, clock_was_set, is_heard, &mut findings) {
                findings.announcement.touched.push(worker);
            }
            if number % LOOKS_AT_A_TIME == LOOKS_AT_A_TIME - 1 {
                // ten thousand workers must not keep a request waiting that the same thread is to answer
                tokio::task::yield_now().await;
            }
        }
        let removed = self.registry.take_removed();
        findings.is_news |= !removed.is_empty();
        findings.update.removed = removed.iter().map(|worker| worker.id()).collect();
        findings.announcement.removed = removed;
        self.send(findings, &moment, is_heard);
    }

    fn send(&mut self, findings: Findings, moment: &Moment, is_heard: bool) {
        let Findings { mut update, is_news, mut announcement } = findings;
        announcement.server_time_ms = moment.wall_ms(moment.now);
        self.quiet_looks = if is_news { 0 } else { self.quiet_looks + 1 };
        if is_news || self.quiet_looks == QUIET_LOOKS {
            self.quiet_looks = 0;
            let sequence = self.announcer.sequence() + 1;
            update.sequence = sequence;
            update.server_time_ms = announcement.server_time_ms;
            let json = if is_heard { serde_json::to_string(&update).ok() } else { None };
            announcement.event = json.map(|json| Event::new("update", &json));
            // who subscribes between this and the sending gets a hello with this number and needs no such update
            self.announcer.sequence.store(sequence, Ordering::Release);
        }
        let says_nothing =
            announcement.event.is_none() && announcement.watched.is_empty() && announcement.touched.is_empty();
        if says_nothing && announcement.removed.is_empty() {
            return;
        }
        // an error says that nobody listens
        let _ = self.announcer.updates.send(Arc::new(announcement));
    }

    /// Puts what changed about a worker into the findings; true when it is more than its heartbeat.
    fn look_at(
        &self,
        worker: &Worker,
        moment: &Moment,
        clock_was_set: bool,
        is_heard: bool,
        findings: &mut Findings,
    ) -> bool {
        let policy = self.registry.policy();
        let mut facts = worker.facts();
        let state = assess::state(&facts, moment, policy);
        let excused = matches!(assess::liveness(&facts, moment, policy), Liveness::Excused | Liveness::Awaited);
        let identity_troubled = assess::has_identity_trouble(&facts, moment);
        let link = assess::link_status(&facts, moment);
        let untold = mem::take(&mut facts.untold);

        let mut announced = worker.announced();
        let is_changed = untold.shape
            || clock_was_set
            || announced.state != Some(state)
            || announced.excused != excused
            || announced.link != link
            || announced.identity_troubled != identity_troubled;
        if !is_changed && !untold.readings && !untold.heartbeat {
            return false;
        }
        let is_watched = is_heard && self.watching.is_watched(worker.id());
        let watched = &mut findings.announcement.watched;
        if is_changed {
            let assessment = assess::assess(&facts, moment, policy);
            self.note_changes(&facts, &announced, &assessment, moment);
            let troubles = troubles(&assessment).cloned().collect();
            *announced = Announced { state: Some(state), excused, link, identity_troubled, troubles };
            findings.is_news = true;
            if is_watched {
                let view = view::assessed_view(&facts, assessment.clone(), moment);
                watched.push(Watched::Changed(Box::new(view)));
            }
            if is_heard {
                findings.update.changed.push(view::brief(&facts, assessment));
            }
            return true;
        }
        drop(announced);
        if is_watched
            && untold.heartbeat
            && let Some(heartbeat) = facts.heartbeat
        {
            watched.push(Watched::Heartbeat(worker.id(), moment.wall_ms(heartbeat.last)));
        }
        if is_watched && untold.readings {
            watched.push(Watched::Readings(view::readings_update(&facts)));
        }
        untold.readings
    }

    fn note_changes(&self, facts: &Facts, before: &Announced, after: &Assessment, moment: &Moment) {
        for event in changes(before, after) {
            if let WorkerEventKind::StateChanged { from, to, reason } = &event {
                log_change(facts, *from, *to, reason.as_ref());
            }
            self.journal.note(facts.row.id, moment.wall_ms(moment.now), event);
        }
    }

    fn note_gap(&self, gap: Gap) {
        let seconds = gap.length.as_secs();
        tracing::warn!(seconds, "the server stood still; nobody is judged for a full offline timeout");
        let moment = self.registry.moment();
        for worker in self.registry.all() {
            let was_alive =
                !matches!(assess::liveness(&worker.facts(), &moment, self.registry.policy()), Liveness::Lost { .. });
            if was_alive {
                self.journal.note(worker.id(), moment.wall_ms(moment.now), WorkerEventKind::ServerGap { seconds });
            }
        }
    }
}

fn log_change(facts: &Facts, from: WorkerState, to: WorkerState, reason: Option<&Reason>) {
    let (worker, name) = (facts.row.id.0, &facts.row.name);
    let told = serde_json::to_value(reason).unwrap_or_default();
    let code = told.get("reason").and_then(serde_json::Value::as_str);
    let params = told.get("params").map(ToString::to_string);
    tracing::info!(worker, name, from = word(from), to = word(to), reason = code, params, "a worker's state changed");
}

/// As the API spells it.
fn word(state: WorkerState) -> String {
    let word = serde_json::to_value(state).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// A condition that is not about the state, and is wrong.
fn troubles(assessment: &Assessment) -> impl Iterator<Item = &Condition> {
    // a worker that is silent has no link either
    let is_silent = assessment.state == WorkerState::NotReady;
    assessment.conditions.iter().filter(move |condition| {
        let is_own = match condition.kind {
            ConditionKind::Link => !is_silent,
            ConditionKind::Clock | ConditionKind::Devices | ConditionKind::Host | ConditionKind::Identity => true,
            ConditionKind::Heartbeat | ConditionKind::Direct => false,
        };
        is_own && condition.status == ConditionStatus::False
    })
}

/// What is worth a line on the worker's page.
fn changes(before: &Announced, after: &Assessment) -> Vec<WorkerEventKind> {
    // the server has just started: nothing changed by that
    let Some(from) = before.state else { return Vec::new() };
    let mut events = Vec::new();
    let to = after.state;
    let was_only_awaited = from == WorkerState::Pending && to == WorkerState::Ready;
    if from != to && !was_only_awaited {
        events.push(WorkerEventKind::StateChanged { from, to, reason: cause_of(to, &after.conditions) });
    }
    for condition in troubles(after) {
        let earlier = before.troubles.iter().find(|earlier| is_same_trouble(earlier, condition));
        if earlier.is_none_or(|earlier| earlier.severity != condition.severity) {
            let (severity, reason) = (condition.severity, condition.reason.clone());
            events.push(WorkerEventKind::ConditionChanged { severity, reason });
        }
    }
    let is_over = |kind| {
        let had = before.troubles.iter().any(|earlier| earlier.kind == kind);
        had && !troubles(after).any(|condition| condition.kind == kind)
    };
    for kind in [ConditionKind::Link, ConditionKind::Clock, ConditionKind::Devices] {
        let now = after.conditions.iter().find(|condition| condition.kind == kind);
        if let Some(now) = now.filter(|now| now.status != ConditionStatus::False && is_over(kind)) {
            events.push(WorkerEventKind::ConditionChanged { severity: now.severity, reason: now.reason.clone() });
        }
    }
    events
}

fn cause_of(state: WorkerState, conditions: &[Condition]) -> Option<Reason> {
    let kind = match state {
        WorkerState::NotReady | WorkerState::Pending => ConditionKind::Heartbeat,
        WorkerState::Unreachable => ConditionKind::Direct,
        WorkerState::Ready | WorkerState::Maintenance => return None,
    };
    conditions.iter().find(|condition| condition.kind == kind).map(|condition| condition.reason.clone())
}

fn is_same_trouble(a: &Condition, b: &Condition) -> bool {
    a.kind == b.kind && subject(&a.reason) == subject(&b.reason)
}

/// What a reason is about, without the figures that change all the time.
fn subject(reason: &Reason) -> (Discriminant<Reason>, Option<String>) {
    let about = match reason {
        Reason::ToolTimedOut { tool, .. }
        | Reason::ToolFailed { tool, .. }
        | Reason::ToolNotStarted { tool, .. }
        | Reason::ToolMissing { tool }
        | Reason::ToolOutputUnknown { tool, .. } => Some(tool.clone()),
        Reason::DriverInitFailed { code, .. } | Reason::DeviceInUseElsewhere { code, .. } => Some(code.to_string()),
        Reason::DriverLibraryMissing { library, .. } => Some(library.clone()),
        Reason::DeviceNodeMissing { node } | Reason::DeviceNodeUnreadable { node } => Some(node.clone()),
        Reason::DeviceUnhealthy { index, .. } => Some(index.to_string()),
        Reason::DevicesMissing { found, .. } => Some(found.to_string()),
        Reason::DriverNotLoaded { vendor, .. } | Reason::DriverMismatch { vendor, .. } => Some(vendor.clone()),
        Reason::DeviceLost { device, .. } => Some(device.clone()),
        Reason::VisibleDevicesWrong { variable, .. } => Some(variable.clone()),
        Reason::ClockNotSynchronised { service } => Some(service.clone()),
        Reason::DiskFull { path, .. } => Some(path.clone()),
        Reason::ClockOffsetZone { half_hours, .. } => Some(half_hours.to_string()),
        _ => None,
    };
    (mem::discriminant(reason), about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{LinkCarrier, LinkLoss, Severity};

    fn assessed(state: WorkerState, conditions: Vec<Condition>) -> Assessment {
        Assessment { state, conditions }
    }

    fn announced(state: Option<WorkerState>, troubles: Vec<Condition>) -> Announced {
        Announced { state, troubles, ..Announced::default() }
    }

    fn wrong(kind: ConditionKind, severity: Severity, reason: Reason) -> Condition {
        Condition { kind, status: ConditionStatus::False, severity, reason, since_ms: None }
    }

    fn clock_off(offset_ms: i64) -> Condition {
        wrong(ConditionKind::Clock, Severity::Error, Reason::ClockOffset { offset_ms, error_ms: 1 })
    }

    #[test]
    fn a_change_of_state_is_noted_with_its_cause_and_the_servers_start_is_none() {
        let lost = Reason::HeartbeatLost { last_ms: None, timeout_s: 60 };
        let after =
            || assessed(WorkerState::NotReady, vec![wrong(ConditionKind::Heartbeat, Severity::Error, lost.clone())]);
        assert_eq!(changes(&announced(None, vec![]), &after()), []);
        assert_eq!(changes(&announced(Some(WorkerState::NotReady), vec![]), &after()), []);
        let event = WorkerEventKind::StateChanged {
            from: WorkerState::Ready,
            to: WorkerState::NotReady,
            reason: Some(lost.clone()),
        };
        assert_eq!(changes(&announced(Some(WorkerState::Ready), vec![]), &after()), [event]);
    }

    #[test]
    fn a_restart_of_the_server_is_no_change_of_those_who_come_back() {
        let after = assessed(WorkerState::Ready, vec![]);
        assert_eq!(changes(&announced(Some(WorkerState::Pending), vec![]), &after), []);
    }

    #[test]
    fn a_trouble_is_noted_when_it_begins_and_ends_and_not_when_its_figures_move() {
        let ready = Some(WorkerState::Ready);
        let begun = changes(&announced(ready, vec![]), &assessed(WorkerState::Ready, vec![clock_off(187_000)]));
        assert_eq!(begun.len(), 1);
        let moved = assessed(WorkerState::Ready, vec![clock_off(188_000)]);
        assert_eq!(changes(&announced(ready, vec![clock_off(187_000)]), &moved), []);
        let in_sync = Reason::ClockInSync { offset_ms: 1, error_ms: 1 };
        let well = Condition {
            kind: ConditionKind::Clock,
            status: ConditionStatus::True,
            severity: Severity::Ok,
            reason: in_sync.clone(),
            since_ms: None,
        };
        let ended = changes(&announced(ready, vec![clock_off(187_000)]), &assessed(WorkerState::Ready, vec![well]));
        assert_eq!(ended, [WorkerEventKind::ConditionChanged { severity: Severity::Ok, reason: in_sync }]);
    }

    #[test]
    fn a_link_that_goes_is_noted_unless_the_worker_has_gone_with_it() {
        let down = || wrong(ConditionKind::Link, Severity::Warning, Reason::LinkDown { loss: LinkLoss::Closed });
        let ready = || assessed(WorkerState::Ready, vec![down()]);
        let gone = || assessed(WorkerState::NotReady, vec![down()]);
        let begun = changes(&announced(Some(WorkerState::Ready), vec![]), &ready());
        let reason = Reason::LinkDown { loss: LinkLoss::Closed };
        assert_eq!(begun, [WorkerEventKind::ConditionChanged { severity: Severity::Warning, reason }]);
        for troubles in [vec![], vec![down()]] {
            let events = changes(&announced(Some(WorkerState::Ready), troubles), &gone());
            assert!(matches!(events.as_slice(), [WorkerEventKind::StateChanged { .. }]), "{events:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_does_not_come_back_is_told_within_two_seconds() {
        let mut round = round_of(1);
        let mut updates = round.announcer.subscribe();
        let _looks = round.watching.watch([WorkerId(1)]);
        let worker = round.registry.get(WorkerId(1)).unwrap();
        let peer = "10.9.9.9:4711".parse().unwrap();
        worker.facts().hear(round.registry.clock().now(), TIMEOUT);
        worker.facts().link_opened(peer, LinkCarrier::Stream, round.registry.clock().now());
        round.go_on(1).await;
        worker.facts().link_closed(LinkLoss::Closed, round.registry.clock().now());
        round.go_on(2).await;
        let mut statuses = Vec::new();
        for _ in 0..3 {
            let announcement = updates.recv().await.unwrap();
            let changed = announcement.watched.iter().filter_map(|watched| match watched {
                Watched::Changed(view) => Some(view.conditions.clone()),
                Watched::Readings(_) | Watched::Heartbeat(..) => None,
            });
            let conditions = changed.flatten();
            let link = conditions.filter(|condition| condition.kind == ConditionKind::Link);
            statuses.extend(link.map(|condition| condition.status));
        }
        assert_eq!(statuses, [ConditionStatus::True, ConditionStatus::Unknown, ConditionStatus::False]);
    }

    use crate::server::registry::assess::Policy;
    use crate::server::registry::facts::tests::facts;
    use crate::server::registry::time::ServerClock;
    use crate::server::store::workers::WorkerRow;
    use api::{WorkerId, WorkerUuid};
    use std::time::Duration;
    use tokio::time::advance;

    const TIMEOUT: Duration = Duration::from_mins(1);

    fn round_of(count: i64) -> Round {
        let registry = Registry::new(ServerClock::in_step(TIMEOUT), Policy { offline_timeout: TIMEOUT }, Vec::new());
        for id in 1..=count {
            let row = WorkerRow {
                id: WorkerId(id),
                uuid: WorkerUuid(uuid::Uuid::from_u128(id.unsigned_abs().into())),
                name: format!("w{id}"),
                ..facts().row
            };
            registry.insert(Facts::new(row, registry.clock().now()));
        }
        let (announcer, journal) = (Announcer::default(), Journal::default());
        Round { announcer, registry, journal, watching: Watching::new(), wall_offset_ms: None, quiet_looks: 0 }
    }

    async fn told(updates: &mut broadcast::Receiver<Arc<Announcement>>) -> FleetUpdate {
        let announcement = updates.recv().await.unwrap();
        let text = std::str::from_utf8(announcement.event.as_ref().unwrap().text()).unwrap();
        serde_json::from_str(text.strip_prefix("event: update\ndata: ").unwrap()).unwrap()
    }

    impl Round {
        fn hear(&self, ids: impl IntoIterator<Item = i64>) {
            for id in ids {
                let worker = self.registry.get(WorkerId(id)).unwrap();
                worker.facts().hear(self.registry.clock().now(), TIMEOUT);
            }
        }

        async fn go_on(&mut self, seconds: u32) {
            for _ in 0..seconds {
                advance(TICK).await;
                self.look().await;
            }
        }

        fn taken_events(&self) -> Vec<(i64, WorkerEventKind)> {
            let taken = self.journal.take(usize::MAX);
            let events = taken.events().iter().map(|(id, event)| (id.0, event.change.clone())).collect();
            taken.settle();
            events
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stood_still_calls_nobody_lost_and_says_that_it_did() {
        let mut round = round_of(50);
        round.hear(1..=50);
        round.go_on(5).await;
        assert_eq!(round.taken_events(), []);
        advance(Duration::from_mins(3)).await;
        round.look().await;
        let gap = WorkerEventKind::ServerGap { seconds: 180 };
        let told: Vec<_> = (1..=50).rev().map(|id| (id, gap.clone())).collect();
        assert_eq!(round.taken_events(), told);
        round.hear(2..=50);
        round.go_on(59).await;
        assert_eq!(round.taken_events(), []);
        round.hear(2..=50);
        round.go_on(10).await;
        let events = round.taken_events();
        assert!(
            matches!(events[..], [(1, WorkerEventKind::StateChanged { to: WorkerState::NotReady, .. })]),
            "{events:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn updates_are_numbered_whether_or_not_somebody_listens() {
        let mut round = round_of(1);
        round.look().await;
        assert_eq!(round.announcer.sequence(), 1);
        let mut updates = round.announcer.subscribe();
        round.go_on(1).await;
        assert_eq!(round.announcer.sequence(), 1, "nothing changed");
        round.hear([1]);
        round.go_on(1).await;
        let update = told(&mut updates).await;
        assert_eq!((update.sequence, update.changed.len()), (2, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_and_readings_are_told_of_workers_at_which_somebody_looks_only() {
        let mut round = round_of(2);
        round.hear(1..=2);
        round.go_on(1).await;
        let mut updates = round.announcer.subscribe();
        let looks = round.watching.watch([WorkerId(2)]);
        let report = |round: &Round| {
            for worker in round.registry.all() {
                worker.facts().untold.readings = true;
            }
        };
        round.hear(1..=2);
        report(&round);
        round.go_on(1).await;
        let announcement = updates.recv().await.unwrap();
        assert!(announcement.event.is_none(), "it concerns nobody else");
        assert_eq!(announcement.touched.len(), 2);
        let told: Vec<_> = announcement.watched.iter().map(Watched::worker).collect();
        assert_eq!(told, [WorkerId(2), WorkerId(2)]);
        drop(looks);
        round.hear(1..=2);
        round.go_on(1).await;
        assert!(updates.is_empty(), "nobody looks");
    }

    #[tokio::test(start_paused = true)]
    async fn a_fleet_in_which_nothing_happens_is_told_of_now_and_then() {
        let mut round = round_of(0);
        let mut updates = round.announcer.subscribe();
        round.go_on(QUIET_LOOKS * 2).await;
        for sequence in [1, 2] {
            let update = told(&mut updates).await;
            let expected = FleetUpdate { sequence, server_time_ms: update.server_time_ms, ..FleetUpdate::default() };
            assert_eq!(update, expected);
        }
        assert!(updates.is_empty());
    }
}
