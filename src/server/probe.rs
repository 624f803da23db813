//! The direct probe: each worker's health check, spread over its interval.

use crate::server::dial::{Answer, DialError, dial_worker};
use crate::server::registry::facts::{ProbeFailure, ProbeOutcome};
use crate::server::registry::time::Monotonic;
use crate::server::registry::{Registry, Worker, assess};
use crate::server::supervisor::Job;
use api::{WorkerId, WorkerUuid};
use http::StatusCode;
use serde::Deserialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Connecting, asking and reading. A slow link is slow, not dead.
pub const PROBE_DEADLINE: Duration = Duration::from_secs(10);
/// How often each worker is probed.
const INTERVAL: Duration = Duration::from_secs(15);
/// How often a worker that is not heard is probed: it is most likely gone, and many of those would each hold a place
/// for the whole deadline.
const INTERVAL_LOST: Duration = Duration::from_mins(1);
/// How often due workers are looked for; also how long a new worker waits at most.
const LOOK: Duration = Duration::from_millis(250);
/// Probes at once of workers that are heard.
const AT_ONCE: usize = 48;
/// Probes at once of workers that are not heard: they must not keep the living waiting.
const AT_ONCE_LOST: usize = 16;

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

/// Probes all workers, for ever.
pub async fn run(registry: Registry, job: Job) -> Infallible {
    let mut running = JoinSet::new();
    let (mut busy, mut busy_lost) = (0_usize, 0_usize);
    let mut waiting = VecDeque::new();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = look.tick() => {
                waiting = due(&registry);
                job.succeeded();
            }
            Some(done) = running.join_next() => match done {
                Ok(true) => busy_lost = busy_lost.saturating_sub(1),
                // a probe that panicked was a living one or is counted as one: the next look corrects nothing worse
                Ok(false) | Err(_) => busy = busy.saturating_sub(1),
            },
        }
        let mut later = VecDeque::new();
        while let Some((worker, lost)) = waiting.pop_front() {
            let (count, limit) = if lost { (&mut busy_lost, AT_ONCE_LOST) } else { (&mut busy, AT_ONCE) };
            if *count >= limit {
                later.push_back((worker, lost));
                continue;
            }
            if worker.probe.begin() {
                *count += 1;
                running.spawn(probe(registry.clone(), worker, lost));
            }
        }
        waiting = later;
    }
}

fn due(registry: &Registry) -> VecDeque<(Arc<Worker>, bool)> {
    let moment = registry.moment();
    let due = registry.all().into_iter().filter(|worker| worker.probe.is_due(moment.now));
    due.map(|worker| {
        let lost =
            matches!(assess::liveness(&worker.facts(), &moment, registry.policy()), assess::Liveness::Lost { .. });
        (worker, lost)
    })
    .collect()
}

/// Ends the claim also when the probe panics or is dropped.
struct Claim {
    worker: Arc<Worker>,
    next: Monotonic,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.worker.probe.end(self.next);
    }
}

async fn probe(registry: Registry, worker: Arc<Worker>, lost: bool) -> bool {
    let interval = if lost { INTERVAL_LOST } else { INTERVAL };
    let next = due_after(worker.id(), registry.clock().now(), interval);
    let _claim = Claim { worker: Arc::clone(&worker), next };
    let (ip, port, uuid, own) = {
        let facts = worker.facts();
        (facts.row.ip.clone(), facts.row.port, facts.row.uuid, facts.is_own())
    };
    let dialled = dial_worker(&ip, port, "/healthz", PROBE_DEADLINE).await;
    let outcome =
        judge(dialled, uuid, own, |other| registry.by_uuid(other).map(|other| other.facts().row.name.clone()));
    if let ProbeOutcome::Failed(failure) = &outcome {
        tracing::debug!(worker = worker.id().0, ip, port, ?failure, "direct probe failed");
    }
    worker.facts().record_probe(&ip, port, outcome, registry.clock().now());
    lost
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
