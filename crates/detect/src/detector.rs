//! Ties the vendors together.

use crate::history::History;
use crate::problem_ages::ProblemAges;
use crate::vendor::Vendor;
use api::{GpuDevice, Problem, WorkerStatus};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// Where and how long to look.
#[derive(Clone, Debug)]
pub struct DetectorConfig {
    /// In front of every absolute path that is looked at (`/dev`, `/usr/local`, `/etc`); `/` on a real host.
    pub root: PathBuf,
    /// A vendor's tool that has not ended by then is killed.
    pub tool_deadline: Duration,
    /// Searched for the vendors' tools before the directories that vendors install them in; None for this process's
    /// own `PATH`.
    pub path: Option<OsString>,
}

impl Default for DetectorConfig {
    fn default() -> Self {
        Self { root: PathBuf::from("/"), tool_deadline: Duration::from_secs(10), path: None }
    }
}

/// Finds the host's accelerators. Keep one for the life of the process: it remembers what was there.
pub struct Detector {
    vendors: Vec<(Vendor, History)>,
    problem_ages: ProblemAges,
    last_count: Option<usize>,
}

/// The accelerators of this host as far as they are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// In the order of their index, vendor by vendor.
    pub devices: Vec<GpuDevice>,
    /// What is wrong, with its age.
    pub problems: Vec<Problem>,
    /// Some devices were read this many seconds ago and could not be read now; None when all are current.
    pub stale_s: Option<u64>,
}

impl Detector {
    /// Looks at nothing yet.
    pub fn new(config: &DetectorConfig) -> Self {
        let vendors = Vendor::all(config).into_iter().map(|vendor| (vendor, History::default())).collect();
        Self { vendors, problem_ages: ProblemAges::default(), last_count: None }
    }

    /// Looks at the host once. It cannot fail as a whole: a vendor whose tool fails or hangs keeps its last devices,
    /// marked as stale, beside the problem. Takes at most two tool deadlines for each vendor, so it has no place on
    /// the way of a heartbeat. Dropping the future is safe.
    pub async fn detect(&mut self) -> Inventory {
        let mut devices = Vec::new();
        let mut findings = Vec::new();
        let mut stale_since: Option<Instant> = None;
        for (vendor, history) in &mut self.vendors {
            let survey = vendor.survey().await;
            let standing = history.settle(survey.outcome, Instant::now());
            findings.extend(survey.findings);
            findings.extend(standing.findings);
            stale_since = stale_since.into_iter().chain(standing.stale_since).min();
            devices.extend(standing.devices);
        }
        if self.last_count.replace(devices.len()) != Some(devices.len()) {
            tracing::info!(count = devices.len(), "accelerators of this host");
        }
        let now = Instant::now();
        let stale_s = stale_since.map(|since| now.saturating_duration_since(since).as_secs());
        Inventory { devices, problems: self.problem_ages.date(findings, now), stale_s }
    }
}

impl Inventory {
    /// Puts the devices, their age and their problems into a worker's report, in place of those that are there.
    pub fn fill(&self, status: &mut WorkerStatus) {
        // with something in the way, none found does not mean that there are none
        let is_known = !self.devices.is_empty() || self.problems.is_empty();
        status.gpu_devices = is_known.then(|| self.devices.clone());
        status.problems.clone_from(&self.problems);
        status.devices_stale_s = self.stale_s;
    }
}
