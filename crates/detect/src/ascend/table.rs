//! The table that `npu-smi info` prints: two lines for each chip under a heading of two lines, then perhaps a second
//! table with processes. Which values there are, and where, is told by the words of the heading: they differ between
//! chips and between versions of the driver. Positions of characters say nothing.

use super::cells::{Field, Value, column_values, heading_fields, is_border, row_cells};
use api::MemoryKind;

/// The tool's `MB` are these many bytes: a chip sold with 64 GiB shows 65536.
const MIB_BYTES: u64 = 1024 * 1024;

/// What one `npu-smi info` printed.
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
}

/// One chip. A reading that the tool does not give is absent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chip {
    pub id: ChipId,
    /// The number in `/dev/davinciN`, in layouts that have it.
    pub device: Option<u32>,
    pub name: Option<String>,
    /// The tool's word.
    pub health: Option<String>,
    /// Lower case.
    pub bus_id: Option<String>,
    /// Of the whole card; the tool gives it with the card's first chip.
    pub power_w: Option<f64>,
    pub temperature_c: Option<f64>,
    pub utilization_percent: Option<f64>,
    pub memory: Option<Memory>,
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
    pub used_bytes: Option<u64>,
    pub total_bytes: u64,
}

/// Reads the table. None when there is no heading that this version knows.
pub(super) fn parse(text: &str) -> Option<Table> {
    // Other programs' log lines come between the rows now and then.
    let lines: Vec<&str> = text.lines().filter(|line| is_row(line) || is_border(line)).collect();
    let (above, layout, below) = split_at_heading(&lines)?;
    let end = below.iter().position(|line| is_process_heading(line)).unwrap_or(below.len());
    let rows = below.get(..end)?;
    let (chips, unreadable) = read_chips(&layout, rows);
    Some(Table { driver_version: driver_version(above), chips, unreadable, is_cut_off: is_cut_off(rows) })
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

fn is_process_heading(line: &str) -> bool {
    row_cells(line).is_some_and(|cells| cells.iter().any(|cell| cell.to_lowercase().starts_with("process id")))
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

fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
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
        device: second.integer(Field::Device),
        name: first.word(Field::Name).map(str::to_owned),
        health: first.word(Field::Health).map(str::to_owned),
        bus_id: second.word(Field::BusId).and_then(pci_address),
        power_w: first.number(Field::PowerW).filter(|&watts| watts >= 0.0),
        temperature_c: first.number(Field::TemperatureC),
        utilization_percent: second.number(Field::UtilizationPercent).filter(|percent| (0.0..=100.0).contains(percent)),
        memory: memory(&second),
    })
}

/// The values of one line.
struct Row(Vec<(Field, Value)>);

impl Row {
    /// None when the line has not the heading's number of cells.
    fn read(columns: &[Vec<Field>], line: &str) -> Option<Self> {
        let cells = row_cells(line)?;
        if cells.len() != columns.len() {
            return None;
        }
        let values = columns.iter().zip(cells).flat_map(|(fields, cell)| column_values(fields, cell));
        Some(Self(values.collect()))
    }

    fn value(&self, wanted: Field) -> Option<&Value> {
        self.0.iter().find(|(field, _)| *field == wanted).map(|(_, value)| value)
    }

    fn word(&self, field: Field) -> Option<&str> {
        match self.value(field)? {
            Value::Word(word) => Some(word),
            Value::Unknown | Value::Pair(..) => None,
        }
    }

    fn integer(&self, field: Field) -> Option<u32> {
        self.word(field)?.parse().ok()
    }

    /// Rust's own parser takes `inf` and `nan` for numbers, which no reading is.
    fn number(&self, field: Field) -> Option<f64> {
        self.word(field)?.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

/// A chip with high-bandwidth memory shows `0 / 0` for DDR or, on Ascend 910A, the DDR beside it; without, its models
/// work in DDR. When the tool could not tell the HBM this time, the DDR of a 910A would be a wrong answer.
fn memory(row: &Row) -> Option<Memory> {
    let hbm = row.value(Field::HbmMib);
    if let Some(memory) = hbm.and_then(|value| memory_of(MemoryKind::Hbm, value)) {
        return Some(memory);
    }
    match hbm {
        None | Some(Value::Pair(_, Some(0))) => memory_of(MemoryKind::Ddr, row.value(Field::DdrMib)?),
        Some(_) => None,
    }
}

fn memory_of(kind: MemoryKind, value: &Value) -> Option<Memory> {
    let &Value::Pair(used_mib, Some(total_mib)) = value else { return None };
    let total_bytes = total_mib.checked_mul(MIB_BYTES).filter(|&bytes| bytes > 0)?;
    Some(Memory { kind, used_bytes: used_mib.and_then(|used| used.checked_mul(MIB_BYTES)), total_bytes })
}

fn pci_address(word: &str) -> Option<String> {
    let is_address = word.contains(':') && word.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
    is_address.then(|| word.to_ascii_lowercase())
}
