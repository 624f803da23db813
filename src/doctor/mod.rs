//! The doctor: goes through a host, its accelerators, its clock and its way to the server, point by point, and changes
//! nothing.

pub mod bundle;
mod port;
mod proxies;
mod server;

use crate::config::{Config, Role, WorkerConfig};
use crate::worker::{detector_config, hostname};
use api::{Check, Examination, GpuDevice, HostReason, Seen, Severity};
use chrono::Utc;
use detect::{Detector, DetectorConfig, Environment, Inventory, Printed, Surroundings, blame_filter};
use std::collections::BTreeMap;
use std::time::Duration;

/// Facts that are asked for one by one: a person waits once and wants to see everything.
const SLOW_FACTS_BUDGET: Duration = Duration::from_mins(1);

/// What was found on a host.
pub struct Findings {
    /// Point by point.
    pub examination: Examination,
    /// The accelerators.
    pub inventory: Inventory,
    /// What the vendors' tools printed.
    pub printed: Vec<Printed>,
}

/// How a doctor looks at accelerators: once, and thoroughly.
pub fn thorough() -> DetectorConfig {
    DetectorConfig { slow_facts_budget: SLOW_FACTS_BUDGET, ..detector_config() }
}

/// Goes through the host that `detection` looks at, as the worker that `config` describes would find it. `variables` are
/// those of the process.
pub async fn examine(config: &Config, variables: &BTreeMap<String, String>, detection: &DetectorConfig) -> Findings {
    let environment = Environment::new(detection, &config.data_dir);
    let mut detector = Detector::new(detection);
    let devices = async {
        match described(config) {
            // described devices are not looked for, as by the worker
            Some(devices) => Inventory { devices: devices.clone(), ..Inventory::default() },
            None => detector.detect().await,
        }
    };
    let (surroundings, inventory) = tokio::join!(environment.look(), devices);
    let mut checks = of_host(surroundings, &inventory);
    checks.extend(match &config.role {
        Role::Worker(worker) => way_to_server(worker, variables).await,
        Role::Server(_) | Role::ServerAndWorker(..) => vec![no_server()],
    });
    Findings { examination: examination(checks), inventory, printed: detector.printed() }
}

/// The accelerators that the configuration file describes in place of those that would be found.
fn described(config: &Config) -> Option<&Vec<GpuDevice>> {
    let resources = match &config.role {
        Role::Worker(worker) => &worker.resources,
        Role::ServerAndWorker(_, worker) => &worker.resources,
        Role::Server(_) => return None,
    };
    resources.gpu_devices.as_ref()
}

/// A host, as it was seen at one moment.
pub fn examination(checks: Vec<Check>) -> Examination {
    let os = checks.iter().find_map(|check| match &check.seen {
        Seen::System { os, .. } => Some(os.clone()),
        _ => None,
    });
    Examination {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: hostname(),
        os: os.unwrap_or_default(),
        at_ms: Utc::now().timestamp_millis(),
        checks,
    }
}

/// The host itself: what a worker can look at as well as a doctor.
pub fn of_host(surroundings: Surroundings, inventory: &Inventory) -> Vec<Check> {
    let found = u32::try_from(inventory.devices.len()).unwrap_or(u32::MAX);
    let Surroundings { host: mut checks, clock } = surroundings;
    // with something in the way, none found does not mean that there are none
    if found > 0 || inventory.problems.is_empty() {
        checks.push(Check::good(Seen::Accelerators { found }));
    }
    checks.extend(inventory.checks.iter().cloned());
    checks.extend(unplaced(inventory));
    checks.extend(clock);
    blame_filter(&mut checks);
    checks
}

/// Problems that belong to no point, such as a chip's bad health: each stands at the accelerators.
fn unplaced(inventory: &Inventory) -> Vec<Check> {
    let found = u32::try_from(inventory.devices.len()).unwrap_or(u32::MAX);
    let is_placed = |reason: &api::Reason| {
        let placed = inventory.checks.iter().filter_map(|check| check.problem.as_ref());
        placed.into_iter().any(|problem| problem.trouble == reason.clone().into())
    };
    let unplaced = inventory.problems.iter().filter(|problem| !is_placed(&problem.reason));
    unplaced.map(|problem| Check::bad(Seen::Accelerators { found }, problem.severity, problem.reason.clone())).collect()
}

async fn way_to_server(worker: &WorkerConfig, variables: &BTreeMap<String, String>) -> Vec<Check> {
    let mut checks = vec![proxies::look(worker.server_url.host(), variables)];
    checks.extend(server::look(worker).await);
    checks
}

fn no_server() -> Check {
    let seen = Seen::Server { url: String::new(), version: None, took_ms: None };
    Check::bad(seen, Severity::Ok, HostReason::ServerNotGiven {})
}
