//! What facts amount to: a worker's conditions and its state. Pure; computed whenever somebody reads, never stored.

use super::facts::{
    Facts, LinkStanding, ProbeFailure, ProbeOutcome, Sighting, TunnelTrouble, health_severity, is_unhealthy,
};
use super::time::{Moment, Monotonic};
use crate::server::dial::health_url;
use crate::server::probe::PROBE_DEADLINE;
use api::{ClockVerdict, Condition, ConditionKind, ConditionStatus, DeviceHealth, Reason, Severity, WorkerState};
use http::StatusCode;
use std::time::Duration;

/// A worker whose link ended dials another within half a second, unless something is wrong. With the look that follows
/// every second, a link that does not come back is shown within two.
const LINK_RETURNS: Duration = Duration::from_secs(1);
/// A host that is refused tries again within half a minute; what has not repeated for this long is over.
const SIGHTING_HOLDS: Duration = Duration::from_secs(90);

/// A tunnel that goes down is seen by its agent after two keep-alives, which may have been set longer, and what goes over
/// it may be missed before that. What failed earlier than so long before has another cause.
const TUNNEL_SEEN_LATE: Duration = Duration::from_mins(2);

/// What workers are judged by.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// A worker that is silent for longer is Not Ready.
    pub offline_timeout: Duration,
}

/// A worker, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// What the conditions amount to.
    pub state: WorkerState,
    /// Each checked fact.
    pub conditions: Vec<Condition>,
}

/// Whether a worker is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// In time.
    Heard {
        /// For how long without a break.
        since: Monotonic,
    },
    /// Not in time, but the server could not hear: it was alive before, and is not judged yet.
    Excused,
    /// Not since the server started, and it is not judged yet.
    Awaited,
    /// Not for longer than the offline timeout, or it said good-bye.
    Lost {
        /// Since when.
        since: Monotonic,
    },
}

/// Judges a worker.
pub fn assess(facts: &Facts, moment: &Moment, policy: &Policy) -> Assessment {
    let mut conditions = vec![heartbeat_condition(facts, moment, policy)];
    conditions.extend(link_condition(facts, moment));
    conditions.push(direct_condition(facts, moment));
    conditions.push(clock_condition(facts, moment));
    device_conditions(facts, moment, &mut conditions);
    identity_conditions(facts, moment, &mut conditions);
    Assessment { state: state(facts, moment, policy), conditions }
}

/// Judges a worker of very many: without conditions where all of them would be fine, which is so of most.
pub fn assess_briefly(facts: &Facts, moment: &Moment, policy: &Policy) -> Assessment {
    let assessment = if is_plainly_well(facts, moment, policy) {
        Assessment { state: state(facts, moment, policy), conditions: Vec::new() }
    } else {
        assess(facts, moment, policy)
    };
    debug_assert!(
        !assessment.conditions.is_empty() || assess(facts, moment, policy).conditions.iter().all(Condition::is_fine),
        "{facts:?}"
    );
    assessment
}

/// Whether nothing about a worker is wrong. False when that takes a closer look.
fn is_plainly_well(facts: &Facts, moment: &Moment, policy: &Policy) -> bool {
    let report = &facts.status.reported;
    let devices = report.gpu_devices.as_deref().unwrap_or_default();
    !matches!(liveness(facts, moment, policy), Liveness::Lost { .. })
        && link_status(facts, moment) != Some(ConditionStatus::False)
        && direct_severity(facts, moment) == Severity::Ok
        && facts.clock.is_none_or(|clock| clock.measured.verdict().severity == Severity::Ok)
        && report.problems.is_empty()
        && (report.gpu_devices.is_none() || devices.len() >= facts.status.devices_expected as usize)
        && !devices.iter().any(is_unhealthy)
        && !has_identity_trouble(facts, moment)
}

/// A worker's state alone, without the work of wording its conditions.
///
/// Maintenance before Not Ready before Unreachable before Ready. Clock, devices and identity never count.
pub fn state(facts: &Facts, moment: &Moment, policy: &Policy) -> WorkerState {
    if facts.row.maintenance.enabled {
        return WorkerState::Maintenance;
    }
    match liveness(facts, moment, policy) {
        Liveness::Lost { .. } => WorkerState::NotReady,
        Liveness::Awaited => WorkerState::Pending,
        Liveness::Heard { .. } | Liveness::Excused if is_unreachable(facts, moment) => WorkerState::Unreachable,
        Liveness::Heard { .. } | Liveness::Excused => WorkerState::Ready,
    }
}

/// Whether every way to the worker that there is fails.
pub fn is_unreachable(facts: &Facts, moment: &Moment) -> bool {
    link_status(facts, moment).is_none_or(|link| link == ConditionStatus::False)
        && direct_status(facts) == ConditionStatus::False
}

/// How the way over the worker's link is; None when it never had one.
pub fn link_status(facts: &Facts, moment: &Moment) -> Option<ConditionStatus> {
    match facts.link.standing {
        LinkStanding::Never => None,
        LinkStanding::Up { .. } => Some(match facts.link.probe.outcome {
            Some(ProbeOutcome::Failed(_)) => ConditionStatus::False,
            Some(ProbeOutcome::Answered { .. }) | None => ConditionStatus::True,
        }),
        LinkStanding::Down { opened, since, .. } => {
            let is_awaited = moment.now <= link_returns_until(opened, since, moment);
            Some(if is_awaited { ConditionStatus::Unknown } else { ConditionStatus::False })
        }
    }
}

