//! From the library's report to the table that all ways of reading give.

use crate::ascend::details::Board;
use crate::ascend::mapping::{ChipNumbers, NumberList};
use crate::ascend::table::{self, ChipId, Extra, Table, Teller};
use crate::figures::{self, Figure, MIB_BYTES};
use crate::{pci, text};
use api::{AbsentWhy, DeviceProcess, MemoryKind, PowerScope};
use dcmi::report::{self, Absent, Chip, Reading, Report, code};
use std::collections::BTreeSet;
use std::path::Path;

/// Codes of one chip; a broken one lists a few.
const MOST_CODES: usize = 16;

/// None for a report that names a chip twice, or none at all: the library answers, and another way may know why.
pub(super) fn table(report: Report, file: &Path) -> Option<Table> {
    let driver_version = report.driver_version.ok().map(|version| text::cell(&version));
    let ids: BTreeSet<ChipId> = report.chips.iter().map(id).collect();
    if ids.is_empty() || ids.len() != report.chips.len() {
        return None;
    }
    Some(Table {
        chips: report.chips.iter().map(|chip| self::chip(chip, driver_version.as_deref())).collect(),
        unreadable: Vec::new(),
        is_cut_off: false,
        processes: processes(&report.chips),
        numbers: numbers(&report.chips),
        told_by: Teller::Library(file.to_owned()),
        driver_version,
    })
}

fn id(chip: &Chip) -> ChipId {
    ChipId { npu: chip.card, chip: chip.chip }
}

fn chip(chip: &Chip, driver_version: Option<&str>) -> table::Chip {
    let (power_w, scope) = power(chip);
    let bus_id = chip.bus.ok().and_then(|bus| {
        let (domain, function) = (bus.domain, bus.function);
        pci::address(&format!("{domain:04x}:{:02x}:{:02x}.{function:x}", bus.bus, bus.device))
    });
    let name = chip.name.as_deref().ok().map(text::cell);
    let board = Board {
        chip_name: name.clone(),
        die: chip.die.ok().filter(|words| words.iter().any(|&word| word != 0)).map(|words| die(&words)),
        driver_version: driver_version.map(str::to_owned),
        firmware_version: chip.firmware_version.as_deref().ok().map(text::cell),
        compatibility: None,
        bus_id: bus_id.clone(),
    };
    table::Chip {
        id: id(chip),
        logic_id: chip.logic_id.ok(),
        physical_id: chip.physical_id.ok(),
        name,
        health: health(chip.health),
        bus_id,
        power_w,
        temperature_c: figure(chip.temperature_c, figures::celsius),
        utilization_percent: figure(chip.utilization_percent, figures::percent),
        memory: memory(chip.memory),
        memory_percent: None,
        extra: Some(Extra {
            board,
            ai_cores: chip.ai_cores.ok(),
            error_codes: codes(&chip.error_codes),
            power_scope: scope,
        }),
    }
}

/// As the vendor's tool prints it, so that a chip has one id whoever tells it.
fn die(words: &[u32; 5]) -> String {
    words.map(|word| format!("{word:08X}")).join(" ")
}

fn why(absent: Absent) -> AbsentWhy {
    match absent {
        Absent::NoFunction => AbsentWhy::NotTold,
        Absent::Nonsense => AbsentWhy::Unreadable,
        Absent::Code(code::NOT_SUPPORTED | code::NOT_IN_CONTAINER) => AbsentWhy::NotSupported,
        Absent::Code(code::NOT_PERMITTED) => AbsentWhy::Forbidden,
        Absent::Code(code::NO_SUCH_ID | code::NO_SUCH_DEVICE | code::NOT_READY) => AbsentWhy::NotAvailable,
        Absent::Code(_) => AbsentWhy::Failed,
    }
}

/// A number of the library, held to what such a reading can be.
fn figure<T: ToString>(reading: Reading<T>, read: fn(&str) -> Figure<f64>) -> Figure<f64> {
    read(&reading.map_err(why)?.to_string())
}

