//! What is wrong with the fleet, worst first, in as few lines as it takes. The banner shows it.

use crate::i18n::reasons::is_loopback;
use crate::order::sort;
use api::{Condition, ConditionKind, ConditionStatus, Reason, Severity, WorkerBrief, WorkerId, WorkerState};
use serde::{Deserialize, Serialize};
use std::mem::{Discriminant, discriminant};

/// More workers than this with one cause share a line.
const MAX_LINES_A_CAUSE: usize = 5;
/// A shared line names this many of its workers.
pub const MAX_NAMES_A_LINE: usize = 50;

/// How many workers are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All.
    pub all: usize,
    /// Ready.
    pub ready: usize,
    /// Heartbeat lost.
    pub not_ready: usize,
    /// No way to it works.
    pub unreachable: usize,
    /// Out of service.
    pub maintenance: usize,
    /// Not heard yet.
    pub pending: usize,
    /// Of which the banner speaks.
    pub trouble: usize,
}

impl Counts {
    /// Counts these workers.
    pub fn of<'a>(workers: impl Iterator<Item = &'a WorkerBrief>) -> Self {
        workers.fold(Self::default(), |mut counts, worker| {
            counts.all += 1;
            counts.trouble += usize::from(concerns(worker));
            match worker.state {
                WorkerState::Ready => counts.ready += 1,
                WorkerState::NotReady => counts.not_ready += 1,
                WorkerState::Unreachable => counts.unreachable += 1,
                WorkerState::Maintenance => counts.maintenance += 1,
                WorkerState::Pending => counts.pending += 1,
            }
            counts
        })
    }
}

/// A worker that a line names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedWorker {
    /// The row.
    pub id: WorkerId,
    /// Its name.
    pub name: String,
}

/// One line of the banner: a cause and whom it concerns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TroubleLine {
    /// The state that the cause leads to.
    pub state: WorkerState,
    /// How much it matters.
    pub severity: Severity,
    /// The cause; of the first worker, when there are more.
    pub reason: Reason,
    /// What else is known about it: how the worker is reached otherwise.
    pub also: Option<Reason>,
    /// How many more conditions of the worker have this cause, as one for each unhealthy device.
    pub repeats: usize,
    /// Since when, in milliseconds since 1970 by the server's clock; the earliest, when there are more workers.
    pub since_ms: Option<i64>,
    /// Operating system, for commands; of the first worker.
    pub os: String,
    /// The first [`MAX_NAMES_A_LINE`] of them.
    pub workers: Vec<NamedWorker>,
    /// How many it concerns.
    pub worker_count: usize,
}

/// What is wrong with the fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trouble {
    /// Keep workers from their job; worst and most recent first.
    pub errors: Vec<TroubleLine>,
    /// To be looked at; work goes on.
    pub warnings: Vec<TroubleLine>,
    /// Workers that errors concern.
    pub error_workers: usize,
    /// Of those, workers that are not ready.
    pub not_ready_workers: usize,
    /// Of those, workers that are unreachable.
    pub unreachable_workers: usize,
    /// Workers that only warnings concern.
    pub warning_workers: usize,
}

impl Trouble {
    /// Of these workers.
    pub fn of<'a>(workers: impl Iterator<Item = &'a WorkerBrief>) -> Self {
        let mut trouble = Self::default();
        let mut lines: Vec<TroubleLine> = Vec::new();
        for worker in workers {
            let own = lines_of(worker);
            if own.iter().any(|line| line.severity == Severity::Error) {
                trouble.error_workers += 1;
                trouble.not_ready_workers += usize::from(worker.state == WorkerState::NotReady);
                trouble.unreachable_workers += usize::from(worker.state == WorkerState::Unreachable);
            } else if !own.is_empty() {
                trouble.warning_workers += 1;
            }
            lines.extend(own);
        }
        let (mut errors, mut warnings): (Vec<_>, Vec<_>) =
            share_lines(lines).into_iter().partition(|line| line.severity == Severity::Error);
        for part in [&mut errors, &mut warnings] {
            sort(part, |l, r| l.state.cmp(&r.state).then(r.since_ms.cmp(&l.since_ms)));
        }
        Self { errors, warnings, ..trouble }
    }
}

/// Whether the banner speaks of this worker.
pub fn concerns(worker: &WorkerBrief) -> bool {
    worker.conditions.iter().any(|condition| is_cause(worker.state, condition))
}

/// The conditions that are worth a line, the one behind the state first.
pub fn causes(state: WorkerState, conditions: &[Condition]) -> Vec<&Condition> {
    let mut causes: Vec<&Condition> = conditions.iter().filter(move |condition| is_cause(state, condition)).collect();
    let is_other = |condition: &Condition| Some(condition.kind) != kind_behind(state);
    sort(&mut causes, |l, r| is_other(l).cmp(&is_other(r)).then(r.severity.cmp(&l.severity)));
    causes
}

