//! What `npu-smi info -t …` prints of one card or chip: sections of `Key : Value`. A section names its chip at its
//! beginning or at its end, depending on the question; the card's management controller has a section of its own, and
//! its temperature and power are none of a chip's.

use super::table::{ChipId, Memory};
use crate::figures::{self, Figure, MIB_BYTES};
use crate::sections::{self, Section};
use crate::{pci, text};
use api::{AbsentWhy, MemoryKind};

/// Codes in one answer; a broken chip lists a few.
const MOST_CODES: usize = 16;

/// What a section tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The card as a whole.
    Card,
    /// One of its chips.
    Chip(u32),
    /// Its management controller.
    Controller,
}

fn part(section: &Section) -> Part {
    if section.value(&["chip name"]).is_some_and(|name| name.eq_ignore_ascii_case("mcu")) {
        return Part::Controller;
    }
    section.value(&["chip id"]).and_then(whole).map_or(Part::Card, Part::Chip)
}

/// `-l`: the cards and the number of chips on each.
pub(super) fn cards(text: &str) -> Vec<(u32, u32)> {
    let card = |section: &Section| {
        let npu = section.value(&["npu id"]).and_then(whole)?;
        Some((npu, section.value(&["chip count"]).and_then(whole).unwrap_or(1)))
    };
    sections::parse(text).iter().filter_map(card).collect()
}

/// `-t board` of a card or a chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Board {
    pub chip_name: Option<String>,
    /// The id of the silicon.
    pub die: Option<String>,
    pub driver_version: Option<String>,
    pub firmware_version: Option<String>,
    /// The driver's own judgement of itself and the firmware: `OK` or not.
    pub compatibility: Option<String>,
    pub bus_id: Option<String>,
}

/// None when there is no such section.
pub(super) fn board(text: &str) -> Option<Board> {
    let sections = sections::parse(text);
    let section = sections.iter().find(|section| section.value(&["board id", "pcb id", "chip name"]).is_some())?;
    let known = |keys: &[&str]| section.value(keys).filter(|value| figures::absent(value).is_none()).map(str::to_owned);
    Some(Board {
        chip_name: known(&["chip name"]).filter(|name| !name.eq_ignore_ascii_case("mcu")),
        die: known(&["vdie id", "ddie id", "die id"]).filter(|die| die.chars().any(|c| !matches!(c, '0' | ' '))),
        driver_version: known(&["software version"]),
        firmware_version: known(&["firmware version"]),
        compatibility: known(&["compatibility"]),
        bus_id: section.value(&["pcie bus info"]).and_then(pci::address),
    })
}

/// What one section tells of a chip or a card.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Readings {
    pub utilization_percent: Figure<f64>,
    pub temperature_c: Figure<f64>,
    pub power_w: Figure<f64>,
    pub memory: Figure<Memory>,
    /// Percent of the memory; the tool gives it in whole numbers, too coarse for bytes.
    pub memory_percent: Figure<f64>,
    pub health: Figure<String>,
    pub error_codes: Vec<String>,
    pub ai_cores: Option<u32>,
}

/// `-t common|usages|memory|temp|power|health`: every section that tells of something.
pub(super) fn readings(text: &str) -> Vec<(Part, Readings)> {
    sections::parse(text).iter().map(|section| (part(section), of_section(section))).collect()
}

/// `-t power`: of the card as a whole, or of its controller, which measures that.
pub(super) fn card_power_w(text: &str) -> Option<f64> {
    let answer = readings(text);
    let of_card = answer.iter().filter(|(part, _)| matches!(part, Part::Card | Part::Controller));
    of_card.map(|(_, readings)| readings.power_w).find_map(Result::ok)
}

/// What an answer about one card tells of one of its chips, and of the card, in that order.
pub(super) fn of_chip(answer: &[(Part, Readings)], id: ChipId) -> impl Iterator<Item = &Readings> {
    let of = |wanted: Part| answer.iter().filter(move |(part, _)| *part == wanted).map(|(_, readings)| readings);
    of(Part::Chip(id.chip)).chain(of(Part::Card))
}

fn of_section(section: &Section) -> Readings {
    let figure = |keys: &[&str]| section.value(keys).ok_or(AbsentWhy::NotTold);
    let (memory, memory_percent) = memory(section);
    Readings {
        utilization_percent: figure(&["aicore usage rate(%)", "npu utilization(%)"]).and_then(figures::percent),
        temperature_c: figure(&["temperature(c)", "temperature (c)", "npu temperature (c)", "npu temperature(c)"])
            .and_then(figures::celsius),
        power_w: figure(&["npu real-time power(w)", "power dissipation(w)"]).and_then(figures::watts),
        memory,
        memory_percent,
        health: figure(&["health status", "health"]).and_then(word),
        error_codes: section.value(&["error code"]).map(error_codes).unwrap_or_default(),
        ai_cores: section.value(&["aicore count"]).and_then(whole),
    }
}

