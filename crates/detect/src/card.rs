//! What vendors' tools tell of one card, in the shape that most of them share.

use crate::figures::{Absences, Figure};
use crate::vendor::{Finding, Maker};
use api::{
    AbsentWhy, DeviceCore, DeviceHealth, DeviceMemory, DevicePartition, DeviceProcess, DeviceType, GpuDevice,
    PowerScope, ReadingKind, Reason,
};

/// One card. What a tool has no place for is [`AbsentWhy::NotTold`], as in [`Card::new`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Card {
    pub index: u32,
    pub name: String,
    pub uuid: Option<String>,
    /// In the kernel's form.
    pub bus_id: Option<String>,
    pub driver_version: Option<String>,
    pub firmware_version: Option<String>,
    pub runtime_version: Option<String>,
    pub utilization_percent: Figure<f64>,
    pub memory_total_bytes: Figure<u64>,
    pub memory_used_bytes: Figure<u64>,
    pub is_unified_memory: bool,
    pub temperature_c: Figure<f64>,
    pub power_w: Figure<f64>,
    /// What the tool says of the health, and what that amounts to.
    pub health: Figure<(DeviceHealth, String)>,
    pub partitions: Vec<DevicePartition>,
    pub processes: Option<Vec<DeviceProcess>>,
    /// What ails it, in the vendor's words.
    pub error_codes: Vec<String>,
    /// The driver keeps it ready while nobody uses it.
    pub is_persistent: Option<bool>,
    /// Its driver does not reach it any more: what is known of it is from before.
    pub is_lost: bool,
}

impl Card {
    /// A card of which nothing else is told.
    pub(crate) fn new(index: u32, name: &str) -> Self {
        let not_told = AbsentWhy::NotTold;
        Self {
            index,
            name: crate::text::cell(name),
            uuid: None,
            bus_id: None,
            driver_version: None,
            firmware_version: None,
            runtime_version: None,
            utilization_percent: Err(not_told),
            memory_total_bytes: Err(not_told),
            memory_used_bytes: Err(not_told),
            is_unified_memory: false,
            temperature_c: Err(not_told),
            power_w: Err(not_told),
            health: Err(not_told),
            partitions: Vec::new(),
            processes: None,
            error_codes: Vec::new(),
            is_persistent: None,
            is_lost: false,
        }
    }

    /// What stays true of a card that does not answer.
    pub(crate) fn without_readings(self) -> Self {
        let failed = AbsentWhy::Failed;
        Self {
            utilization_percent: Err(failed),
            memory_used_bytes: Err(failed),
            temperature_c: Err(failed),
            power_w: Err(failed),
            health: Err(failed),
            processes: None,
            error_codes: Vec::new(),
            is_lost: true,
            ..self
        }
    }

    /// Takes a used / total pair, or why there is none.
    pub(crate) fn set_memory(&mut self, used_and_total: Figure<(u64, u64)>) {
        self.memory_used_bytes = used_and_total.map(|(used, _)| used);
        self.memory_total_bytes = used_and_total.map(|(_, total)| total);
    }

    /// In the shape of a report.
    pub(crate) fn into_device(self, maker: Maker, kind: DeviceType) -> GpuDevice {
        let mut absences = Absences::default();
        let utilization = absences.take(ReadingKind::Utilization, self.utilization_percent);
        let memory = self.memory(&mut absences);
        let power_w = absences.take(ReadingKind::Power, self.power_w);
        GpuDevice {
            index: self.index,
            device_index: Some(self.index),
            device_chip_index: Some(0),
            core: utilization.map(|percent| DeviceCore { total: None, utilization_rate: Some(percent) }),
            memory,
            temperature: absences.take(ReadingKind::Temperature, self.temperature_c),
            power_w,
            power_scope: power_w.map(|_| PowerScope::Device),
            health: absences.take(ReadingKind::Health, self.health.map(|(health, _)| health)),
            name: self.name,
            uuid: self.uuid,
            vendor: maker.name().to_owned(),
            kind,
            bus_id: self.bus_id,
            driver_version: self.driver_version,
            firmware_version: self.firmware_version,
            runtime_version: self.runtime_version,
            partitions: self.partitions,
            processes: self.processes,
            error_codes: self.error_codes,
            absent: absences.into_list(),
            ..GpuDevice::default()
        }
    }

    /// A size of zero is no memory at all. Memory that is the host's own may come without figures.
    fn memory(&self, absences: &mut Absences) -> Option<DeviceMemory> {
        let total =
            self.memory_total_bytes.and_then(|total| if total == 0 { Err(AbsentWhy::NotAvailable) } else { Ok(total) });
        let total = absences.take(ReadingKind::Memory, total);
        if total.is_none() && !self.is_unified_memory {
            return None;
        }
        let used = total.and_then(|_| absences.take(ReadingKind::MemoryUsed, self.memory_used_bytes));
        let share = |(used, total): (u64, u64)| (used as f64 * 100.0 / total as f64).min(100.0);
        Some(DeviceMemory {
            total,
            used,
            utilization_rate: used.zip(total).map(share),
            is_unified_memory: Some(self.is_unified_memory),
            allocated: None,
            kind: None,
        })
    }

    /// What there is to say of a card that is not healthy. Of a lost one more has been said already.
    pub(crate) fn unhealthy(&self) -> Option<Finding> {
        if self.is_lost {
            return None;
        }
        let (health, word) = self.health.as_ref().ok()?;
        let reason = Reason::DeviceUnhealthy { index: self.index, name: self.name.clone(), health: word.clone() };
        match health {
            DeviceHealth::Warning => Some(Finding::warning(reason)),
            DeviceHealth::Critical => Some(Finding::error(reason)),
            DeviceHealth::Ok | DeviceHealth::Unknown => None,
        }
    }
}