/// The condition that a state follows from.
const fn kind_behind(state: WorkerState) -> Option<ConditionKind> {
    match state {
        WorkerState::NotReady => Some(ConditionKind::Heartbeat),
        WorkerState::Unreachable => Some(ConditionKind::Direct),
        WorkerState::Ready | WorkerState::Pending | WorkerState::Maintenance => None,
    }
}

fn is_cause(state: WorkerState, condition: &Condition) -> bool {
    if condition.severity == Severity::Ok {
        return false;
    }
    match state {
        // The operator knows, or nobody can know yet.
        WorkerState::Maintenance | WorkerState::Pending => false,
        // Of a worker that is silent nothing else is known to be true now.
        WorkerState::NotReady => matches!(condition.kind, ConditionKind::Heartbeat | ConditionKind::Identity),
        WorkerState::Ready | WorkerState::Unreachable => true,
    }
}

/// How much a cause matters to those who look after the fleet.
pub fn severity(state: WorkerState, condition: &Condition) -> Severity {
    match condition.reason {
        // Somebody stopped it: it must not hide what nobody wanted.
        Reason::WorkerStopped { .. } => Severity::Warning,
        _ if kind_behind(state) == Some(condition.kind) => Severity::Error,
        _ => condition.severity,
    }
}

fn lines_of(worker: &WorkerBrief) -> Vec<TroubleLine> {
    let line = |condition: &Condition| TroubleLine {
        state: worker.state,
        severity: severity(worker.state, condition),
        reason: condition.reason.clone(),
        also: also(&worker.conditions, condition).cloned(),
        repeats: 0,
        since_ms: match &condition.reason {
            // the tunnel's time, not that at which it was missed
            Reason::TunnelDown { since_ms, .. } => Some(*since_ms),
            _ => condition.since_ms,
        },
        os: worker.os.clone(),
        workers: vec![NamedWorker { id: worker.id, name: worker.name.clone() }],
        worker_count: 1,
    };
    let mut lines: Vec<TroubleLine> = Vec::new();
    for condition in causes(worker.state, &worker.conditions) {
        match lines.iter_mut().find(|known| discriminant(&known.reason) == discriminant(&condition.reason)) {
            // link and probe fail for one tunnel
            Some(known) => known.repeats += usize::from(known.reason != condition.reason),
            None => lines.push(line(condition)),
        }
    }
    lines
}

/// What else is known about a condition that is wrong: over which way a silent worker is reached, or not; whether a link
/// does what a probe cannot.
pub fn also<'a>(conditions: &'a [Condition], condition: &Condition) -> Option<&'a Reason> {
    let of = |kind| conditions.iter().find(|condition| condition.kind == kind);
    let (direct, link) = (of(ConditionKind::Direct), of(ConditionKind::Link));
    let told = match condition.kind {
        ConditionKind::Heartbeat => direct.filter(|direct| direct.status == ConditionStatus::True).or(link).or(direct),
        ConditionKind::Direct => link,
        _ => None,
    };
    told.map(|condition| &condition.reason)
}

/// What lines that are joined have in common.
type Cause = (WorkerState, Severity, Reason, Option<Discriminant<Reason>>);

fn cause(line: &TroubleLine) -> Cause {
    (line.state, line.severity, without_worker(&line.reason), line.also.as_ref().map(discriminant))
}