/// The chip's own, else that of its card, which the library gives with the first chip.
fn power(chip: &Chip) -> (Figure<f64>, Option<PowerScope>) {
    let watts = |tenths: Reading<i32>| figure(tenths.map(|tenths| f64::from(tenths) / 10.0), figures::watts);
    let own = watts(chip.power_tenth_w);
    match chip.card_power_tenth_w.map(watts) {
        Some(Ok(of_card)) if own.is_err() => (Ok(of_card), Some(PowerScope::Card)),
        _ => (own, None),
    }
}

/// In the words of the vendor's tool (DCMI API reference, `dcmi_get_device_health`).
fn health(reading: Reading<u32>) -> Figure<String> {
    let word = match reading.map_err(why)? {
        0 => "OK",
        1 => "Warning",
        2 => "Alarm",
        3 => "Critical",
        u32::MAX => return Err(AbsentWhy::NotAvailable),
        _ => return Err(AbsentWhy::Unreadable),
    };
    Ok(word.to_owned())
}

fn codes(reading: &Reading<Vec<u32>>) -> Vec<String> {
    let codes = reading.as_deref().unwrap_or_default().iter().filter(|&&code| code != 0);
    codes.take(MOST_CODES).map(|code| format!("{code:08X}")).collect()
}

fn memory(reading: Reading<report::Memory>) -> Figure<table::Memory> {
    let memory = reading.map_err(why)?;
    let bytes = |mib: u64| mib.checked_mul(MIB_BYTES).ok_or(AbsentWhy::Unreadable);
    let kind = match memory.kind {
        report::MemoryKind::Hbm => MemoryKind::Hbm,
        report::MemoryKind::Ddr => MemoryKind::Ddr,
    };
    let used_bytes = memory.used_mib.map_err(why).and_then(bytes);
    Ok(table::Memory { kind, used_bytes, total_bytes: bytes(memory.total_mib)? })
}

/// None when some chip's cannot be told: an empty list would say that nobody uses it.
fn processes(chips: &[Chip]) -> Option<Vec<(ChipId, DeviceProcess)>> {
    let mut all = Vec::new();
    for chip in chips {
        all.extend(chip.processes.as_deref().ok()?.iter().map(|process| {
            let memory_bytes = Some(process.memory_bytes);
            (id(chip), DeviceProcess { pid: process.pid, name: text::cell(&process.name), memory_bytes })
        }));
    }
    Some(all)
}

