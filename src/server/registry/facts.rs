//! What is known of one worker. Facts only: what they amount to is worked out by [`super::assess`] when it is read.

use super::time::Monotonic;
use crate::server::store::workers::{StoredWorker, WorkerRow};
use api::{
    ClockMeasurement, DeviceHealth, GpuDevice, LinkCarrier, LinkLoss, LinkReadings, Problem, SessionId, Severity,
    WorkerStatus, WorkerUuid,
};
use report::Misfit;
use report::message::Readings;
use std::collections::BTreeMap;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A problem's age is told in whole seconds and with each report anew; within this it is the same beginning.
const SAME_BEGINNING: Duration = Duration::from_secs(5);
/// A clock offset or a round trip that moved by less is not worth an update of every browser, in milliseconds.
const WORTH_TELLING_MS: f64 = 5.0;

/// What is known of one worker.
#[derive(Clone, Debug)]
pub struct Facts {
    /// What was decided about it.
    pub row: WorkerRow,
    /// Its running session. None for GPUStack 0.7 workers, and until it joins after the server's start.
    pub session: Option<Session>,
    /// When this process began to know it: who was never heard is silent since then.
    pub known_since: Monotonic,
    /// When it registered last in this process.
    pub registered: Monotonic,
    /// The signs of life that this process received.
    pub heartbeat: Option<HeartbeatFact>,
    /// The last sign of life that an earlier process received, in milliseconds since 1970.
    pub stored_heartbeat_ms: Option<i64>,
    /// When it said that it ends on purpose; a new sign of life clears it.
    pub left: Option<Monotonic>,
    /// Its clock.
    pub clock: Option<ClockFact>,
    /// Its link.
    pub link: LinkFact,
    /// The direct probe of its present address.
    pub probe: ProbeFact,
    /// The tunnels that it depends on.
    pub tunnels: TunnelsFact,
    /// What it reported.
    pub status: StatusFact,
    /// Another host that uses its identity.
    pub duplicate: Option<Sighting>,
    /// Another host that asks for its place.
    pub replacement: Option<ReplacementAsk>,
    /// What changed since the announcer looked.
    pub untold: Untold,
    /// What is not in the database.
    pub unsaved: Unsaved,
}

/// One run of a worker process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Where it runs; see [`api::RegisterRequest::host_key`].
    pub host_key: String,
}

/// The signs of life, by the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatFact {
    /// The last.
    pub last: Monotonic,
    /// The first of the unbroken row that the last belongs to.
    pub unbroken_since: Monotonic,
}

/// A worker's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockFact {
    /// The last measurement.
    pub measured: ClockMeasurement,
    /// Since when the verdict on it is what it is.
    pub since: Monotonic,
}

/// The connection that a worker dialled, over which the server reaches it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkFact {
    /// Whether it stands.
    pub standing: LinkStanding,
    /// What the health check over the standing link came to.
    pub probe: ProbeFact,
    /// What was measured of the standing link.
    pub readings: LinkReadings,
}

/// Whether a link stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LinkStanding {
    /// The worker never had one, as GPUStack 0.7 workers do not.
    #[default]
    Never,
    /// It stands.
    Up {
        /// Since when.
        since: Monotonic,
        /// The other end of the connection, which may be a proxy's or a bastion's.
        peer: SocketAddr,
        /// What carries it.
        carrier: LinkCarrier,
    },
    /// It stands no more.
    Down {
        /// When it was opened; None when that was before this server process.
        opened: Option<Monotonic>,
        /// Since when it is down.
        since: Monotonic,
        /// How it ended.
        loss: LinkLoss,
    },
}

/// What does not work of the tunnels that a worker depends on, as their agents told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelsFact {
    /// On its way to the server.
    pub to_server: Option<TunnelTrouble>,
    /// On the server's way to its port.
    pub to_worker: Option<TunnelTrouble>,
}

