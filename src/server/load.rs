//! How busy the fleet is: now, and each minute of the last hour.

use super::registry::Registry;
use super::registry::assess::{self, Liveness};
use super::registry::facts::Facts;
use super::supervisor::Job;
use api::GpuDevice;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

const SAMPLE_INTERVAL: Duration = Duration::from_mins(1);
const SAMPLES_KEPT: usize = 60;

/// Averages in percent, 0 to 100, of those that are alive and tell; None when nobody does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Over workers.
    pub cpu: Option<f64>,
    /// Over workers.
    pub ram: Option<f64>,
    /// Over devices.
    pub gpu: Option<f64>,
    /// Over devices.
    pub vram: Option<f64>,
}

/// The load of the last hour. Cloning it clones a handle.
#[derive(Clone, Debug, Default)]
pub struct LoadHistory(Arc<Mutex<VecDeque<Sample>>>);

/// The load at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// By the server's clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// What it was.
    pub load: Load,
}

impl Load {
    /// At this moment.
    pub fn now(registry: &Registry) -> Self {
        let moment = registry.moment();
        let mut sums = Sums::default();
        for worker in registry.all() {
            let facts = worker.facts();
            // the last readings of one that is gone say nothing about now
            if !matches!(assess::liveness(&facts, &moment, registry.policy()), Liveness::Lost { .. }) {
                sums.add(&facts);
            }
        }
        Self { cpu: sums.cpu.mean(), ram: sums.ram.mean(), gpu: sums.gpu.mean(), vram: sums.vram.mean() }
    }
}

#[derive(Default)]
struct Sums {
    cpu: Mean,
    ram: Mean,
    gpu: Mean,
    vram: Mean,
}

impl Sums {
    fn add(&mut self, facts: &Facts) {
        let report = &facts.status.reported;
        self.cpu.add(report.cpu.as_ref().and_then(|cpu| cpu.utilization_rate));
        self.ram.add(report.memory.as_ref().and_then(|memory| memory.utilization_rate));
        for device in report.gpu_devices.iter().flatten() {
            self.gpu.add(device.core.as_ref().and_then(|core| core.utilization_rate));
            self.vram.add(memory_percent(device));
        }
    }
}

fn memory_percent(device: &GpuDevice) -> Option<f64> {
    let memory = device.memory.as_ref()?;
    let of_total = || Some(memory.used? as f64 / memory.total.filter(|total| *total > 0)? as f64 * 100.0);
    memory.utilization_rate.or_else(of_total)
}

#[derive(Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, reading: Option<f64>) {
        if let Some(reading) = reading {
            self.sum += reading;
            self.count += 1;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl LoadHistory {
    /// Oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        self.lock().iter().copied().collect()
    }

    fn push(&self, sample: Sample) {
        let mut samples = self.lock();
        if samples.len() >= SAMPLES_KEPT {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Sample>> {
        // every change above is complete at each point where it could panic
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Samples, for ever.
pub async fn run(history: LoadHistory, registry: Registry, job: Job) -> Infallible {
    let mut due = interval_at(Instant::now() + SAMPLE_INTERVAL, SAMPLE_INTERVAL);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let moment = registry.moment();
        history.push(Sample { at_ms: moment.wall_ms(moment.now), load: Load::now(&registry) });
        job.succeeded();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::registry::assess::Policy;
    use crate::server::registry::facts::tests::facts;
    use crate::server::registry::time::ServerClock;
    use crate::server::store::workers::WorkerRow;
    use api::{CpuInfo, DeviceCore, DeviceMemory, WorkerId, WorkerStatus, WorkerUuid};

    const TIMEOUT: Duration = Duration::from_mins(1);

    fn registry_of(reports: Vec<WorkerStatus>) -> Registry {
        let registry = Registry::new(ServerClock::in_step(TIMEOUT), Policy { offline_timeout: TIMEOUT }, Vec::new());
        for (id, report) in (1..).zip(reports) {
            let uuid = WorkerUuid(uuid::Uuid::from_u128(id));
            let id = WorkerId(i64::try_from(id).unwrap());
            let row = WorkerRow { id, uuid, name: format!("w{}", id.0), ..facts().row };
            let mut facts = Facts::new(row, registry.clock().now());
            facts.hear(registry.clock().now(), TIMEOUT);
            facts.report(report, registry.clock().now());
            registry.insert(facts);
        }
        registry
    }

    fn report(cpu: Option<f64>, devices: &[(Option<f64>, u64)]) -> WorkerStatus {
        let device = |(use_percent, used): &(Option<f64>, u64)| GpuDevice {
            core: Some(DeviceCore { total: None, utilization_rate: *use_percent }),
            memory: Some(DeviceMemory { total: Some(200), used: Some(*used), ..DeviceMemory::default() }),
            ..GpuDevice::default()
        };
        WorkerStatus {
            cpu: Some(CpuInfo { total: Some(8.0), utilization_rate: cpu }),
            gpu_devices: Some(devices.iter().map(device).collect()),
            ..WorkerStatus::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn averages_are_over_what_is_told() {
        let one = report(Some(10.0), &[(Some(100.0), 50), (None, 150)]);
        let registry = registry_of(vec![one, report(Some(30.0), &[(Some(40.0), 100)]), report(None, &[])]);
        let expected = Load { cpu: Some(20.0), ram: None, gpu: Some(70.0), vram: Some(50.0) };
        assert_eq!(Load::now(&registry), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_gone_counts_no_more() {
        let registry = registry_of(vec![report(Some(10.0), &[])]);
        let worker = registry.get(WorkerId(1)).unwrap();
        worker.facts().leave(registry.clock().now());
        assert_eq!(Load::now(&registry), Load::default());
    }

    #[test]
    fn an_hour_is_kept() {
        let history = LoadHistory::default();
        for at_ms in 0..100 {
            history.push(Sample { at_ms, load: Load::default() });
        }
        let times: Vec<_> = history.samples().iter().map(|sample| sample.at_ms).collect();
        assert_eq!(times, (40..100).collect::<Vec<_>>());
    }
}
