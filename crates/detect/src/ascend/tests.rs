//! The real output of many chips and drivers, from text to devices.

use super::nodes::Nodes;
use super::table::{Table, parse};
use super::{NumberList, details, devices, hccn, mapping};
use crate::mutations::{are_in_order, damaged};
use api::{DeviceHealth, GpuDevice, Reason, Severity};
use proptest::prelude::*;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../tests/fixtures/npu-info-", $name, ".txt"))
    };
}

const ATLAS_300I_20: &str = fixture!("310-atlas300i-20.2.0");
const ATLAS_300I_21: &str = fixture!("310-21.0.4-offset-device");
const DUO: &str = fixture!("310p3-duo-25.2.0");
const PRO: &str = fixture!("310p3-pro-npu6-25.3.rc1");
const A910: &str = fixture!("910a-22.0.3.1");
const A910_NAMED_B: &str = fixture!("910a-named-910B-24.1.0");
const B2C: &str = fixture!("910b2c-25.5.2-noproc-footer");
const B2C_UNHEALTHY: &str = fixture!("910b2c-unhealthy-procs");
const B4: &str = fixture!("910b4-1-25.2.0");
const A3: &str = fixture!("a3-910c-two-chips");
const PR950: &str = fixture!("950pr-25.7.rc1");

const TABLES: [&str; 11] =
    [ATLAS_300I_20, ATLAS_300I_21, DUO, PRO, A910, A910_NAMED_B, B2C, B2C_UNHEALTHY, B4, A3, PR950];

fn whole(text: &str) -> Table {
    let table = parse(text).unwrap();
    assert_eq!((table.is_cut_off, &table.unreadable), (false, &Vec::new()));
    table
}

fn devices_in(table: &Table) -> Vec<GpuDevice> {
    devices::devices(table, &NumberList::new(), &Nodes::default())
}

fn devices_of(text: &str) -> Vec<GpuDevice> {
    devices_in(&whole(text))
}

fn devices_with(text: &str, list: &str) -> Vec<GpuDevice> {
    devices::devices(&whole(text), &mapping::parse(list).unwrap(), &Nodes::default())
}

fn numbers(devices: &[GpuDevice]) -> Vec<(u32, Option<u32>, Option<u32>)> {
    devices.iter().map(|device| (device.index, device.device_index, device.device_chip_index)).collect()
}

macro_rules! devices_snapshot {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_json_snapshot!(stringify!($name), devices_of($text));
        }
    };
}

devices_snapshot!(ascend_310_with_driver_20, ATLAS_300I_20);
devices_snapshot!(ascend_310_with_driver_21, ATLAS_300I_21);
devices_snapshot!(atlas_300i_duo, DUO);
devices_snapshot!(atlas_300i_pro, PRO);
devices_snapshot!(ascend_910a, A910);
devices_snapshot!(ascend_910a_called_910b, A910_NAMED_B);
devices_snapshot!(ascend_910b2c, B2C);
devices_snapshot!(ascend_910b2c_unhealthy_and_busy, B2C_UNHEALTHY);
devices_snapshot!(ascend_910b4, B4);
devices_snapshot!(atlas_a3, A3);
devices_snapshot!(ascend_950pr, PR950);

#[test]
fn logic_ids_of_the_list_win_over_the_table() {
    let devices = devices_with(ATLAS_300I_21, fixture!("m-310-mcu"));
    assert_eq!(numbers(&devices), [0, 1, 2, 3].map(|chip| (chip, Some(6), Some(chip))));
}

#[test]
fn logic_ids_keep_the_holes_of_empty_slots() {
    let indexes: Vec<u32> = devices_with(A910, fixture!("m-910a")).iter().map(|device| device.index).collect();
    assert_eq!(indexes, [0, 3, 7]);
}

#[test]
fn logic_ids_win_over_physical_ids() {
    let devices = devices_with(A3, fixture!("m-a3-910c"));
    let expected = [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)].map(|(n, npu, chip)| (n, Some(npu), Some(chip)));
    assert_eq!(numbers(&devices), expected);
}

