//! The probe: each worker's health check over each way to it, spread over its interval.

use crate::server::dial::{Answer, DialError, Way, dial_worker, health_url, ways};
use crate::server::links::Links;
use crate::server::registry::assess::Policy;
use crate::server::registry::facts::{Facts, LinkStanding, ProbeFailure, ProbeOutcome};
use crate::server::registry::time::{Moment, Monotonic};
use crate::server::registry::{ProbeSlot, Registry, Worker, assess};
use crate::server::supervisor::Job;
use api::{ConditionStatus, Reason, WorkerId, WorkerUuid};
use http::StatusCode;
use link::LinkHandle;
use serde::Deserialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Connecting, asking and reading. A slow network is slow, not dead.
pub const PROBE_DEADLINE: Duration = Duration::from_secs(10);
/// Somebody waits for this one, in a handshake that has a deadline of its own.
const WAY_BACK_DEADLINE: Duration = Duration::from_secs(5);
/// How often each way of a worker is probed.
const INTERVAL: Duration = Duration::from_secs(15);
/// How often a worker is probed directly that is not heard, or that answers over its link and sits behind a firewall:
/// many of those would each hold a place for the whole deadline.
const INTERVAL_HOPELESS: Duration = Duration::from_mins(1);
/// How often each way of a worker is probed whose link stands and answers: signs of life come over it all the time, and
/// when it ends, every way is probed at once.
const INTERVAL_LINKED: Duration = Duration::from_mins(1);
/// How often due workers are looked for; also how long a new worker waits at most.
const LOOK: Duration = Duration::from_millis(250);
/// Direct probes at once of workers that are likely to answer.
const AT_ONCE: usize = 48;
/// Direct probes at once of those that are not: they must not keep the living waiting.
const AT_ONCE_HOPELESS: usize = 16;
/// Health checks over links at once; each takes a round trip, and no connection.
const AT_ONCE_LINKS: usize = 256;

/// When a worker is probed next: at its own place in the interval, which its row decides.
pub fn next_due(id: WorkerId, now: Monotonic) -> Monotonic {
    due_after(id, now, INTERVAL)
}

fn due_after(id: WorkerId, now: Monotonic, interval: Duration) -> Monotonic {
    let length_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
    let place_ms = (fraction_of_u32(id) * length_ms) >> u32::BITS;
    let round = (now.ms() - place_ms).div_euclid(length_ms) + 1;
    Monotonic::from_ms(round * length_ms + place_ms)
}

/// Steps of the golden ratio: however many ids follow one another, they divide the whole evenly.
fn fraction_of_u32(id: WorkerId) -> i64 {
    id.0.wrapping_mul(0x9E37_79B9) & i64::from(u32::MAX)
}

/// Probes all workers, for ever: over each way that there is, and each for itself, so that a firewall that swallows the
/// packets of direct probes holds up no link's.
pub async fn run(registry: Registry, links: Links, job: Job) -> Infallible {
    let mut running = JoinSet::new();
    let mut busy = [0_usize; Lane::COUNT];
    let mut waiting = VecDeque::new();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = look.tick() => {
                waiting = due(&registry);
                job.succeeded();
            }
            Some(done) = running.join_next() => {
                // a probe that panicked was a living one or is counted as one: the next look corrects nothing worse
                let lane: Lane = done.unwrap_or(Lane::Living);
                release(&mut busy, lane);
            }
        }
        let mut later = VecDeque::new();
        while let Some((worker, lane)) = waiting.pop_front() {
            if !claim(&mut busy, lane) {
                later.push_back((worker, lane));
                continue;
            }
            if !lane.slot(&worker).begin() {
                release(&mut busy, lane);
                continue;
            }
            running.spawn(probe(registry.clone(), links.clone(), worker, lane));
        }
        waiting = later;
    }
}

/// Which probes wait for one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// Direct ones of workers that are likely to answer.
    Living,
    /// Direct ones that are likely to wait for their whole deadline.
    Hopeless,
    /// Health checks over links.
    Link,
}

impl Lane {
    const COUNT: usize = 3;

    const fn limit(self) -> usize {
        match self {
            Self::Living => AT_ONCE,
            Self::Hopeless => AT_ONCE_HOPELESS,
            Self::Link => AT_ONCE_LINKS,
        }
    }

    const fn interval(self) -> Duration {
        match self {
            Self::Living | Self::Link => INTERVAL,
            Self::Hopeless => INTERVAL_HOPELESS,
        }
    }

    fn slot(self, worker: &Worker) -> &ProbeSlot {
        match self {
            Self::Living | Self::Hopeless => &worker.probe,
            Self::Link => &worker.link_probe,
        }
    }
}

/// False when the lane is full.
fn claim(busy: &mut [usize; Lane::COUNT], lane: Lane) -> bool {
    let Some(count) = busy.get_mut(lane as usize).filter(|count| **count < lane.limit()) else { return false };
    *count += 1;
    true
}

fn release(busy: &mut [usize; Lane::COUNT], lane: Lane) {
    if let Some(count) = busy.get_mut(lane as usize) {
        *count = count.saturating_sub(1);
    }
}

