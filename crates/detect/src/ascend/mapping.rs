//! The list that `npu-smi info -m` prints: which chip of which card has which number for schedulers.

use super::table::ChipId;
use std::collections::HashMap;

/// The number of each chip that has one: its logic id, or its physical id where the tool gives no logic id.
pub(super) type DeviceNumbers = HashMap<ChipId, u32>;

/// Reads the list. None when there is no heading that this version knows. A management controller is listed as a
/// chip without a number and is left out.
pub(super) fn parse(text: &str) -> Option<DeviceNumbers> {
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

    fn read(&self, line: &str) -> Option<(ChipId, u32)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |position: usize| words.get(position)?.parse::<u32>().ok();
        let id = ChipId { npu: number(self.npu)?, chip: number(self.chip)? };
        let device = self.logic.and_then(number).or_else(|| self.physical.and_then(number))?;
        Some((id, device))
    }
}

/// The headings of a line in lower case. They hold single spaces and are parted by more than one.
fn headings(line: &str) -> Vec<String> {
    let parts = line.trim().split("  ").map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}