/// Until when a link that ended may come back before anybody is told. One that was lost while the server could not hear
/// gets the whole grace period; one that the server saw come and go needs none.
fn link_returns_until(opened: Option<Monotonic>, since: Monotonic, moment: &Moment) -> Monotonic {
    let until = since.plus(LINK_RETURNS);
    let was_watched = opened.is_some_and(|opened| opened >= moment.grace.began);
    let judged_before_grace = until < moment.grace.began;
    if was_watched || judged_before_grace { until } else { until.max(moment.grace.until) }
}

fn direct_status(facts: &Facts) -> ConditionStatus {
    match facts.probe.outcome {
        None => ConditionStatus::Unknown,
        Some(ProbeOutcome::Answered { .. }) => ConditionStatus::True,
        Some(ProbeOutcome::Failed(_)) => ConditionStatus::False,
    }
}

/// How much a way that fails matters: little while another may work.
fn severity_of_failed_way(facts: &Facts, moment: &Moment) -> Severity {
    if is_unreachable(facts, moment) { Severity::Error } else { Severity::Warning }
}

/// How much it matters how the direct way is.
fn direct_severity(facts: &Facts, moment: &Moment) -> Severity {
    match &facts.probe.outcome {
        None | Some(ProbeOutcome::Answered { .. }) => Severity::Ok,
        Some(ProbeOutcome::Failed(failure)) => severity_of_failed_direct_way(facts, failure, moment),
    }
}

/// How much a direct way that fails matters. A worker that was set up without a way back, and is reached over its link, lacks
/// nothing.
fn severity_of_failed_direct_way(facts: &Facts, failure: &ProbeFailure, moment: &Moment) -> Severity {
    let is_silent = matches!(failure, ProbeFailure::Refused | ProbeFailure::TimedOut | ProbeFailure::NoRoute);
    let has_way_back = facts.probe.was_answered || facts.tunnels.to_worker.is_some();
    if is_silent && !has_way_back && link_status(facts, moment) == Some(ConditionStatus::True) {
        return Severity::Ok;
    }
    severity_of_failed_way(facts, moment)
}

/// Whether a worker is heard, by the server's monotonic clock.
pub fn liveness(facts: &Facts, moment: &Moment, policy: &Policy) -> Liveness {
    if let Some(since) = facts.left {
        return Liveness::Lost { since };
    }
    let last = facts.heartbeat.map_or(facts.known_since, |heartbeat| heartbeat.last);
    let deadline = last.plus(policy.offline_timeout);
    if let Some(heartbeat) = facts.heartbeat
        && moment.now <= deadline
    {
        return Liveness::Heard { since: heartbeat.unbroken_since };
    }
    let judged_before_grace = deadline < moment.grace.began;
    if judged_before_grace {
        return Liveness::Lost { since: deadline };
    }
    let judged_from = deadline.max(moment.grace.until);
    if moment.now <= judged_from {
        return if facts.heartbeat.is_some() { Liveness::Excused } else { Liveness::Awaited };
    }
    Liveness::Lost { since: judged_from }
}

/// Whether another host's attempts go on.
pub fn repeats(sighting: &Sighting, now: Monotonic) -> bool {
    now.since(sighting.last) <= SIGHTING_HOLDS
}

/// Whether another host uses this identity or asks for this place. Ends by time alone.
pub fn has_identity_trouble(facts: &Facts, moment: &Moment) -> bool {
    let ask = facts.replacement.as_ref().map(|ask| &ask.sighting);
    [facts.duplicate.as_ref(), ask].into_iter().flatten().any(|sighting| repeats(sighting, moment.now))
}

/// When the server received the last sign of life, in milliseconds since 1970 by its clock.
pub fn last_heartbeat_ms(facts: &Facts, moment: &Moment) -> Option<i64> {
    facts.heartbeat.map(|heartbeat| moment.wall_ms(heartbeat.last)).or(facts.stored_heartbeat_ms)
}

fn heartbeat_condition(facts: &Facts, moment: &Moment, policy: &Policy) -> Condition {
    let (status, severity, reason, since) = match liveness(facts, moment, policy) {
        Liveness::Heard { since } => (ConditionStatus::True, Severity::Ok, Reason::HeartbeatReceived {}, Some(since)),
        Liveness::Excused | Liveness::Awaited => {
            let until_ms = moment.wall_ms(moment.grace.until);
            (ConditionStatus::Unknown, Severity::Ok, Reason::HeartbeatAwaited { until_ms }, None)
        }
        Liveness::Lost { since } if facts.left.is_some() => {
            let reason = Reason::WorkerStopped { at_ms: moment.wall_ms(since) };
            (ConditionStatus::False, Severity::Error, reason, Some(since))
        }
        Liveness::Lost { since } => {
            let lost = || {
                let last_ms = last_heartbeat_ms(facts, moment);
                Reason::HeartbeatLost { last_ms, timeout_s: policy.offline_timeout.as_secs() }
            };
            let heard = facts.heartbeat.map_or(facts.known_since, |heartbeat| heartbeat.last);
            let tunnel = facts.tunnels.to_server.as_ref().filter(|tunnel| explains(tunnel, heard));
            let reason = tunnel.map_or_else(lost, |tunnel| tunnel_reason(tunnel, moment));
            (ConditionStatus::False, Severity::Error, reason, Some(since))
        }
    };
    let since_ms = since.map(|since| moment.wall_ms(since));
    Condition { kind: ConditionKind::Heartbeat, status, severity, reason, since_ms }
}

/// Whether what fails since then can fail because of a tunnel.
fn explains(trouble: &TunnelTrouble, failed_since: Monotonic) -> bool {
    trouble.since <= failed_since.plus(TUNNEL_SEEN_LATE)
}

/// Says more than that nothing is heard: why, and where to look.
fn tunnel_reason(trouble: &TunnelTrouble, moment: &Moment) -> Reason {
    let TunnelTrouble { agent, forward, since } = trouble;
    Reason::TunnelDown { forward: forward.clone(), agent: agent.clone(), since_ms: moment.wall_ms(*since) }
}