#[test]
fn physical_ids_count_where_the_list_has_no_logic_ids() {
    let devices = devices_with(PR950, fixture!("m-950pr"));
    assert_eq!(numbers(&devices), [0, 1, 3].map(|npu| (npu, Some(npu), Some(0))));
}

#[test]
fn a_chip_that_the_list_leaves_out_gets_a_number_of_its_own() {
    let list = "NPU ID  Chip ID  Chip Logic ID  Chip Name\n0  0  1  910A\n7  0  0  910A\n";
    let indexes: Vec<(u32, Option<u32>)> =
        devices_with(A910, list).iter().map(|device| (device.index, device.device_index)).collect();
    assert_eq!(indexes, [(0, Some(7)), (1, Some(0)), (2, Some(3))]);
}

#[test]
fn the_list_names_no_management_controller() {
    let list = mapping::parse(fixture!("m-310-mcu")).unwrap();
    assert_eq!(list.len(), 4);
}

#[test]
fn a_list_in_an_unknown_layout_is_none() {
    for text in ["", "dcmi module initialize failed. ret is -8005", "NPU ID  Chip ID  Chip Name\n0  0  310\n"] {
        assert_eq!(mapping::parse(text), None, "{text}");
    }
}

#[test]
fn bad_health_is_found_with_the_tools_own_word() {
    let table = whole(B2C_UNHEALTHY);
    let devices = devices_in(&table);
    let found: Vec<_> =
        devices::unhealthy(&table, &devices).into_iter().map(|finding| (finding.severity, finding.reason)).collect();
    let reason = |index, health: &str| Reason::DeviceUnhealthy { index, name: "910B2C".into(), health: health.into() };
    assert_eq!(found, [(Severity::Warning, reason(1, "Warning")), (Severity::Error, reason(2, "Alarm"))]);
}

#[test]
fn health_that_cannot_be_told_is_no_bad_health() {
    for (word, health) in [("UNKNOWN", Some(DeviceHealth::Unknown)), ("NA", None), ("-", None), ("", None)] {
        let table = whole(&B4.replacen("| OK            |", &format!("| {word} |"), 1));
        let devices = devices_in(&table);
        assert_eq!(devices[0].health, health, "{word}");
        assert_eq!(devices::unhealthy(&table, &devices), []);
    }
}

#[test]
fn memory_without_a_size_is_unknown_not_empty() {
    let devices = devices_of(&B4.replace("3197 / 65536", "0    / 0    "));
    assert!(devices.iter().all(|device| device.memory.is_none()));
}

#[test]
fn the_tables_bytes_agree_with_the_coarse_percents_of_the_lists() {
    let memory = devices_of(B2C)[0].memory.clone().unwrap();
    let listed = details::readings(fixture!("t-usages-910b-hbm"));
    let id = whole(B2C).chips[0].id;
    let readings = details::of_chip(&listed, id).find(|readings| readings.memory.is_ok()).unwrap();
    assert_eq!(memory.total, readings.memory.ok().map(|memory| memory.total_bytes));
    assert!((memory.utilization_rate.unwrap() - readings.memory_percent.unwrap()).abs() < 1.0);
}

#[test]
fn hbm_that_cannot_be_told_is_not_replaced_by_the_ddr_beside_it() {
    for unknown in ["NA", "NA / NA", "- / -", ""] {
        let devices = devices_of(&A910.replace("0    / 32768", unknown));
        assert!(devices.iter().all(|device| device.memory.is_none()), "{unknown}");
    }
}

#[test]
fn a_reading_in_an_unknown_unit_is_no_reading() {
    let devices = devices_of(&B4.replace("HBM-Usage(MB)", "HBM-Usage(GB)").replace("Temp(C)", "Temp(K)"));
    assert!(devices.iter().all(|device| device.memory.is_none() && device.temperature.is_none()));
}

