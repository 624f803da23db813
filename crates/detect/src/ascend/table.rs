//! The table that `npu-smi info` prints: two lines for each chip under a heading of two lines, then perhaps a second
//! table with processes. Which values there are, and where, is told by the words of the heading: they differ between
//! chips and between versions of the driver. Positions of characters say nothing.

use super::cells::{Field, Value, column_values, heading_fields};
use super::details::Board;
use super::mapping::NumberList;
use super::processes;
use crate::bar_table::{is_border, is_row, row_cells};
use crate::figures::{self, Figure, MIB_BYTES};
use crate::pci;
use api::{AbsentWhy, DeviceProcess, MemoryKind, PowerScope};
use std::path::{Path, PathBuf};

/// All chips, as one `npu-smi info` prints them, or as another way of reading tells them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    /// The driver's version, from the line above the heading.
    pub driver_version: Option<String>,
    /// In the order of the table.
    pub chips: Vec<Chip>,
    /// Rows that ought to be a chip and do not say which.
    pub unreadable: Vec<String>,
    /// The end of the table is missing: there may be more chips.
    pub is_cut_off: bool,
    /// Which process runs on which chip; None when there is no whole table of processes.
    pub processes: Option<Vec<(ChipId, DeviceProcess)>>,
    /// Of all chips, where whoever told them knows; else the tool has a list.
    pub numbers: Option<NumberList>,
    pub told_by: Teller,
}

/// Who told a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Teller {
    /// The vendor's tool.
    Tool,
    /// The driver's library in this file, which the tool gets all its answers from: what it does not tell, the tool
    /// does not tell either.
    Library(PathBuf),
}

impl Table {
    /// The library's file, where that told it.
    pub(super) fn library(&self) -> Option<&Path> {
        match &self.told_by {
            Teller::Library(file) => Some(file),
            Teller::Tool => None,
        }
    }
}

/// One chip. A reading that the tool does not give is absent with the reason.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chip {
    pub id: ChipId,
    /// For programs, in layouts that have it.
    pub logic_id: Option<u32>,
    /// On the host, in layouts that have it.
    pub physical_id: Option<u32>,
    pub name: Option<String>,
    /// The tool's word.
    pub health: Figure<String>,
    /// In the kernel's form.
    pub bus_id: Option<String>,
    pub power_w: Figure<f64>,
    pub temperature_c: Figure<f64>,
    pub utilization_percent: Figure<f64>,
    pub memory: Figure<Memory>,
    /// Percent of the memory that is used, where the bytes are not told.
    pub memory_percent: Option<f64>,
    /// What the library tells along with the readings, and the tool in answers of their own.
    pub extra: Option<Extra>,
}

/// What hardly ever changes, and what ails the chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extra {
    pub board: Board,
    pub ai_cores: Option<u32>,
    pub error_codes: Vec<String>,
    /// What the power is measured of, where it is not the chip.
    pub power_scope: Option<PowerScope>,
}

/// How the tool names a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ChipId {
    /// The card.
    pub npu: u32,
    /// The chip on it.
    pub chip: u32,
}

/// A chip's memory; the total is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub kind: MemoryKind,
    pub used_bytes: Figure<u64>,
    pub total_bytes: u64,
}

/// Reads the table. None when there is no heading that this version knows.
pub(super) fn parse(text: &str) -> Option<Table> {
    // Other programs' log lines come between the rows now and then.
    let lines: Vec<&str> = text.lines().filter(|line| is_row(line) || is_border(line)).collect();
    let (above, layout, below) = split_at_heading(&lines)?;
    let end = below.iter().position(|line| processes::is_heading(line)).unwrap_or(below.len());
    let rows = below.get(..end)?;
    let (chips, unreadable) = read_chips(&layout, rows);
    let processes = below.get(end..).and_then(processes::read);
    Some(Table {
        driver_version: driver_version(above),
        chips,
        unreadable,
        is_cut_off: is_cut_off(rows),
        processes,
        numbers: None,
        told_by: Teller::Tool,
    })
}

/// The values under each column, for the two lines of a chip.
struct Layout {
    first: Vec<Vec<Field>>,
    second: Vec<Vec<Field>>,
}

impl Layout {
    /// None unless the two lines are a heading of chips; the process table has no health and no bus id.
    fn from_headings(first: &[&str], second: &[&str]) -> Option<Self> {
        let fields = |cells: &[&str]| cells.iter().map(|cell| heading_fields(cell)).collect::<Vec<_>>();
        let layout = Self { first: fields(first), second: fields(second) };
        let has = |columns: &[Vec<Field>], field| columns.iter().flatten().any(|&found| found == field);
        let is_known =
            has(&layout.first, Field::Npu) && has(&layout.first, Field::Health) && has(&layout.second, Field::BusId);
        is_known.then_some(layout)
    }

    /// Ascend 950 has one chip on each card and no column for it.
    fn has_chip_numbers(&self) -> bool {
        self.second.iter().flatten().any(|&field| field == Field::Chip)
    }
}

