//! Ties the vendors together.

use crate::amd::AMD;
use crate::ascend::Ascend;
use crate::cambricon::CAMBRICON;
use crate::checks;
use crate::files::Root;
use crate::history::{History, Standing};
use crate::hygon::HYGON;
use crate::iluvatar::ILUVATAR;
use crate::metax::METAX;
use crate::moore_threads::MOORE_THREADS;
use crate::nvidia::NVIDIA;
use crate::one_tool::OneTool;
use crate::pci::{self, Accelerator, Driver};
use crate::problem_ages::ProblemAges;
use crate::vendor::{Finding, Maker, Outcome, Survey, Vendor};
use api::{Check, GpuDevice, PciDevice, Problem, Reason, Seen, WorkerStatus};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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
    /// Facts that hardly ever change are asked for beside the readings, a process for each question; one look spends
    /// at most about this time on them and leaves the rest to the next.
    pub slow_facts_budget: Duration,
    /// Searched for the vendors' tools before the directories that vendors install them in; None for this process's
    /// own `PATH`.
    pub path: Option<OsString>,
    /// The variables that choose devices or tell where the vendors' software is, by name.
    pub variables: BTreeMap<String, String>,
    /// Who reads the library of Ascend's driver; None to ask its tool alone.
    pub library_reader: Option<LibraryReader>,
    /// Where NVIDIA's DCGM exporter may listen; it is asked when there are NVIDIA cards. None to ask nobody.
    pub dcgm_exporter: Option<SocketAddr>,
}

/// A program whose process is `dcmi::serve`, with the library as its last argument. A process of its own, since the
/// library may crash or hang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryReader {
    /// The program.
    pub program: PathBuf,
    /// Its arguments in front of the library.
    pub arguments: Vec<OsString>,
}

/// Where the exporter listens unless told otherwise (NVIDIA's documentation of DCGM Exporter).
const DCGM_EXPORTER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9400);

/// The vendors' variables that are of use here begin so.
const VARIABLES: &str = "ASCEND_";

impl Default for DetectorConfig {
    fn default() -> Self {
        let texts = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self {
            root: PathBuf::from("/"),
            tool_deadline: Duration::from_secs(10),
            slow_facts_budget: Duration::from_secs(3),
            path: None,
            variables: std::env::vars_os().filter_map(texts).filter(|(name, _)| name.starts_with(VARIABLES)).collect(),
            library_reader: None,
            dcgm_exporter: Some(DCGM_EXPORTER),
        }
    }
}

/// Finds the host's accelerators. Keep one for the life of the process: it remembers what was there.
pub struct Detector {
    root: Root,
    vendors: Vec<(Box<dyn Vendor>, History)>,
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
    /// Accelerators on the PCI bus that no driver has taken.
    pub undriven: Vec<PciDevice>,
    /// Every point of the environment that was looked at, for the makers that have something on this host.
    pub checks: Vec<Check>,
}

/// The beginning of what a vendor's tool printed, for people who look into a layout that is not understood. Secrets in
/// it are hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub question: String,
    /// None when a signal ended it or it did not run.
    pub exit_code: Option<i32>,
    /// The first lines, errors before the rest.
    pub output: String,
}

impl Detector {
    /// Looks at nothing yet.
    pub fn new(config: &DetectorConfig) -> Self {
        let one_tool = [NVIDIA, AMD, HYGON, METAX, CAMBRICON, ILUVATAR, MOORE_THREADS];
        let mut vendors: Vec<Box<dyn Vendor>> = vec![Box::new(Ascend::new(config))];
        vendors.extend(one_tool.map(|description| Box::new(OneTool::new(description, config)) as Box<dyn Vendor>));
        Self {
            root: Root::new(&config.root),
            vendors: vendors.into_iter().map(|vendor| (vendor, History::default())).collect(),
            problem_ages: ProblemAges::default(),
            last_count: None,
        }
    }