/// A tunnel that does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelTrouble {
    /// The name of the agent that keeps it.
    pub agent: String,
    /// Its id; None when it is only known that the agent is gone.
    pub forward: Option<String>,
    /// Since when.
    pub since: Monotonic,
}

/// What the health check over one way came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeFact {
    /// The last outcome that counts; None before the first.
    pub outcome: Option<ProbeOutcome>,
    /// Since when it is of this kind.
    pub since: Monotonic,
    /// Timeouts in a row that do not count yet: a single lost packet is no verdict.
    pub timeouts_pending: u32,
    /// Whether it was ever answered, as far as this process knows.
    pub was_answered: bool,
}

/// What one probe came to.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeOutcome {
    /// This worker answered.
    Answered {
        /// Request to answer, in milliseconds.
        round_trip_ms: f64,
    },
    /// It failed.
    Failed(ProbeFailure),
}

/// Why a probe failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeFailure {
    /// Nothing listens there.
    Refused,
    /// No answer in time.
    TimedOut,
    /// The host name has no address.
    NotResolved,
    /// No route to that network.
    NoRoute,
    /// The connection was made and then closed.
    Closed,
    /// Something else than a worker answered, with this HTTP status when it was HTTP.
    WrongAnswer(Option<u16>),
    /// Another worker answered; its name when the server knows it, else its id.
    WrongWorker(String),
}

/// What a worker reported of its host.
#[derive(Clone, Debug, Default)]
pub struct StatusFact {
    /// The last report.
    pub reported: Arc<WorkerStatus>,
    /// When it came; None when an earlier server process received it.
    pub received: Option<Monotonic>,
    /// The most devices that it has had.
    pub devices_expected: u32,
    /// Since when fewer are there.
    pub missing_since: Option<Monotonic>,
    /// Since when each problem of the report is there, in the report's order.
    pub problems_since: Vec<Monotonic>,
    /// Since when each device is not healthy, by index.
    pub unhealthy_since: BTreeMap<u32, Monotonic>,
    /// Since when the number of devices is what it is.
    pub count_since: Monotonic,
}

/// Another host that was refused because it uses this worker's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The other host's name.
    pub hostname: String,
    /// The other host's address.
    pub address: String,
    /// The first time.
    pub first: Monotonic,
    /// The last time.
    pub last: Monotonic,
}

/// Another host that asks to take this worker's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacementAsk {
    /// Who asks.
    pub uuid: WorkerUuid,
    /// From where, and when.
    pub sighting: Sighting,
}

/// What changed since the announcer looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untold {
    /// More than readings and heartbeats.
    pub shape: bool,
    /// Readings.
    pub readings: bool,
    /// The heartbeat.
    pub heartbeat: bool,
}

/// What is not in the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsaved {
    /// The heartbeat.
    pub heartbeat: bool,
    /// The report.
    pub status: ReportUnsaved,
}

/// Whether a report must reach the database. Figures may be a minute old there, so that a thousand workers do not
/// rewrite megabytes in each batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportUnsaved {
    /// It is there.
    #[default]
    No,
    /// Only figures are newer.
    Readings,
    /// Devices or problems differ.
    Shape,
}

impl Facts {
    /// A worker that the database knows, at the server's start.
    pub fn stored(worker: StoredWorker, now: Monotonic) -> Self {
        let status = StatusFact {
            problems_since: worker.status.problems.iter().map(|problem| began(problem, now)).collect(),
            reported: Arc::new(worker.status),
            received: None,
            devices_expected: worker.devices_expected,
            missing_since: None,
            unhealthy_since: BTreeMap::new(),
            count_since: now,
        };
        let mut facts = Self::new(worker.row, now);
        facts.status = status;
        facts.stored_heartbeat_ms = worker.heartbeat_ms;
        if facts.row.link_key.is_some() {
            facts.link.standing = LinkStanding::Down { opened: None, since: now, loss: LinkLoss::NotSinceStart };
        }
        facts
    }

