//! Huawei Ascend, by its tool `npu-smi`.

mod cells;
mod devices;
mod environment;
mod mapping;
mod nodes;
mod table;

#[cfg(test)]
mod tests;

use crate::DetectorConfig;
use crate::text;
use crate::tool::{Places, Tool, ToolError, ToolOutput};
use crate::vendor::{Finding, Outcome, Reading, Survey};
use api::{Reason, Severity};
use environment::TOOL;
use mapping::DeviceNumbers;
use nodes::{Circumstances, Nodes, under};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use table::{ChipId, Table};

/// Where the driver's installer writes which directory it took.
const INSTALL_INFO: &str = "/etc/ascend_install.info";
/// The directory it takes when not told otherwise.
const DEFAULT_INSTALL_DIRECTORY: &str = "/usr/local/Ascend";
/// `npu-smi` is in one of these, depending on the driver's version.
const TOOL_DIRECTORIES: [&str; 2] = ["/usr/local/sbin", "/usr/local/bin"];
/// The management library, on drivers that keep it apart.
const DCMI_DIRECTORY: &str = "/usr/local/dcmi";
/// The install note has a few lines.
const INSTALL_INFO_LIMIT_BYTES: u64 = 64 * 1024;

/// Looks for Ascend chips.
pub(crate) struct Ascend {
    root: PathBuf,
    path: Option<OsString>,
    tool: Tool,
    numbering: Numbering,
    is_950: bool,
}

/// The tool's list of numbers and the chips it was asked for. Asking costs a process, and the answer changes only
/// when chips come or go.
#[derive(Default)]
struct Numbering {
    asked_for: BTreeSet<ChipId>,
    numbers: DeviceNumbers,
}

impl Ascend {
    pub(crate) fn new(config: &DetectorConfig) -> Self {
        Self {
            root: config.root.clone(),
            path: config.path.clone(),
            tool: Tool::new(TOOL, config.tool_deadline),
            numbering: Numbering::default(),
            is_950: false,
        }
    }

    pub(crate) async fn survey(&mut self) -> Survey {
        let nodes = Nodes::look(&self.root);
        let output = match self.run(&["info"]).await {
            Ok(output) => output,
            Err(ToolError::Missing) => return without_tool(&nodes),
            Err(error) => return self.failed(&nodes, Reading::default(), vec![self.tool_finding(error)]),
        };
        let Some(table) = table::parse(&output.stdout) else {
            return self.failed(&nodes, Reading::default(), vec![Finding::error(why_no_table(&output))]);
        };
        self.read(&nodes, &output, &table).await
    }

    async fn read(&mut self, nodes: &Nodes, output: &ToolOutput, table: &Table) -> Survey {
        let mut findings: Vec<Finding> = self.renumber(table).await.into_iter().collect();
        let devices = devices::devices(table, &self.numbering.numbers);
        self.is_950 = devices.iter().any(|device| device.name.contains("950"));
        let reading = Reading { unhealthy: devices::unhealthy(table, &devices), devices };
        if table.is_cut_off {
            findings.push(Finding::error(why_no_table(output)));
            return self.failed(nodes, reading, findings);
        }
        if !table.unreadable.is_empty() {
            findings.push(Finding::warning(unknown_output(&table.unreadable.join("\n"))));
        }
        if !output.is_success {
            findings.push(Finding::warning(why_failed(output)));
        }
        findings.extend(self.node_findings(nodes, &reading, &findings));
        findings.extend(chips_without_devices(nodes, &reading));
        Survey { outcome: Outcome::Read(reading), findings }
    }

    fn failed(&self, nodes: &Nodes, partial: Reading, mut findings: Vec<Finding>) -> Survey {
        findings.extend(self.node_findings(nodes, &partial, &findings));
        Survey { outcome: Outcome::Failed { partial }, findings }
    }

    fn node_findings(&self, nodes: &Nodes, reading: &Reading, found: &[Finding]) -> Vec<Finding> {
        let driver_failed = found.iter().any(|finding| matches!(finding.reason, Reason::DriverInitFailed { .. }));
        nodes.findings(&Circumstances { has_devices: !reading.devices.is_empty(), driver_failed, is_950: self.is_950 })
    }