/// A cause without what is a single worker's own: its address, its figures, its devices.
fn without_worker(reason: &Reason) -> Reason {
    // The end of a tunnel is mended in another place than a worker's own address.
    let place = |url: &str| if is_loopback(url) { "127.0.0.1".to_owned() } else { String::new() };
    match reason {
        Reason::HeartbeatLost { timeout_s, .. } => Reason::HeartbeatLost { last_ms: None, timeout_s: *timeout_s },
        Reason::WorkerStopped { .. } => Reason::WorkerStopped { at_ms: 0 },
        Reason::LinkUnanswered { timeout_s, .. } => Reason::LinkUnanswered { timeout_s: *timeout_s, status: None },
        Reason::TunnelDown { forward, agent, .. } => {
            // that the agent is gone is another matter than that one of its forwards is down
            let forward = forward.as_ref().map(|_| String::new());
            Reason::TunnelDown { forward, agent: agent.clone(), since_ms: 0 }
        }
        Reason::DirectRefused { url } => Reason::DirectRefused { url: place(url) },
        Reason::DirectTimedOut { url, timeout_s } => Reason::DirectTimedOut { url: place(url), timeout_s: *timeout_s },
        Reason::DirectNotResolved { .. } => Reason::DirectNotResolved { url: String::new(), host: String::new() },
        Reason::DirectNoRoute { .. } => Reason::DirectNoRoute { url: String::new() },
        Reason::DirectClosed { .. } => Reason::DirectClosed { url: String::new() },
        Reason::DirectWrongAnswer { .. } => Reason::DirectWrongAnswer { url: String::new(), status: None },
        Reason::DirectWrongWorker { .. } => Reason::DirectWrongWorker { url: String::new(), name: String::new() },
        Reason::ClockOffset { .. } => Reason::ClockOffset { offset_ms: 0, error_ms: 0 },
        Reason::ClockOffsetZone { half_hours, .. } => {
            Reason::ClockOffsetZone { offset_ms: 0, error_ms: 0, half_hours: *half_hours }
        }
        Reason::ToolFailed { tool, .. } => {
            Reason::ToolFailed { tool: tool.clone(), exit_code: None, output: String::new() }
        }
        Reason::DeviceUnhealthy { .. } => {
            Reason::DeviceUnhealthy { index: 0, name: String::new(), health: String::new() }
        }
        Reason::DevicesMissing { .. } => Reason::DevicesMissing { expected: 0, found: 0 },
        other => other.clone(),
    }
}

/// Joins the lines of a cause that has many.
fn share_lines(lines: Vec<TroubleLine>) -> Vec<TroubleLine> {
    let mut by_cause: Vec<(Cause, Vec<TroubleLine>)> = Vec::new();
    for line in lines {
        let of_line = cause(&line);
        match by_cause.iter_mut().find(|(known, _)| *known == of_line) {
            Some((_, same)) => same.push(line),
            None => by_cause.push((of_line, vec![line])),
        }
    }
    by_cause.into_iter().flat_map(|(_, same)| if same.len() > MAX_LINES_A_CAUSE { join(same) } else { same }).collect()
}

