//! Background jobs: named, started again when they fail, visible to administrators.

use chrono::SecondsFormat;
use futures_util::FutureExt;
use serde::Serialize;
use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// All background jobs of the server. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Supervisor {
    jobs: Arc<Mutex<Vec<Arc<Record>>>>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Record {
    name: &'static str,
    state: Mutex<JobState>,
    /// 0 for never.
    last_success_ms: AtomicI64,
    restarts: AtomicU32,
}

/// Whether a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It does its work.
    Running,
    /// It failed and will be started again.
    Restarting,
    /// The server shuts down.
    Stopped,
}

/// One background job, as administrators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct JobView {
    /// Its name.
    pub name: String,
    /// Whether it runs.
    pub state: JobState,
    /// When it last did its work, RFC 3339; null for not yet.
    pub last_success: Option<String>,
    /// How often it failed and was started again.
    pub restarts: u32,
}

/// A job's way to say that it works.
#[derive(Clone, Debug)]
pub struct Job(Arc<Record>);

impl Job {
    /// A round of the job's work is done.
    pub fn succeeded(&self) {
        self.0.last_success_ms.store(chrono::Utc::now().timestamp_millis(), Ordering::Relaxed);
    }
}

impl Supervisor {
    /// Jobs end when `stop` is cancelled.
    pub fn new(stop: CancellationToken) -> Self {
        Self { jobs: Arc::default(), tracker: TaskTracker::new(), stop }
    }

    /// Starts a job that never ends by itself. A panic ends one run of it; after a pause, longer each time that it
    /// fails again, `run` begins the next.
    pub fn start<F, Run>(&self, name: &'static str, run: F)
    where
        F: Fn(Job) -> Run + Send + Sync + 'static,
        Run: Future<Output = Infallible> + Send + 'static,
    {
        let record = Arc::new(Record {
            name,
            state: Mutex::new(JobState::Running),
            last_success_ms: AtomicI64::new(0),
            restarts: AtomicU32::new(0),
        });
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&record));
        let stop = self.stop.clone();
        self.tracker.spawn(async move {
            let supervised = Arc::clone(&record);
            stop.run_until_cancelled(run_for_ever(&supervised, run)).await;
            record.set(JobState::Stopped);
        });
    }

    /// All jobs, in the order of their start.
    pub fn view(&self) -> Vec<JobView> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|record| record.view()).collect()
    }

    /// Waits until all jobs have ended, which they do when the token is cancelled.
    pub async fn ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

async fn run_for_ever<F, Run>(record: &Arc<Record>, run: F) -> Infallible
where
    F: Fn(Job) -> Run,
    Run: Future<Output = Infallible>,
{
    let mut pause = FIRST_PAUSE;
    loop {
        record.set(JobState::Running);
        let done_before = record.last_success_ms.load(Ordering::Relaxed);
        // `run` may panic too, before its future is there
        let panic = match AssertUnwindSafe(async { run(Job(Arc::clone(record))).await }).catch_unwind().await {
            Ok(never) => match never {},
            Err(panic) => panic,
        };
        record.restarts.fetch_add(1, Ordering::Relaxed);
        record.set(JobState::Restarting);
        if record.last_success_ms.load(Ordering::Relaxed) != done_before {
            pause = FIRST_PAUSE;
        }
        tracing::error!(
            job = record.name,
            cause = panic_text(panic.as_ref()),
            pause_s = pause.as_secs(),
            "a background job failed and will be started again"
        );
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words")
}

impl Record {
    fn set(&self, state: JobState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn view(&self) -> JobView {
        let last_success_ms = self.last_success_ms.load(Ordering::Relaxed);
        let last_success = chrono::DateTime::from_timestamp_millis(last_success_ms).filter(|_| last_success_ms != 0);
        JobView {
            name: self.name.to_owned(),
            state: *self.state.lock().unwrap_or_else(PoisonError::into_inner),
            last_success: last_success.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true)),
            restarts: self.restarts.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::sync::mpsc;

    #[tokio::test(start_paused = true)]
    async fn a_job_that_panics_is_started_again() {
        let stop = CancellationToken::new();
        let supervisor = Supervisor::new(stop.clone());
        let (runs, mut run) = mpsc::unbounded_channel();
        supervisor.start("fragile", move |job| {
            let runs = runs.clone();
            async move {
                job.succeeded();
                runs.send(()).unwrap();
                assert!(job.0.restarts.load(Ordering::Relaxed) >= 2, "it panics twice, as the test wants it");
                pending().await
            }
        });
        for _ in 0..3 {
            run.recv().await.unwrap();
        }
        let view = supervisor.view();
        assert_eq!((view[0].state, view[0].restarts, view[0].last_success.is_some()), (JobState::Running, 2, true));
        stop.cancel();
        supervisor.ended().await;
        assert_eq!(supervisor.view()[0].state, JobState::Stopped);
    }
}
