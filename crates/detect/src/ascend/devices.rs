//! From the tool's chips to the devices that a worker reports.

use super::mapping::NumberList;
use super::nodes::Nodes;
use super::slow_facts::SlowFacts;
use super::table::{Chip, ChipId, Memory, Table};
use crate::figures::Absences;
use crate::vendor::{Finding, Maker};
use api::{
    AbsentWhy, DeviceCore, DeviceHealth, DeviceMemory, DeviceProcess, DeviceType, GpuDevice, PowerScope, ReadingKind,
    Reason,
};
use std::collections::HashSet;

/// The devices in the order of their index, with an index of its own for each.
pub(super) fn devices(table: &Table, numbers: &NumberList, nodes: &Nodes) -> Vec<GpuDevice> {
    let mut indexed: Vec<(u32, &Chip)> = indexes(&table.chips, numbers).into_iter().zip(&table.chips).collect();
    indexed.sort_by_key(|(index, _)| *index);
    let places = indexed.iter().enumerate();
    let device = |(place, &(index, chip)): (usize, &(u32, &Chip))| {
        let listed = numbers.get(&chip.id).and_then(|numbers| numbers.physical).or(chip.physical_id);
        let physical = listed.or_else(|| by_node(place, table.chips.len(), nodes));
        GpuDevice {
            physical_index: physical,
            node: physical.and_then(|number| nodes.chip(number)),
            power_scope: chip.power_w.ok().map(|_| power_scope(chip, table)),
            processes: table.processes.as_deref().map(|processes| processes_of(chip.id, processes)),
            ..device(chip, index, table.driver_version.clone(), nodes.has_parts)
        }
    };
    places.map(device).collect()
}

/// Adds what hardly ever changes.
pub(super) fn complete(device: &mut GpuDevice, id: ChipId, facts: &SlowFacts) {
    let (card, board) = (facts.cards.get(&id.npu), facts.boards.get(&id));
    // A card with one chip tells of that chip.
    let of_chip = || board.into_iter().chain(card.filter(|_| facts.is_alone(id)));
    let of_any = || board.into_iter().chain(card);
    if device.name.is_empty() {
        device.name = of_any().find_map(|board| board.chip_name.clone()).unwrap_or_else(|| "Ascend".to_owned());
    }
    device.uuid = of_chip().find_map(|board| board.die.clone());
    device.bus_id = device.bus_id.take().or_else(|| of_chip().find_map(|board| board.bus_id.clone()));
    device.driver_version =
        device.driver_version.take().or_else(|| of_any().find_map(|board| board.driver_version.clone()));
    device.firmware_version = of_any().find_map(|board| board.firmware_version.clone());
    device.runtime_version.clone_from(&facts.installation.runtime_version);
    device.network = facts.ports.get(&id).and_then(super::hccn::Port::network).map(Box::new);
    device.error_codes = facts.error_codes(id);
    set_card_power(device, id, facts);
    if let Some(&cores) = facts.ai_cores.get(&id) {
        device.core.get_or_insert_default().total = Some(cores);
    }
}

/// The power of a card stands with its first chip.
fn set_card_power(device: &mut GpuDevice, id: ChipId, facts: &SlowFacts) {
    if id.chip != 0 || device.power_w.is_some() {
        return;
    }
    if let Some(watts) = facts.card_power_w(id.npu) {
        (device.power_w, device.power_scope) = (Some(watts), Some(PowerScope::Card));
        device.absent.retain(|absent| absent.reading != ReadingKind::Power);
    }
}

/// The chip that a device stands for.
pub(super) fn chip_of(device: &GpuDevice) -> Option<ChipId> {
    Some(ChipId { npu: device.device_index?, chip: device.device_chip_index? })
}

/// One finding for each chip that its tool calls unhealthy. Health that the tool cannot tell is no bad health.
pub(super) fn unhealthy(table: &Table, devices: &[GpuDevice]) -> Vec<Finding> {
    let finding = |device: &GpuDevice| {
        let reason = || Reason::DeviceUnhealthy {
            index: device.index,
            name: device.name.clone(),
            health: word_for_health(table, device).unwrap_or_default(),
        };
        match device.health? {
            DeviceHealth::Warning => Some(Finding::warning(reason())),
            DeviceHealth::Critical => Some(Finding::error(reason())),
            DeviceHealth::Ok | DeviceHealth::Unknown => None,
        }
    };
    devices.iter().filter_map(finding).collect()
}

fn word_for_health(table: &Table, device: &GpuDevice) -> Option<String> {
    let id = chip_of(device)?;
    table.chips.iter().find(|chip| chip.id == id)?.health.clone().ok()
}

