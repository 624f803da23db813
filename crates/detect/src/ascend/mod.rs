//! Huawei Ascend, by its driver's library and its programs `npu-smi` and `hccn_tool`.

mod cells;
mod details;
mod devices;
mod environment;
mod hccn;
mod init_cause;
mod installation;
mod library;
mod mapping;
mod nodes;
mod processes;
mod slow_facts;
mod source;
mod table;
mod visible;

#[cfg(test)]
mod tests;

use crate::files::{PatientReader, Root};
use crate::pci::{Accelerator, Driver};
use crate::text;
use crate::tool::{Tool, ToolError};
use crate::vendor::{Finding, Maker, Outcome, Reading, Survey, Vendor};
use crate::{DetectorConfig, Printed};
use api::{DriverInitCause, GpuDevice, NodeState, Reason, Seen, Severity};
use async_trait::async_trait;
use environment::TOOL;
use init_cause::Evidence;
use installation::Installation;
use library::{LIBRARY, LibrarySource};
use mapping::NumberList;
use nodes::{Circumstances, Nodes};
use slow_facts::{SlowFacts, Sources};
use source::{Answer, ListSource, Program, ReadingSource, TableSource};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use table::{ChipId, Table, Teller};

/// Looks for Ascend chips.
pub(crate) struct Ascend {
    root: Root,
    variables: BTreeMap<String, String>,
    slow_facts_budget: Duration,
    /// In the order of trust.
    readings: Vec<Box<dyn ReadingSource>>,
    sources: Sources,
    numbering: Numbering,
    slow_facts: SlowFacts,
    is_950: bool,
    /// The file that the last answer is from.
    used_library: Option<PathBuf>,
    /// The driver that ran when the chips could be read last.
    last_running: Option<String>,
    /// The PCI bus shows a card that the driver has taken.
    is_driven: bool,
}

/// What the ways of reading gave, one after the other.
#[derive(Default)]
struct Found {
    table: Option<Table>,
    /// What was wrong.
    findings: Vec<Finding>,
    /// Why a way could not be taken, which counts where no other tells why it could not.
    unusable: Vec<Finding>,
}

/// The tool's list of numbers and the chips it was asked for. Asking costs a process, and the answer changes only
/// when chips come or go.
#[derive(Default)]
struct Numbering {
    asked_for: BTreeSet<ChipId>,
    numbers: NumberList,
}

impl Ascend {
    pub(crate) fn new(config: &DetectorConfig) -> Self {
        let root = Root::new(&config.root);
        let program = |name| Program {
            tool: Tool::new(name, config.tool_deadline),
            root: root.clone(),
            path: config.path.clone(),
        };
        let smi = Arc::new(program(TOOL));
        let library = LibrarySource::new(config).map(|library| Box::new(library) as Box<dyn ReadingSource>);
        let tool: [Box<dyn ReadingSource>; 2] =
            [Box::new(TableSource(Arc::clone(&smi))), Box::new(ListSource(Arc::clone(&smi)))];
        Self {
            variables: config.variables.clone(),
            slow_facts_budget: config.slow_facts_budget,
            readings: library.into_iter().chain(tool).collect(),
            sources: Sources {
                smi,
                hccn: program(hccn::TOOL),
                files: PatientReader::new(config.tool_deadline),
                root: root.clone(),
                runtime_directory: installation::runtime_directory(&config.variables),
            },
            root,
            numbering: Numbering::default(),
            slow_facts: SlowFacts::default(),
            is_950: false,
            used_library: None,
            last_running: None,
            is_driven: false,
        }
    }

    /// The first answer that is understood, with what was wrong with those before.
    async fn read_chips(&self) -> Found {
        let mut found = Found::default();
        for source in &self.readings {
            match source.read().await {
                Answer::Absent => {}
                Answer::Chips(table, more) => {
                    for finding in &mut found.findings {
                        finding.severity = Severity::Warning;
                    }
                    found.findings.extend(more);
                    found.table = Some(table);
                    break;
                }
                Answer::NotUnderstood(reason) => found.findings.push(Finding::error(reason)),
                Answer::Unusable(finding) => found.unusable.push(finding),
                Answer::Failed(finding) => {
                    found.findings.push(finding);
                    break;
                }
            }
        }
        found
    }

    async fn read(&mut self, nodes: &Nodes, table: &Table, mut findings: Vec<Finding>) -> Survey {
        findings.extend(self.renumber(table).await);
        let devices = self.devices(nodes, table).await;
        let running = devices.iter().find_map(|device| device.driver_version.clone());
        self.last_running = running.or_else(|| self.last_running.take());
        self.is_950 = devices.iter().any(|device| device.name.contains("950"));
        let reading = Reading { unhealthy: devices::unhealthy(table, &devices), devices };
        if table.is_cut_off {
            return self.failed(nodes, reading, findings).await;
        }
        findings.extend_from_slice(self.slow_facts.failures());
        findings.extend(self.driver_mismatch(&reading.devices).map(Finding::warning));
        findings.extend(self.misfit_variables(&reading.devices).into_iter().map(Finding::warning));
        findings.extend(nodes.findings(&self.circumstances(&reading, false)));
        findings.extend(chips_without_devices(nodes, &reading));
        let seen = self.seen(nodes, &reading, false);
        Survey { outcome: Outcome::Read(reading), findings, seen }
    }

