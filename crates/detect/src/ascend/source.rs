//! Ways to read all chips. Each gives the same; the first that understands what it gets is believed.

use super::details::{self, Part, Readings};
use super::environment::{self, TOOL};
use super::installation::Directories;
use super::table::{self, Chip, ChipId, Table, Teller};
use crate::Printed;
use crate::files::Root;
use crate::text;
use crate::tool::{Places, Tool, ToolError, ToolOutput};
use crate::vendor::Finding;
use api::{AbsentWhy, Reason};
use async_trait::async_trait;
use std::ffi::OsString;
use std::sync::Arc;

/// The driver's programs are in one of these, depending on its version.
const TOOL_DIRECTORIES: [&str; 2] = ["/usr/local/sbin", "/usr/local/bin"];
/// A list with more chips than any host has is no list.
const MOST_CHIPS_OF_A_CARD: u32 = 16;

/// A way to read all chips at once.
#[async_trait]
pub(super) trait ReadingSource: Send + Sync {
    /// Reads them now. Bounded in time by the tool's deadline.
    async fn read(&self) -> Answer;

    /// What it printed at its last runs, where no tool of its own keeps that.
    fn printed(&self) -> Vec<Printed> {
        Vec::new()
    }
}

/// What a source gave.
pub(super) enum Answer {
    /// The source is not on this host.
    Absent,
    /// The chips, and what is wrong with the list.
    Chips(Table, Vec<Finding>),
    /// It answers in a form that this version does not know; another source may do better.
    NotUnderstood(Reason),
    /// It does not work now. Why is of interest to nobody as long as another does, or tells why it does not.
    Unusable(Finding),
    /// It does not work, and no other will.
    Failed(Finding),
}

/// One of the driver's programs.
pub(super) struct Program {
    pub tool: Tool,
    pub root: Root,
    pub path: Option<OsString>,
}

impl Program {
    pub(super) async fn ask(&self, arguments: &[&str]) -> Result<ToolOutput, ToolError> {
        let (root, path) = (self.root.clone(), self.path.clone());
        self.tool.run(arguments, move || places(&root, path)).await
    }

    /// Why it gave no answer.
    pub(super) fn finding(&self, error: ToolError) -> Finding {
        error.finding(&self.tool)
    }
}

/// Where the programs and the libraries they need may be, on this host or in this container.
fn places(root: &Root, path: Option<OsString>) -> Places {
    let installed = Directories::look(root);
    let mut directories = crate::tool::search_path(path);
    directories.extend(TOOL_DIRECTORIES.map(|directory| root.path(directory)));
    directories.push(root.path(installed.driver().join("tools")));
    Places { directories, libraries: installed.libraries().into_iter().map(|library| root.path(library)).collect() }
}

/// The table of `npu-smi info`: everything that changes, in one process.
pub(super) struct TableSource(pub Arc<Program>);

#[async_trait]
impl ReadingSource for TableSource {
    async fn read(&self) -> Answer {
        let output = match self.0.ask(&["info"]).await {
            Ok(output) => output,
            Err(ToolError::Missing) => return Answer::Absent,
            Err(error) => return Answer::Failed(self.0.finding(error)),
        };
        match table::parse(&output.stdout) {
            Some(table) => {
                let findings = findings(&output, &table);
                Answer::Chips(table, findings)
            }
            None => match why_no_table(&output) {
                reason @ Reason::ToolOutputUnknown { .. } => Answer::NotUnderstood(reason),
                reason => Answer::Failed(Finding::error(reason)),
            },
        }
    }
}

/// The lists of `npu-smi info -l` and `-t`: a handful of processes for each card, in a form that changes less from
/// version to version than the table.
pub(super) struct ListSource(pub Arc<Program>);

#[async_trait]
impl ReadingSource for ListSource {
    async fn read(&self) -> Answer {
        let cards = match self.0.ask(&["info", "-l"]).await {
            Ok(output) => details::cards(&output.stdout),
            Err(ToolError::Missing) => return Answer::Absent,
            Err(error) => return Answer::Failed(self.0.finding(error)),
        };
        let mut chips = Vec::new();
        for (npu, count) in cards {
            match self.card(npu, count.min(MOST_CHIPS_OF_A_CARD)).await {
                Ok(card) => chips.extend(card),
                Err(error) => return Answer::Failed(self.0.finding(error)),
            }
        }
        if chips.is_empty() {
            return Answer::Absent;
        }
        let table = Table {
            driver_version: None,
            chips,
            unreadable: Vec::new(),
            is_cut_off: false,
            processes: None,
            numbers: None,
            told_by: Teller::Tool,
        };
        Answer::Chips(table, Vec::new())
    }
}

impl ListSource {
    async fn card(&self, npu: u32, count: u32) -> Result<Vec<Chip>, ToolError> {
        let mut answers = Vec::new();
        for question in ["common", "usages", "health"] {
            answers.push(self.details(question, npu).await?);
        }
        let chips = |answers: &[Vec<(Part, Readings)>]| -> Vec<Chip> {
            (0..count).map(|chip| self::chip(ChipId { npu, chip }, answers)).collect()
        };
        let lacks = |lacks: fn(&Chip) -> bool| chips(&answers).iter().any(lacks);
        let more = [
            ("temp", lacks(|chip| chip.temperature_c.is_err())),
            ("power", lacks(|chip| chip.power_w.is_err())),
            ("memory", lacks(|chip| chip.memory.is_err())),
        ];
        for (question, _) in more.into_iter().filter(|(_, is_wanted)| *is_wanted) {
            answers.push(self.details(question, npu).await?);
        }
        Ok(chips(&answers))
    }

    async fn details(&self, question: &str, npu: u32) -> Result<Vec<(Part, Readings)>, ToolError> {
        let output = self.0.ask(&["info", "-t", question, "-i", &npu.to_string()]).await?;
        Ok(details::readings(&output.stdout))
    }
}

/// The first figure of each kind that the answers have for the chip.
fn chip(id: ChipId, answers: &[Vec<(Part, Readings)>]) -> Chip {
    let told = || answers.iter().flat_map(|answer| details::of_chip(answer, id));
    let not_told = AbsentWhy::NotTold;
    Chip {
        id,
        logic_id: None,
        physical_id: None,
        name: None,
        health: told().find_map(|told| told.health.clone().ok()).ok_or(not_told),
        bus_id: None,
        power_w: told().find_map(|told| told.power_w.ok()).ok_or(not_told),
        temperature_c: told().find_map(|told| told.temperature_c.ok()).ok_or(not_told),
        utilization_percent: told().find_map(|told| told.utilization_percent.ok()).ok_or(not_told),
        memory: told().find_map(|told| told.memory.ok()).ok_or(not_told),
        memory_percent: told().find_map(|told| told.memory_percent.ok()),
        extra: None,
    }
}

/// What is wrong with a list that has been read.
fn findings(output: &ToolOutput, table: &Table) -> Vec<Finding> {
    if table.is_cut_off {
        return vec![Finding::error(why_no_table(output))];
    }
    let mut findings = Vec::new();
    if !table.unreadable.is_empty() {
        findings.push(Finding::warning(unknown_output(&table.unreadable.join("\n"))));
    }
    if !output.is_success {
        findings.push(Finding::warning(why_failed(output)));
    }
    findings
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