/// Those that wait longest come first, so that a full lane leaves nobody waiting for ever.
fn due(registry: &Registry) -> VecDeque<(Arc<Worker>, Lane)> {
    let moment = registry.moment();
    let mut due = Vec::new();
    for worker in registry.all() {
        let (direct, link) = (worker.probe.is_due(moment.now), worker.link_probe.is_due(moment.now));
        if !direct && !link {
            continue;
        }
        let (has_link, is_hopeless) = {
            let facts = worker.facts();
            (matches!(facts.link.standing, LinkStanding::Up { .. }), is_hopeless(&facts, &moment, registry.policy()))
        };
        if direct {
            due.push((worker.clone(), if is_hopeless { Lane::Hopeless } else { Lane::Living }));
        }
        if link && has_link {
            due.push((worker, Lane::Link));
        }
    }
    due.sort_by_key(|(worker, lane)| lane.slot(worker).due());
    due.into()
}

/// Whether a direct probe will most likely fail slowly, and nobody waits for its outcome.
fn is_hopeless(facts: &Facts, moment: &Moment, policy: &Policy) -> bool {
    let is_lost = matches!(assess::liveness(facts, moment, policy), assess::Liveness::Lost { .. });
    let is_walled = facts.probe.outcome == Some(ProbeOutcome::Failed(ProbeFailure::TimedOut))
        && assess::link_status(facts, moment) == Some(ConditionStatus::True);
    is_lost || is_walled
}

/// Ends the claim also when the probe panics or is dropped.
struct Claim {
    worker: Arc<Worker>,
    lane: Lane,
    next: Monotonic,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.lane.slot(&self.worker).end(self.next);
    }
}

async fn probe(registry: Registry, links: Links, worker: Arc<Worker>, lane: Lane) -> Lane {
    let next = due_after(worker.id(), registry.clock().now(), lane.interval());
    let mut claim = Claim { worker: Arc::clone(&worker), lane, next };
    let way = ways(&worker, &links).into_iter().find(|way| matches!(way, Way::Link(_)) == (lane == Lane::Link));
    match way {
        Some(Way::Link(link)) => probe_link(&registry, &worker, link).await,
        Some(Way::Direct { ip, port }) => probe_direct(&registry, &worker, ip, port).await,
        // the link has ended since
        None => {}
    }
    let moment = registry.moment();
    if is_linked(&worker.facts(), lane, &moment) {
        claim.next = due_after(worker.id(), moment.now, INTERVAL_LINKED);
    }
    lane
}

/// Whether the way that was probed works, and the link too.
fn is_linked(facts: &Facts, lane: Lane, moment: &Moment) -> bool {
    let outcome = match lane {
        Lane::Living | Lane::Hopeless => &facts.probe.outcome,
        Lane::Link => &facts.link.probe.outcome,
    };
    matches!(outcome, Some(ProbeOutcome::Answered { .. }))
        && assess::link_status(facts, moment) == Some(ConditionStatus::True)
}

async fn probe_direct(registry: &Registry, worker: &Worker, ip: String, port: u16) {
    let outcome = ask(registry, worker, Way::Direct { ip: ip.clone(), port }).await;
    if let ProbeOutcome::Failed(failure) = &outcome {
        tracing::debug!(worker = worker.id().0, ip, port, ?failure, "direct probe failed");
    }
    worker.facts().record_probe(&ip, port, outcome, registry.clock().now());
}

async fn probe_link(registry: &Registry, worker: &Worker, link: LinkHandle) {
    let LinkStanding::Up { since, .. } = worker.facts().link.standing else { return };
    let outcome = ask(registry, worker, Way::Link(link.clone())).await;
    if link.close_reason().is_some() {
        // what is true of it by now is noted where it ends
        return;
    }
    if let ProbeOutcome::Failed(failure) = &outcome {
        tracing::debug!(worker = worker.id().0, ?failure, "a worker did not answer over its link");
    }
    worker.facts().record_link_probe(since, outcome, registry.clock().now());
}

async fn ask(registry: &Registry, worker: &Worker, way: Way) -> ProbeOutcome {
    let (uuid, own) = {
        let facts = worker.facts();
        (facts.row.uuid, facts.is_own())
    };
    let dialled = dial_worker(&[way], "/healthz", PROBE_DEADLINE).await;
    judge(dialled, uuid, own, |other| registry.by_uuid(other).map(|other| other.facts().row.name.clone()))
}

