//! Looks at the host again and again, and publishes what it sees. Nobody waits for it.

use crate::config::Resources;
use api::{Problem, WorkerStatus};
use detect::{Detector, DetectorConfig, Environment, HostSampler, Inventory, LibraryReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// From one look to the next while somebody watches this worker.
const WATCHED_INTERVAL: Duration = Duration::from_secs(2);
/// From one look at the host's surroundings to the next: disks fill and clocks lose their servers in hours.
const ENVIRONMENT_INTERVAL: Duration = Duration::from_mins(1);

/// This program, whatever lies at its path by now: an upgrade must not bring another's answers into a running worker.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// How this host's accelerators are looked for, with this program as the reader of Ascend's library.
pub fn detector_config() -> DetectorConfig {
    let reader = LibraryReader { program: THIS_PROGRAM.into(), arguments: vec!["dcmi-reader".into()] };
    DetectorConfig { library_reader: Some(reader), ..DetectorConfig::default() }
}

/// How the host is looked at.
#[derive(Clone, Debug)]
pub struct DetectionConfig {
    /// Where accelerators are looked for.
    pub detector: DetectorConfig,
    /// From the begin of one look to the begin of the next.
    pub interval: Duration,
    /// What is reported in place of what is found.
    pub resources: Resources,
}

impl Default for DetectionConfig {
    fn default() -> Self {
        Self { detector: detector_config(), interval: Duration::from_secs(10), resources: Resources::default() }
    }
}

/// What is seen, for those who want to know.
#[derive(Clone)]
pub struct Sightings {
    /// What is told to the server.
    pub status: watch::Sender<Option<Arc<WorkerStatus>>>,
    /// The accelerators as they were seen last, point by point.
    pub inventory: watch::Sender<Option<Arc<Inventory>>>,
}

/// Publishes what it sees every few seconds until `shutdown`, and more often while `watched`. The worker's state is in
/// `data_dir`.
pub async fn run(
    config: DetectionConfig,
    data_dir: PathBuf,
    sightings: Sightings,
    watched: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = look_again_and_again(&config, &data_dir, &sightings, watched) => {}
    }
}

async fn look_again_and_again(
    config: &DetectionConfig,
    data_dir: &Path,
    sightings: &Sightings,
    mut watched: watch::Receiver<bool>,
) {
    let (mut detector, mut host) = (Detector::new(&config.detector), HostSampler::new());
    let mut surroundings = SlowProblems::new(Environment::new(&config.detector, data_dir));
    let latest = &sightings.status;
    loop {
        let begun = Instant::now();
        let mut status = WorkerStatus::default();
        host.sample().await.fill(&mut status);
        config.resources.fill(&mut status);
        if latest.borrow().is_none() {
            // a tool may take long; the host shows up meanwhile
            latest.send_replace(Some(Arc::new(status.clone())));
        }
        // Described devices are not looked for: whatever is wrong with those that are there concerns nobody.
        let inventory = match &status.gpu_devices {
            Some(described) => Inventory { devices: described.clone(), ..Inventory::default() },
            None => detector.detect().await,
        };
        inventory.fill(&mut status);
        sightings.inventory.send_replace(Some(Arc::new(inventory)));
        status.problems.extend(surroundings.current().await);
        // readings are told by their place
        if let Some(devices) = &mut status.gpu_devices {
            devices.sort_by_key(|device| device.index);
        }
        latest.send_replace(Some(Arc::new(status)));
        next_look(begun, config.interval, &mut watched).await;
    }
}

/// The host's own problems, which come and go slowly.
struct SlowProblems {
    environment: Environment,
    seen: Option<Instant>,
    problems: Vec<Problem>,
}

impl SlowProblems {
    fn new(environment: Environment) -> Self {
        Self { environment, seen: None, problems: Vec::new() }
    }

    async fn current(&mut self) -> Vec<Problem> {
        let age_s = self.seen.map(|seen| seen.elapsed().as_secs());
        if let Some(age_s) = age_s.filter(|age_s| *age_s < ENVIRONMENT_INTERVAL.as_secs()) {
            let older = |problem: &Problem| Problem { age_s: problem.age_s + age_s, ..problem.clone() };
            return self.problems.iter().map(older).collect();
        }
        self.problems = self.environment.problems().await;
        self.seen = Some(Instant::now());
        self.problems.clone()
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
    use api::{CpuInfo, GpuDevice};

    #[tokio::test]
    async fn what_is_described_is_reported_in_place_of_what_is_found() {
        let described = GpuDevice { index: 3, name: "910B3".into(), ..GpuDevice::default() };
        let cpu = CpuInfo { total: Some(192.0), utilization_rate: None };
        let resources =
            Resources { gpu_devices: Some(vec![described.clone()]), cpu: Some(cpu.clone()), ..Resources::default() };
        let (latest, mut published) = watch::channel(None);
        let (_watching, watched) = watch::channel(false);
        let shutdown = CancellationToken::new();
        let _stop = shutdown.clone().drop_guard();
        let config = DetectionConfig { resources, ..DetectionConfig::default() };
        let (inventory, seen) = watch::channel(None);
        let sightings = Sightings { status: latest, inventory };
        tokio::spawn(run(config, std::env::temp_dir(), sightings, watched, shutdown));
        let status = published.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        let described = [described];
        let devices = Some(described.as_slice());
        assert_eq!((status.gpu_devices.as_deref(), status.cpu.as_ref()), (devices, Some(&cpu)));
        assert!(status.memory.is_some());
        let seen = seen.clone().wait_for(Option::is_some).await.unwrap().clone();
        assert_eq!(seen.as_deref().map(|inventory| inventory.devices.as_slice()), devices);
    }

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