    /// A worker of which nothing is known but its row.
    pub fn new(row: WorkerRow, now: Monotonic) -> Self {
        Self {
            row,
            session: None,
            known_since: now,
            registered: now,
            heartbeat: None,
            stored_heartbeat_ms: None,
            left: None,
            clock: None,
            link: LinkFact::default(),
            probe: ProbeFact::default(),
            tunnels: TunnelsFact::default(),
            status: StatusFact::default(),
            duplicate: None,
            replacement: None,
            untold: Untold { shape: true, ..Untold::default() },
            unsaved: Unsaved::default(),
        }
    }

    /// Whether it is a worker of ours, with a key of its own, and not one of GPUStack 0.7.
    pub fn is_own(&self) -> bool {
        self.row.link_key.is_some()
    }

    /// A sign of life was received.
    pub fn hear(&mut self, now: Monotonic, offline_timeout: Duration) {
        let unbroken_since = match (self.heartbeat, self.left) {
            (Some(before), None) if now.since(before.last) <= offline_timeout => before.unbroken_since,
            _ => now,
        };
        if unbroken_since == now {
            self.untold.shape = true;
        }
        self.left = None;
        self.heartbeat = Some(HeartbeatFact { last: now, unbroken_since });
        self.untold.heartbeat = true;
        self.unsaved.heartbeat = true;
    }

    /// The worker ends on purpose.
    pub fn leave(&mut self, now: Monotonic) {
        self.left = Some(now);
        self.session = None;
        self.untold.shape = true;
    }

    /// Its clock was measured.
    pub fn measure_clock(&mut self, measured: ClockMeasurement, now: Monotonic) {
        // a negative error would make any offset look certain
        let measured = ClockMeasurement { error_ms: measured.error_ms.max(0), ..measured };
        let verdict = measured.verdict();
        let before = self.clock;
        let unchanged = before.filter(|before| before.measured.verdict() == verdict);
        let since = unchanged.map_or(now, |before| before.since);
        self.untold.shape |= unchanged.is_none();
        self.untold.readings |= before
            .is_none_or(|before| worth_telling(millis_of(before.measured.offset_ms), millis_of(measured.offset_ms)));
        self.clock = Some(ClockFact { measured, since });
    }

    /// A link stands.
    pub fn link_opened(&mut self, peer: SocketAddr, carrier: LinkCarrier, now: Monotonic) {
        let standing = LinkStanding::Up { since: now, peer, carrier };
        self.link = LinkFact { standing, ..LinkFact::default() };
        self.untold.shape = true;
    }

    /// The link that stood is no more.
    pub fn link_closed(&mut self, loss: LinkLoss, now: Monotonic) {
        let LinkStanding::Up { since: opened, .. } = self.link.standing else { return };
        let standing = LinkStanding::Down { opened: Some(opened), since: now, loss };
        self.link = LinkFact { standing, ..LinkFact::default() };
        self.untold.shape = true;
    }

    /// The link that stands was measured.
    pub fn measure_link(&mut self, readings: LinkReadings) {
        let moved = match (self.link.readings.round_trip_ms, readings.round_trip_ms) {
            (Some(before), Some(after)) => worth_telling(before, after),
            (before, after) => before.is_some() != after.is_some(),
        };
        self.untold.readings |= moved;
        self.link.readings = readings;
    }

    /// A health check was made over the link that stands since `opened`. What concerns another one is dropped.
    pub fn record_link_probe(&mut self, opened: Monotonic, outcome: ProbeOutcome, now: Monotonic) {
        if !matches!(self.link.standing, LinkStanding::Up { since, .. } if since == opened) {
            return;
        }
        let probe = mem::take(&mut self.link.probe);
        // the round trip that is shown of a link is that of its pings
        self.link.probe = probe.followed_by(outcome, now, &mut self.untold);
    }

