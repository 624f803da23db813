//! The list that `npu-smi info -m` prints: which chip of which card has which number for programs.

use super::table::ChipId;
use std::collections::HashMap;

/// The numbers of each chip that has one.
pub(super) type NumberList = HashMap<ChipId, ChipNumbers>;

/// A chip's numbers; at least one is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChipNumbers {
    /// For programs in this host or container.
    pub logic: Option<u32>,
    /// On the host.
    pub physical: Option<u32>,
}

/// Reads the list. None when there is no heading that this version knows. A management controller is listed as a
/// chip without a number and is left out.
pub(super) fn parse(text: &str) -> Option<NumberList> {
    let mut lines = text.lines();
    let columns = lines.find_map(Columns::from_heading)?;
    Some(lines.filter_map(|line| columns.read(line)).collect())
}

/// Where each number stands among the words of a row. The name is the last column and may hold spaces.
struct Columns {
    npu: usize,
    chip: usize,
    logic: Option<usize>,
    physical: Option<usize>,
}

impl Columns {
    fn from_heading(line: &str) -> Option<Self> {
        let headings = headings(line);
        let position = |wanted: &str| headings.iter().position(|heading| heading == wanted);
        let columns = Self {
            npu: position("npu id")?,
            chip: position("chip id")?,
            logic: position("chip logic id"),
            physical: position("chip phy-id"),
        };
        (columns.logic.is_some() || columns.physical.is_some()).then_some(columns)
    }

    fn read(&self, line: &str) -> Option<(ChipId, ChipNumbers)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |position: usize| words.get(position)?.parse::<u32>().ok();
        let id = ChipId { npu: number(self.npu)?, chip: number(self.chip)? };
        let numbers = ChipNumbers { logic: self.logic.and_then(number), physical: self.physical.and_then(number) };
        (numbers.logic.is_some() || numbers.physical.is_some()).then_some((id, numbers))
    }
}

/// The headings of a line in lower case. They hold single spaces and are parted by more than one.
fn headings(line: &str) -> Vec<String> {
    let parts = line.trim().split("  ").map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}
