//! Takes what was observed of workers to the database, in batches: a fleet that beats costs a few statements a
//! minute, however large it is.

use crate::server::journal::Journal;
use crate::server::registry::facts::ReportUnsaved;
use crate::server::registry::time::Moment;
use crate::server::registry::{Registry, Worker, assess};
use crate::server::store::Store;
use crate::server::store::workers::{ROWS_A_STATEMENT, StoredHeartbeat, StoredReport};
use crate::server::supervisor::Job;
use crate::server::tunnels::Tunnels;
use api::WorkerId;
use std::collections::HashSet;
use std::convert::Infallible;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

const INTERVAL: Duration = Duration::from_secs(10);
/// So many reports are written down before others have their turn on the same thread.
const REPORTS_AT_A_TIME: usize = 16;
/// Reports in which only figures moved are written for so many workers in a round, one after the other, so that a large
/// fleet costs the disk no more than a small one: figures are shown from memory, and after a restart workers tell them
/// anew.
const READINGS_A_ROUND: usize = 100;
/// Old events are removed this often.
const TRIM_INTERVAL: Duration = Duration::from_mins(10);
/// Workers whose old events are removed in one go: each costs a statement.
const TRIM_AT_ONCE: usize = 20;

/// Writes observations and events. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Flusher {
    registry: Registry,
    tunnels: Tunnels,
    store: Store,
    journal: Journal,
    /// Workers that got events since their old ones were removed last.
    grown: Arc<Mutex<HashSet<WorkerId>>>,
    /// The last worker whose figures were written although there was no news.
    readings_written_to: Arc<Mutex<WorkerId>>,
}

/// Which reports a round takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reports {
    /// Those with news, and some in which only figures moved.
    Some,
    /// All that are not written.
    All,
}

impl Flusher {
    /// Of these workers and tunnel agents and this journal, into this store.
    pub fn new(registry: Registry, tunnels: Tunnels, store: Store, journal: Journal) -> Self {
        let readings_written_to = Arc::new(Mutex::new(WorkerId(0)));
        Self { registry, tunnels, store, journal, grown: Arc::default(), readings_written_to }
    }

    /// Writes everything that is not written: for the server's end.
    pub async fn flush_all(&self) -> Result<(), sqlx::Error> {
        self.flush(Reports::All).await
    }

    async fn flush(&self, reports: Reports) -> Result<(), sqlx::Error> {
        let workers = self.registry.all();
        self.write_heartbeats(&workers).await?;
        self.write_reports(&workers, reports).await?;
        self.tunnels.flush(reports == Reports::All).await?;
        self.write_events().await
    }

    async fn write_heartbeats(&self, workers: &[Arc<Worker>]) -> Result<(), sqlx::Error> {
        let moment = self.registry.moment();
        let mut taken: Vec<_> = workers.iter().filter_map(|worker| take_heartbeat(worker, &moment)).collect();
        while !taken.is_empty() {
            let rest = taken.split_off(taken.len().min(ROWS_A_STATEMENT));
            let (rows, owed): (Vec<StoredHeartbeat>, Vec<Owed>) = taken.into_iter().unzip();
            self.store.write_heartbeats(&rows).await?;
            owed.into_iter().for_each(Owed::settle);
            taken = rest;
        }
        Ok(())
    }

    /// Statement by statement: what is taken is a copy of much that is in memory.
    async fn write_reports(&self, workers: &[Arc<Worker>], reports: Reports) -> Result<(), sqlx::Error> {
        let due = self.reports_due(workers, reports);
        for some in due.chunks(ROWS_A_STATEMENT) {
            let (mut rows, mut owed): (Vec<StoredReport>, Vec<Owed>) = Default::default();
            for few in some.chunks(REPORTS_AT_A_TIME) {
                for (row, owing) in few.iter().filter_map(take_report) {
                    rows.push(row);
                    owed.push(owing);
                }
                // writing a thousand reports down takes longer than a request on the same thread should wait
                tokio::task::yield_now().await;
            }
            self.store.write_reports(&rows).await?;
            owed.into_iter().for_each(Owed::settle);
        }
        Ok(())
    }