/// None when some chip's logic id cannot be told: the tool's list knows all or none.
fn numbers(chips: &[Chip]) -> Option<NumberList> {
    let number = |chip: &Chip| {
        Some((id(chip), ChipNumbers { logic: Some(chip.logic_id.ok()?), physical: chip.physical_id.ok() }))
    };
    chips.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chip_with(change: impl FnOnce(&mut Chip)) -> table::Chip {
        let absent = Absent::NoFunction;
        let mut chip = Chip {
            card: 2,
            chip: 1,
            logic_id: Ok(3),
            physical_id: Err(absent),
            name: Err(absent),
            ai_cores: Err(absent),
            die: Err(absent),
            firmware_version: Err(absent),
            bus: Err(absent),
            health: Err(absent),
            error_codes: Err(absent),
            temperature_c: Err(absent),
            power_tenth_w: Err(absent),
            card_power_tenth_w: None,
            utilization_percent: Err(absent),
            memory: Err(absent),
            processes: Err(absent),
        };
        change(&mut chip);
        self::chip(&chip, None)
    }

    #[test]
    fn a_reading_without_a_function_is_not_told() {
        let chip = chip_with(|_| {});
        let not_told = AbsentWhy::NotTold;
        assert_eq!(
            (chip.temperature_c, chip.power_w, chip.utilization_percent),
            (Err(not_told), Err(not_told), Err(not_told))
        );
        assert_eq!((chip.health, chip.memory, chip.name), (Err(not_told), Err(not_told), None));
    }

    #[test]
    fn codes_say_why_a_reading_is_absent() {
        for (code, why) in [
            (-8255, AbsentWhy::NotSupported),
            (-8013, AbsentWhy::NotSupported),
            (-8002, AbsentWhy::Forbidden),
            (-8008, AbsentWhy::NotAvailable),
            (-8012, AbsentWhy::NotAvailable),
            (-8005, AbsentWhy::Failed),
            (1, AbsentWhy::Failed),
        ] {
            assert_eq!(
                chip_with(|chip| chip.temperature_c = Err(Absent::Code(code))).temperature_c,
                Err(why),
                "{code}"
            );
        }
    }

    #[test]
    fn numbers_that_cannot_be_are_no_readings() {
        let chip = chip_with(|chip| {
            chip.temperature_c = Ok(0x7FFF);
            chip.utilization_percent = Ok(0xEF);
            chip.power_tenth_w = Ok(-10);
            chip.health = Ok(77);
            chip.memory = Ok(report::Memory { kind: report::MemoryKind::Hbm, total_mib: u64::MAX, used_mib: Ok(0) });
        });
        let no = AbsentWhy::Unreadable;
        assert_eq!((chip.temperature_c, chip.utilization_percent, chip.power_w), (Err(no), Err(no), Err(no)));
        assert_eq!((chip.health, chip.memory), (Err(no), Err(no)));
    }

    #[test]
    fn the_cards_power_stands_in_where_the_chip_tells_none() {
        let of = |own, card| {
            let chip = chip_with(|chip| (chip.power_tenth_w, chip.card_power_tenth_w) = (own, card));
            (chip.power_w, chip.extra.unwrap().power_scope)
        };
        let no = Err(Absent::Code(-8255));
        assert_eq!(of(Ok(939), None), (Ok(93.9), None));
        assert_eq!(of(no, Some(Ok(428))), (Ok(42.8), Some(PowerScope::Card)));
        assert_eq!(of(no, Some(no)), (Err(AbsentWhy::NotSupported), None));
    }

    #[test]
    fn a_die_of_zeros_is_none_and_another_is_printed_as_the_tool_does() {
        let die = |words| chip_with(|chip| chip.die = Ok(words)).extra.unwrap().board.die;
        assert_eq!(die([0; 5]), None);
        assert_eq!(die([1, 0xabc, 3, 4, 5]).as_deref(), Some("00000001 00000ABC 00000003 00000004 00000005"));
    }

    #[test]
    fn a_report_with_a_chip_twice_or_with_none_is_no_table() {
        let report = |chips| Report { interface: report::Interface::Cards, driver_version: Ok("25.5.1".into()), chips };
        assert_eq!(table(report(Vec::new()), Path::new("/x")), None);
    }

    proptest! {
        #[test]
        fn any_answer_is_a_table_with_its_own_chips_or_none(line in "(\\{|\\}|\"Ok\":|\"Err\":|\"read\":|\"chips\":|\\[|\\]|,|-?[0-9]{1,11}|\\PC){0,60}") {
            let answer: Result<report::Answer, _> = serde_json::from_str(&line);
            if let Ok(report::Answer::Read(report)) = answer {
                let chips = report.chips.len();
                prop_assert!(table(report, Path::new("/x")).is_none_or(|table| table.chips.len() == chips));
            }
        }

        #[test]
        fn any_numbers_make_readings_or_none(
            temperature in any::<i32>(),
            power in any::<i32>(),
            rate in any::<u32>(),
            health in any::<u32>(),
            total_mib in any::<u64>(),
            used_mib in any::<u64>(),
            bus in any::<[u32; 4]>(),
        ) {
            let chip = chip_with(|chip| {
                chip.temperature_c = Ok(temperature);
                chip.power_tenth_w = Ok(power);
                chip.utilization_percent = Ok(rate);
                chip.health = Ok(health);
                chip.memory = Ok(report::Memory { kind: report::MemoryKind::Ddr, total_mib, used_mib: Ok(used_mib) });
                let [domain, bus, device, function] = bus;
                chip.bus = Ok(report::BusAddress { domain, bus, device, function });
            });
            prop_assert!(chip.temperature_c.is_err() || chip.temperature_c.is_ok_and(f64::is_finite));
            prop_assert!(chip.utilization_percent.is_err() || chip.utilization_percent.is_ok_and(|rate| rate <= 100.0));
        }
    }
}
