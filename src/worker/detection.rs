//! Looks at the host again and again, and publishes what it sees. Nobody waits for it.

use api::WorkerStatus;
use detect::{Detector, DetectorConfig, HostSampler};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// From one look to the next while somebody watches this worker.
const WATCHED_INTERVAL: Duration = Duration::from_secs(2);

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

/// Publishes a status every few seconds until `shutdown`, and more often while `watched`.
pub async fn run(
    config: DetectionConfig,
    latest: watch::Sender<Option<Arc<WorkerStatus>>>,
    watched: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = look_again_and_again(&config, &latest, watched) => {}
    }
}

async fn look_again_and_again(
    config: &DetectionConfig,
    latest: &watch::Sender<Option<Arc<WorkerStatus>>>,
    mut watched: watch::Receiver<bool>,
) {
    let (mut detector, mut host) = (Detector::new(&config.detector), HostSampler::new());
    loop {
        let begun = Instant::now();
        let mut status = WorkerStatus::default();
        host.sample().await.fill(&mut status);
        if latest.borrow().is_none() {
            // a tool may take long; the host shows up meanwhile
            latest.send_replace(Some(Arc::new(status.clone())));
        }
        detector.detect().await.fill(&mut status);
        // readings are told by their place
        if let Some(devices) = &mut status.gpu_devices {
            devices.sort_by_key(|device| device.index);
        }
        latest.send_replace(Some(Arc::new(status)));
        next_look(begun, config.interval, &mut watched).await;
    }
}

/// Waits until the next look is due, which somebody who begins to watch brings forward.
async fn next_look(begun: Instant, interval: Duration, watched: &mut watch::Receiver<bool>) {
    loop {
        let pause = if *watched.borrow_and_update() { interval.min(WATCHED_INTERVAL) } else { interval };
        tokio::select! {
            () = sleep_until(begun + pause) => return,
            Ok(()) = watched.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_begins_to_watch_need_not_wait_for_the_next_look() {
        let (watching, mut watched) = watch::channel(false);
        let begun = Instant::now();
        let interval = Duration::from_secs(10);
        next_look(begun, interval, &mut watched).await;
        assert_eq!(begun.elapsed(), interval);
        let begun = Instant::now();
        let look = tokio::spawn(async move { next_look(begun, interval, &mut watched).await });
        tokio::time::sleep(Duration::from_secs(5)).await;
        watching.send_replace(true);
        look.await.unwrap();
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
    }
}