    /// Whose reports are written in this round.
    fn reports_due(&self, workers: &[Arc<Worker>], reports: Reports) -> Vec<Arc<Worker>> {
        let unsaved = |worker: &Worker| worker.facts().unsaved.status;
        if reports == Reports::All {
            return workers.iter().filter(|worker| unsaved(worker) != ReportUnsaved::No).cloned().collect();
        }
        let (mut due, mut moved) = (Vec::new(), Vec::new());
        for worker in workers {
            match unsaved(worker) {
                ReportUnsaved::No => {}
                ReportUnsaved::Readings => moved.push(worker),
                ReportUnsaved::Shape => due.push(Arc::clone(worker)),
            }
        }
        moved.sort_by_key(|worker| worker.id());
        let mut written_to = self.readings_written_to.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = moved.partition_point(|worker| worker.id() <= *written_to);
        let (before, after) = moved.split_at(begin);
        let next: Vec<Arc<Worker>> =
            after.iter().chain(before).take(READINGS_A_ROUND).map(|worker| Arc::clone(worker)).collect();
        if let Some(last) = next.last() {
            *written_to = last.id();
        }
        due.extend(next);
        due
    }

    async fn write_events(&self) -> Result<(), sqlx::Error> {
        loop {
            let taken = self.journal.take(ROWS_A_STATEMENT);
            if taken.events().is_empty() {
                return Ok(());
            }
            self.store.write_worker_events(taken.events()).await?;
            let mut grown = self.grown.lock().unwrap_or_else(PoisonError::into_inner);
            grown.extend(taken.events().iter().map(|(id, _)| *id));
            taken.settle();
        }
    }