fn link_condition(facts: &Facts, moment: &Moment) -> Option<Condition> {
    let status = link_status(facts, moment)?;
    let (reason, since) = match (&facts.link.standing, status) {
        (LinkStanding::Never, _) => return None,
        (LinkStanding::Down { .. }, ConditionStatus::Unknown | ConditionStatus::True) => (Reason::LinkAwaited {}, None),
        (LinkStanding::Down { since, loss, .. }, ConditionStatus::False) => {
            (Reason::LinkDown { loss: *loss }, Some(*since))
        }
        (LinkStanding::Up { since, carrier, .. }, _) => {
            if let Some(ProbeOutcome::Failed(failure)) = &facts.link.probe.outcome {
                (link_probe_reason(failure), Some(facts.link.probe.since))
            } else {
                let round_trip_ms = facts.link.readings.round_trip_ms;
                (Reason::LinkUp { carrier: *carrier, round_trip_ms }, Some(*since))
            }
        }
    };
    let tunnel = facts.tunnels.to_server.as_ref().filter(|tunnel| since.is_none_or(|since| explains(tunnel, since)));
    let (severity, reason) = match tunnel {
        _ if status != ConditionStatus::False => (Severity::Ok, reason),
        None => (severity_of_failed_way(facts, moment), reason),
        Some(tunnel) => (severity_of_failed_way(facts, moment), tunnel_reason(tunnel, moment)),
    };
    let since_ms = since.map(|since| moment.wall_ms(since));
    Some(Condition { kind: ConditionKind::Link, status, severity, reason, since_ms })
}

fn link_probe_reason(failure: &ProbeFailure) -> Reason {
    let status = match failure {
        ProbeFailure::WrongAnswer(status) => *status,
        ProbeFailure::WrongWorker(_) => Some(StatusCode::OK.as_u16()),
        ProbeFailure::Refused
        | ProbeFailure::TimedOut
        | ProbeFailure::NotResolved
        | ProbeFailure::NoRoute
        | ProbeFailure::Closed => None,
    };
    Reason::LinkUnanswered { timeout_s: PROBE_DEADLINE.as_secs(), status }
}

fn direct_condition(facts: &Facts, moment: &Moment) -> Condition {
    let url = health_url(&facts.row.ip, facts.row.port);
    let status = direct_status(facts);
    let (severity, reason) = match &facts.probe.outcome {
        None => (Severity::Ok, Reason::DirectNotProbed { url }),
        Some(ProbeOutcome::Answered { round_trip_ms }) => {
            (Severity::Ok, Reason::DirectAnswered { url, round_trip_ms: *round_trip_ms })
        }
        Some(ProbeOutcome::Failed(failure)) => {
            // beside a link that works, it is the probe that is looked into
            let tunnel = facts.tunnels.to_worker.as_ref().or(facts.tunnels.to_server.as_ref());
            let is_cause =
                |tunnel: &&TunnelTrouble| is_unreachable(facts, moment) && explains(tunnel, facts.probe.since);
            let reason = match tunnel.filter(is_cause) {
                Some(tunnel) => tunnel_reason(tunnel, moment),
                None => probe_reason(failure, url, &facts.row.ip, PROBE_DEADLINE),
            };
            (direct_severity(facts, moment), reason)
        }
    };
    let since_ms = facts.probe.outcome.as_ref().map(|_| moment.wall_ms(facts.probe.since));
    Condition { kind: ConditionKind::Direct, status, severity, reason, since_ms }
}

/// What a failed probe is called, which had so much time.
pub fn probe_reason(failure: &ProbeFailure, url: String, host: &str, deadline: Duration) -> Reason {
    match failure {
        ProbeFailure::Refused => Reason::DirectRefused { url },
        ProbeFailure::TimedOut => Reason::DirectTimedOut { url, timeout_s: deadline.as_secs() },
        ProbeFailure::NotResolved => Reason::DirectNotResolved { url, host: host.to_owned() },
        ProbeFailure::NoRoute => Reason::DirectNoRoute { url },
        ProbeFailure::Closed => Reason::DirectClosed { url },
        ProbeFailure::WrongAnswer(status) => Reason::DirectWrongAnswer { url, status: *status },
        ProbeFailure::WrongWorker(name) => Reason::DirectWrongWorker { url, name: name.clone() },
    }
}

fn clock_condition(facts: &Facts, moment: &Moment) -> Condition {
    let kind = ConditionKind::Clock;
    let Some(clock) = facts.clock else {
        let reason = Reason::ClockNotMeasured {};
        return Condition { kind, status: ConditionStatus::Unknown, severity: Severity::Ok, reason, since_ms: None };
    };
    let ClockVerdict { severity, .. } = clock.measured.verdict();
    let status = if severity == Severity::Ok { ConditionStatus::True } else { ConditionStatus::False };
    let reason = clock.measured.reason();
    Condition { kind, status, severity, reason, since_ms: Some(moment.wall_ms(clock.since)) }
}