fn join(lines: Vec<TroubleLine>) -> Vec<TroubleLine> {
    let worker_count = lines.len();
    let joined = lines.into_iter().reduce(|mut all, mut line| {
        if all.workers.len() < MAX_NAMES_A_LINE {
            all.workers.append(&mut line.workers);
        }
        all.since_ms = match (all.since_ms, line.since_ms) {
            (Some(l), Some(r)) => Some(l.min(r)),
            (one, other) => one.or(other),
        };
        all
    });
    joined.map(|line| TroubleLine { worker_count, ..line }).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::list::tests::{brief as worker, condition};

    fn lost(id: i64) -> WorkerBrief {
        let mut worker = worker(id, &format!("npu-{id}"));
        worker.state = WorkerState::NotReady;
        worker.conditions = vec![
            condition(ConditionKind::Clock, Severity::Warning, Reason::ClockOffset { offset_ms: 5_000, error_ms: 9 }),
            condition(
                ConditionKind::Direct,
                Severity::Warning,
                Reason::DirectRefused { url: format!("http://10.0.0.{id}:10150") },
            ),
            condition(
                ConditionKind::Heartbeat,
                Severity::Error,
                Reason::HeartbeatLost { last_ms: Some(id), timeout_s: 60 },
            ),
        ];
        worker
    }

    fn warned(id: i64) -> WorkerBrief {
        let mut worker = worker(id, &format!("npu-{id}"));
        worker.conditions = vec![condition(
            ConditionKind::Clock,
            Severity::Warning,
            Reason::ClockOffset { offset_ms: 5_000, error_ms: 9 },
        )];
        worker
    }

    fn of(workers: &[WorkerBrief]) -> Trouble {
        Trouble::of(workers.iter())
    }

    #[test]
    fn a_silent_worker_has_one_line_that_says_how_the_probe_fails() {
        let trouble = of(&[lost(1)]);
        assert_eq!((trouble.errors.len(), trouble.warnings.len()), (1, 0));
        let line = &trouble.errors[0];
        assert!(matches!(line.reason, Reason::HeartbeatLost { .. }));
        assert!(matches!(line.also, Some(Reason::DirectRefused { .. })));
    }

    #[test]
    fn five_share_no_line_and_six_do() {
        let five: Vec<WorkerBrief> = (1..=5).map(lost).collect();
        assert_eq!(of(&five).errors.len(), 5);
        let six: Vec<WorkerBrief> = (1..=6).map(lost).collect();
        let trouble = of(&six);
        assert_eq!(trouble.errors.len(), 1);
        assert_eq!(trouble.errors[0].worker_count, 6);
        assert_eq!(trouble.errors[0].workers.len(), 6);
        assert_eq!((trouble.error_workers, trouble.not_ready_workers), (6, 6));
    }

    #[test]
    fn a_shared_line_of_very_many_names_only_some() {
        let many: Vec<WorkerBrief> = (1..=200).map(lost).collect();
        let trouble = of(&many);
        assert_eq!(trouble.errors[0].worker_count, 200);
        assert_eq!(trouble.errors[0].workers.len(), MAX_NAMES_A_LINE);
    }

    #[test]
    fn other_causes_do_not_share_a_line() {
        let mut workers: Vec<WorkerBrief> = (1..=3).map(lost).collect();
        workers.extend((4..=6).map(|id| {
            let mut worker = lost(id);
            worker.conditions.retain(|condition| condition.kind == ConditionKind::Heartbeat);
            worker
        }));
        assert_eq!(of(&workers).errors.len(), 6);
    }

    #[test]
    fn one_worker_with_many_unhealthy_devices_has_one_line() {
        let mut worker = worker(1, "a");
        worker.conditions = (0..8)
            .map(|index| {
                let reason = Reason::DeviceUnhealthy { index, name: "910B3".to_owned(), health: "Alarm".to_owned() };
                condition(ConditionKind::Devices, Severity::Error, reason)
            })
            .collect();
        let trouble = of(&[worker]);
        assert_eq!((trouble.errors.len(), trouble.error_workers), (1, 1));
        assert_eq!((trouble.errors[0].worker_count, trouble.errors[0].repeats), (1, 7));
    }

    #[test]
    fn tunnels_and_plain_addresses_do_not_share_a_line() {
        let refused = |id: i64, host: &str| {
            let mut worker = worker(id, "a");
            worker.state = WorkerState::Unreachable;
            let reason = Reason::DirectRefused { url: format!("http://{host}:1015{id}/healthz") };
            worker.conditions = vec![condition(ConditionKind::Direct, Severity::Error, reason)];
            worker
        };
        let workers: Vec<WorkerBrief> =
            (0..7).map(|id| refused(id, "127.0.0.1")).chain((0..7).map(|id| refused(id, "10.0.0.1"))).collect();
        assert_eq!(of(&workers).errors.len(), 2);
    }

    #[test]
    fn a_ready_worker_with_a_warning_is_counted_apart() {
        let trouble = of(&[warned(1), lost(2), worker(3, "fine")]);
        assert_eq!((trouble.error_workers, trouble.warning_workers), (1, 1));
        assert_eq!((trouble.errors.len(), trouble.warnings.len()), (1, 1));
    }

    #[test]
    fn a_worker_in_maintenance_is_no_trouble() {
        let mut worker = lost(1);
        worker.state = WorkerState::Maintenance;
        assert_eq!(of(&[worker]), Trouble::default());
    }

    #[test]
    fn an_unreachable_worker_is_an_error_however_mild_the_condition() {
        let mut worker = worker(1, "a");
        worker.state = WorkerState::Unreachable;
        worker.conditions = vec![condition(
            ConditionKind::Direct,
            Severity::Warning,
            Reason::DirectNoRoute { url: "http://a:1".to_owned() },
        )];
        let trouble = of(&[worker]);
        assert_eq!((trouble.errors.len(), trouble.unreachable_workers), (1, 1));
    }

    #[test]
    fn a_worker_that_somebody_stopped_is_a_warning() {
        let mut worker = lost(1);
        worker.conditions = vec![condition(
            ConditionKind::Heartbeat,
            Severity::Error,
            Reason::WorkerStopped { at_ms: 1_700_000_000_000 },
        )];
        let trouble = of(&[worker, lost(2)]);
        assert_eq!((trouble.errors.len(), trouble.warnings.len()), (1, 1));
        assert_eq!((trouble.not_ready_workers, trouble.warning_workers), (1, 1));
    }

    #[test]
    fn a_host_that_wants_to_take_over_has_its_own_line() {
        let mut worker = lost(1);
        worker.conditions.push(condition(
            ConditionKind::Identity,
            Severity::Warning,
            Reason::ReplacementAsked { hostname: "new".to_owned(), address: "10.0.0.9".to_owned() },
        ));
        let trouble = of(&[worker]);
        assert_eq!((trouble.errors.len(), trouble.warnings.len()), (1, 1));
        assert_eq!((trouble.error_workers, trouble.warning_workers), (1, 0));
    }

    #[test]
    fn counts_add_up() {
        let counts = Counts::of([lost(1), warned(2), worker(3, "c")].iter());
        assert_eq!((counts.all, counts.not_ready, counts.ready, counts.trouble), (3, 1, 2, 2));
    }
}
