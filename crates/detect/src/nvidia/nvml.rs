//! The driver's management library, `libnvidia-ml.so`. It is loaded, asked and let go at each look: while it is in use
//! nobody can reset a card, change its parts or exchange the driver.

use super::LIBRARY;
use super::failures::LostCard;
use super::query::UNIFIED;
use crate::card::Card;
use crate::figures::Figure;
use crate::one_tool::Listing;
use crate::vendor::Finding;
use crate::{figures, pci, text};
use api::{AbsentWhy, DeviceHealth, DevicePartition, DeviceProcess, Reason};
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};
use std::path::Path;

/// More cards are in no host.
const MOST_CARDS: u32 = 256;
/// More parts has no card: today's have seven.
const MOST_PARTS: u32 = 64;
/// How much of a process's name is asked for, in bytes.
const NAME_BYTES: usize = 64;

/// Asks everything. None when the library cannot be used, or is too old to tell the memory: the tool may do better and
/// says why not in words.
pub(super) fn read(library: &Path) -> Option<Listing> {
    let nvml = match Nvml::builder().lib_path(library.as_os_str()).init() {
        Ok(nvml) => nvml,
        Err(error) => {
            tracing::debug!(%error, "the management library of NVIDIA's driver does not start");
            return None;
        }
    };
    let count = nvml.device_count().ok()?.min(MOST_CARDS);
    let host = HostFacts {
        driver_version: nvml.sys_driver_version().ok().map(|version| text::cell(&version)),
        cuda_version: nvml.sys_cuda_driver_version().ok().map(cuda_version),
    };
    let mut listing = Listing::default();
    for index in 0..count {
        match nvml.device_by_index(index) {
            Ok(device) => listing.cards.push(card(&nvml, &device, index, &host)?),
            // Its device node is not in this container.
            Err(NvmlError::NoPermission) => {}
            Err(error) => {
                let lost = LostCard { index: Some(index), bus_id: None, why: text::cell(&error.to_string()) };
                listing.findings.push(Finding::error(lost.reason(LIBRARY)));
                let health = Ok((DeviceHealth::Critical, lost.why));
                listing.cards.push(Card { health, ..Card::new(index, "NVIDIA").without_readings() });
            }
        }
    }
    if listing.cards.iter().any(|card| card.memory_total_bytes == Err(AbsentWhy::Forbidden)) {
        listing.findings.push(Finding::warning(Reason::ReadingsForbidden { tool: LIBRARY.to_owned() }));
    }
    Some(listing)
}

/// What is the same for all cards.
struct HostFacts {
    driver_version: Option<String>,
    cuda_version: Option<String>,
}

/// None when the library has no answer for the memory at all, being older than the question.
fn card(nvml: &Nvml, device: &Device<'_>, index: u32, host: &HostFacts) -> Option<Card> {
    let memory = device.memory_info();
    if matches!(memory, Err(NvmlError::FailedToLoadSymbol(_))) {
        return None;
    }
    let memory = memory.map_err(|error| why(&error));
    let name = device.name().unwrap_or_else(|_| "NVIDIA".to_owned());
    let watts = device.power_usage().map(|milliwatts| f64::from(milliwatts) / 1_000.0);
    let temperature = device.temperature(TemperatureSensor::Gpu);
    Some(Card {
        uuid: device.uuid().ok().map(|uuid| text::cell(&uuid)),
        bus_id: device.pci_info().ok().and_then(|place| pci::address(&place.bus_id)),
        driver_version: host.driver_version.clone(),
        firmware_version: device.vbios_version().ok().map(|version| text::cell(&version)),
        runtime_version: host.cuda_version.clone(),
        utilization_percent: figure(&device.utilization_rates().map(|rates| rates.gpu), figures::percent),
        memory_total_bytes: memory.as_ref().map(|memory| memory.total).map_err(|&why| why),
        memory_used_bytes: memory.as_ref().map(|memory| memory.used).map_err(|&why| why),
        is_unified_memory: UNIFIED.iter().any(|unified| name.contains(unified)),
        temperature_c: figure(&temperature, figures::celsius),
        power_w: figure(&watts, figures::watts),
        health: health(temperature.as_ref().err()),
        partitions: partitions(device),
        processes: processes(nvml, device),
        is_persistent: device.is_in_persistent_mode().ok(),
        ..Card::new(index, &name)
    })
}

/// A number of the library, held to what such a reading can be.
fn figure(number: &Result<impl ToString, NvmlError>, read: fn(&str) -> Figure<f64>) -> Figure<f64> {
    read(&number.as_ref().map_err(why)?.to_string())
}

fn why(error: &NvmlError) -> AbsentWhy {
    match error {
        NvmlError::NotSupported => AbsentWhy::NotSupported,
        NvmlError::NoPermission => AbsentWhy::Forbidden,
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => AbsentWhy::NotTold,
        NvmlError::NoData => AbsentWhy::NotAvailable,
        _ => AbsentWhy::Failed,
    }
}

/// The library has no word for a healthy card; a broken one answers questions so.
fn health(error: Option<&NvmlError>) -> Figure<(DeviceHealth, String)> {
    match error {
        Some(error @ (NvmlError::GpuLost | NvmlError::ResetRequired)) => {
            Ok((DeviceHealth::Critical, text::cell(&error.to_string())))
        }
        _ => Err(AbsentWhy::NotTold),
    }
}

fn partitions(device: &Device<'_>) -> Vec<DevicePartition> {
    if !device.mig_mode().is_ok_and(|mode| mode.current == 1) {
        return Vec::new();
    }
    let most = device.mig_device_count().unwrap_or(0).min(MOST_PARTS);
    let part = |index| {
        let part = device.mig_device_by_index(index).ok()?;
        let name = part.name().ok()?;
        // `NVIDIA A100-SXM4-80GB MIG 1g.10gb`
        let profile = name.rsplit_once("MIG ").map_or(name.as_str(), |(_, profile)| profile);
        Some(DevicePartition { name: text::cell(profile), uuid: text::cell(&part.uuid().ok()?) })
    };
    (0..most).filter_map(part).collect()
}

fn processes(nvml: &Nvml, device: &Device<'_>) -> Option<Vec<DeviceProcess>> {
    let process = |process: nvml_wrapper::struct_wrappers::device::ProcessInfo| DeviceProcess {
        pid: process.pid,
        name: nvml.sys_process_name(process.pid, NAME_BYTES).map(|name| text::cell(&name)).unwrap_or_default(),
        memory_bytes: match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        },
    };
    Some(device.running_compute_processes().ok()?.into_iter().map(process).collect())
}

/// `12020` is 12.2.
fn cuda_version(number: i32) -> String {
    format!("{}.{}", cuda_driver_version_major(number), cuda_driver_version_minor(number))
}
