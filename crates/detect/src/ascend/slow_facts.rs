//! Facts that hardly ever change: boards, versions, network ports. Each question costs a process, so they are asked when
//! chips come or go and again after some minutes, a few at each look, and never hold up the readings.

use super::details::{self, Board};
use super::hccn::{Port, PortQuestion};
use super::installation::Installation;
use super::source::Program;
use super::table::{Chip, ChipId, Table, Teller};
use crate::files::{PatientReader, Root};
use crate::tool::ToolError;
use crate::vendor::Finding;
use api::Severity;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A link that goes down, an upgrade: known after this time at the latest.
const ASKED_AGAIN_AFTER: Duration = Duration::from_mins(10);
/// The same when a program gave no answer.
const TRIED_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// The power of a card that is in no table costs a process a card: it is asked for at this interval.
const POWER_ASKED_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// Who is asked.
pub(super) struct Sources {
    pub smi: Arc<Program>,
    pub hccn: Program,
    pub files: PatientReader,
    pub root: Root,
    /// Where the computing software is, if this process was told.
    pub runtime_directory: Option<PathBuf>,
}

/// What is known so far, and what is to be asked.
#[derive(Default)]
pub(super) struct SlowFacts {
    chips: BTreeSet<ChipId>,
    due: VecDeque<Question>,
    asked_at: Option<Instant>,
    pub installation: Installation,
    pub cards: BTreeMap<u32, Board>,
    pub boards: BTreeMap<ChipId, Board>,
    pub ai_cores: BTreeMap<ChipId, u32>,
    pub ports: BTreeMap<ChipId, Port>,
    /// Of cards whose power is in no table: what they take, when they were asked.
    power: BTreeMap<u32, (Option<f64>, Instant)>,
    /// What the unhealthy ones report, and at which word for their health they were asked.
    ailments: BTreeMap<ChipId, Ailment>,
    /// Why a program gave no answer, until it is asked again.
    failures: Vec<Finding>,
}

struct Ailment {
    health: String,
    codes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    Installation,
    /// Which health the chip has now.
    Ailment(ChipId, String),
    CardBoard(u32),
    ChipBoard(ChipId),
    Common(u32),
    Power(u32),
    /// The number is the port's name for its program.
    Port(ChipId, u32, PortQuestion),
}

impl Question {
    fn is_about_a_port(&self) -> bool {
        matches!(self, Self::Port(..))
    }

    fn is_for_smi(&self) -> bool {
        !matches!(self, Self::Port(..) | Self::Installation)
    }
}

impl SlowFacts {
    /// Asks what is due, as long as the budget lasts; one question may take a tool's deadline longer. `ports` are the
    /// numbers by which the ports' program knows the chips.
    pub(super) async fn learn(&mut self, table: &Table, ports: &[(ChipId, u32)], sources: &Sources, budget: Duration) {
        let begin = Instant::now();
        self.plan(table, ports, begin);
        while let Some(question) = self.due.front().cloned() {
            if begin.elapsed() >= budget {
                return;
            }
            self.ask(&question, sources).await;
            // A question whose program is gone or hangs has been taken off the list with all others for it.
            if self.due.front() == Some(&question) {
                self.due.pop_front();
            }
        }
    }

    pub(super) fn failures(&self) -> &[Finding] {
        &self.failures
    }

    pub(super) fn error_codes(&self, id: ChipId) -> Vec<String> {
        self.ailments.get(&id).map(|ailment| ailment.codes.clone()).unwrap_or_default()
    }

    /// Whether the card has one chip only.
    pub(super) fn is_alone(&self, id: ChipId) -> bool {
        self.chips.iter().filter(|other| other.npu == id.npu).count() <= 1
    }

    /// What a card takes, in watts, where the table does not tell.
    pub(super) fn card_power_w(&self, npu: u32) -> Option<f64> {
        self.power.get(&npu)?.0
    }