    async fn trim(&self) -> Result<(), sqlx::Error> {
        let some: Vec<WorkerId> = {
            let grown = self.grown.lock().unwrap_or_else(PoisonError::into_inner);
            grown.iter().copied().take(TRIM_AT_ONCE).collect()
        };
        for id in some {
            self.store.trim_worker_events(id).await?;
            self.grown.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
        Ok(())
    }
}

/// What a round must write. Until that is done, dropping it gives it back, for the next round to take it along with
/// what has come meanwhile: a statement may fail, and the server's end may cut a round short.
struct Owed {
    worker: Arc<Worker>,
    heartbeat: bool,
    status: ReportUnsaved,
}

fn take_heartbeat(worker: &Arc<Worker>, moment: &Moment) -> Option<(StoredHeartbeat, Owed)> {
    let mut facts = worker.facts();
    if !mem::take(&mut facts.unsaved.heartbeat) {
        return None;
    }
    let heartbeat_ms = assess::last_heartbeat_ms(&facts, moment)?;
    let owed = Owed { worker: Arc::clone(worker), heartbeat: true, status: ReportUnsaved::No };
    Some((StoredHeartbeat { id: worker.id(), heartbeat_ms }, owed))
}

fn take_report(worker: &Arc<Worker>) -> Option<(StoredReport, Owed)> {
    let (reported, devices_expected, status) = {
        let mut facts = worker.facts();
        let status = mem::take(&mut facts.unsaved.status);
        (Arc::clone(&facts.status.reported), facts.status.devices_expected, status)
    };
    let owed = Owed { worker: Arc::clone(worker), heartbeat: false, status };
    // a report came as JSON and goes back to it
    let status = serde_json::to_string(&*reported).ok()?;
    Some((StoredReport { id: worker.id(), status, devices_expected }, owed))
}

impl Owed {
    fn settle(mut self) {
        self.heartbeat = false;
        self.status = ReportUnsaved::No;
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if !self.heartbeat && self.status == ReportUnsaved::No {
            return;
        }
        let mut facts = self.worker.facts();
        facts.unsaved.heartbeat |= self.heartbeat;
        facts.unsaved.status = facts.unsaved.status.max(self.status);
    }
}

/// Writes batches, for ever.
pub async fn run(flusher: Flusher, job: Job) -> Infallible {
    let mut round = interval(INTERVAL);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut trimmed = Instant::now();
    loop {
        round.tick().await;
        let begun = Instant::now();
        if let Err(error) = flusher.flush(Reports::Some).await {
            tracing::error!(%error, "workers' heartbeats cannot be written to the database; they are kept for the next try");
            continue;
        }
        if trimmed.elapsed() >= TRIM_INTERVAL {
            trimmed = Instant::now();
            if let Err(error) = flusher.trim().await {
                tracing::warn!(%error, "old events cannot be removed; trying again later");
            }
        }
        if begun.elapsed() >= INTERVAL {
            let took_s = begun.elapsed().as_secs();
            tracing::warn!(
                took_s,
                "the database is slow: writing heartbeats and reports took longer than their interval"
            );
        }
        job.succeeded();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::links::Links;
    use crate::server::registry::assess::Policy;
    use crate::server::registry::facts::tests::{devices, facts};
    use crate::server::registry::facts::{Facts, Unsaved};
    use crate::server::registry::time::ServerClock;
    use crate::server::store::workers::{RowChange, WorkerRow};
    use api::WorkerEventKind;
    use std::iter;

    struct Fleet {
        flusher: Flusher,
        worker: Arc<Worker>,
        _dir: tempfile::TempDir,
    }

    async fn fleet() -> Fleet {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("gpustack.db")).await.unwrap();
        let offline_timeout = Duration::from_mins(1);
        let registry = Registry::new(ServerClock::start(offline_timeout), Policy { offline_timeout }, Vec::new());
        let mut facts = facts();
        let id = store.change_workers(&[RowChange::Insert(facts.row.clone())]).await.unwrap()[0];
        facts.row = WorkerRow { id, ..facts.row };
        let worker = registry.insert(facts);
        let tunnels = Tunnels::new(registry.clone(), store.clone(), Links::default(), Vec::new());
        Fleet { flusher: Flusher::new(registry, tunnels, store, Journal::default()), worker, _dir: dir }
    }

    impl Fleet {
        fn beat_and_report(&self, temperature: f64) {
            let now = self.flusher.registry.clock().now();
            let mut status = devices(1);
            status.gpu_devices.as_mut().unwrap()[0].temperature = Some(temperature);
            let mut facts = self.worker.facts();
            facts.hear(now, Duration::from_mins(1));
            facts.report(status, now);
        }

        async fn stored_temperature(&self) -> Option<f64> {
            let stored = self.flusher.store.load_workers().await.unwrap().remove(0);
            assert!(stored.heartbeat_ms.is_some());
            stored.status.gpu_devices.and_then(|devices| devices[0].temperature)
        }
    }

    #[tokio::test]
    async fn news_are_written_at_once() {
        let fleet = fleet().await;
        fleet.beat_and_report(40.0);
        fleet.flusher.flush(Reports::Some).await.unwrap();
        assert_eq!(fleet.stored_temperature().await, Some(40.0));
        fleet.beat_and_report(41.0);
        fleet.flusher.flush_all().await.unwrap();
        assert_eq!(fleet.stored_temperature().await, Some(41.0));
    }

    #[tokio::test]
    async fn figures_are_written_for_some_workers_at_a_time_until_all_had_their_turn() {
        let fleet = fleet().await;
        let workers: Vec<_> = (1..=250)
            .map(|id| {
                let facts =
                    Facts::new(WorkerRow { id: WorkerId(id), ..facts().row }, fleet.flusher.registry.clock().now());
                let worker = Worker::of(facts);
                worker.facts().unsaved.status = ReportUnsaved::Readings;
                worker
            })
            .collect();
        let round = || -> Vec<i64> {
            let due = fleet.flusher.reports_due(&workers, Reports::Some);
            due.iter().map(|worker| worker.id().0).collect()
        };
        assert_eq!(round(), (1..=100).collect::<Vec<_>>());
        workers[149].facts().unsaved.status = ReportUnsaved::Shape;
        assert_eq!(round(), iter::once(150).chain(101..150).chain(151..=201).collect::<Vec<_>>());
        assert_eq!(round(), iter::once(150).chain(202..=250).chain(1..=51).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn what_could_not_be_written_is_kept_for_the_next_round() {
        let fleet = fleet().await;
        fleet.beat_and_report(40.0);
        fleet.flusher.journal.note(fleet.worker.id(), 1, WorkerEventKind::Joined {});
        let busy = fleet.flusher.store.writer().acquire().await.unwrap();
        tokio::time::pause();
        assert!(fleet.flusher.flush(Reports::Some).await.is_err(), "the only connection is taken");
        tokio::time::resume();
        drop(busy);
        assert_eq!(fleet.worker.facts().unsaved, Unsaved { heartbeat: true, status: ReportUnsaved::Shape });
        fleet.flusher.flush(Reports::Some).await.unwrap();
        assert_eq!(fleet.stored_temperature().await, Some(40.0));
        assert_eq!(fleet.flusher.store.worker_events(fleet.worker.id()).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_round_that_is_cut_short_gives_back_what_it_took() {
        let fleet = fleet().await;
        fleet.beat_and_report(40.0);
        let busy = fleet.flusher.store.writer().acquire().await.unwrap();
        let cut = tokio::time::timeout(Duration::from_millis(20), fleet.flusher.flush(Reports::Some)).await;
        assert!(cut.is_err());
        drop(busy);
        assert_eq!(fleet.worker.facts().unsaved, Unsaved { heartbeat: true, status: ReportUnsaved::Shape });
    }
}