#[test]
fn numbers_that_no_reading_can_be_are_no_readings() {
    for number in ["nan", "inf", "-1", "101", "1e400"] {
        let text = B4.replace("| 0           0    / 0 ", &format!("| {number}  0    / 0 "));
        assert!(devices_of(&text).iter().all(|device| device.core.is_none()), "{number}");
    }
}

#[test]
fn a_card_that_prints_nonsense_costs_no_other_card() {
    let table = parse(&B2C.replace("| 1     910B2C              | OK ", "| ??                        | OK ")).unwrap();
    let cards: Vec<u32> = table.chips.iter().map(|chip| chip.id.npu).collect();
    assert_eq!((cards, table.unreadable.len(), table.is_cut_off), (vec![0, 15], 2, false));
}

#[test]
fn lines_of_other_programs_between_the_rows_do_no_harm() {
    let noisy = B2C.replace('\n', "\n[WARN] 2026-08-20 driver log | not a row\n");
    assert_eq!(devices_of(&noisy), devices_of(B2C));
}

#[test]
fn line_ends_of_windows_do_no_harm() {
    assert_eq!(devices_of(&A3.replace('\n', "\r\n")), devices_of(A3));
}

#[test]
fn a_layout_with_other_headings_is_none() {
    for text in
        [B4.replace("Bus-Id", "Address"), B4.replace("Health", "State"), B4.replace("| NPU   Name ", "| Card  Name ")]
    {
        assert_eq!(parse(&text), None);
    }
    for text in ["", "+----+", "| | |", fixture!("error-8005"), fixture!("error-libc_sec")] {
        assert_eq!(parse(text), None, "{text}");
    }
}

fn any_table() -> impl Strategy<Value = &'static str> {
    prop::sample::select(TABLES.to_vec())
}

fn ids(table: &Table) -> Vec<(u32, u32)> {
    table.chips.iter().map(|chip| (chip.id.npu, chip.id.chip)).collect()
}

/// Every cell of the table made wider, or as narrow as its text allows.
fn stretch(text: &str, by: isize) -> String {
    let stretch_cell = |cell: &str| {
        let width = cell.len().saturating_add_signed(by);
        format!("{:<width$}", if by < 0 { cell.trim_end() } else { cell })
    };
    let stretch_line = |line: &str| match crate::bar_table::row_cells(line) {
        Some(_) => line.split('|').map(stretch_cell).collect::<Vec<_>>().join("|").trim().to_owned(),
        None => line.to_owned(),
    };
    text.lines().map(stretch_line).collect::<Vec<_>>().join("\n")
}

/// Everything in a row but the numbers that say which chip it is.
fn replaceable_words(text: &str) -> Vec<(usize, usize)> {
    let heading_end = text.find("==").unwrap();
    let end = text.find("Process id").unwrap_or(text.len());
    let mut words = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let is_row = at > heading_end && at < end && line.starts_with('|');
        let mut cell = 0;
        let mut word_start = None;
        for (offset, c) in line.char_indices().filter(|_| is_row) {
            let is_in_word = !c.is_whitespace() && c != '|';
            match (word_start, is_in_word) {
                (None, true) => word_start = Some(offset),
                (Some(start), false) => {
                    if cell > 1 {
                        words.push((at + start, at + offset));
                    }
                    word_start = None;
                }
                _ => {}
            }
            cell += usize::from(c == '|');
        }
        at += line.len();
    }
    words
}