    /// Its address was probed. An outcome of another address than the present one is dropped.
    pub fn record_probe(&mut self, ip: &str, port: u16, outcome: ProbeOutcome, now: Monotonic) {
        if self.row.ip != ip || self.row.port != port {
            return;
        }
        self.probe = mem::take(&mut self.probe).followed_by(outcome, now, &mut self.untold);
    }

    /// What is wrong with its tunnels was looked up.
    pub fn tell_tunnels(&mut self, told: TunnelsFact) {
        let is_same = same_trouble(self.tunnels.to_server.as_ref(), told.to_server.as_ref())
            && same_trouble(self.tunnels.to_worker.as_ref(), told.to_worker.as_ref());
        if !is_same {
            self.tunnels = told;
            self.untold.shape = true;
        }
    }

    /// What it sees of its host.
    pub fn report(&mut self, mut status: WorkerStatus, now: Monotonic) {
        if let Some(devices) = &mut status.gpu_devices {
            devices.sort_by_key(|device| device.index);
        }
        let before = mem::take(&mut self.status);
        let same_shape = has_same_shape(&before.reported, &status);
        let first = before.received.is_none();
        self.untold.shape |= !same_shape || first;
        self.untold.readings = true;
        self.unsaved.status =
            self.unsaved.status.max(if same_shape { ReportUnsaved::Readings } else { ReportUnsaved::Shape });
        self.status = before.followed_by(status, now);
    }

    /// Some of the readings in its last report moved. On an error nothing is changed.
    pub fn report_readings(&mut self, readings: &Readings, now: Monotonic) -> Result<(), Misfit> {
        report::apply(readings, Arc::make_mut(&mut self.status.reported))?;
        self.status.received = Some(now);
        self.untold.readings = true;
        self.unsaved.status = self.unsaved.status.max(ReportUnsaved::Readings);
        Ok(())
    }

    /// Its row was decided anew.
    pub fn decide(&mut self, row: WorkerRow) {
        if self.row.ip != row.ip || self.row.port != row.port {
            // an outcome of the address before would be a lie about this one
            self.probe = ProbeFact::default();
        }
        self.row = row;
        self.untold.shape = true;
    }

    /// Another host took this worker's place: nothing that was observed holds any more.
    pub fn begin_anew(&mut self, now: Monotonic) {
        let row = self.row.clone();
        *self = Self::new(row, now);
        self.unsaved.status = ReportUnsaved::Shape;
    }

    /// Another host, refused, uses this worker's identity.
    pub fn sight_duplicate(&mut self, hostname: &str, address: &str, now: Monotonic) {
        self.duplicate = Some(sighted(self.duplicate.as_ref(), hostname, address, now));
        self.untold.shape = true;
    }

    /// Another host asks for this worker's place.
    pub fn ask_replacement(&mut self, uuid: WorkerUuid, hostname: &str, address: &str, now: Monotonic) {
        let before = self.replacement.as_ref().filter(|ask| ask.uuid == uuid).map(|ask| &ask.sighting);
        let sighting = sighted(before, hostname, address, now);
        self.replacement = Some(ReplacementAsk { uuid, sighting });
        self.untold.shape = true;
    }
}

/// A trouble's beginning is told as an age, with each report anew.
fn same_trouble(before: Option<&TunnelTrouble>, after: Option<&TunnelTrouble>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before.is_none() && after.is_none() };
    let moved = before.since.since(after.since).max(after.since.since(before.since));
    before.agent == after.agent && before.forward == after.forward && moved <= SAME_BEGINNING
}