    async fn devices(&mut self, nodes: &Nodes, table: &Table) -> Vec<GpuDevice> {
        let mut devices = devices::devices(table, &self.numbering.numbers, nodes);
        // A tool that did not even give the numbers is not asked for more.
        if !table.is_cut_off && self.numbering.asked_for == chips(table) {
            let port =
                |device: &GpuDevice| Some((devices::chip_of(device)?, device.physical_index.unwrap_or(device.index)));
            let ports: Vec<(ChipId, u32)> = devices.iter().filter_map(port).collect();
            self.slow_facts.learn(table, &ports, &self.sources, self.slow_facts_budget).await;
        }
        for device in &mut devices {
            if let Some(id) = devices::chip_of(device) {
                devices::complete(device, id, &self.slow_facts);
            }
        }
        devices
    }

    /// A driver that does not start is one problem: the nodes that are missing are its likely cause, not problems
    /// beside it.
    async fn failed(&self, nodes: &Nodes, partial: Reading, mut findings: Vec<Finding>) -> Survey {
        let mut driver_failed = false;
        for finding in &mut findings {
            if let Reason::DriverInitFailed { nodes: faulty, cause, .. } = &mut finding.reason {
                driver_failed = true;
                let faults = nodes.faults(&self.circumstances(&partial, true));
                *cause = self.init_cause(&faults).await;
                *faulty = faults.into_iter().map(|(node, _)| node).collect();
            }
        }
        if !driver_failed {
            findings.extend(nodes.findings(&self.circumstances(&partial, false)));
        }
        let seen = self.seen(nodes, &partial, driver_failed);
        Survey { outcome: Outcome::Failed { partial }, findings, seen }
    }

    async fn init_cause(&self, faults: &[(String, NodeState)]) -> Option<DriverInitCause> {
        let (root, runtime) = (self.root.clone(), self.sources.runtime_directory.clone());
        let look = move || {
            let installed = Installation::look(&root, runtime.as_deref()).driver_version;
            (init_cause::modules(&root), init_cause::versions_of_modules(&root), installed)
        };
        let (modules, running, installed) = self.sources.files.read(look).await.unwrap_or_default();
        let is_missing = faults.iter().any(|(_, state)| *state == NodeState::Missing);
        init_cause::cause(&Evidence {
            modules,
            is_driven: self.is_driven,
            fault: is_missing.then_some(NodeState::Missing).or_else(|| faults.first().map(|(_, state)| *state)),
            is_root: rustix::process::geteuid().is_root(),
            running: running.into_iter().chain(self.last_running.clone()).collect(),
            installed,
        })
    }

    /// Every point of the environment, whether it is wrong or not.
    fn seen(&self, nodes: &Nodes, reading: &Reading, driver_failed: bool) -> Vec<Seen> {
        let vendor = || Maker::Huawei.name().to_owned();
        let installation = &self.slow_facts.installation;
        let running = reading.devices.iter().find_map(|device| device.driver_version.clone());
        let firmware: BTreeSet<String> =
            reading.devices.iter().filter_map(|device| device.firmware_version.clone()).collect();
        let variable = |name: &str| {
            let value = self.variables.get(name)?;
            Some(Seen::Variable { name: name.to_owned(), value: text::cell(value) })
        };
        let mut seen = self.tools_seen();
        seen.extend([
            Seen::Driver { vendor: vendor(), running, installed: installation.driver_version.clone() },
            Seen::Firmware { vendor: vendor(), versions: firmware.into_iter().collect() },
            Seen::Runtime { vendor: vendor(), version: installation.runtime_version.clone() },
        ]);
        seen.extend(nodes.seen(&self.circumstances(reading, driver_failed), &self.root));
        seen.extend(visible::VARIABLES.into_iter().filter_map(variable));
        seen
    }

    /// The library where it told, and the tool where it was looked for.
    fn tools_seen(&self) -> Vec<Seen> {
        let tool = &self.sources.smi.tool;
        let Some(file) = &self.used_library else { return vec![tool.seen()] };
        let library = Seen::Tool { tool: LIBRARY.to_owned(), path: Some(file.display().to_string()) };
        std::iter::once(library).chain(tool.is_known().then(|| tool.seen())).collect()
    }

    fn circumstances(&self, reading: &Reading, driver_failed: bool) -> Circumstances {
        Circumstances { has_devices: !reading.devices.is_empty(), driver_failed, is_950: self.is_950 }
    }

