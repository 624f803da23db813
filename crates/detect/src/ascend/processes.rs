//! The second table that `npu-smi info` prints: which process runs on which chip.

use super::table::ChipId;
use crate::bar_table::{is_row, row_cells};
use crate::{figures, text};
use api::DeviceProcess;

/// The line that parts the processes from the chips.
pub(super) fn is_heading(line: &str) -> bool {
    row_cells(line).is_some_and(|cells| cells.iter().any(|cell| cell.to_lowercase().starts_with("process id")))
}

/// Reads the lines from the heading on. None when there is no heading, or the table is cut off and may hold more.
pub(super) fn read(lines: &[&str]) -> Option<Vec<(ChipId, DeviceProcess)>> {
    let (heading, rows) = lines.split_first()?;
    if !is_heading(heading) || lines.last().is_none_or(|last| is_row(last)) {
        return None;
    }
    Some(rows.iter().filter_map(|row| process(row)).collect())
}

/// None for lines such as `No running processes found in NPU 0`.
fn process(row: &str) -> Option<(ChipId, DeviceProcess)> {
    let cells = row_cells(row)?;
    let &[place, pid, name, memory] = cells.as_slice() else { return None };
    let mut numbers = place.split_whitespace().map(figures::integer);
    let npu = u32::try_from(numbers.next()?.ok()?).ok()?;
    // Ascend 950 has one chip on each card and names no chip.
    let chip = numbers.next().map_or(Some(0), |chip| u32::try_from(chip.ok()?).ok())?;
    let process = DeviceProcess {
        pid: u32::try_from(figures::integer(pid).ok()?).ok()?,
        name: text::cell(name),
        memory_bytes: figures::mebibytes(memory).ok(),
    };
    Some((ChipId { npu, chip }, process))
}
