//! Takes what was observed of workers to the database, in batches: a fleet that beats costs a few statements a
//! minute, however large it is.

use crate::server::journal::Journal;
use crate::server::registry::facts::{Facts, ReportUnsaved, Unsaved};
use crate::server::registry::time::Moment;
use crate::server::registry::{Registry, Worker, assess};
use crate::server::store::Store;
use crate::server::store::workers::{Observation, ROWS_A_STATEMENT};
use crate::server::supervisor::Job;
use api::WorkerId;
use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

const INTERVAL: Duration = Duration::from_secs(10);
/// Figures without news are written this often: they are shown from memory, and after a restart workers tell them anew.
const READINGS_INTERVAL: Duration = Duration::from_mins(1);
/// Old events are removed this often.
const TRIM_INTERVAL: Duration = Duration::from_mins(10);
/// Workers whose old events are removed in one go: each costs a statement.
const TRIM_AT_ONCE: usize = 20;

/// Writes observations and events. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Flusher {
    registry: Registry,
    store: Store,
    journal: Journal,
    /// Workers that got events since their old ones were removed last.
    grown: Arc<Mutex<HashSet<WorkerId>>>,
}

/// Which reports a round takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reports {
    /// Those with news.
    News,
    /// Also those in which only figures moved.
    All,
}

impl Flusher {
    /// Of this registry and journal, into this store.
    pub fn new(registry: Registry, store: Store, journal: Journal) -> Self {
        Self { registry, store, journal, grown: Arc::default() }
    }

    /// Writes everything that is not written: for the server's end.
    pub async fn flush_all(&self) -> Result<(), sqlx::Error> {
        self.flush(Reports::All).await
    }

    async fn flush(&self, reports: Reports) -> Result<(), sqlx::Error> {
        self.write_observations(reports).await?;
        self.write_events().await
    }

    async fn write_observations(&self, reports: Reports) -> Result<(), sqlx::Error> {
        let moment = self.registry.moment();
        let mut taken: Vec<Taken> =
            self.registry.all().into_iter().filter_map(|worker| Taken::of(worker, reports, &moment)).collect();
        while !taken.is_empty() {
            let rest = taken.split_off(taken.len().min(ROWS_A_STATEMENT));
            let (observations, owed): (Vec<Observation>, Vec<Owed>) =
                taken.into_iter().map(|taken| (taken.observation, taken.owed)).unzip();
            self.store.write_observations(&observations).await?;
            owed.into_iter().for_each(Owed::settle);
            taken = rest;
        }
        Ok(())
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

/// What a round takes of one worker.
struct Taken {
    observation: Observation,
    owed: Owed,
}

/// What a round must write. Until that is done, dropping it gives it back, for the next round to take it along with
/// what has come meanwhile: a statement may fail, and the server's end may cut a round short.
struct Owed {
    worker: Arc<Worker>,
    heartbeat: bool,
    status: ReportUnsaved,
}

impl Taken {
    fn of(worker: Arc<Worker>, reports: Reports, moment: &Moment) -> Option<Self> {
        let mut facts = worker.facts();
        let Unsaved { heartbeat, status } = facts.unsaved;
        let with_status = match status {
            ReportUnsaved::No => false,
            ReportUnsaved::Readings => reports == Reports::All,
            ReportUnsaved::Shape => true,
        };
        if !heartbeat && !with_status {
            return None;
        }
        let observation = observation(&facts, with_status, moment);
        facts.unsaved.heartbeat = false;
        if with_status {
            facts.unsaved.status = ReportUnsaved::No;
        }
        drop(facts);
        let status = if with_status { status } else { ReportUnsaved::No };
        Some(Self { observation, owed: Owed { worker, heartbeat, status } })
    }
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

fn observation(facts: &Facts, with_status: bool, moment: &Moment) -> Observation {
    Observation {
        id: facts.row.id,
        heartbeat_ms: assess::last_heartbeat_ms(facts, moment),
        // a report came as JSON and goes back to it
        status: if with_status { serde_json::to_string(&*facts.status.reported).ok() } else { None },
        devices_expected: facts.status.devices_expected,
    }
}

/// Writes batches, for ever.
pub async fn run(flusher: Flusher, job: Job) -> Infallible {
    let mut round = interval(INTERVAL);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut readings_written = Instant::now();
    let mut trimmed = Instant::now();
    loop {
        round.tick().await;
        let reports = if readings_written.elapsed() >= READINGS_INTERVAL { Reports::All } else { Reports::News };
        if let Err(error) = flusher.flush(reports).await {
            tracing::error!(%error, "workers' heartbeats cannot be written to the database; they are kept for the next try");
            continue;
        }
        if reports == Reports::All {
            readings_written = Instant::now();
        }
        if trimmed.elapsed() >= TRIM_INTERVAL {
            trimmed = Instant::now();
            if let Err(error) = flusher.trim().await {
                tracing::warn!(%error, "old events cannot be removed; trying again later");
            }
        }
        job.succeeded();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::registry::assess::Policy;
    use crate::server::registry::facts::tests::{devices, facts};
    use crate::server::registry::time::ServerClock;
    use crate::server::store::workers::{RowChange, WorkerRow};
    use api::WorkerEventKind;

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
        Fleet { flusher: Flusher::new(registry, store, Journal::default()), worker, _dir: dir }
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
    async fn news_are_written_at_once_and_figures_with_the_next_full_round() {
        let fleet = fleet().await;
        fleet.beat_and_report(40.0);
        fleet.flusher.flush(Reports::News).await.unwrap();
        assert_eq!(fleet.stored_temperature().await, Some(40.0));
        fleet.beat_and_report(41.0);
        fleet.flusher.flush(Reports::News).await.unwrap();
        assert_eq!(fleet.stored_temperature().await, Some(40.0));
        fleet.flusher.flush_all().await.unwrap();
        assert_eq!(fleet.stored_temperature().await, Some(41.0));
    }

    #[tokio::test]
    async fn what_could_not_be_written_is_kept_for_the_next_round() {
        let fleet = fleet().await;
        fleet.beat_and_report(40.0);
        fleet.flusher.journal.note(fleet.worker.id(), 1, WorkerEventKind::Joined {});
        let busy = fleet.flusher.store.writer().acquire().await.unwrap();
        tokio::time::pause();
        assert!(fleet.flusher.flush(Reports::News).await.is_err(), "the only connection is taken");
        tokio::time::resume();
        drop(busy);
        assert_eq!(fleet.worker.facts().unsaved, Unsaved { heartbeat: true, status: ReportUnsaved::Shape });
        fleet.flusher.flush(Reports::News).await.unwrap();
        assert_eq!(fleet.stored_temperature().await, Some(40.0));
        assert_eq!(fleet.flusher.store.worker_events(fleet.worker.id()).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_round_that_is_cut_short_gives_back_what_it_took() {
        let fleet = fleet().await;
        fleet.beat_and_report(40.0);
        let busy = fleet.flusher.store.writer().acquire().await.unwrap();
        let cut = tokio::time::timeout(Duration::from_millis(20), fleet.flusher.flush(Reports::News)).await;
        assert!(cut.is_err());
        drop(busy);
        assert_eq!(fleet.worker.facts().unsaved, Unsaved { heartbeat: true, status: ReportUnsaved::Shape });
    }
}
