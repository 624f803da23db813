//! What many devices amount to. A reading that is not there is left out, never counted as zero.

use api::{DeviceReadings, DeviceView, MemoryKind, WorkerView};

/// Devices of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCount {
    /// How many.
    pub count: usize,
    /// Model.
    pub name: String,
    /// Memory of each, in bytes; absent when unknown or not the same.
    pub memory_bytes: Option<u64>,
}

/// What workers can be ordered by. A value that is not known is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Mean of the devices' uses, in percent.
    pub use_percent: Option<f64>,
    /// Used memory of all devices, in percent.
    pub memory_percent: Option<f64>,
    /// Of the hottest device, in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Of the last heartbeat, in milliseconds since 1970 by the server's clock.
    pub heartbeat_ms: Option<i64>,
    /// Worker's clock minus the server's, in milliseconds.
    pub clock_offset_ms: Option<i64>,
}

impl Figures {
    /// Of devices, each with all of its memory in bytes, and of what else is known of their worker.
    pub fn of(
        devices: impl Iterator<Item = (DeviceReadings, Option<u64>)>,
        heartbeat_ms: Option<i64>,
        clock_offset_ms: Option<i64>,
    ) -> Self {
        let devices: Vec<_> = devices.collect();
        let used = sum(devices.iter().map(|(readings, _)| readings.memory_used_bytes));
        let total = sum(devices.iter().map(|(_, total)| *total));
        Self {
            use_percent: mean(devices.iter().filter_map(|(readings, _)| readings.use_percent)),
            memory_percent: share(used, total),
            temperature_c: devices.iter().filter_map(|(readings, _)| readings.temperature_c).max_by(f64::total_cmp),
            heartbeat_ms,
            clock_offset_ms,
        }
    }
}

/// What a worker's devices amount to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSummary {
    /// Mean of the known uses, in percent.
    pub mean_use_percent: Option<f64>,
    /// Sum over the devices whose use of memory is known, in bytes.
    pub memory_used_bytes: Option<u64>,
    /// Sum over the devices whose memory is known, in bytes.
    pub memory_total_bytes: Option<u64>,
    /// The hottest, in degrees Celsius.
    pub max_temperature_c: Option<f64>,
    /// Which memory, when all have the same.
    pub memory_kind: Option<MemoryKind>,
}

impl DeviceSummary {
    /// Of these devices.
    pub fn of(devices: &[DeviceView]) -> Self {
        let kind = devices.first().and_then(|device| device.memory_kind);
        Self {
            mean_use_percent: mean(devices.iter().filter_map(|device| device.readings.use_percent)),
            memory_used_bytes: sum(devices.iter().map(|device| device.readings.memory_used_bytes)),
            memory_total_bytes: sum(devices.iter().map(|device| device.memory_total_bytes)),
            max_temperature_c: devices.iter().filter_map(|device| device.readings.temperature_c).max_by(f64::total_cmp),
            memory_kind: kind.filter(|_| devices.iter().all(|device| device.memory_kind == kind)),
        }
    }

    /// Of a worker; nothing is known while its readings are stale.
    pub fn of_worker(worker: &WorkerView) -> Self {
        match &worker.devices {
            Some(devices) if readings_are_current(worker) => Self::of(devices),
            Some(devices) => {
                let Self { memory_total_bytes, memory_kind, .. } = Self::of(devices);
                Self { memory_total_bytes, memory_kind, ..Self::default() }
            }
            None => Self::default(),
        }
    }

    /// Used memory in percent.
    pub fn memory_percent(&self) -> Option<f64> {
        share(self.memory_used_bytes, self.memory_total_bytes)
    }
}

/// Whether the readings are of now: a hung tool or a lost heartbeat leaves old ones behind.
pub fn readings_are_current(worker: &WorkerView) -> bool {
    worker.devices_stale_s.is_none() && worker.state != api::WorkerState::NotReady
}

/// A device's used memory in percent.
pub fn memory_percent(device: &DeviceView) -> Option<f64> {
    share(device.readings.memory_used_bytes, device.memory_total_bytes)
}

fn share(used: Option<u64>, total: Option<u64>) -> Option<f64> {
    let (used, total) = used.zip(total)?;
    (total > 0).then(|| used as f64 / total as f64 * 100.0)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn sum(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    values.flatten().reduce(u64::saturating_add)
}

/// How many there are of each model, in the order of their first device.
pub fn models(devices: &[DeviceView]) -> Vec<ModelCount> {
    let mut models: Vec<ModelCount> = Vec::new();
    for device in devices {
        match models.iter_mut().find(|model| model.name == device.name) {
            Some(model) => {
                model.count += 1;
                if model.memory_bytes != device.memory_total_bytes {
                    model.memory_bytes = None;
                }
            }
            None => {
                models.push(ModelCount {
                    count: 1,
                    name: device.name.clone(),
                    memory_bytes: device.memory_total_bytes,
                });
            }
        }
    }
    models
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::list::tests::{device, worker};

    #[test]
    fn an_unknown_reading_does_not_count_as_zero() {
        let mut devices = vec![device(0), device(1)];
        devices[0].readings.use_percent = Some(80.0);
        devices[1].readings = DeviceReadings::default();
        let summary = DeviceSummary::of(&devices);
        assert_eq!(summary.mean_use_percent, Some(80.0));
        assert_eq!(DeviceSummary::of(&[]).mean_use_percent, None);
    }

    #[test]
    fn figures_of_no_devices_are_unknown() {
        let figures = Figures::of(std::iter::empty(), Some(1), None);
        assert_eq!(figures, Figures { heartbeat_ms: Some(1), ..Figures::default() });
    }

    #[test]
    fn figures_are_those_of_the_summary() {
        let devices = [device(0), device(1)];
        let summary = DeviceSummary::of(&devices);
        let figures =
            Figures::of(devices.iter().map(|device| (device.readings, device.memory_total_bytes)), None, None);
        assert_eq!(figures.use_percent, summary.mean_use_percent);
        assert_eq!(figures.memory_percent, summary.memory_percent());
        assert_eq!(figures.temperature_c, summary.max_temperature_c);
    }

    #[test]
    fn stale_readings_are_unknown_but_the_size_of_memory_stays() {
        let mut stale = worker(1, "a");
        stale.devices_stale_s = Some(90);
        let summary = DeviceSummary::of_worker(&stale);
        assert_eq!((summary.mean_use_percent, summary.memory_used_bytes), (None, None));
        assert_eq!(summary.memory_total_bytes, Some(2 << 36));
    }

    #[test]
    fn models_are_counted_apart() {
        let mut devices = vec![device(0), device(1), device(2)];
        devices[2].name = "310P3".to_owned();
        devices[1].memory_total_bytes = None;
        let expected = [
            ModelCount { count: 2, name: "910B3".to_owned(), memory_bytes: None },
            ModelCount { count: 1, name: "310P3".to_owned(), memory_bytes: Some(1 << 36) },
        ];
        assert_eq!(models(&devices), expected);
    }
}
