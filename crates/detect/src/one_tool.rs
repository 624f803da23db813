//! Vendors whose devices are read by one run of one tool, which is most of them.

use crate::bar_table::{Block, Blocks};
use crate::card::Card;
use crate::files::{PatientReader, Root};
use crate::nvidia::exporter::Exporter;
use crate::pci::{Accelerator, Driver};
use crate::text;
use crate::tool::{Places, Tool, ToolError, ToolOutput};
use crate::vendor::{Finding, Maker, Outcome, Reading, Survey, Vendor};
use crate::{DetectorConfig, Printed};
use api::{DeviceType, Reason, Seen};
use async_trait::async_trait;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Answers that hardly ever change are asked for again after this time.
const ASKED_AGAIN_AFTER: Duration = Duration::from_mins(10);

/// What has to be known of a vendor.
pub(crate) struct Description {
    pub maker: Maker,
    pub kind: DeviceType,
    /// The driver's own library, asked before any tool: it starts no process.
    pub library: Option<Library>,
    /// Ways to ask, the best first. The next is taken where a tool is missing or prints what is not understood.
    pub ways: &'static [Way],
    /// Where the vendor installs its tools, beside the search path.
    pub directories: &'static [&'static str],
    /// Where the tools' libraries are.
    pub libraries: &'static [&'static str],
    /// Device nodes, any of which says that somebody wants to compute here: with one and without a tool something is
    /// missing.
    pub nodes: &'static [&'static str],
    /// NVIDIA's exporter for Prometheus may tell what the library and the tools do not.
    pub has_exporter: bool,
    /// The kernel module of its driver, which tells its version where the tool does not.
    pub module: &'static str,
}

/// A library that is loaded while the program runs.
pub(crate) struct Library {
    /// Where it may be.
    pub files: &'static [&'static str],
    /// Loads it and asks everything. None when it cannot be used; a tool may do better then. May hang.
    pub read: fn(&Path) -> Option<Listing>,
}

/// One tool and one question.
pub(crate) struct Way {
    pub tool: &'static str,
    pub question: &'static [&'static str],
    /// Takes what the tool printed. None when it is not understood.
    pub parse: fn(&ToolOutput) -> Option<Listing>,
    /// Further questions to the same tool.
    pub more: &'static [More],
}

/// A question whose answer adds to what is known of the cards.
pub(crate) struct More {
    pub question: &'static [&'static str],
    /// Whether these cards make it worth a process.
    pub is_wanted: fn(&[Card]) -> bool,
    /// The answer hardly ever changes as long as the same cards are there.
    pub is_lasting: bool,
    pub add: fn(&mut [Card], &str),
}

/// What a tool printed, understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listing {
    pub cards: Vec<Card>,
    /// What is wrong, the health of the cards aside.
    pub findings: Vec<Finding>,
    /// There may be more cards than were read.
    pub is_partial: bool,
}

impl Listing {
    /// All of them, in good order. A card that is there already is a part of it or a line shown once more.
    pub(crate) fn whole(told: Vec<Card>) -> Self {
        let mut cards: Vec<Card> = Vec::with_capacity(told.len());
        for card in told {
            if cards.iter().all(|before| before.index != card.index) {
                cards.push(card);
            }
        }
        Self { cards, findings: Vec::new(), is_partial: false }
    }

    /// Rows that could not be read are told; with none that could, nothing was understood.
    pub(crate) fn with_unreadable(tool: &str, cards: Vec<Card>, unreadable: &[&str]) -> Option<Self> {
        if unreadable.is_empty() {
            return Some(Self::whole(cards));
        }
        if cards.is_empty() {
            return None;
        }
        let reason = Reason::ToolOutputUnknown { tool: tool.to_owned(), output: text::excerpt(&unreadable.join("\n")) };
        Some(Self { findings: vec![Finding::warning(reason)], is_partial: true, ..Self::whole(cards) })
    }

