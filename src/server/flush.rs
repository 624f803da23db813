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
            if let Err(error) = self.store.write_observations(&observations).await {
                // the next round takes them again, with what has come meanwhile
                owed.into_iter().chain(rest.into_iter().map(|taken| taken.owed)).for_each(Owed::give_back);
                return Err(error);
            }
            taken = rest;
        }
        Ok(())
    }

    async fn write_events(&self) -> Result<(), sqlx::Error> {
        loop {
            let events = self.journal.take(ROWS_A_STATEMENT);
            if events.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.store.write_worker_events(&events).await {
                self.journal.put_back(events);
                return Err(error);
            }
            let mut grown = self.grown.lock().unwrap_or_else(PoisonError::into_inner);
            grown.extend(events.iter().map(|(id, _)| *id));
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

/// What is lost when the round fails.
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
    fn give_back(self) {
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
