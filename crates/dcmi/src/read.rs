//! From the library's functions to a report. A reading that fails is absent with its reason; a list that fails, or that
//! cannot be, is a failure as a whole, so that nobody takes half of the chips for all of them.

use crate::native::{Component, Die, Driver, Lister, Place, Use, text};
use crate::report::{Absent, BusAddress, Chip, Failure, Interface, Memory, MemoryKind, Process, Reading, Report, code};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

/// The namespace of the host's process numbers (`PROC_PID_INIT_INO` in the kernel's `include/linux/proc_ns.h`).
const HOSTS_PROCESSES: u64 = 0xEFFF_FFFC;

/// Asks everything once.
pub(crate) fn read(driver: &Driver) -> Result<Report, Failure> {
    let interface = match driver.lister {
        Lister::Cards { .. } => Interface::Cards,
        Lister::Devices { .. } => Interface::Devices,
    };
    let mut chips = Vec::new();
    let mut seen = BTreeSet::new();
    for listed in driver.listed()? {
        let card = u32::try_from(listed).map_err(|_| Failure::Nonsense(format!("a card numbered {listed}")))?;
        if !seen.insert(card) {
            return Err(Failure::Nonsense(format!("card {card} twice")));
        }
        let places = driver.chips_of(listed)?.into_iter().filter(|&place| driver.is_chip(place));
        let mut on_card: Vec<Chip> = places.map(|place| chip(driver, card, place)).collect();
        if on_card.iter().all(|chip| chip.power_tenth_w.is_err())
            && let Some(first) = on_card.first_mut()
        {
            first.card_power_tenth_w = Some(driver.card_power(listed));
        }
        chips.append(&mut on_card);
    }
    Ok(Report { interface, driver_version: driver.driver_version(), chips })
}

fn chip(driver: &Driver, card: u32, place: Place) -> Chip {
    let logic_id = driver.logic_id(place);
    let info = driver.chip_info.get(place);
    let name = info.and_then(|info| text(&info.name));
    let (number, die, of) = match place {
        Place::OnCard { chip, .. } => (u32::try_from(chip).unwrap_or_default(), Die::Vector, Use::AiCore),
        Place::Device(_) => (0, Die::Device, Use::Whole),
    };
    Chip {
        card,
        chip: number,
        logic_id,
        physical_id: logic_id.and_then(|logic_id| driver.physical_id(logic_id)),
        ai_cores: info.and_then(|info| known(info.ai_cores)),
        die: driver.die.get(place, die as i32).map(|die| die.0),
        firmware_version: firmware(driver, place, name.as_deref().unwrap_or_default()),
        bus: bus(driver, place),
        health: driver.health.get(place),
        error_codes: driver.codes.get(place),
        temperature_c: driver.temperature.get(place),
        power_tenth_w: driver.power.get(place),
        card_power_tenth_w: None,
        utilization_percent: utilization(driver, place, of),
        memory: memory(driver, place),
        processes: processes(driver, place),
        name,
    }
}

fn known(count: u32) -> Reading<u32> {
    if count == 0 { Err(Absent::Nonsense) } else { Ok(count) }
}

/// The vendor's tool shows the use of the whole chip from Ascend 950 on, and that of the AI cores before.
fn utilization(driver: &Driver, place: Place, of: Use) -> Reading<u32> {
    let rate = driver.utilization.get(place, of as i32);
    match (of, rate) {
        (Use::Whole, Err(Absent::Code(code::NOT_SUPPORTED))) => driver.utilization.get(place, Use::AiCore as i32),
        _ => rate,
    }
}

/// Which part of the chip carries the version that its tool shows depends on the generation: `npu-smi info -t board`
/// takes `XLOADER` on Ascend 310, `IMU` on 910A, `HILINK` on all others (cann/driver, `npu_chip_info.c`).
fn firmware(driver: &Driver, place: Place, name: &str) -> Reading<String> {
    driver.version.get(place, component(name))
}

/// Early tools call a 910A `910B` as well; those that are 910B have a number behind it.
fn component(name: &str) -> Component {
    let name = name.trim_start_matches("Ascend").trim_start();
    let Some(variant) = name.strip_prefix("310").or_else(|| name.strip_prefix("910")) else {
        return Component::Hilink;
    };
    let is_910 = name.starts_with("910");
    let is_first = match variant.strip_prefix(['A', 'B']) {
        Some(rest) => rest.is_empty(),
        None => variant.starts_with("Pro") || variant.starts_with("Premium"),
    };
    match (is_910, is_first) {
        (true, true) => Component::Imu,
        (false, _) if variant.is_empty() => Component::Xloader,
        _ => Component::Hilink,
    }
}

fn bus(driver: &Driver, place: Place) -> Reading<BusAddress> {
    let info = driver.pcie.get(place)?;
    let domain = u32::try_from(info.domain).map_err(|_| Absent::Nonsense)?;
    Ok(BusAddress { domain, bus: info.bus, device: info.device, function: info.function })
}

/// High-bandwidth memory where the chip has some, else DDR. Where the library could not tell the former this time, the
/// latter would be a wrong answer on a chip that has both.
fn memory(driver: &Driver, place: Place) -> Reading<Memory> {
    match driver.hbm.get(place) {
        Ok(hbm) if hbm.size_mib > 0 => Ok(Memory {
            kind: MemoryKind::Hbm,
            total_mib: hbm.size_mib,
            used_mib: Some(hbm.used_mib).filter(|&used| used <= hbm.size_mib).ok_or(Absent::Nonsense),
        }),
        Ok(_) | Err(Absent::NoFunction | Absent::Code(code::NOT_SUPPORTED)) => ddr(driver, place),
        Err(why) => Err(why),
    }
}

fn ddr(driver: &Driver, place: Place) -> Reading<Memory> {
    let ddr = driver.memory.get(place)?;
    if ddr.size_mib == 0 {
        return Err(Absent::Nonsense);
    }
    let used_mib = ddr.size_mib.checked_sub(ddr.available_mib).ok_or(Absent::Nonsense);
    Ok(Memory { kind: MemoryKind::Ddr, total_mib: ddr.size_mib, used_mib })
}

fn processes(driver: &Driver, place: Place) -> Reading<Vec<Process>> {
    let are_ours = has_hosts_numbers();
    let process = |process: crate::native::ProcessMemory| {
        let pid = u32::try_from(process.pid).ok().filter(|&pid| pid > 0)?;
        let name = if are_ours { name_of(pid) } else { String::new() };
        Some(Process { pid, name, memory_bytes: process.bytes })
    };
    Ok(driver.processes.get(place)?.into_iter().filter_map(process).collect())
}

/// The library gives the host's numbers; in a container they may be those of other processes.
fn has_hosts_numbers() -> bool {
    std::fs::metadata("/proc/self/ns/pid").is_ok_and(|namespace| namespace.ino() == HOSTS_PROCESSES)
}

fn name_of(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_firmware_is_that_of_the_part_which_the_vendors_tool_takes() {
        for (name, expected) in [
            ("310", Component::Xloader),
            ("310P3", Component::Hilink),
            ("310B4", Component::Hilink),
            ("910A", Component::Imu),
            ("910B", Component::Imu),
            ("910ProA", Component::Imu),
            ("910PremiumA", Component::Imu),
            ("910B2C", Component::Hilink),
            ("910B4-1", Component::Hilink),
            ("Ascend910", Component::Hilink),
            ("Ascend950PR", Component::Hilink),
            ("", Component::Hilink),
        ] {
            assert_eq!(component(name) as i32, expected as i32, "{name}");
        }
    }
}