/// The number of each chip: from the tool's list of numbers; where that is silent, from the table; where that is
/// silent too, from the chip's place in the table, which is right for cards of one chip in slots without a hole. No
/// two chips get the same one.
fn indexes(chips: &[Chip], numbers: &NumberList) -> Vec<u32> {
    let mut indexes = Indexes { of: vec![None; chips.len()], taken: HashSet::new() };
    let listed = |chip: &Chip| numbers.get(&chip.id).copied();
    indexes.give(chips.iter().map(|chip| listed(chip).and_then(|numbers| numbers.logic.or(numbers.physical))));
    indexes.give(chips.iter().map(|chip| chip.logic_id.or(chip.physical_id)));
    indexes.give((0..).map(Some));
    indexes.give_the_rest_what_is_free()
}

struct Indexes {
    of: Vec<Option<u32>>,
    taken: HashSet<u32>,
}

impl Indexes {
    /// Offers each chip that has no index yet the number at its place.
    fn give(&mut self, numbers: impl Iterator<Item = Option<u32>>) {
        for (index, number) in self.of.iter_mut().zip(numbers) {
            if index.is_none() {
                *index = number.filter(|&number| self.taken.insert(number));
            }
        }
    }

    fn give_the_rest_what_is_free(self) -> Vec<u32> {
        let mut free = (0..).filter(|number| !self.taken.contains(number));
        self.of.into_iter().filter_map(|index| index.or_else(|| free.next())).collect()
    }
}

/// The driver numbers the chips that it finds here in the order of their numbers on the host, so with a node for each
/// of them the places tell which is which.
fn by_node(place: usize, chips: usize, nodes: &Nodes) -> Option<u32> {
    if nodes.chips.len() != chips {
        return None;
    }
    nodes.chips.get(place).map(|(number, _)| *number)
}

/// Where a card has several chips and the tool prints the power with one of them, it is that of the card.
fn power_scope(chip: &Chip, table: &Table) -> PowerScope {
    if let Some(told) = chip.extra.as_ref().and_then(|extra| extra.power_scope) {
        return told;
    }
    let has_chip_without = table.chips.iter().any(|other| other.id.npu == chip.id.npu && other.power_w.is_err());
    if has_chip_without { PowerScope::Card } else { PowerScope::Device }
}

fn processes_of(id: ChipId, processes: &[(ChipId, DeviceProcess)]) -> Vec<DeviceProcess> {
    processes.iter().filter(|(of, _)| *of == id).map(|(_, process)| process.clone()).collect()
}

fn device(chip: &Chip, index: u32, driver_version: Option<String>, may_be_part: bool) -> GpuDevice {
    let mut absences = Absences::default();
    // The tool prints 0 for the use of a part of a chip, whatever it does.
    let is_silent = may_be_part && chip.utilization_percent == Ok(0.0);
    let utilization = if is_silent { Err(AbsentWhy::NotSupported) } else { chip.utilization_percent };
    let utilization = absences.take(ReadingKind::Utilization, utilization);
    let memory = absences.take(ReadingKind::Memory, chip.memory);
    GpuDevice {
        index,
        device_index: Some(chip.id.npu),
        device_chip_index: Some(chip.id.chip),
        name: chip.name.clone().unwrap_or_default(),
        vendor: Maker::Huawei.name().to_owned(),
        kind: DeviceType::Npu,
        core: utilization.map(|percent| DeviceCore { total: None, utilization_rate: Some(percent) }),
        memory: memory.map(|memory| device_memory(memory, chip.memory_percent, &mut absences)),
        temperature: absences.take(ReadingKind::Temperature, chip.temperature_c),
        power_w: absences.take(ReadingKind::Power, chip.power_w),
        health: absences.take(ReadingKind::Health, chip.health.as_deref().map(health).map_err(|&why| why)),
        bus_id: chip.bus_id.clone(),
        driver_version,
        absent: absences.into_list(),
        ..GpuDevice::default()
    }
}

fn device_memory(memory: Memory, percent: Option<f64>, absences: &mut Absences) -> DeviceMemory {
    let used = absences.take(ReadingKind::MemoryUsed, memory.used_bytes);
    let share = |used: u64| (used as f64 * 100.0 / memory.total_bytes as f64).min(100.0);
    DeviceMemory {
        total: Some(memory.total_bytes),
        used,
        utilization_rate: used.map(share).or(percent),
        is_unified_memory: Some(false),
        allocated: None,
        kind: Some(memory.kind),
    }
}

fn health(word: &str) -> DeviceHealth {
    match word.to_ascii_lowercase().as_str() {
        "ok" => DeviceHealth::Ok,
        "warning" => DeviceHealth::Warning,
        "alarm" | "critical" | "error" => DeviceHealth::Critical,
        _ => DeviceHealth::Unknown,
    }
}