    /// Looks at the host once. It cannot fail as a whole: a vendor whose tool fails or hangs keeps its last devices,
    /// marked as stale, beside the problem. The vendors are asked at the same time, each takes at most a few tool
    /// deadlines, so it has no place on the way of a heartbeat. Dropping the future is safe.
    pub async fn detect(&mut self) -> Inventory {
        let on_bus = pci::accelerators(&self.root);
        let looks = self.vendors.iter_mut().map(|(vendor, history)| look(vendor.as_mut(), history, &on_bus));
        let mut devices = Vec::new();
        let mut findings = Vec::new();
        let mut stale_since: Option<Instant> = None;
        let mut checks = Vec::new();
        for (standing, more_checks) in join_all(looks).await {
            checks.extend(more_checks);
            findings.extend(standing.findings);
            stale_since = stale_since.into_iter().chain(standing.stale_since).min();
            devices.extend(standing.devices);
        }
        if self.last_count.replace(devices.len()) != Some(devices.len()) {
            tracing::info!(count = devices.len(), "accelerators of this host");
        }
        let now = Instant::now();
        Inventory {
            devices,
            problems: self.problem_ages.date(findings, now),
            stale_s: stale_since.map(|since| now.saturating_duration_since(since).as_secs()),
            undriven: on_bus.iter().filter(|found| found.driver == Driver::None).map(Accelerator::listed).collect(),
            checks,
        }
    }

    /// What the vendors' tools printed at their last runs, one entry for each question, for a diagnostics bundle.
    pub fn printed(&self) -> Vec<Printed> {
        self.vendors.iter().flat_map(|(vendor, _)| vendor.printed()).collect()
    }
}

async fn look(vendor: &mut dyn Vendor, history: &mut History, on_bus: &[Accelerator]) -> (Standing, Vec<Check>) {
    let maker = vendor.maker();
    let own: Vec<&Accelerator> = on_bus.iter().filter(|found| found.maker == maker).collect();
    let survey = vendor.survey(&own).await;
    let not_driven = own.iter().filter(|found| found.driver == Driver::None).count();
    let is_nothing = own.is_empty() && finds_nothing(&survey);
    let found = findings(survey.findings, &survey.outcome, maker, not_driven);
    let mut standing = history.settle(survey.outcome, Instant::now());
    standing.findings.splice(0..0, found);
    let mut seen = vec![devices_seen(maker, own.len(), not_driven, &standing)];
    seen.extend(survey.seen);
    let checks = if is_nothing { Vec::new() } else { checks::judged(seen, &standing.findings) };
    (standing, checks)
}

/// No tool, or one that belongs to somebody else's cards.
fn finds_nothing(survey: &Survey) -> bool {
    match &survey.outcome {
        Outcome::Nothing => true,
        Outcome::Read(reading) => reading.devices.is_empty() && survey.findings.is_empty(),
        Outcome::Failed { .. } => false,
    }
}

fn devices_seen(maker: Maker, on_bus: usize, without_driver: usize, standing: &Standing) -> Seen {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let listed = if standing.stale_since.is_some() { 0 } else { standing.devices.len() };
    Seen::Devices {
        vendor: maker.name().to_owned(),
        on_bus: count(on_bus),
        without_driver: count(without_driver),
        listed: count(listed),
    }
}

/// Without a driver nothing else of a vendor works, and whatever its tool says of that is the same problem again.
fn findings(found: Vec<Finding>, outcome: &Outcome, maker: Maker, not_driven: usize) -> Vec<Finding> {
    if not_driven == 0 {
        return found;
    }
    let count = u32::try_from(not_driven).ok();
    let reason = Reason::DriverNotLoaded { vendor: maker.name().to_owned(), count };
    match outcome {
        Outcome::Read(reading) if !reading.devices.is_empty() => {
            std::iter::once(Finding::warning(reason)).chain(found).collect()
        }
        // Nobody tried to use them: a desktop's graphics card, perhaps.
        Outcome::Nothing => vec![Finding::warning(reason)],
        Outcome::Read(_) | Outcome::Failed { .. } => vec![Finding::error(reason)],
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
        status.undriven_devices.clone_from(&self.undriven);
    }
}