impl ProbeFact {
    fn followed_by(self, outcome: ProbeOutcome, now: Monotonic, untold: &mut Untold) -> Self {
        if outcome == ProbeOutcome::Failed(ProbeFailure::TimedOut) && self.timeouts_pending == 0 {
            let told_already = self.outcome.as_ref() == Some(&outcome);
            if !told_already {
                return Self { timeouts_pending: 1, ..self };
            }
        }
        let (same_kind, moved) = match (&self.outcome, &outcome) {
            (
                Some(ProbeOutcome::Answered { round_trip_ms: before }),
                ProbeOutcome::Answered { round_trip_ms: after },
            ) => (true, worth_telling(*before, *after)),
            (before, after) => (before.as_ref() == Some(after), false),
        };
        untold.shape |= !same_kind;
        untold.readings |= moved;
        let since = if same_kind { self.since } else { now };
        let was_answered = self.was_answered || matches!(outcome, ProbeOutcome::Answered { .. });
        Self { outcome: Some(outcome), since, timeouts_pending: 0, was_answered }
    }
}

impl StatusFact {
    fn followed_by(self, status: WorkerStatus, now: Monotonic) -> Self {
        let known: Vec<(&Problem, Monotonic)> =
            self.reported.problems.iter().zip(self.problems_since.iter().copied()).collect();
        let problems_since = status
            .problems
            .iter()
            .map(|problem| {
                let told = began(problem, now);
                let before = known.iter().find(|(before, _)| before.reason == problem.reason).map(|(_, since)| *since);
                before.filter(|before| told.since(*before).max(before.since(told)) <= SAME_BEGINNING).unwrap_or(told)
            })
            .collect();
        let devices = status.gpu_devices.as_deref();
        let found = devices.map(|devices| u32::try_from(devices.len()).unwrap_or(u32::MAX));
        let devices_expected = self.devices_expected.max(found.unwrap_or(0));
        let missing_since = match found {
            Some(found) if found < devices_expected => self.missing_since.or(Some(now)),
            // not looked yet: what was known stays
            None => self.missing_since,
            Some(_) => None,
        };
        let unhealthy_since = devices
            .unwrap_or_default()
            .iter()
            .filter(|device| is_unhealthy(device))
            .map(|device| (device.index, self.unhealthy_since.get(&device.index).copied().unwrap_or(now)))
            .collect();
        let count_before = self.reported.gpu_devices.as_ref().map(Vec::len);
        let same_count = count_before == devices.map(<[_]>::len);
        Self {
            received: Some(now),
            devices_expected,
            missing_since,
            problems_since,
            unhealthy_since,
            count_since: if same_count { self.count_since } else { now },
            reported: Arc::new(status),
        }
    }
}

/// Whether the vendor's tool calls the device anything else than healthy.
pub fn is_unhealthy(device: &GpuDevice) -> bool {
    !matches!(device.health, None | Some(DeviceHealth::Ok))
}

/// How much an unhealthy device matters.
pub fn health_severity(health: DeviceHealth) -> Severity {
    match health {
        DeviceHealth::Ok => Severity::Ok,
        DeviceHealth::Warning | DeviceHealth::Unknown => Severity::Warning,
        DeviceHealth::Critical => Severity::Error,
    }
}

fn sighted(before: Option<&Sighting>, hostname: &str, address: &str, now: Monotonic) -> Sighting {
    let first = before.filter(|seen| super::assess::repeats(seen, now)).map_or(now, |seen| seen.first);
    Sighting { hostname: hostname.to_owned(), address: address.to_owned(), first, last: now }
}

fn began(problem: &Problem, now: Monotonic) -> Monotonic {
    now.minus(Duration::from_secs(problem.age_s))
}

fn worth_telling(before_ms: f64, after_ms: f64) -> bool {
    (before_ms - after_ms).abs() > WORTH_TELLING_MS
}

fn millis_of(ms: i64) -> f64 {
    ms as f64
}

