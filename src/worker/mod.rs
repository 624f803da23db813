//! The worker: finds this host's accelerators, joins a server, reports to it and answers its health checks.
//!
//! Its tasks share nothing that one could hold up another with: the detection publishes into a channel, and what the
//! session tells comes from there; signs of life wait for no detection.

mod address;
mod cause_log;
mod clock;
mod detection;
mod examination;
mod examiner;
mod health;
mod host;
mod identity;
mod join_error;
mod line;
mod session;
mod session_state;
pub mod status;
mod trust;

pub use address::AddressError;
pub use detection::{DetectionConfig, detector_config};
pub use examiner::{Examiner, ExaminerError};
pub use health::{BindError, bind};
pub use host::hostname;
pub use identity::{IdentityError, existing_uuid};
pub use join_error::{JoinError, Pace};
pub use line::{Line, LineSettings, LinkSetupError, Member, SessionEnd};
pub use trust::TrustError;

use crate::config::{ServerTrust, WorkerConfig};
use address::{AddressBook, AddressSetting};
use detection::Sightings;
use identity::Identity;
use session::{SessionKeeper, SessionParts};
use session_state::SessionState;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A task that died is started again after this.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Longer than telling the server takes.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a worker cannot run. Trouble with the network or the server is never among it: that passes.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// It does not know who it is.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its address setting cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Its link cannot be set up.
    #[error(transparent)]
    Link(#[from] LinkSetupError),
    /// It has never joined and has nothing to join with.
    #[error("{}", JoinError::NoToken)]
    NoToken,
    /// The listener has no address.
    #[error("the worker's port cannot be used: {0}")]
    Listener(#[from] io::Error),
}

/// Runs a worker that answers health checks on `listener`, until `shutdown`.
pub async fn run(listener: TcpListener, config: WorkerConfig, shutdown: CancellationToken) -> Result<(), WorkerError> {
    let detection = DetectionConfig { resources: config.resources.clone(), ..DetectionConfig::default() };
    run_with_detection(listener, config, detection, shutdown).await
}

/// Like [`run`], with the host looked at as `detection` says.
pub async fn run_with_detection(
    listener: TcpListener,
    config: WorkerConfig,
    detection: DetectionConfig,
    shutdown: CancellationToken,
) -> Result<(), WorkerError> {
    let identity = Arc::new(Identity::load(&config.data_dir)?);
    let addresses = Arc::new(AddressBook::new(address_setting(&config), config.server_url.clone())?);
    let (state, state_seen) = watch::channel(SessionState::Joining { cause: None });
    let (latest, latest_status) = watch::channel(None);
    let (inventory, latest_inventory) = watch::channel(None);
    let (watched, is_watched) = watch::channel(false);
    let port = listener.local_addr()?.port();
    let router = health::router(Arc::clone(&identity), state_seen);
    let over_link = router.clone().merge(examination::routes(&detection.detector, &config.data_dir, latest_inventory));
    let parts = SessionParts { latest_status, watched, state, router: over_link };
    let keeper = SessionKeeper::new(&config, Arc::clone(&identity), addresses, port, parts)?;
    if !keeper.can_join() {
        return Err(WorkerError::NoToken);
    }
    tracing::info!("worker {} joins {}", identity.uuid(), config.server_url);

    let tasks = TaskTracker::new();
    let (listener, keeper) = (Arc::new(listener), Arc::new(keeper));
    supervise(&tasks, "health endpoint", &shutdown, move |shutdown| {
        health::serve(Arc::clone(&listener), router.clone(), shutdown)
    });
    let (sightings, data_dir) = (Sightings { status: latest, inventory }, config.data_dir.clone());
    supervise(&tasks, "detection", &shutdown, move |shutdown| {
        let (detection, data_dir) = (DetectionConfig::clone(&detection), data_dir.clone());
        detection::run(detection, data_dir, sightings.clone(), is_watched.clone(), shutdown)
    });
    supervise(&tasks, "session", &shutdown, move |shutdown| {
        let keeper = Arc::clone(&keeper);
        async move { keeper.run(shutdown).await }
    });

    shutdown.cancelled().await;
    tasks.close();
    if tokio::time::timeout(STOP_TIMEOUT, tasks.wait()).await.is_err() {
        tracing::warn!("the worker stops although some of its tasks have not ended");
    }
    Ok(())
}

fn address_setting(config: &WorkerConfig) -> AddressSetting {
    match (config.identity.ip, &config.identity.ifname) {
        (Some(address), _) => AddressSetting::Given(address),
        (None, Some(name)) => AddressSetting::Interface(name.clone()),
        (None, None) if config.trust == ServerTrust::SameProcess => AddressSetting::SameProcess,
        (None, None) => AddressSetting::Automatic,
    }
}

/// Runs a task and starts it again whenever it dies, until `shutdown`: one fault must not leave a worker that lives
/// but does not work.
fn supervise<F>(
    tasks: &TaskTracker,
    name: &'static str,
    shutdown: &CancellationToken,
    start: impl Fn(CancellationToken) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let shutdown = shutdown.clone();
    tasks.spawn(async move {
        loop {
            let ended = tokio::spawn(start(shutdown.clone())).await;
            if shutdown.is_cancelled() {
                return;
            }
            match ended {
                Ok(()) => tracing::error!("the worker's {name} ended; starting it again"),
                Err(died) => tracing::error!("the worker's {name} died ({died}); starting it again"),
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(RESTART_PAUSE) => {}
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test(start_paused = true)]
    async fn a_task_that_dies_or_ends_is_started_again_until_the_worker_stops() {
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let starts = Arc::new(AtomicU32::new(0));
        supervise(&tasks, "test", &shutdown, {
            let starts = Arc::clone(&starts);
            move |shutdown| {
                let start = starts.fetch_add(1, Ordering::Relaxed);
                async move {
                    match start {
                        0 => panic!("as the test wishes"),
                        1 => {}
                        _ => shutdown.cancel(),
                    }
                }
            }
        });
        tasks.close();
        tasks.wait().await;
        assert_eq!(starts.load(Ordering::Relaxed), 3);
    }
}