/// Tries whether a worker that answers at this address can be reached, in the words of the condition `direct`. It need not
/// have joined.
pub async fn try_way(registry: &Registry, uuid: WorkerUuid, ip: &str, port: u16) -> Reason {
    let way = Way::Direct { ip: ip.to_owned(), port };
    let dialled = dial_worker(&[way], "/healthz", WAY_BACK_DEADLINE).await;
    let name_of = |other| registry.by_uuid(other).map(|other| other.facts().row.name.clone());
    let url = health_url(ip, port);
    match judge(dialled, uuid, true, name_of) {
        ProbeOutcome::Answered { round_trip_ms } => Reason::DirectAnswered { url, round_trip_ms },
        ProbeOutcome::Failed(failure) => assess::probe_reason(&failure, url, ip, WAY_BACK_DEADLINE),
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Health {
    /// A worker of ours.
    Own { worker_uuid: WorkerUuid },
    /// GPUStack 0.7 answers a bare JSON string.
    Legacy(String),
}

fn judge(
    dialled: Result<Answer, DialError>,
    uuid: WorkerUuid,
    own: bool,
    name_of: impl FnOnce(WorkerUuid) -> Option<String>,
) -> ProbeOutcome {
    let answer = match dialled {
        Ok(answer) => answer,
        Err(error) => return ProbeOutcome::Failed(failure(&error)),
    };
    let status = answer.response.status();
    let wrong = ProbeOutcome::Failed(ProbeFailure::WrongAnswer(Some(status.as_u16())));
    if status != StatusCode::OK {
        return wrong;
    }
    match serde_json::from_slice(answer.response.body()) {
        Ok(Health::Own { worker_uuid }) if worker_uuid != uuid => {
            let name = name_of(worker_uuid).unwrap_or_else(|| worker_uuid.to_string());
            ProbeOutcome::Failed(ProbeFailure::WrongWorker(name))
        }
        Ok(Health::Own { .. }) => ProbeOutcome::Answered { round_trip_ms: answer.round_trip.as_secs_f64() * 1000.0 },
        Ok(Health::Legacy(word)) if !own && word == "ok" => {
            ProbeOutcome::Answered { round_trip_ms: answer.round_trip.as_secs_f64() * 1000.0 }
        }
        Ok(Health::Legacy(_)) | Err(_) => wrong,
    }
}

fn failure(error: &DialError) -> ProbeFailure {
    match error {
        DialError::NotResolved(_) => ProbeFailure::NotResolved,
        DialError::Refused => ProbeFailure::Refused,
        DialError::NoRoute(_) => ProbeFailure::NoRoute,
        DialError::TimedOut => ProbeFailure::TimedOut,
        DialError::Closed(_) => ProbeFailure::Closed,
        DialError::NotHttp(_) => ProbeFailure::WrongAnswer(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;
    use hyper::body::Bytes;
    use uuid::Uuid;

    fn answered(status: u16, body: &str) -> Answer {
        let response = Response::builder().status(status).body(Bytes::from(body.to_owned())).unwrap();
        Answer { response, round_trip: Duration::from_millis(2) }
    }

    #[test]
    fn only_the_worker_itself_answers_rightly() {
        let uuid = WorkerUuid(Uuid::from_u128(1));
        let mine = r#"{"status":"ok","worker_uuid":"00000000-0000-0000-0000-000000000001"}"#;
        let others = r#"{"status":"ok","worker_uuid":"00000000-0000-0000-0000-000000000002"}"#;
        let strangers = r#"{"status":"ok","worker_uuid":"00000000-0000-0000-0000-000000000003"}"#;
        let right = ProbeOutcome::Answered { round_trip_ms: 2.0 };
        let wrong = |status| ProbeOutcome::Failed(ProbeFailure::WrongAnswer(Some(status)));
        let named = |name: &str| ProbeOutcome::Failed(ProbeFailure::WrongWorker(name.into()));
        let table = [
            (true, 200, mine, right.clone()),
            (false, 200, mine, right.clone()),
            (false, 200, "\"ok\"", right.clone()),
            (true, 200, "\"ok\"", wrong(200)),
            (true, 200, others, named("b")),
            (false, 200, others, named("b")),
            (true, 200, strangers, named("00000000-0000-0000-0000-000000000003")),
            (true, 503, mine, wrong(503)),
            (true, 302, "", wrong(302)),
            (true, 200, "<html>", wrong(200)),
            (true, 200, r#"{"status":"ok"}"#, wrong(200)),
        ];
        for (own, status, body, outcome) in table {
            let name_of = |other: WorkerUuid| (other.0 == Uuid::from_u128(2)).then(|| "b".to_owned());
            assert_eq!(judge(Ok(answered(status, body)), uuid, own, name_of), outcome, "{own} {status} {body}");
        }
    }

    #[test]
    fn a_thousand_workers_are_spread_evenly_over_the_interval() {
        let now = Monotonic::from_ms(1_000_000);
        let mut seconds = [0_u32; 15];
        for id in 1..=1_500 {
            let due = next_due(WorkerId(id), now);
            let wait = due.since(now);
            assert!(due > now && wait <= INTERVAL, "{wait:?}");
            seconds[usize::try_from(wait.as_millis()).unwrap().saturating_sub(1) / 1000] += 1;
        }
        assert!(seconds.iter().all(|count| (80..=120).contains(count)), "{seconds:?}");
    }

    proptest::proptest! {
        #[test]
        fn a_worker_keeps_its_place_in_the_interval(id in 1i64..1_000_000, now in 0i64..1_000_000_000) {
            let first = next_due(WorkerId(id), Monotonic::from_ms(now));
            proptest::prop_assert_eq!(next_due(WorkerId(id), first).since(first), INTERVAL);
        }
    }
}