/// Whether two reports differ in nothing but figures that change all the time.
fn has_same_shape(before: &WorkerStatus, after: &WorkerStatus) -> bool {
    let same_problems = before.problems.len() == after.problems.len()
        && before
            .problems
            .iter()
            .zip(&after.problems)
            .all(|(before, after)| before.reason == after.reason && before.severity == after.severity);
    same_problems
        && before.os == after.os
        && before.devices_stale_s.is_some() == after.devices_stale_s.is_some()
        && match (&before.gpu_devices, &after.gpu_devices) {
            (None, None) => true,
            (Some(before), Some(after)) => {
                before.len() == after.len()
                    && before.iter().zip(after).all(|(before, after)| is_same_device(before, after))
            }
            _ => false,
        }
}

fn is_same_device(before: &GpuDevice, after: &GpuDevice) -> bool {
    let total = |device: &GpuDevice| device.memory.as_ref().and_then(|memory| memory.total);
    before.index == after.index
        && before.name == after.name
        && before.uuid == after.uuid
        && before.health == after.health
        && before.bus_id == after.bus_id
        && before.driver_version == after.driver_version
        && total(before) == total(after)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use api::{DeviceMemory, Maintenance, Reason, WorkerId};
    use uuid::Uuid;

    pub(crate) fn at(seconds: i64) -> Monotonic {
        Monotonic::from_ms(seconds * 1000)
    }

    pub(crate) fn facts() -> Facts {
        let row = WorkerRow {
            id: WorkerId(1),
            uuid: WorkerUuid(Uuid::from_u128(1)),
            name: "a".into(),
            hostname: "host-a".into(),
            ip: "10.0.0.1".into(),
            port: 10150,
            labels: BTreeMap::new(),
            system_reserved: None,
            maintenance: Maintenance::default(),
            version: Some("1.0".into()),
            replace_allowed_for: None,
            link_key: None,
            created_ms: 0,
            updated_ms: 0,
        };
        Facts::new(row, at(0))
    }

    pub(crate) fn devices(count: u32) -> WorkerStatus {
        let device = |index| GpuDevice {
            index,
            name: "910B3".into(),
            memory: Some(DeviceMemory { total: Some(64), ..DeviceMemory::default() }),
            ..GpuDevice::default()
        };
        WorkerStatus { gpu_devices: Some((0..count).map(device).collect()), ..WorkerStatus::default() }
    }

    #[test]
    fn a_refused_probe_counts_at_once_and_a_timeout_when_it_repeats() {
        let answered = ProbeOutcome::Answered { round_trip_ms: 1.0 };
        let timed_out = ProbeOutcome::Failed(ProbeFailure::TimedOut);
        let refused = ProbeOutcome::Failed(ProbeFailure::Refused);
        let table = [
            (vec![&refused], Some(&refused)),
            (vec![&answered, &refused], Some(&refused)),
            (vec![&timed_out], None),
            (vec![&answered, &timed_out], Some(&answered)),
            (vec![&answered, &timed_out, &timed_out], Some(&timed_out)),
            (vec![&answered, &timed_out, &answered, &timed_out], Some(&answered)),
            (vec![&timed_out, &timed_out, &timed_out], Some(&timed_out)),
        ];
        for (outcomes, counts) in table {
            let mut facts = facts();
            for outcome in &outcomes {
                facts.record_probe("10.0.0.1", 10150, (*outcome).clone(), at(1));
            }
            assert_eq!(facts.probe.outcome.as_ref(), counts, "{outcomes:?}");
        }
    }

    #[test]
    fn that_a_way_worked_is_known_until_the_address_is_another() {
        let mut facts = facts();
        facts.record_probe("10.0.0.1", 10150, ProbeOutcome::Answered { round_trip_ms: 1.0 }, at(1));
        facts.record_probe("10.0.0.1", 10150, ProbeOutcome::Failed(ProbeFailure::Refused), at(2));
        assert!(facts.probe.was_answered);
        let row = WorkerRow { ip: "10.0.0.2".to_owned(), ..facts.row.clone() };
        facts.decide(row);
        assert!(!facts.probe.was_answered);
    }

    #[test]
    fn a_new_address_forgets_the_probe_of_the_old_one() {
        let mut facts = facts();
        let refused = ProbeOutcome::Failed(ProbeFailure::Refused);
        facts.record_probe("10.0.0.1", 10150, refused.clone(), at(1));
        facts.decide(WorkerRow { ip: "10.0.0.2".into(), ..facts.row.clone() });
        assert_eq!(facts.probe.outcome, None);
        // a probe that was under way when the address changed
        facts.record_probe("10.0.0.1", 10150, refused, at(2));
        assert_eq!(facts.probe.outcome, None);
    }

    #[test]
    fn devices_that_were_there_are_expected_until_they_are_back() {
        let mut facts = facts();
        facts.report(devices(8), at(1));
        facts.report(devices(7), at(2));
        facts.report(devices(6), at(3));
        assert_eq!((facts.status.devices_expected, facts.status.missing_since), (8, Some(at(2))));
        facts.report(WorkerStatus::default(), at(4));
        assert_eq!(facts.status.missing_since, Some(at(2)), "not looked yet is not back");
        facts.report(devices(8), at(5));
        assert_eq!(facts.status.missing_since, None);
    }

    #[test]
    fn a_problem_keeps_its_beginning_though_its_age_is_told_in_whole_seconds() {
        let problem = |age_s| Problem {
            severity: Severity::Warning,
            reason: Reason::ToolTimedOut { tool: "npu-smi".into(), timeout_s: 30 },
            age_s,
        };
        let report = |age_s| WorkerStatus { problems: vec![problem(age_s)], ..WorkerStatus::default() };
        let mut facts = facts();
        facts.report(report(10), at(100));
        facts.report(report(21), Monotonic::from_ms(110_400));
        assert_eq!(facts.status.problems_since, [at(90)]);
        facts.report(report(1), at(200));
        assert_eq!(facts.status.problems_since, [at(199)], "it went and came again");
    }

    #[test]
    fn a_tunnels_trouble_is_news_once_and_again_when_it_is_another() {
        let told = |forward: &str, since| {
            let trouble = TunnelTrouble { agent: "b".into(), forward: Some(forward.into()), since: at(since) };
            TunnelsFact { to_server: Some(trouble), to_worker: None }
        };
        let table = [
            (told("x", 10), true),
            (told("x", 12), false),
            (told("x", 30), true),
            (told("y", 30), true),
            (TunnelsFact::default(), true),
            (TunnelsFact::default(), false),
        ];
        let mut facts = facts();
        for (told, is_news) in table {
            facts.untold = Untold::default();
            facts.tell_tunnels(told.clone());
            assert_eq!(facts.untold.shape, is_news, "{told:?}");
        }
    }

    #[test]
    fn figures_alone_do_not_change_the_shape() {
        let mut facts = facts();
        facts.report(devices(8), at(1));
        facts.untold = Untold::default();
        facts.unsaved = Unsaved::default();
        let mut warmer = devices(8);
        warmer.gpu_devices.as_mut().unwrap()[3].temperature = Some(70.0);
        facts.report(warmer, at(2));
        assert_eq!((facts.untold.shape, facts.untold.readings), (false, true));
        assert_eq!(facts.unsaved.status, ReportUnsaved::Readings);
        let mut sick = devices(8);
        sick.gpu_devices.as_mut().unwrap()[3].health = Some(DeviceHealth::Critical);
        facts.report(sick, at(3));
        assert!(facts.untold.shape);
    }

    #[test]
    fn heartbeats_are_unbroken_until_one_is_later_than_the_timeout() {
        let timeout = Duration::from_mins(1);
        let mut facts = facts();
        facts.hear(at(1), timeout);
        facts.hear(at(61), timeout);
        assert_eq!(facts.heartbeat.map(|heartbeat| heartbeat.unbroken_since), Some(at(1)));
        facts.hear(at(122), timeout);
        assert_eq!(facts.heartbeat.map(|heartbeat| heartbeat.unbroken_since), Some(at(122)));
    }
}