fn device_conditions(facts: &Facts, moment: &Moment, conditions: &mut Vec<Condition>) {
    let before = conditions.len();
    let mut wrong = |severity, reason: Reason, since| {
        conditions.push(Condition {
            kind: kind_of_problem(&reason),
            status: ConditionStatus::False,
            severity,
            reason,
            since_ms: Some(moment.wall_ms(since)),
        });
    };
    let report = &facts.status.reported;
    for (problem, since) in report.problems.iter().zip(&facts.status.problems_since) {
        wrong(problem.severity, problem.reason.clone(), *since);
    }
    let told = |index: u32| {
        report
            .problems
            .iter()
            .any(|problem| matches!(&problem.reason, Reason::DeviceUnhealthy { index: told, .. } if *told == index))
    };
    for device in report.gpu_devices.iter().flatten().filter(|device| is_unhealthy(device) && !told(device.index)) {
        let health = device.health.unwrap_or(DeviceHealth::Unknown);
        let reason = Reason::DeviceUnhealthy {
            index: device.index,
            name: device.name.clone(),
            health: health_word(health).to_owned(),
        };
        let since = facts.status.unhealthy_since.get(&device.index).copied().unwrap_or(facts.status.count_since);
        wrong(health_severity(health), reason, since);
    }
    let expected = facts.status.devices_expected;
    let found = report.gpu_devices.as_ref().map(|devices| u32::try_from(devices.len()).unwrap_or(u32::MAX));
    let told = report.problems.iter().any(|problem| matches!(problem.reason, Reason::DevicesMissing { .. }));
    if let Some(found) = found
        && found < expected
        && !told
    {
        let severity = if found == 0 { Severity::Error } else { Severity::Warning };
        let since = facts.status.missing_since.unwrap_or(facts.status.count_since);
        wrong(severity, Reason::DevicesMissing { expected, found }, since);
    }
    if conditions.iter().skip(before).all(|condition| condition.kind != ConditionKind::Devices) {
        conditions.push(devices_without_trouble(found, moment.wall_ms(facts.status.count_since)));
    }
}

/// A worker tells of its host's problems as it tells of its devices'.
fn kind_of_problem(reason: &Reason) -> ConditionKind {
    match reason {
        Reason::ClockNotSynchronised { .. } | Reason::HardwareClockLocal {} => ConditionKind::Clock,
        Reason::DiskFull { .. } => ConditionKind::Host,
        _ => ConditionKind::Devices,
    }
}

fn devices_without_trouble(found: Option<u32>, since_ms: i64) -> Condition {
    let (status, reason, since_ms) = match found {
        None => (ConditionStatus::Unknown, Reason::DevicesAwaited {}, None),
        Some(0) => (ConditionStatus::True, Reason::DevicesNone {}, Some(since_ms)),
        Some(count) => (ConditionStatus::True, Reason::DevicesWorking { count }, Some(since_ms)),
    };
    Condition { kind: ConditionKind::Devices, status, severity: Severity::Ok, reason, since_ms }
}

fn health_word(health: DeviceHealth) -> &'static str {
    match health {
        DeviceHealth::Ok => "ok",
        DeviceHealth::Warning => "warning",
        DeviceHealth::Critical => "critical",
        DeviceHealth::Unknown => "unknown",
    }
}

