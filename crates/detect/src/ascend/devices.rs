//! From the tool's chips to the devices that a worker reports.

use super::mapping::DeviceNumbers;
use super::table::{Chip, Memory, Table};
use crate::vendor::Finding;
use api::{DeviceCore, DeviceHealth, DeviceMemory, DeviceType, GpuDevice, Reason};
use std::collections::HashSet;

/// The devices in the order of their index, with an index of its own for each.
pub(super) fn devices(table: &Table, numbers: &DeviceNumbers) -> Vec<GpuDevice> {
    let indexes = indexes(&table.chips, numbers);
    let mut devices: Vec<GpuDevice> = table
        .chips
        .iter()
        .zip(indexes)
        .map(|(chip, index)| device(chip, index, table.driver_version.clone()))
        .collect();
    devices.sort_by_key(|device| device.index);
    devices
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
    let is_it =
        |chip: &&Chip| Some(chip.id.npu) == device.device_index && Some(chip.id.chip) == device.device_chip_index;
    table.chips.iter().find(is_it)?.health.clone()
}

/// The number of each chip: from the tool's list of numbers; where that is silent, from the table; where that is
/// silent too, from the chip's place in the table, which is right for cards of one chip in slots without a hole. No
/// two chips get the same one.
fn indexes(chips: &[Chip], numbers: &DeviceNumbers) -> Vec<u32> {
    let mut indexes = Indexes { of: vec![None; chips.len()], taken: HashSet::new() };
    indexes.give(chips.iter().map(|chip| numbers.get(&chip.id).copied()));
    indexes.give(chips.iter().map(|chip| chip.device));
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

fn device(chip: &Chip, index: u32, driver_version: Option<String>) -> GpuDevice {
    GpuDevice {
        index,
        device_index: Some(chip.id.npu),
        device_chip_index: Some(chip.id.chip),
        name: chip.name.clone().unwrap_or_else(|| "Ascend".to_owned()),
        vendor: "Huawei".to_owned(),
        kind: DeviceType::Npu,
        core: chip.utilization_percent.map(|percent| DeviceCore { total: None, utilization_rate: Some(percent) }),
        memory: chip.memory.map(memory),
        temperature: chip.temperature_c,
        health: chip.health.as_deref().map(health),
        power_w: chip.power_w,
        bus_id: chip.bus_id.clone(),
        driver_version,
        ..GpuDevice::default()
    }
}

fn memory(memory: Memory) -> DeviceMemory {
    let percent = |used: u64| (used as f64 * 100.0 / memory.total_bytes as f64).min(100.0);
    DeviceMemory {
        total: Some(memory.total_bytes),
        used: memory.used_bytes,
        utilization_rate: memory.used_bytes.map(percent),
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