    /// Reads each block of a table as a card.
    pub(crate) fn from_blocks(
        tool: &str,
        printed: &str,
        table: &Blocks,
        card: impl Fn(&Block) -> Option<Card>,
    ) -> Option<Self> {
        let (mut cards, mut unreadable) = (Vec::new(), Vec::new());
        for block in &table.cards {
            match card(block) {
                Some(card) => cards.push(card),
                None => unreadable.extend(block.iter().map(|row| row.join(" | "))),
            }
        }
        let unreadable: Vec<&str> = unreadable.iter().map(String::as_str).collect();
        let answer = Self::with_unreadable(tool, cards, &unreadable)?;
        Some(if table.is_cut_off { answer.cut_off(tool, printed) } else { answer })
    }

    /// The end of what the tool printed is missing.
    pub(crate) fn cut_off(mut self, tool: &str, printed: &str) -> Self {
        self.is_partial = true;
        let reason = Reason::ToolOutputUnknown { tool: tool.to_owned(), output: text::excerpt(printed) };
        self.findings = vec![Finding::error(reason)];
        self
    }

    /// The tool answers, and cannot do its work.
    pub(crate) fn failed(reason: Reason) -> Self {
        Self { cards: Vec::new(), findings: vec![Finding::error(reason)], is_partial: true }
    }
}

/// A vendor after its description.
pub(crate) struct OneTool {
    description: Description,
    /// One for each way.
    tools: Vec<Tool>,
    root: Root,
    path: Option<OsString>,
    /// As they were when they answered last.
    remembered: Vec<Card>,
    lasting: HashMap<&'static [&'static str], Answer>,
    /// The way that was understood last.
    good_way: usize,
    library: PatientReader,
    /// The file that the last answer is from.
    used_library: Option<PathBuf>,
    exporter: Option<Exporter>,
}

/// A lasting answer and the cards it was given for.
struct Answer {
    printed: String,
    cards: Vec<(u32, Option<String>)>,
    at: Instant,
}

impl OneTool {
    pub(crate) fn new(description: Description, config: &DetectorConfig) -> Self {
        Self {
            exporter: config.dcgm_exporter.filter(|_| description.has_exporter).map(Exporter::new),
            tools: description.ways.iter().map(|way| Tool::new(way.tool, config.tool_deadline)).collect(),
            description,
            root: Root::new(&config.root),
            path: config.path.clone(),
            remembered: Vec::new(),
            lasting: HashMap::new(),
            good_way: 0,
            library: PatientReader::new(config.tool_deadline),
            used_library: None,
        }
    }

    /// What it told and which file it is; None without it, or when it gives no answer in time.
    async fn read_library(&self) -> Option<(Listing, PathBuf)> {
        let library = self.description.library.as_ref()?;
        let (root, files, read) = (self.root.clone(), library.files, library.read);
        let load = move || {
            let file = files.iter().map(|file| root.path(file)).find(|file| file.is_file())?;
            Some((read(&file)?, file))
        };
        self.library.read(load).await.flatten()
    }

    async fn ask(&self, way: usize, question: &[&str]) -> Result<ToolOutput, ToolError> {
        let Some(tool) = self.tools.get(way) else { return Err(ToolError::Missing) };
        let (root, path) = (self.root.clone(), self.path.clone());
        let (directories, libraries) = (self.description.directories, self.description.libraries);
        let places = move || {
            let under = |paths: &[&str]| paths.iter().map(|path| root.path(path)).collect::<Vec<_>>();
            let mut all = crate::tool::search_path(path);
            all.extend(under(directories));
            Places { directories: all, libraries: under(libraries) }
        };
        tool.run(question, places).await
    }

    fn finding(&self, way: usize, error: ToolError) -> Option<Finding> {
        Some(error.finding(self.tools.get(way)?))
    }