    fn plan(&mut self, table: &Table, ports: &[(ChipId, u32)], now: Instant) {
        let chips: BTreeSet<ChipId> = table.chips.iter().map(|chip| chip.id).collect();
        let have_changed = chips != self.chips;
        if have_changed {
            // What is known of those that stay counts until they are asked again.
            self.cards.retain(|npu, _| chips.iter().any(|id| id.npu == *npu));
            self.boards.retain(|id, _| chips.contains(id));
            self.ai_cores.retain(|id, _| chips.contains(id));
            self.ports.retain(|id, _| chips.contains(id));
            (self.chips, self.asked_at) = (chips, None);
            self.due.clear();
        }
        let pause = if self.failures.is_empty() { ASKED_AGAIN_AFTER } else { TRIED_AGAIN_AFTER };
        let is_time = self.asked_at.is_none_or(|asked_at| now.duration_since(asked_at) >= pause);
        if is_time && self.due.is_empty() {
            self.asked_at = Some(now);
            self.failures.clear();
            self.ailments.clear();
            self.due = self.round(ports, have_changed);
        }
        self.take(&table.chips);
        if table.told_by == Teller::Tool {
            self.plan_power(&table.chips, now);
            self.plan_ailments(&table.chips);
        } else {
            self.due.retain(|question| !question.is_for_smi());
        }
    }

    /// What the table itself tells of this.
    fn take(&mut self, chips: &[Chip]) {
        for (chip, extra) in chips.iter().filter_map(|chip| Some((chip, chip.extra.as_ref()?))) {
            self.boards.insert(chip.id, extra.board.clone());
            self.ai_cores.extend(extra.ai_cores.map(|cores| (chip.id, cores)));
            let health = chip.health.clone().unwrap_or_default();
            self.ailments.insert(chip.id, Ailment { health, codes: extra.error_codes.clone() });
        }
    }

    /// On Atlas 300I cards a controller measures the power of the card, and the table has none.
    fn plan_power(&mut self, chips: &[Chip], now: Instant) {
        let silent = |npu: u32| chips.iter().filter(|chip| chip.id.npu == npu).all(|chip| chip.power_w.is_err());
        let cards: BTreeSet<u32> = chips.iter().map(|chip| chip.id.npu).filter(|&npu| silent(npu)).collect();
        self.power.retain(|npu, _| cards.contains(npu));
        for npu in cards {
            let is_new =
                |&(_, asked_at): &(Option<f64>, Instant)| now.duration_since(asked_at) < POWER_ASKED_AGAIN_AFTER;
            let is_known = self.power.get(&npu).is_some_and(is_new);
            if !is_known && !self.due.contains(&Question::Power(npu)) {
                self.due.push_front(Question::Power(npu));
            }
        }
    }

    /// Boards do not change as long as the same chips are there, so those that answered are not asked again.
    fn round(&self, ports: &[(ChipId, u32)], are_new: bool) -> VecDeque<Question> {
        let cards: BTreeSet<u32> = self.chips.iter().map(|id| id.npu).collect();
        let boards =
            cards.iter().filter(|npu| are_new || !self.cards.contains_key(npu)).map(|&npu| Question::CardBoard(npu));
        let chips =
            self.chips.iter().filter(|id| are_new || !self.boards.contains_key(id)).map(|&id| Question::ChipBoard(id));
        let has_cores = |npu: u32| self.ai_cores.keys().any(|id| id.npu == npu);
        let common = cards.iter().filter(|&&npu| are_new || !has_cores(npu)).map(|&npu| Question::Common(npu));
        let ports = ports
            .iter()
            .flat_map(|&(id, number)| PortQuestion::ALL.map(|question| Question::Port(id, number, question)));
        std::iter::once(Question::Installation).chain(boards).chain(chips).chain(common).chain(ports).collect()
    }

    /// What ails a chip is asked first of all, once for each word that it says.
    fn plan_ailments(&mut self, chips: &[Chip]) {
        for chip in chips {
            let health = chip.health.as_deref().unwrap_or("OK");
            if health.eq_ignore_ascii_case("OK") {
                self.ailments.remove(&chip.id);
                continue;
            }
            let question = Question::Ailment(chip.id, health.to_owned());
            let is_known = self.ailments.get(&chip.id).is_some_and(|ailment| ailment.health == health);
            if !is_known && !self.due.contains(&question) {
                self.due.push_front(question);
            }
        }
    }