/// Only what is wrong is told: nobody needs to read that an identity is used once.
fn identity_conditions(facts: &Facts, moment: &Moment, conditions: &mut Vec<Condition>) {
    let wrong = |severity, reason, since: Monotonic| Condition {
        kind: ConditionKind::Identity,
        status: ConditionStatus::False,
        severity,
        reason,
        since_ms: Some(moment.wall_ms(since)),
    };
    if let Some(other) = facts.duplicate.as_ref().filter(|other| repeats(other, moment.now)) {
        let reason = Reason::IdentityDuplicated { hostname: other.hostname.clone(), address: other.address.clone() };
        conditions.push(wrong(Severity::Error, reason, other.first));
    }
    if let Some(ask) = facts.replacement.as_ref().filter(|ask| repeats(&ask.sighting, moment.now)) {
        let other = &ask.sighting;
        let reason = Reason::ReplacementAsked { hostname: other.hostname.clone(), address: other.address.clone() };
        conditions.push(wrong(Severity::Warning, reason, other.first));
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::ProbeFact;
    use super::super::facts::tests::{at, devices, facts};
    use super::super::time::Grace;
    use super::*;
    use api::{ClockMeasurement, LinkCarrier, LinkLoss, Maintenance, Problem, WorkerStatus};
    use proptest::prelude::*;

    const POLICY: Policy = Policy { offline_timeout: Duration::from_mins(1) };
    const NO_GRACE: Grace = Grace { began: Monotonic::from_ms(0), until: Monotonic::from_ms(60_000) };

    fn moment(seconds: i64, grace: Grace) -> Moment {
        Moment { now: at(seconds), wall_offset_ms: 1_700_000_000_000, grace }
    }

    fn heard_at(seconds: i64) -> Facts {
        let mut facts = facts();
        facts.hear(at(seconds), POLICY.offline_timeout);
        facts
    }

    fn kinds(conditions: &[Condition], kind: ConditionKind) -> Vec<&Condition> {
        conditions.iter().filter(|condition| condition.kind == kind).collect()
    }

    fn link_up(since: i64) -> LinkStanding {
        let peer = "10.9.9.9:4711".parse().unwrap();
        LinkStanding::Up { since: at(since), peer, carrier: LinkCarrier::Stream }
    }

    fn link_down(opened: Option<i64>, since: i64) -> LinkStanding {
        LinkStanding::Down { opened: opened.map(at), since: at(since), loss: LinkLoss::Closed }
    }

    fn tunnel_down(forward: &str) -> TunnelTrouble {
        TunnelTrouble { agent: "bastion-01".to_owned(), forward: Some(forward.to_owned()), since: at(970) }
    }

    fn reasons(facts: &Facts, at: i64) -> Vec<(ConditionKind, bool)> {
        let assessed = assess(facts, &moment(at, NO_GRACE), &POLICY);
        let is_tunnel = |condition: &Condition| matches!(condition.reason, Reason::TunnelDown { .. });
        let ways = assessed.conditions.iter().take_while(|condition| condition.kind != ConditionKind::Clock);
        ways.map(|condition| (condition.kind, is_tunnel(condition))).collect()
    }

    #[test]
    fn whatever_is_wrong_is_found_by_the_brief_look_too() {
        let well = || {
            let mut facts = heard_at(990);
            facts.report(devices(2), at(990));
            facts.link.standing = link_up(900);
            facts
        };
        let brief = |facts: &Facts, seconds| assess_briefly(facts, &moment(seconds, NO_GRACE), &POLICY);
        let whole = |facts: &Facts, seconds| assess(facts, &moment(seconds, NO_GRACE), &POLICY);
        let expected = Assessment { conditions: Vec::new(), ..whole(&well(), 1000) };
        assert_eq!(brief(&well(), 1000), expected);
        let mut one_way = well();
        one_way.probe.outcome = Some(ProbeOutcome::Failed(ProbeFailure::Refused));
        assert_eq!(brief(&one_way, 1000), expected, "nobody made a way back");

        let spoil: [fn(&mut Facts); 7] = [
            |facts| facts.leave(at(995)),
            |facts| facts.link.standing = link_down(Some(900), 990),
            |facts| facts.probe.outcome = Some(ProbeOutcome::Failed(ProbeFailure::Closed)),
            |facts| facts.measure_clock(ClockMeasurement { offset_ms: 90_000, error_ms: 1 }, at(990)),
            |facts| facts.report(devices(1), at(995)),
            |facts| {
                let mut report = devices(2);
                report.gpu_devices.as_mut().unwrap()[1].health = Some(DeviceHealth::Warning);
                facts.report(report, at(995));
            },
            |facts| {
                let problem = Problem { severity: Severity::Warning, reason: Reason::HardwareClockLocal {}, age_s: 0 };
                facts.report(WorkerStatus { problems: vec![problem], ..devices(2) }, at(995));
            },
        ];
        for (index, spoil) in spoil.into_iter().enumerate() {
            let mut facts = well();
            spoil(&mut facts);
            assert!(whole(&facts, 1000).conditions.iter().any(|condition| !condition.is_fine()), "{index}");
            assert_eq!(brief(&facts, 1000), whole(&facts, 1000), "{index}");
        }
        assert_eq!(brief(&well(), 2000), whole(&well(), 2000), "silent");
    }

    #[test]
    fn a_tunnel_that_is_down_is_the_reason_of_what_fails_and_of_nothing_else() {
        let (heartbeat, link, direct) = (ConditionKind::Heartbeat, ConditionKind::Link, ConditionKind::Direct);
        let failed = Some(ProbeOutcome::Failed(ProbeFailure::TimedOut));
        let mut facts = heard_at(990);
        facts.tunnels.to_server = Some(tunnel_down("npu-1.server"));
        facts.link.standing = link_up(900);
        facts.probe.outcome = Some(ProbeOutcome::Answered { round_trip_ms: 1.0 });
        assert_eq!(reasons(&facts, 1000), [(heartbeat, false), (link, false), (direct, false)], "all is well");
        facts.probe = ProbeFact { outcome: failed, since: at(995), ..ProbeFact::default() };
        assert_eq!(reasons(&facts, 1000), [(heartbeat, false), (link, false), (direct, false)], "the link works");
        facts.link.standing = link_down(Some(900), 990);
        assert_eq!(reasons(&facts, 1000), [(heartbeat, false), (link, true), (direct, true)], "unreachable");
        assert_eq!(reasons(&facts, 2000), [(heartbeat, true), (link, true), (direct, true)], "not ready");
        facts.tunnels.to_server = Some(TunnelTrouble { since: at(1500), ..tunnel_down("npu-1.server") });
        assert_eq!(
            reasons(&facts, 2000),
            [(heartbeat, false), (link, false), (direct, false)],
            "all failed long before"
        );
        facts.tunnels.to_server = Some(tunnel_down("npu-1.server"));
        facts.leave(at(1500));
        assert!(!reasons(&facts, 2000)[0].1, "somebody stopped it");
    }

    #[test]
    fn a_probe_that_fails_alone_is_explained_by_the_tunnel_for_health_checks() {
        let mut facts = heard_at(990);
        facts.tunnels.to_worker = Some(tunnel_down("npu-1.health"));
        facts.probe.outcome = Some(ProbeOutcome::Failed(ProbeFailure::Refused));
        facts.probe.since = at(995);
        let assessed = assess(&facts, &moment(1000, NO_GRACE), &POLICY);
        let direct = kinds(&assessed.conditions, ConditionKind::Direct)[0];
        let expected = Reason::TunnelDown {
            forward: Some("npu-1.health".to_owned()),
            agent: "bastion-01".to_owned(),
            since_ms: 1_700_000_970_000,
        };
        assert_eq!((assessed.state, &direct.reason), (WorkerState::Unreachable, &expected));
    }

    /// Link × direct, of a worker that is heard: state, and how much each way matters.
    #[test]
    fn a_worker_is_unreachable_when_every_way_that_there_is_fails() {
        let answered = Some(ProbeOutcome::Answered { round_trip_ms: 1.0 });
        let failed = Some(ProbeOutcome::Failed(ProbeFailure::TimedOut));
        let (up, down, returning) = (link_up(900), link_down(Some(900), 990), link_down(Some(900), 999));
        let (ok, warning, error) = (Severity::Ok, Severity::Warning, Severity::Error);
        let (ready, unreachable) = (WorkerState::Ready, WorkerState::Unreachable);
        let table = [
            (LinkStanding::Never, None, &answered, ready, None, ok),
            (LinkStanding::Never, None, &failed, unreachable, None, error),
            (up.clone(), None, &answered, ready, Some(ok), ok),
            (up.clone(), answered.clone(), &failed, ready, Some(ok), ok),
            (up.clone(), None, &failed, ready, Some(ok), ok),
            (up.clone(), None, &None, ready, Some(ok), ok),
            (up.clone(), failed.clone(), &answered, ready, Some(warning), ok),
            (up.clone(), failed.clone(), &failed, unreachable, Some(error), error),
            (down.clone(), None, &answered, ready, Some(warning), ok),
            (down.clone(), None, &None, ready, Some(warning), ok),
            (down.clone(), None, &failed, unreachable, Some(error), error),
            (returning.clone(), None, &answered, ready, Some(ok), ok),
            (returning.clone(), None, &failed, ready, Some(ok), warning),
        ];
        for (standing, over_link, direct, state, of_link, of_direct) in table {
            let mut facts = heard_at(990);
            facts.link.standing = standing.clone();
            facts.link.probe.outcome.clone_from(&over_link);
            facts.probe.outcome.clone_from(direct);
            let assessed = assess(&facts, &moment(1000, NO_GRACE), &POLICY);
            let severity = |kind| kinds(&assessed.conditions, kind).first().map(|condition| condition.severity);
            let found = (assessed.state, severity(ConditionKind::Link), severity(ConditionKind::Direct));
            assert_eq!(found, (state, of_link, Some(of_direct)), "{standing:?} {over_link:?} {direct:?}");
        }
    }

    #[test]
    fn a_direct_way_that_fails_beside_a_link_matters_where_there_was_one_or_should_be() {
        let severity = |change: &dyn Fn(&mut Facts)| {
            let mut facts = heard_at(990);
            facts.link.standing = link_up(900);
            facts.probe.outcome = Some(ProbeOutcome::Failed(ProbeFailure::Refused));
            change(&mut facts);
            let assessed = assess(&facts, &moment(1000, NO_GRACE), &POLICY);
            let direct = kinds(&assessed.conditions, ConditionKind::Direct)[0];
            (direct.status, direct.severity)
        };
        let failed = |severity| (ConditionStatus::False, severity);
        assert_eq!(severity(&|_| ()), failed(Severity::Ok), "nobody made one");
        assert_eq!(severity(&|facts| facts.probe.was_answered = true), failed(Severity::Warning), "it worked before");
        let tunnel = |facts: &mut Facts| facts.tunnels.to_worker = Some(tunnel_down("npu-1.health"));
        assert_eq!(severity(&tunnel), failed(Severity::Warning), "a tunnel should be one");
        let wrong = ProbeOutcome::Failed(ProbeFailure::WrongWorker("npu-2".to_owned()));
        let other = |facts: &mut Facts| facts.probe.outcome = Some(wrong.clone());
        assert_eq!(severity(&other), failed(Severity::Warning), "somebody else has its address");
    }

    #[test]
    fn a_link_that_ends_is_told_when_it_does_not_come_back() {
        let start = Grace { began: at(0), until: at(60) };
        let stall = Grace { began: at(500), until: at(700) };
        let table = [
            // seen to come and go, just after the server's start
            (link_down(Some(20), 30), 31, start, ConditionStatus::Unknown),
            (link_down(Some(20), 30), 32, start, ConditionStatus::False),
            // known from before the start
            (link_down(None, 0), 60, start, ConditionStatus::Unknown),
            (link_down(None, 0), 61, start, ConditionStatus::False),
            // lost while the server stood still
            (link_down(Some(100), 650), 700, stall, ConditionStatus::Unknown),
            (link_down(Some(100), 650), 701, stall, ConditionStatus::False),
            // lost before that
            (link_down(Some(100), 200), 650, stall, ConditionStatus::False),
            // come back since, and lost again
            (link_down(Some(660), 670), 672, stall, ConditionStatus::False),
        ];
        for (standing, seconds, grace, status) in table {
            let mut facts = heard_at(seconds);
            facts.link.standing = standing.clone();
            assert_eq!(link_status(&facts, &moment(seconds, grace)), Some(status), "{standing:?} at {seconds}");
        }
    }

    #[test]
    fn a_link_tells_what_it_is_and_how_it_ended() {
        let mut facts = heard_at(990);
        facts.link.standing = link_up(900);
        facts.link.readings.round_trip_ms = Some(0.5);
        let told = |facts: &Facts| {
            let assessed = assess(facts, &moment(1000, NO_GRACE), &POLICY);
            kinds(&assessed.conditions, ConditionKind::Link)[0].clone()
        };
        let up = told(&facts);
        assert_eq!(up.reason, Reason::LinkUp { carrier: LinkCarrier::Stream, round_trip_ms: Some(0.5) });
        assert_eq!(up.since_ms, Some(1_700_000_900_000));
        facts.link.probe.outcome = Some(ProbeOutcome::Failed(ProbeFailure::WrongAnswer(Some(500))));
        assert_eq!(told(&facts).reason, Reason::LinkUnanswered { timeout_s: 10, status: Some(500) });
        facts.link_closed(LinkLoss::Silent, at(995));
        let down = told(&facts);
        assert_eq!(down.reason, Reason::LinkDown { loss: LinkLoss::Silent });
        assert_eq!(down.since_ms, Some(1_700_000_995_000));
    }

    /// Heartbeat × direct × maintenance.
    #[test]
    fn each_combination_of_facts_has_its_state() {
        let answered = Some(ProbeOutcome::Answered { round_trip_ms: 1.0 });
        let refused = Some(ProbeOutcome::Failed(ProbeFailure::Refused));
        let table = [
            (true, answered.clone(), false, WorkerState::Ready),
            (true, None, false, WorkerState::Ready),
            (true, refused.clone(), false, WorkerState::Unreachable),
            (false, answered.clone(), false, WorkerState::NotReady),
            (false, refused.clone(), false, WorkerState::NotReady),
            (true, answered.clone(), true, WorkerState::Maintenance),
            (false, refused.clone(), true, WorkerState::Maintenance),
        ];
        for (heard, outcome, maintenance, state) in table {
            let mut facts = heard_at(if heard { 990 } else { 900 });
            facts.probe.outcome.clone_from(&outcome);
            facts.row.maintenance = Maintenance { enabled: maintenance, message: None };
            let found = assess(&facts, &moment(1000, NO_GRACE), &POLICY).state;
            assert_eq!(found, state, "{heard} {outcome:?} {maintenance}");
        }
    }

    #[test]
    fn a_lost_worker_that_cannot_be_reached_either_shows_both_directions() {
        let mut facts = heard_at(900);
        facts.record_probe("10.0.0.1", 10150, ProbeOutcome::Failed(ProbeFailure::Refused), at(950));
        let assessed = assess(&facts, &moment(1000, NO_GRACE), &POLICY);
        assert_eq!(assessed.state, WorkerState::NotReady);
        assert_eq!(
            assessed.conditions[0].reason,
            Reason::HeartbeatLost { last_ms: Some(1_700_000_900_000), timeout_s: 60 }
        );
        assert_eq!(
            assessed.conditions[1].reason,
            Reason::DirectRefused { url: "http://10.0.0.1:10150/healthz".into() }
        );
    }

    #[test]
    fn the_offline_timeout_is_reached_when_it_is_over_and_not_before() {
        for (seconds, state) in [(959, WorkerState::Ready), (960, WorkerState::Ready), (961, WorkerState::NotReady)] {
            assert_eq!(state_at(&heard_at(900), seconds, NO_GRACE), state, "{seconds}");
        }
    }

    #[test]
    fn one_heartbeat_revives_a_lost_worker() {
        let mut facts = heard_at(100);
        assert_eq!(state_at(&facts, 500, NO_GRACE), WorkerState::NotReady);
        facts.hear(at(500), POLICY.offline_timeout);
        let assessed = assess(&facts, &moment(500, NO_GRACE), &POLICY);
        assert_eq!(assessed.state, WorkerState::Ready);
        assert_eq!(assessed.conditions[0].since_ms, Some(1_700_000_500_000));
    }

    #[test]
    fn a_good_bye_counts_at_once() {
        let mut facts = heard_at(999);
        facts.leave(at(1000));
        let assessed = assess(&facts, &moment(1000, NO_GRACE), &POLICY);
        assert_eq!(assessed.state, WorkerState::NotReady);
        assert_eq!(assessed.conditions[0].reason, Reason::WorkerStopped { at_ms: 1_700_001_000_000 });
    }

    #[test]
    fn after_the_servers_start_nobody_is_judged_for_a_full_timeout() {
        let facts = facts();
        assert_eq!(state_at(&facts, 60, NO_GRACE), WorkerState::Pending);
        let assessed = assess(&facts, &moment(59, NO_GRACE), &POLICY);
        assert_eq!(assessed.conditions[0].reason, Reason::HeartbeatAwaited { until_ms: 1_700_000_060_000 });
        assert_eq!(state_at(&facts, 61, NO_GRACE), WorkerState::NotReady);
    }

    #[test]
    fn after_a_stall_who_was_ready_stays_ready_and_who_was_lost_stays_lost() {
        let stalled = Grace { began: at(1000), until: at(1240) };
        let ready_before = heard_at(995);
        let lost_before = heard_at(900);
        let never_heard = facts();
        for seconds in [1180, 1240] {
            assert_eq!(state_at(&ready_before, seconds, stalled), WorkerState::Ready);
            assert_eq!(state_at(&lost_before, seconds, stalled), WorkerState::NotReady);
            assert_eq!(state_at(&never_heard, seconds, stalled), WorkerState::NotReady);
        }
        assert_eq!(state_at(&ready_before, 1241, stalled), WorkerState::NotReady);
    }

    #[test]
    fn one_missed_beat_of_three_changes_nothing_and_four_in_a_row_change_the_state_once() {
        let policy = Policy { offline_timeout: Duration::from_secs(30) };
        let mut facts = facts();
        let mut changes = Vec::new();
        let mut before = WorkerState::Ready;
        for second in 0..600 {
            let beat = second / 10;
            let lost = (31..35).contains(&beat) || beat < 30 && beat % 3 == 2;
            if second % 10 == 0 && !lost {
                facts.hear(at(second), policy.offline_timeout);
            }
            let now = state(&facts, &moment(second, Grace { began: at(-1000), until: at(-1000) }), &policy);
            if now != before {
                changes.push((second, now));
                before = now;
            }
        }
        assert_eq!(changes, [(331, WorkerState::NotReady), (350, WorkerState::Ready)]);
    }

    fn state_at(facts: &Facts, seconds: i64, grace: Grace) -> WorkerState {
        let moment = moment(seconds, grace);
        let state = state(facts, &moment, &POLICY);
        assert_eq!(assess(facts, &moment, &POLICY).state, state);
        state
    }

    #[test]
    fn each_cause_of_trouble_with_devices_is_a_condition_of_its_own() {
        let mut facts = heard_at(900);
        facts.report(devices(8), at(900));
        let mut status = devices(7);
        status.gpu_devices.as_mut().unwrap()[2].health = Some(DeviceHealth::Critical);
        status.problems.push(Problem {
            severity: Severity::Warning,
            reason: Reason::ToolTimedOut { tool: "npu-smi".into(), timeout_s: 30 },
            age_s: 40,
        });
        facts.report(status, at(950));
        let assessed = assess(&facts, &moment(951, NO_GRACE), &POLICY);
        let found: Vec<_> = kinds(&assessed.conditions, ConditionKind::Devices)
            .into_iter()
            .map(|condition| (condition.severity, condition.reason.clone(), condition.since_ms))
            .collect();
        let ms = |seconds: i64| Some(1_700_000_000_000 + seconds * 1000);
        assert_eq!(
            found,
            [
                (Severity::Warning, Reason::ToolTimedOut { tool: "npu-smi".into(), timeout_s: 30 }, ms(910)),
                (
                    Severity::Error,
                    Reason::DeviceUnhealthy { index: 2, name: "910B3".into(), health: "critical".into() },
                    ms(950)
                ),
                (Severity::Warning, Reason::DevicesMissing { expected: 8, found: 7 }, ms(950)),
            ]
        );
        assert_eq!(assessed.state, WorkerState::Ready);
    }

    #[test]
    fn devices_are_awaited_none_or_working() {
        for (status, reason) in [
            (api::WorkerStatus::default(), Reason::DevicesAwaited {}),
            (devices(0), Reason::DevicesNone {}),
            (devices(8), Reason::DevicesWorking { count: 8 }),
        ] {
            let mut facts = heard_at(900);
            facts.report(status, at(900));
            let assessed = assess(&facts, &moment(901, NO_GRACE), &POLICY);
            let found = kinds(&assessed.conditions, ConditionKind::Devices);
            assert_eq!(found.iter().map(|condition| &condition.reason).collect::<Vec<_>>(), [&reason]);
        }
    }

    #[test]
    fn a_duplicate_is_shown_for_as_long_as_it_repeats() {
        let mut facts = heard_at(900);
        facts.sight_duplicate("host-b", "10.0.0.2", at(900));
        facts.sight_duplicate("host-b", "10.0.0.2", at(930));
        for (seconds, shown) in [(940, 1), (1020, 1), (1021, 0)] {
            let assessed = assess(&facts, &moment(seconds, NO_GRACE), &POLICY);
            let found = kinds(&assessed.conditions, ConditionKind::Identity);
            assert_eq!(found.len(), shown, "{seconds}");
            if let Some(condition) = found.first() {
                assert_eq!(condition.since_ms, Some(1_700_000_900_000));
            }
        }
    }

    fn any_fact() -> impl Strategy<Value = (Facts, i64, Grace)> {
        let probe = prop_oneof![
            Just(None),
            Just(Some(ProbeOutcome::Answered { round_trip_ms: 1.0 })),
            Just(Some(ProbeOutcome::Failed(ProbeFailure::Refused))),
        ];
        let link = prop_oneof![
            Just(LinkStanding::Never),
            (0i64..2_000).prop_map(link_up),
            (proptest::option::of(0i64..2_000), 0i64..2_000).prop_map(|(opened, since)| link_down(opened, since)),
        ];
        let ways = (probe.clone(), link, probe);
        (proptest::option::of(0i64..2_000), any::<bool>(), ways, 0i64..2_000, 0i64..2_000, 0i64..500).prop_map(
            |(heard, maintenance, (outcome, standing, over_link), now, grace_began, grace_length)| {
                let mut facts = facts();
                if let Some(seconds) = heard {
                    facts.hear(at(seconds.min(now)), POLICY.offline_timeout);
                }
                facts.row.maintenance.enabled = maintenance;
                facts.probe.outcome = outcome;
                facts.link.standing = standing;
                facts.link.probe.outcome = over_link;
                (facts, now, Grace { began: at(grace_began), until: at(grace_began + grace_length) })
            },
        )
    }

    proptest! {
        #[test]
        fn no_clock_changes_a_state((facts, now, grace) in any_fact(), worker_offset_ms in any::<i64>(), error_ms in any::<i64>(), server_offset_ms in any::<i64>()) {
            let before = state(&facts, &moment(now, grace), &POLICY);
            let mut jumped = facts.clone();
            jumped.measure_clock(ClockMeasurement { offset_ms: worker_offset_ms, error_ms }, at(now));
            let moment = Moment { now: at(now), wall_offset_ms: server_offset_ms, grace };
            prop_assert_eq!(assess(&jumped, &moment, &POLICY).state, before);
        }

        #[test]
        fn no_device_changes_a_state((facts, now, grace) in any_fact(), count in 0u32..16, later in 0u32..16) {
            let before = state(&facts, &moment(now, grace), &POLICY);
            let mut reported = facts.clone();
            reported.report(devices(count), at(now));
            reported.report(devices(later), at(now));
            prop_assert_eq!(assess(&reported, &moment(now, grace), &POLICY).state, before);
        }

        #[test]
        fn nobody_who_is_heard_in_time_is_lost((mut facts, now, grace) in any_fact(), age in 0i64..=60) {
            facts.hear(at(now - age), POLICY.offline_timeout);
            let heard = matches!(liveness(&facts, &moment(now, grace), &POLICY), Liveness::Heard { .. });
            prop_assert!(heard);
        }

        #[test]
        fn the_state_is_what_the_conditions_say((facts, now, grace) in any_fact()) {
            let assessed = assess(&facts, &moment(now, grace), &POLICY);
            let status = |kind| kinds(&assessed.conditions, kind)[0].status;
            let mut ways = assessed
                .conditions
                .iter()
                .filter(|condition| matches!(condition.kind, ConditionKind::Link | ConditionKind::Direct));
            let expected = if facts.row.maintenance.enabled {
                WorkerState::Maintenance
            } else if status(ConditionKind::Heartbeat) == ConditionStatus::False {
                WorkerState::NotReady
            } else if facts.heartbeat.is_none() {
                WorkerState::Pending
            } else if ways.all(|way| way.status == ConditionStatus::False) {
                WorkerState::Unreachable
            } else {
                WorkerState::Ready
            };
            prop_assert_eq!(assessed.state, expected);
        }
    }
}