    /// Asks what else there is to ask. What is not answered is not known, and no problem as long as the tool's main
    /// answer comes.
    async fn add_more(&mut self, way: usize, more: &'static [More], cards: &mut [Card]) {
        for more in more {
            if !(more.is_wanted)(cards) {
                continue;
            }
            let identity: Vec<_> = cards.iter().map(|card| (card.index, card.bus_id.clone())).collect();
            let known = self
                .lasting
                .get(more.question)
                .filter(|answer| answer.cards == identity && answer.at.elapsed() < ASKED_AGAIN_AFTER);
            if let Some(answer) = known {
                (more.add)(cards, &answer.printed);
                continue;
            }
            let Ok(output) = self.ask(way, more.question).await else { continue };
            (more.add)(cards, &output.stdout);
            if more.is_lasting && output.is_success {
                let answer = Answer { printed: output.stdout, cards: identity, at: Instant::now() };
                self.lasting.insert(more.question, answer);
            }
        }
    }

    /// A lost card keeps its name and numbers, if it ever had some.
    fn recall(&mut self, cards: &mut [Card]) {
        for card in cards {
            let is_it = |before: &Card| match &card.bus_id {
                Some(address) => before.bus_id.as_ref() == Some(address),
                None => before.index == card.index,
            };
            match self.remembered.iter_mut().find(|before| is_it(before)) {
                Some(before) if card.is_lost => {
                    let health = card.health.clone();
                    *card = Card { health, ..before.clone().without_readings() };
                }
                Some(before) => before.clone_from(card),
                None if card.is_lost => {}
                None => self.remembered.push(card.clone()),
            }
        }
    }

    async fn complete(&mut self, cards: &mut [Card]) {
        if let Some(exporter) = &mut self.exporter {
            exporter.complete(cards).await;
        }
    }

    fn driver_version(&self) -> Option<String> {
        let version = self.root.read(format!("/sys/module/{}/version", self.description.module))?;
        Some(text::cell(&version)).filter(|version| !version.is_empty())
    }

    fn survey_of(&self, mut answer: Listing, on_bus: &[&Accelerator]) -> Survey {
        let version = self.driver_version();
        for card in &mut answer.cards {
            card.driver_version = card.driver_version.take().or_else(|| version.clone());
        }
        for finding in &mut answer.findings {
            if let Reason::DriverMismatch { running, .. } = &mut finding.reason {
                *running = running.take().or_else(|| version.clone());
            }
        }
        answer.cards.sort_by_key(|card| card.index);
        let persistence = persistence(&answer.cards);
        let unhealthy = answer.cards.iter().filter_map(Card::unhealthy).collect();
        let (maker, kind) = (self.description.maker, self.description.kind);
        let devices = answer.cards.into_iter().map(|card| card.into_device(maker, kind)).collect();
        let reading = Reading { devices, unhealthy };
        let mut findings = answer.findings;
        if answer.is_partial {
            return self.survey_with(Outcome::Failed { partial: reading }, findings);
        }
        findings.extend(missing(&reading, on_bus));
        let mut survey = self.survey_with(Outcome::Read(reading), findings);
        survey.seen.extend(persistence);
        survey
    }

    fn failed(&self, findings: Vec<Finding>) -> Survey {
        self.survey_with(Outcome::Failed { partial: Reading::default() }, findings)
    }

    fn survey_with(&self, outcome: Outcome, findings: Vec<Finding>) -> Survey {
        let vendor = self.description.maker.name().to_owned();
        let library = self.used_library.clone().map(|path| {
            let tool = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            Seen::Tool { tool, path: Some(path.display().to_string()) }
        });
        let tool = || self.tools.get(self.good_way).map(Tool::seen);
        let mut seen: Vec<Seen> = library.or_else(tool).into_iter().collect();
        let told = match &outcome {
            Outcome::Read(reading) | Outcome::Failed { partial: reading } => {
                reading.devices.iter().find_map(|device| device.driver_version.clone())
            }
            Outcome::Nothing => None,
        };
        seen.push(Seen::Driver { vendor, running: told.or_else(|| self.driver_version()), installed: None });
        Survey { outcome, findings, seen }
    }