    /// Asks for the chips' numbers when other chips are there than at the last answer. A tool that has no such list
    /// says so once; one that gave no answer is asked again at the next survey.
    async fn renumber(&mut self, table: &Table) -> Option<Finding> {
        let chips = chips(table);
        if let Some(numbers) = &table.numbers {
            // They count as well while the tool stands in: a chip keeps its number.
            self.numbering = Numbering { asked_for: chips, numbers: numbers.clone() };
            return None;
        }
        if table.is_cut_off || chips == self.numbering.asked_for {
            return None;
        }
        let smi = &self.sources.smi;
        let numbers = match smi.ask(&["info", "-m"]).await {
            Ok(output) => mapping::parse(&output.stdout).unwrap_or_else(|| {
                let printed = text::excerpt(&output.all());
                tracing::debug!(printed, "npu-smi lists no chip numbers; they are taken from its table");
                NumberList::new()
            }),
            // The library does without it.
            Err(ToolError::Missing) if table.told_by != Teller::Tool => NumberList::new(),
            Err(error) => return Some(Finding { severity: Severity::Warning, ..smi.finding(error) }),
        };
        self.numbering = Numbering { asked_for: chips, numbers };
        None
    }

    /// After an upgrade the old driver runs until the host is started again, and firmware of another release may not
    /// go with it.
    fn driver_mismatch(&self, devices: &[GpuDevice]) -> Option<Reason> {
        let installation = &self.slow_facts.installation;
        let running = devices.iter().find_map(|device| device.driver_version.clone());
        let installed = installation.driver_version.clone();
        let differs = running
            .as_ref()
            .zip(installed.as_ref())
            .is_some_and(|(running, installed)| !running.eq_ignore_ascii_case(installed));
        let firmware = self.unfit_firmware();
        (differs || firmware.is_some()).then(|| Reason::DriverMismatch {
            vendor: Maker::Huawei.name().to_owned(),
            running,
            installed,
            firmware,
        })
    }

    /// The firmware of the first card that the driver says does not go with it. What the running driver says counts
    /// more than what its package says.
    fn unfit_firmware(&self) -> Option<String> {
        let unfit = |board: &details::Board| {
            let firmware = board.firmware_version.clone()?;
            let is_unfit = match &board.compatibility {
                Some(word) => !word.eq_ignore_ascii_case("OK"),
                None => self.slow_facts.installation.refuses(&firmware),
            };
            is_unfit.then_some(firmware)
        };
        self.slow_facts.cards.values().find_map(unfit)
    }

    fn misfit_variables(&self, devices: &[GpuDevice]) -> Vec<Reason> {
        visible::misfits(|name| self.variables.get(name).map(String::as_str), devices)
    }

    /// Without its tool a chip can be seen by its node only.
    async fn without_tool(&self, nodes: &Nodes) -> Survey {
        if let Some(finding) = nodes.tool_missing() {
            return self.failed(nodes, Reading::default(), vec![finding]).await;
        }
        // Chips were asked for, and the container was started without what gives them to it.
        let findings = self.misfit_variables(&[]).into_iter().map(Finding::warning).collect();
        Survey { outcome: Outcome::Nothing, findings, seen: Vec::new() }
    }
}

#[async_trait]
impl Vendor for Ascend {
    fn maker(&self) -> Maker {
        Maker::Huawei
    }

    async fn survey(&mut self, on_bus: &[&Accelerator]) -> Survey {
        let nodes = Nodes::look(&self.root);
        self.is_driven = on_bus.iter().any(|found| found.driver == Driver::Loaded);
        let found = self.read_chips().await;
        self.used_library = found.table.as_ref().and_then(Table::library).map(Path::to_owned);
        if let Some(table) = found.table {
            return self.read(&nodes, &table, found.findings).await;
        }
        // A library is part of many containers' images: without a chip it is no sign that there ought to be one.
        let has_chips = !nodes.chips.is_empty() || !on_bus.is_empty();
        match (found.findings, found.unusable) {
            (findings, _) if !findings.is_empty() => self.failed(&nodes, Reading::default(), findings).await,
            (_, unusable) if has_chips && !unusable.is_empty() => {
                self.failed(&nodes, Reading::default(), unusable).await
            }
            _ => self.without_tool(&nodes).await,
        }
    }

    fn printed(&self) -> Vec<Printed> {
        let of_tools = [&self.sources.smi.tool, &self.sources.hccn.tool].into_iter().flat_map(Tool::printed);
        self.readings.iter().flat_map(|source| source.printed()).chain(of_tools).collect()
    }
}

fn chips(table: &Table) -> BTreeSet<ChipId> {
    table.chips.iter().map(|chip| chip.id).collect()
}

/// A table without a chip, though the driver made nodes for some.
fn chips_without_devices(nodes: &Nodes, reading: &Reading) -> Option<Finding> {
    if !reading.devices.is_empty() || nodes.chips.is_empty() {
        return None;
    }
    let expected = u32::try_from(nodes.chips.len()).unwrap_or(u32::MAX);
    Some(Finding::error(Reason::DevicesMissing { expected, found: 0 }))
}