/// High-bandwidth memory where the chip has some, else DDR.
fn memory(section: &Section) -> (Figure<Memory>, Figure<f64>) {
    let kinds = [
        (MemoryKind::Hbm, "hbm capacity(mb)", "hbm usage rate(%)"),
        (MemoryKind::Ddr, "ddr capacity(mb)", "ddr usage rate(%)"),
    ];
    for (kind, capacity, rate) in kinds {
        let total_mib = section.value(&[capacity]).map_or(Ok(0), figures::integer).unwrap_or(0);
        let total_bytes = total_mib.checked_mul(MIB_BYTES).filter(|&bytes| bytes > 0);
        if let Some(total_bytes) = total_bytes {
            let percent = section.value(&[rate]).ok_or(AbsentWhy::NotTold).and_then(figures::percent);
            return (Ok(Memory { kind, used_bytes: Err(AbsentWhy::NotTold), total_bytes }), percent);
        }
    }
    (Err(AbsentWhy::NotTold), Err(AbsentWhy::NotTold))
}

fn word(text: &str) -> Figure<String> {
    figures::absent(text).map_or_else(|| Ok(text::cell(text)), Err)
}

/// `80E18402 80E01801`; the vendor writes them in hexadecimal, with and without commas.
fn error_codes(text: &str) -> Vec<String> {
    let words = text.split([' ', ',', ';', '[', ']']).filter(|word| !word.is_empty());
    let is_code = |word: &&str| {
        let digits = word.trim_start_matches("0x").trim_start_matches("0X");
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    words
        .filter(is_code)
        .filter(|word| word.bytes().any(|byte| byte != b'0'))
        .take(MOST_CODES)
        .map(text::cell)
        .collect()
}

fn whole(text: &str) -> Option<u32> {
    u32::try_from(figures::integer(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! fixture {
        ($name:literal) => {
            include_str!(concat!("../../tests/fixtures/npu-info-", $name, ".txt"))
        };
    }

    const ALL: [&str; 12] = [
        fixture!("l-8cards"),
        fixture!("t-board-card-310p-duo"),
        fixture!("t-board-card-910b"),
        fixture!("t-board-card-950"),
        fixture!("t-board-chip-910b-vdie"),
        fixture!("t-common-910a"),
        fixture!("t-health-310p-duo-mcu"),
        fixture!("t-memory-910b"),
        fixture!("t-power-910b"),
        fixture!("t-usages-310p-duo"),
        fixture!("t-usages-910a-ddr-and-hbm"),
        fixture!("t-usages-910b-hbm"),
    ];

    fn chip(chip: u32) -> ChipId {
        ChipId { npu: 0, chip }
    }

    /// The first figure that the answer has for a chip.
    fn first<T>(text: &str, id: u32, pick: impl Fn(&Readings) -> Option<T>) -> Option<T> {
        of_chip(&readings(text), chip(id)).find_map(pick)
    }

    #[test]
    fn cards_are_listed_with_their_chips() {
        assert_eq!(cards(fixture!("l-8cards")), [0, 1, 2, 3, 4, 5, 6, 7].map(|npu| (npu, 1)));
        assert_eq!(cards("dcmi module initialize failed. ret is -8005"), []);
    }

    #[test]
    fn boards_of_all_generations_are_read() {
        insta::assert_debug_snapshot!(
            "boards",
            [
                board(fixture!("t-board-card-310p-duo")),
                board(fixture!("t-board-card-910b")),
                board(fixture!("t-board-card-950")),
                board(fixture!("t-board-chip-910b-vdie")),
            ]
        );
    }

    #[test]
    fn a_die_id_of_zeros_and_versions_that_cannot_be_told_are_none() {
        let text = fixture!("t-board-chip-910b-vdie")
            .replace("00000001 00000002 00000003 00000004 00000005", "00000000 00000000");
        let board = board(&text).unwrap();
        assert_eq!((board.die, board.firmware_version), (None, None));
    }

    #[test]
    fn a_chip_is_named_at_the_beginning_or_at_the_end_of_its_section() {
        let duo = fixture!("t-usages-310p-duo");
        let total = |id| first(duo, id, |readings| readings.memory.ok().map(|memory| memory.total_bytes / MIB_BYTES));
        assert_eq!((total(0), total(1)), (Some(44_278), Some(43_693)));
        let percent = |id| first(duo, id, |readings| readings.memory_percent.ok());
        assert_eq!((percent(0), percent(1)), (Some(2.0), Some(3.0)));
        let common = fixture!("t-common-910a");
        assert_eq!(first(common, 0, |readings| readings.ai_cores), Some(32));
        assert_eq!(first(common, 0, |readings| readings.power_w.ok()), Some(69.0));
        assert_eq!(first(common, 0, |readings| readings.temperature_c.ok()), Some(46.0));
    }

    #[test]
    fn the_controllers_figures_are_no_chips() {
        let text = "NPU ID : 2944\nChip Count : 2\n\nChip ID : 0\nTemperature(C) : 45\n\nChip ID : 1\nTemperature(C) : 47\n\n\
                    Chip Name : mcu\nTemperature(C) : 48\nNPU Real-time Power(W) : 42.8\n";
        let temperature = |id| first(text, id, |readings| readings.temperature_c.ok());
        assert_eq!((temperature(0), temperature(1)), (Some(45.0), Some(47.0)));
        assert_eq!(first(text, 1, |readings| readings.power_w.ok()), None);
        let readings = readings(text);
        let (_, controller) = readings.iter().find(|(part, _)| *part == Part::Controller).unwrap();
        assert_eq!(controller.power_w, Ok(42.8));
    }

    #[test]
    fn a_cards_power_is_its_own_or_its_controllers_and_no_chips() {
        let of_card = "NPU ID : 2944\nChip Count : 2\nPower Dissipation(W) : 42.9\n";
        let of_controller = "NPU ID : 2944\nChip Count : 2\n\nNPU Real-time Power(W) : 42.8\nChip Name : MCU\n";
        assert_eq!((card_power_w(of_card), card_power_w(of_controller)), (Some(42.9), Some(42.8)));
        assert_eq!(card_power_w(fixture!("t-power-910b")), None);
    }

    #[test]
    fn the_temperature_of_a_chip_is_not_that_of_the_controllers_sensors() {
        let text = "NPU ID : 0\nChip Count : 1\n\nNPU Temperature (C) : 39\nChip ID : 0\n\nLM75A_TE (C) : 36\nChip Name : MCU\n";
        assert_eq!(first(text, 0, |readings| readings.temperature_c.ok()), Some(39.0));
    }

    #[test]
    fn memory_is_high_bandwidth_memory_where_there_is_some() {
        for (text, kind, mib) in [
            (fixture!("t-usages-910a-ddr-and-hbm"), MemoryKind::Hbm, 32_768),
            (fixture!("t-usages-910b-hbm"), MemoryKind::Hbm, 65_536),
            (fixture!("t-memory-910b"), MemoryKind::Hbm, 65_536),
            (fixture!("t-usages-310p-duo"), MemoryKind::Ddr, 44_278),
        ] {
            let memory = first(text, 0, |readings| readings.memory.ok()).unwrap();
            assert_eq!((memory.kind, memory.total_bytes), (kind, mib * MIB_BYTES));
        }
        assert_eq!(first(fixture!("t-power-910b"), 0, |readings| readings.memory.ok()), None);
        assert_eq!(first(fixture!("t-power-910b"), 0, |readings| readings.power_w.ok()), Some(103.5));
    }

    #[test]
    fn health_comes_with_the_vendors_codes() {
        let sick = "\tHealth Status                  : Warning\n\tError Code                     : 80E01801 0x80CD8008\n\
                    \tError Information              : node type=SOC, sensor type=Temperature\n";
        assert_eq!(first(sick, 0, |readings| readings.health.clone().ok()).as_deref(), Some("Warning"));
        assert_eq!(
            first(sick, 0, |readings| Some(readings.error_codes.clone())),
            Some(vec!["80E01801".to_owned(), "0x80CD8008".to_owned()])
        );
        let well = "NPU ID : 0\nHealth : OK\nError Code : NA\nError Information : NA\n";
        assert_eq!(first(well, 0, |readings| Some(readings.error_codes.clone())), Some(Vec::new()));
        let duo = fixture!("t-health-310p-duo-mcu");
        assert_eq!(readings(duo).iter().filter(|(part, _)| matches!(part, Part::Chip(_))).count(), 2);
    }

    #[test]
    fn text_that_is_no_answer_tells_nothing() {
        for text in ["", "This device does not support querying.", "dcmi module initialize failed. ret is -8005"] {
            assert_eq!((board(text), readings(text)), (None, Vec::new()), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn an_answer_cut_off_anywhere_names_no_chip_that_was_not_there(
            text in proptest::prelude::prop::sample::select(ALL.to_vec()),
            at in proptest::prelude::any::<proptest::prelude::prop::sample::Index>(),
        ) {
            let cut = &text[..at.index(text.len() + 1)];
            let chips = |text| readings(text).into_iter().map(|(part, _)| part).collect::<Vec<_>>();
            let whole = chips(text);
            let kept = chips(cut);
            proptest::prop_assert!(kept.iter().all(|part| matches!(part, Part::Card) || whole.contains(part)));
            let _ = (board(cut), cards(cut));
        }

        #[test]
        fn line_ends_and_trailing_blanks_do_not_matter(
            text in proptest::prelude::prop::sample::select(ALL.to_vec()),
            blanks in " {0,4}\r?",
        ) {
            let other = text.replace('\n', &format!("{blanks}\n"));
            proptest::prop_assert_eq!(readings(&other), readings(text));
            proptest::prop_assert_eq!(board(&other), board(text));
        }

        #[test]
        fn digits_of_other_scripts_name_no_chip(text in "(NPU ID|Chip ID|Chip Count) ?: ?[０-９٠-٩]{1,3}\n?") {
            proptest::prop_assert_eq!(cards(&text), Vec::new());
            proptest::prop_assert!(readings(&text).iter().all(|(part, _)| *part == Part::Card));
        }
    }
}