    /// Devices whose driver runs and whose nodes are here, and no tool to ask about them.
    fn without_tool(&self, on_bus: &[&Accelerator]) -> Survey {
        let is_driven = on_bus.iter().any(|found| found.driver == Driver::Loaded);
        let is_wanted = || self.description.nodes.iter().any(|node| self.root.path(node).exists());
        match self.description.ways.first().filter(|_| is_driven && is_wanted()) {
            Some(way) => self.failed(vec![Finding::error(Reason::ToolMissing { tool: way.tool.to_owned() })]),
            None => self.survey_with(Outcome::Nothing, Vec::new()),
        }
    }
}

#[async_trait]
impl Vendor for OneTool {
    fn maker(&self) -> Maker {
        self.description.maker
    }

    async fn survey(&mut self, on_bus: &[&Accelerator]) -> Survey {
        self.used_library = None;
        if let Some((mut listing, file)) = self.read_library().await {
            self.used_library = Some(file);
            self.recall(&mut listing.cards);
            self.complete(&mut listing.cards).await;
            return self.survey_of(listing, on_bus);
        }
        let mut findings = Vec::new();
        let ways = self.description.ways;
        let others = (0..ways.len()).filter(|&way| way != self.good_way);
        let order: Vec<usize> = std::iter::once(self.good_way).chain(others).collect();
        for (number, way) in order.into_iter().filter_map(|number| Some((number, ways.get(number)?))) {
            let output = match self.ask(number, way.question).await {
                Ok(output) => output,
                Err(ToolError::Missing) => continue,
                // A search that hangs, at a dead network disk perhaps, is no sign of a maker that has nothing here.
                Err(_) if on_bus.is_empty() && !self.tools.get(number).is_some_and(Tool::is_known) => continue,
                Err(error) => {
                    findings.extend(self.finding(number, error));
                    return self.failed(findings);
                }
            };
            let Some(mut answer) = (way.parse)(&output) else {
                findings.push(Finding::error(why_not_understood(way.tool, &output)));
                continue;
            };
            // That another tool or question was not understood is of no interest to anybody then.
            self.good_way = number;
            self.add_more(number, way.more, &mut answer.cards).await;
            self.recall(&mut answer.cards);
            self.complete(&mut answer.cards).await;
            return self.survey_of(answer, on_bus);
        }
        if findings.is_empty() { self.without_tool(on_bus) } else { self.failed(findings) }
    }

    fn printed(&self) -> Vec<Printed> {
        self.tools.iter().flat_map(Tool::printed).collect()
    }
}

/// Which cards the driver does not keep ready while nobody uses them; None when it says so of no card.
fn persistence(cards: &[Card]) -> Option<Seen> {
    let is_told = cards.iter().any(|card| card.is_persistent.is_some());
    let off = cards.iter().filter(|card| card.is_persistent == Some(false)).map(|card| card.index).collect();
    is_told.then_some(Seen::PersistenceMode { off })
}

/// The tool finds nothing where the bus has cards with their driver.
fn missing(reading: &Reading, on_bus: &[&Accelerator]) -> Option<Finding> {
    let driven = on_bus.iter().filter(|found| found.driver == Driver::Loaded).count();
    let expected = u32::try_from(driven).ok().filter(|&expected| expected > 0 && reading.devices.is_empty())?;
    Some(Finding::error(Reason::DevicesMissing { expected, found: 0 }))
}

/// Why an answer is of no use.
fn why_not_understood(tool: &str, output: &ToolOutput) -> Reason {
    let (tool, printed) = (tool.to_owned(), output.all());
    if let Some(library) = text::missing_library(&printed) {
        return Reason::DriverLibraryMissing { tool, library };
    }
    let excerpt = text::excerpt(&printed);
    if output.is_success {
        Reason::ToolOutputUnknown { tool, output: excerpt }
    } else {
        Reason::ToolFailed { tool, exit_code: output.exit_code, output: excerpt }
    }
}
