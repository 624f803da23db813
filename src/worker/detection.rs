//! Looks at the host again and again, and publishes what it sees. Nobody waits for it.

use api::WorkerStatus;
use detect::{Detector, DetectorConfig, HostSampler};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// How the host is looked at.
#[derive(Clone, Debug)]
pub struct DetectionConfig {
    /// Where accelerators are looked for.
    pub detector: DetectorConfig,
    /// From the begin of one look to the begin of the next.
    pub interval: Duration,
}

impl Default for DetectionConfig {
    fn default() -> Self {
        Self { detector: DetectorConfig::default(), interval: Duration::from_secs(10) }
    }
}

/// Publishes a status every few seconds until `shutdown`.
pub async fn run(
    config: DetectionConfig,
    latest: watch::Sender<Option<Arc<WorkerStatus>>>,
    shutdown: CancellationToken,
) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = look_again_and_again(&config, &latest) => {}
    }
}

async fn look_again_and_again(config: &DetectionConfig, latest: &watch::Sender<Option<Arc<WorkerStatus>>>) {
    let (mut detector, mut host) = (Detector::new(&config.detector), HostSampler::new());
    let mut due = interval(config.interval);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let mut status = WorkerStatus::default();
        host.sample().await.fill(&mut status);
        if latest.borrow().is_none() {
            // a tool may take long; the host shows up meanwhile
            latest.send_replace(Some(Arc::new(status.clone())));
        }
        detector.detect().await.fill(&mut status);
        latest.send_replace(Some(Arc::new(status)));
    }
}