    async fn ask(&mut self, question: &Question, sources: &Sources) {
        let failure = match question {
            Question::Installation => {
                let (root, runtime) = (sources.root.clone(), sources.runtime_directory.clone());
                let look = move || Installation::look(&root, runtime.as_deref());
                if let Some(installation) = sources.files.read(look).await {
                    self.installation = installation;
                }
                return;
            }
            Question::Port(id, number, asked) => {
                self.ask_port(*id, *number, *asked, &sources.hccn).await.map_err(|error| sources.hccn.finding(error))
            }
            Question::Ailment(id, health) => {
                self.ask_ailment(*id, health, &sources.smi).await.map_err(|error| sources.smi.finding(error))
            }
            Question::CardBoard(_) | Question::ChipBoard(_) | Question::Common(_) | Question::Power(_) => {
                self.ask_board(question, &sources.smi).await.map_err(|error| sources.smi.finding(error))
            }
        };
        if let Err(finding) = failure {
            // One that hangs at one question hangs at the next.
            self.due.retain(
                |other| if question.is_about_a_port() { !other.is_about_a_port() } else { !other.is_for_smi() },
            );
            self.failures.push(Finding { severity: Severity::Warning, ..finding });
        }
    }

    async fn ask_board(&mut self, question: &Question, smi: &Program) -> Result<(), ToolError> {
        match question {
            Question::CardBoard(npu) => {
                let output = smi.ask(&["info", "-t", "board", "-i", &npu.to_string()]).await?;
                self.cards.extend(details::board(&output.stdout).map(|board| (*npu, board)));
            }
            Question::ChipBoard(id) => {
                let (npu, chip) = (id.npu.to_string(), id.chip.to_string());
                let output = smi.ask(&["info", "-t", "board", "-i", &npu, "-c", &chip]).await?;
                self.boards.extend(details::board(&output.stdout).map(|board| (*id, board)));
            }
            Question::Common(npu) => {
                let output = smi.ask(&["info", "-t", "common", "-i", &npu.to_string()]).await?;
                let answer = details::readings(&output.stdout);
                for &id in self.chips.iter().filter(|id| id.npu == *npu) {
                    let cores = details::of_chip(&answer, id).find_map(|readings| readings.ai_cores);
                    self.ai_cores.extend(cores.map(|cores| (id, cores)));
                }
            }
            Question::Power(npu) => {
                // Noted before it is asked: an answer that does not come is waited for no sooner than others.
                let asked_at = Instant::now();
                self.power.insert(*npu, (None, asked_at));
                let output = smi.ask(&["info", "-t", "power", "-i", &npu.to_string()]).await?;
                self.power.insert(*npu, (details::card_power_w(&output.stdout), asked_at));
            }
            Question::Installation | Question::Ailment(..) | Question::Port(..) => {}
        }
        Ok(())
    }

    async fn ask_ailment(&mut self, id: ChipId, health: &str, smi: &Program) -> Result<(), ToolError> {
        // Noted before it is asked, as with the power.
        self.ailments.insert(id, Ailment { health: health.to_owned(), codes: Vec::new() });
        let (npu, chip) = (id.npu.to_string(), id.chip.to_string());
        let output = smi.ask(&["info", "-t", "health", "-i", &npu, "-c", &chip]).await?;
        let answer = details::readings(&output.stdout);
        // An answer about one chip need not name it.
        let codes = details::of_chip(&answer, id).flat_map(|readings| readings.error_codes.clone()).collect();
        self.ailments.insert(id, Ailment { health: health.to_owned(), codes });
        Ok(())
    }

    /// Listing without ports say so at the first question; without the program there is nobody to ask.
    async fn ask_port(
        &mut self,
        id: ChipId,
        number: u32,
        asked: PortQuestion,
        hccn: &Program,
    ) -> Result<(), ToolError> {
        let output = match hccn.ask(&["-i", &number.to_string(), asked.argument(), "-g"]).await {
            Err(ToolError::Missing) => {
                self.due.retain(|other| !other.is_about_a_port());
                return Ok(());
            }
            output => output?,
        };
        let answer = Port::parse(&output.stdout);
        if asked == PortQuestion::Link && answer.tells_nothing() {
            self.ports.remove(&id);
            self.due.retain(|other| !matches!(other, Question::Port(of, ..) if *of == id));
            return Ok(());
        }
        let known = self.ports.remove(&id).unwrap_or_default();
        self.ports.insert(id, known.updated(answer));
        Ok(())
    }
}