    /// Asks for the chips' numbers when other chips are there than at the last answer. A tool that has no such list
    /// says so once; one that gave no answer is asked again at the next survey.
    async fn renumber(&mut self, table: &Table) -> Option<Finding> {
        let chips: BTreeSet<ChipId> = table.chips.iter().map(|chip| chip.id).collect();
        if table.is_cut_off || chips == self.numbering.asked_for {
            return None;
        }
        let output = match self.run(&["info", "-m"]).await {
            Ok(output) => output,
            Err(error) => return Some(Finding { severity: Severity::Warning, ..self.tool_finding(error) }),
        };
        let numbers = mapping::parse(&output.stdout).unwrap_or_else(|| {
            let printed = text::excerpt(&output.all());
            tracing::debug!(printed, "npu-smi lists no chip numbers; they are taken from its table");
            DeviceNumbers::new()
        });
        self.numbering = Numbering { asked_for: chips, numbers };
        None
    }

    async fn run(&self, arguments: &'static [&'static str]) -> Result<ToolOutput, ToolError> {
        let (root, path) = (self.root.clone(), self.path.clone());
        self.tool.run(arguments, move || places(&root, path)).await
    }

    fn tool_finding(&self, error: ToolError) -> Finding {
        let tool = TOOL.to_owned();
        Finding::error(match error {
            ToolError::Missing => Reason::ToolMissing { tool },
            ToolError::TimedOut | ToolError::StillRunning => {
                Reason::ToolTimedOut { tool, timeout_s: self.tool.deadline().as_secs() }
            }
            ToolError::NotStarted(error) => Reason::ToolNotStarted { tool, error: error.to_string() },
            ToolError::OutputTooLong { start } => unknown_output(&String::from_utf8_lossy(&start)),
            ToolError::OutputLost(error) => Reason::ToolFailed { tool, exit_code: None, output: error.to_string() },
        })
    }
}

/// Without its tool a chip can be seen by its node only.
fn without_tool(nodes: &Nodes) -> Survey {
    match nodes.tool_missing() {
        Some(finding) => {
            let circumstances = Circumstances { has_devices: false, driver_failed: false, is_950: false };
            let findings = std::iter::once(finding).chain(nodes.findings(&circumstances)).collect();
            Survey { outcome: Outcome::Failed { partial: Reading::default() }, findings }
        }
        None => Survey { outcome: Outcome::Nothing, findings: Vec::new() },
    }
}

/// A table without a chip, though the driver made nodes for some.
fn chips_without_devices(nodes: &Nodes, reading: &Reading) -> Option<Finding> {
    if !reading.devices.is_empty() || nodes.chips.is_empty() {
        return None;
    }
    let expected = u32::try_from(nodes.chips.len()).unwrap_or(u32::MAX);
    Some(Finding::error(Reason::DevicesMissing { expected, found: 0 }))
}

/// The cause of an answer without a whole table.
fn why_no_table(output: &ToolOutput) -> Reason {
    if output.is_success {
        let printed = output.all();
        return environment::diagnose(&printed).unwrap_or_else(|| unknown_output(&printed));
    }
    why_failed(output)
}

fn unknown_output(printed: &str) -> Reason {
    Reason::ToolOutputUnknown { tool: TOOL.to_owned(), output: text::excerpt(printed) }
}

fn why_failed(output: &ToolOutput) -> Reason {
    let printed = output.all();
    environment::diagnose(&printed).unwrap_or_else(|| Reason::ToolFailed {
        tool: TOOL.to_owned(),
        exit_code: output.exit_code,
        output: text::excerpt(&printed),
    })
}

/// Where the tool and the libraries it needs may be, on this host or in this container.
fn places(root: &Path, path: Option<OsString>) -> Places {
    let driver = under(root, install_directory(root).join("driver"));
    let libraries = driver.join("lib64");
    let mut directories = crate::tool::search_path(path);
    directories.extend(TOOL_DIRECTORIES.map(|directory| under(root, directory)));
    directories.push(driver.join("tools"));
    Places {
        directories,
        libraries: vec![
            libraries.clone(),
            libraries.join("driver"),
            libraries.join("common"),
            under(root, DCMI_DIRECTORY),
        ],
    }
}

fn install_directory(root: &Path) -> PathBuf {
    let read = || {
        let mut text = String::new();
        let file = std::fs::File::open(under(root, INSTALL_INFO)).ok()?;
        file.take(INSTALL_INFO_LIMIT_BYTES).read_to_string(&mut text).ok()?;
        environment::install_directory(&text)
    };
    read().unwrap_or_else(|| PathBuf::from(DEFAULT_INSTALL_DIRECTORY))
}