/// The lines above the heading, the heading, the lines below it.
fn split_at_heading<'a>(lines: &'a [&'a str]) -> Option<(&'a [&'a str], Layout, &'a [&'a str])> {
    let heading_at = |at: usize| {
        let first = row_cells(lines.get(at)?)?;
        let second = row_cells(lines.get(at + 1)?)?;
        Some((lines.get(..at)?, Layout::from_headings(&first, &second)?, lines.get(at + 2..)?))
    };
    (0..lines.len()).find_map(heading_at)
}

/// The version in a line such as `| npu-smi 25.5.2    Version: 25.5.2    |`.
fn driver_version(above: &[&str]) -> Option<String> {
    let after =
        above.iter().filter_map(|line| row_cells(line)?.first()?.split_once("Version:").map(|(_, after)| after));
    after.flat_map(str::split_whitespace).find(|word| !super::cells::is_unknown(word)).map(crate::text::cell)
}

/// The chips, and the rows that are none. Borders part the cards, and in some layouts the chips of a card.
fn read_chips(layout: &Layout, lines: &[&str]) -> (Vec<Chip>, Vec<String>) {
    let mut chips = Vec::new();
    let mut unreadable = Vec::new();
    for block in lines.split(|line| is_border(line)) {
        for pair in block.chunks(2) {
            match read_chip(layout, pair, &chips) {
                Some(chip) => chips.push(chip),
                None => unreadable.extend(pair.iter().map(|&row| row.to_owned())),
            }
        }
    }
    (chips, unreadable)
}

/// A whole table ends with a border.
fn is_cut_off(lines: &[&str]) -> bool {
    lines.last().is_none_or(|last| is_row(last))
}

/// None when a line is missing or cut off, or does not say which chip it is.
fn read_chip(layout: &Layout, rows: &[&str], before: &[Chip]) -> Option<Chip> {
    let &[first, second] = rows else { return None };
    let first = Row::read(&layout.first, first)?;
    let second = Row::read(&layout.second, second)?;
    let npu = first.integer(Field::Npu)?;
    let chip = if layout.has_chip_numbers() {
        second.integer(Field::Chip)?
    } else {
        u32::try_from(before.iter().filter(|chip| chip.id.npu == npu).count()).ok()?
    };
    let id = ChipId { npu, chip };
    if before.iter().any(|chip| chip.id == id) {
        return None;
    }
    Some(Chip {
        id,
        logic_id: second.integer(Field::LogicId),
        physical_id: second.integer(Field::PhysicalId),
        name: first.word(Field::Name).map(str::to_owned).ok(),
        health: first.word(Field::Health).map(str::to_owned),
        bus_id: second.word(Field::BusId).ok().and_then(pci::address),
        power_w: first.word(Field::PowerW).and_then(figures::watts),
        temperature_c: first.word(Field::TemperatureC).and_then(figures::celsius),
        utilization_percent: second.word(Field::UtilizationPercent).and_then(figures::percent),
        memory: memory(&second),
        memory_percent: None,
        extra: None,
    })
}

/// The values of one line.
struct Row<'a> {
    columns: &'a [Vec<Field>],
    values: Vec<(Field, Value)>,
}

impl<'a> Row<'a> {
    /// None when the line has not the heading's number of cells.
    fn read(columns: &'a [Vec<Field>], line: &str) -> Option<Self> {
        let cells = row_cells(line)?;
        if cells.len() != columns.len() {
            return None;
        }
        let values = columns.iter().zip(cells).flat_map(|(fields, cell)| column_values(fields, cell));
        Some(Self { columns, values: values.collect() })
    }

    fn value(&self, wanted: Field) -> Figure<&Value> {
        if let Some((_, value)) = self.values.iter().find(|(field, _)| *field == wanted) {
            return Ok(value);
        }
        let is_in_layout = self.columns.iter().flatten().any(|&field| field == wanted);
        Err(if is_in_layout { AbsentWhy::Unreadable } else { AbsentWhy::NotTold })
    }

    fn word(&self, field: Field) -> Figure<&str> {
        match self.value(field)? {
            Value::Word(word) => Ok(word),
            Value::Unknown => Err(AbsentWhy::NotAvailable),
            Value::Pair(..) => Err(AbsentWhy::Unreadable),
        }
    }

    fn integer(&self, field: Field) -> Option<u32> {
        let number = self.word(field).and_then(figures::integer).ok()?;
        u32::try_from(number).ok()
    }
}

/// A chip with high-bandwidth memory shows `0 / 0` for DDR or, on Ascend 910A, the DDR beside it; without, its models
/// work in DDR. When the tool could not tell the HBM this time, the DDR of a 910A would be a wrong answer.
fn memory(row: &Row) -> Figure<Memory> {
    let hbm = row.value(Field::HbmMib);
    match hbm {
        Err(AbsentWhy::NotTold) | Ok(Value::Pair(_, Some(0))) => memory_of(MemoryKind::Ddr, row.value(Field::DdrMib)?),
        Err(why) => Err(why),
        Ok(value) => memory_of(MemoryKind::Hbm, value),
    }
}

fn memory_of(kind: MemoryKind, value: &Value) -> Figure<Memory> {
    let (used_mib, total_mib) = match value {
        &Value::Pair(used, total) => (used, total.ok_or(AbsentWhy::NotAvailable)?),
        Value::Unknown => return Err(AbsentWhy::NotAvailable),
        Value::Word(_) => return Err(AbsentWhy::Unreadable),
    };
    if total_mib == 0 {
        return Err(AbsentWhy::NotAvailable);
    }
    let total_bytes = total_mib.checked_mul(MIB_BYTES).ok_or(AbsentWhy::Unreadable)?;
    let used_bytes = used_mib.and_then(|used| used.checked_mul(MIB_BYTES)).ok_or(AbsentWhy::NotAvailable);
    Ok(Memory { kind, used_bytes, total_bytes })
}