proptest! {
    #[test]
    fn a_table_cut_off_anywhere_has_no_wrong_chip(text in any_table(), at in any::<prop::sample::Index>()) {
        let whole = parse(text).unwrap();
        let at = at.index(text.len() + 1);
        let Some(table) = parse(&text[..at]) else { return Ok(()) };
        let same = whole.chips.iter().zip(&table.chips).filter(|(a, b)| a == b).count();
        prop_assert_eq!(same, table.chips.len());
    }

    #[test]
    fn the_width_of_columns_does_not_matter(text in any_table(), by in -10isize..=10) {
        prop_assert_eq!(parse(&stretch(text, by)), parse(text));
    }

    #[test]
    fn processes_are_no_devices(text in any_table(), rows in prop::collection::vec((0u32..20, 0u32..3, 0u32..5_000_000, "[ -{}~]{0,16}", 0u32..70_000), 0..20)) {
        let heading = "+--+--+--+\n| NPU     Chip   | Process id    | Process name   | Process memory(MB)  |\n+==+==+==+\n";
        let rows: Vec<String> = rows
            .iter()
            .map(|(npu, chip, process, name, mib)| format!("| {npu}   {chip}  | {process}  | {name}  | {mib}  |"))
            .collect();
        let chips = |text: &str| parse(text).map(|table| (table.chips, table.unreadable, table.is_cut_off));
        prop_assert_eq!(chips(&format!("{text}{heading}{}", rows.join("\n"))), chips(text));
    }

    #[test]
    fn a_reading_that_is_missing_or_nonsense_costs_no_chip(
        text in any_table(),
        which in any::<prop::sample::Index>(),
        word in prop::sample::select(vec!["NA", "N/A", "-", "", "%$#", "999999999999999999999", "/", "a/b"]),
    ) {
        let words = replaceable_words(text);
        let (start, end) = words[which.index(words.len())];
        let table = parse(&format!("{}{word}{}", &text[..start], &text[end..])).unwrap();
        prop_assert_eq!(ids(&table), ids(&parse(text).unwrap()));
    }

    #[test]
    fn a_table_with_lines_lost_or_doubled_is_read_without_a_panic(text in any_table(), picks in prop::collection::vec(0usize..40, 0..60)) {
        let lines: Vec<&str> = text.lines().collect();
        let shuffled: Vec<&str> = picks.iter().filter_map(|&pick| lines.get(pick).copied()).collect();
        if let Some(table) = parse(&shuffled.join("\n")) {
            let devices = devices_in(&table);
            let indexes: std::collections::HashSet<u32> = devices.iter().map(|device| device.index).collect();
            prop_assert_eq!(indexes.len(), table.chips.len());
        }
    }

    #[test]
    fn damaged_tables_and_lists_make_devices_in_order(
        table in damaged(TABLES.to_vec()),
        list in damaged(vec![fixture!("m-310-mcu"), fixture!("m-910a"), fixture!("m-a3-910c"), fixture!("m-950pr")]),
    ) {
        if let Some(table) = parse(&table) {
            let numbers = mapping::parse(&list).unwrap_or_default();
            prop_assert!(are_in_order(&devices::devices(&table, &numbers, &Nodes::default())));
        }
    }

    #[test]
    fn damaged_details_are_read_without_a_panic(text in damaged(vec![
        fixture!("t-board-card-910b"), fixture!("t-board-card-950"), fixture!("t-board-chip-910b-vdie"),
        fixture!("t-common-910a"), fixture!("t-health-310p-duo-mcu"), fixture!("t-memory-910b"),
        fixture!("t-power-910b"), fixture!("t-usages-310p-duo"), fixture!("t-usages-910a-ddr-and-hbm"),
        fixture!("l-8cards"), include_str!("../../tests/fixtures/hccn-mac-gateway-mtu.txt"),
        include_str!("../../tests/fixtures/hccn-ip-g-up.txt"), fixture!("error-8005"), fixture!("error-libc_sec"),
    ])) {
        let _ = (details::board(&text), details::cards(&text), hccn::Port::parse(&text).network());
        let _ = super::environment::diagnose(&text);
        for (_, readings) in details::readings(&text) {
            prop_assert!(readings.utilization_percent.is_ok_and(|percent| (0.0..=100.0).contains(&percent)) || readings.utilization_percent.is_err());
            prop_assert!(readings.error_codes.iter().all(|code| code.chars().count() <= 64));
        }
    }

    #[test]
    fn any_list_is_read_without_a_panic(text in "((NPU ID|Chip ID|Chip Logic ID|Chip Phy-ID|Chip Name|[0-9]{1,11}|-|Mcu)( |  |\n)){0,40}") {
        let _ = mapping::parse(&text);
    }
}
