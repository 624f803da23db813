//! `nvidia-smi --query-gpu=… --format=csv`: a heading with the fields' names, then a line for each card. Sentences about
//! cards that are gone stand between the lines.

use super::failures::{self, LostCard};
use super::{TOOL, partitions};
use crate::card::Card;
use crate::figures::{self, Figure};
use crate::one_tool::Listing;
use crate::tool::ToolOutput;
use crate::vendor::Finding;
use crate::{pci, text};
use api::{AbsentWhy, DeviceHealth, Reason};

/// Of fields that say that the card itself is broken.
const FAULTS: [&str; 3] = ["gpu requires reset", "gpu is lost", "err!"];
/// Chips that share the host's memory and have none of their own to tell of.
pub(super) const UNIFIED: [&str; 5] = ["GB10", "Thor", "Orin", "Xavier", "Tegra"];

pub(super) fn parse(output: &ToolOutput) -> Option<Listing> {
    let printed = output.all();
    if failures::finds_none(&printed) {
        return Some(Listing::default());
    }
    let lost: Vec<LostCard> = printed.lines().filter_map(failures::lost_card).collect();
    let Some(table) = Table::read(&output.stdout) else {
        if let Some(reason) = failures::diagnose(&printed) {
            return Some(Listing::failed(reason));
        }
        return (!lost.is_empty()).then(|| with_lost(Listing::default(), &lost));
    };
    let mut cards = Listing::with_unreadable(TOOL, table.cards, &table.unreadable)?;
    if printed.to_lowercase().contains("insufficient permissions") {
        cards.findings.push(Finding::warning(Reason::ReadingsForbidden { tool: TOOL.to_owned() }));
    }
    if !output.is_success && lost.is_empty() {
        let reason =
            Reason::ToolFailed { tool: TOOL.to_owned(), exit_code: output.exit_code, output: text::excerpt(&printed) };
        cards.findings.push(Finding::error(reason));
        cards.is_partial = true;
    }
    Some(with_lost(cards, &lost))
}

/// A card that is gone is still in the host: it is listed as broken.
fn with_lost(mut cards: Listing, lost: &[LostCard]) -> Listing {
    for gone in lost {
        let is_free = |index: &u32| cards.cards.iter().all(|card| card.index != *index);
        let most = u32::try_from(cards.cards.len()).unwrap_or(u32::MAX);
        let Some(index) = gone.index.filter(is_free).or_else(|| (0..=most).find(is_free)) else { continue };
        let card = Card::new(index, "NVIDIA").without_readings();
        let health = Ok((DeviceHealth::Critical, gone.why.clone()));
        cards.cards.push(Card { bus_id: gone.bus_id.clone(), health, ..card });
        cards.findings.push(Finding::error(gone.reason(TOOL)));
    }
    cards
}

struct Table<'a> {
    cards: Vec<Card>,
    unreadable: Vec<&'a str>,
}

impl<'a> Table<'a> {
    /// None without a heading.
    fn read(text: &'a str) -> Option<Self> {
        // A line without its end may have lost some of its last number.
        let (whole, rest) = text.rsplit_once('\n').unwrap_or(("", text));
        let mut lines = whole.lines();
        let columns = lines.find_map(columns)?;
        let mut table = Self { cards: Vec::new(), unreadable: Vec::new() };
        for line in lines.filter(|line| !line.trim().is_empty() && failures::lost_card(line).is_none()) {
            match card(&columns, line, table.cards.len()) {
                Some(card) if table.cards.iter().all(|before| before.index != card.index) => table.cards.push(card),
                _ => table.unreadable.push(line),
            }
        }
        table.unreadable.extend(Some(rest).filter(|rest| !rest.trim().is_empty()));
        Some(table)
    }
}

/// `index, name, memory.total [MiB]` without the units; None for another line.
fn columns(line: &str) -> Option<Vec<String>> {
    let name = |cell: &str| cell.split('[').next().unwrap_or_default().trim().to_lowercase();
    let columns: Vec<String> = line.split(',').map(name).collect();
    let is_known = |wanted: &str| columns.iter().any(|column| column == wanted);
    (columns.len() > 1 && is_known("name")).then_some(columns)
}

fn card(columns: &[String], line: &str, place: usize) -> Option<Card> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    if cells.len() != columns.len() {
        return None;
    }
    let cell = |wanted: &str| columns.iter().position(|column| column == wanted).and_then(|at| cells.get(at)).copied();
    let figure = |wanted: &str| cell(wanted).ok_or(AbsentWhy::NotTold);
    let word = |wanted: &str| cell(wanted).filter(|word| figures::absent(word).is_none()).map(text::cell);
    // Without the column the lines are in the order of the numbers.
    let index = cell("index").map_or(u32::try_from(place).ok(), |cell| cell.parse().ok())?;
    let name = cell("name").filter(|name| !name.is_empty())?;
    let name = if figures::absent(name).is_some() { "NVIDIA" } else { name };
    Some(Card {
        uuid: word("uuid").or_else(|| word("gpu_uuid")),
        bus_id: cell("pci.bus_id").and_then(pci::address),
        driver_version: word("driver_version"),
        firmware_version: word("vbios_version"),
        utilization_percent: figure("utilization.gpu").and_then(figures::percent),
        memory_total_bytes: figure("memory.total").and_then(figures::mebibytes),
        memory_used_bytes: figure("memory.used").and_then(figures::mebibytes),
        is_unified_memory: UNIFIED.iter().any(|unified| name.contains(unified)),
        temperature_c: figure("temperature.gpu").and_then(figures::celsius),
        power_w: figure("power.draw").and_then(figures::watts),
        health: health(&cells),
        partitions: partitions::unknown_as_yet(cell("mig.mode.current")),
        ..Card::new(index, name)
    })
}

/// The tool has no word for a healthy card.
fn health(cells: &[&str]) -> Figure<(DeviceHealth, String)> {
    let is_fault = |cell: &&&str| {
        let word = cell.trim_matches(['[', ']']).to_lowercase();
        FAULTS.contains(&word.as_str())
    };
    let fault = cells.iter().find(is_fault).ok_or(AbsentWhy::NotTold)?;
    Ok((DeviceHealth::Critical, text::cell(fault.trim_matches(['[', ']']))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::Maker;
    use api::{DeviceType, GpuDevice};

    macro_rules! fixture {
        ($name:literal) => {
            include_str!(concat!("../../tests/fixtures/nvidia-", $name, ".txt"))
        };
    }

    const A100: &str = "index, name, uuid, serial, vbios_version, memory.total [MiB], memory.used [MiB], memory.free [MiB], \
        utilization.gpu [%], temperature.gpu, power.draw [W], driver_version\n";
    const TITAN: &str =
        "index, uuid, name, temperature.gpu, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n";
    const LOST: &str = "index, name, pci.bus_id, power.draw [W]\n";

    fn output(stdout: &str) -> ToolOutput {
        ToolOutput { is_success: true, exit_code: Some(0), stdout: stdout.to_owned(), stderr: String::new() }
    }

    fn failing(stdout: &str, exit_code: i32) -> ToolOutput {
        ToolOutput { is_success: false, exit_code: Some(exit_code), ..output(stdout) }
    }

    fn devices(stdout: &str) -> Vec<GpuDevice> {
        let cards = parse(&output(stdout)).unwrap().cards;
        cards.into_iter().map(|card| card.into_device(Maker::Nvidia, DeviceType::Cuda)).collect()
    }

    fn reasons(cards: &Listing) -> Vec<Reason> {
        cards.findings.iter().map(|finding| finding.reason.clone()).collect()
    }

    #[test]
    fn a_usual_answer() {
        insta::assert_json_snapshot!(
            "nvidia_a100",
            devices(&format!("{A100}{}", fixture!("query-a100-noheader-nounits")))
        );
    }

    #[test]
    fn a_legacy_card_that_does_not_tell_its_use() {
        let text = format!("{TITAN}{}", fixture!("query-legacy-not-supported-titanx"));
        insta::assert_json_snapshot!("nvidia_titan_x", devices(&text));
    }

    #[test]
    fn a_chip_with_the_hosts_memory() {
        insta::assert_json_snapshot!("nvidia_gb10", devices(fixture!("query-gb10-index-name")));
    }

    #[test]
    fn figures_that_may_not_be_read_are_absent_and_told_once() {
        let text = fixture!("query-mig-insufficient-permissions");
        insta::assert_json_snapshot!("nvidia_without_permission", devices(text));
        let cards = parse(&output(text)).unwrap();
        assert_eq!(reasons(&cards), [Reason::ReadingsForbidden { tool: TOOL.into() }]);
        assert!(!cards.is_partial);
    }

    #[test]
    fn one_lost_card_costs_no_other() {
        for exit_code in [6, 9, 15, 255] {
            let cards = parse(&failing(&format!("{LOST}{}", fixture!("query-one-gpu-lost")), exit_code)).unwrap();
            let listed: Vec<_> = cards.cards.iter().map(|card| (card.index, card.is_lost)).collect();
            assert_eq!((listed, cards.is_partial), (vec![(0, false), (1, true)], false));
            assert_eq!(cards.cards[1].bus_id.as_deref(), Some("0000:0a:00.0"));
            assert_eq!(reasons(&cards), [Reason::DeviceLost { tool: TOOL.into(), device: "GPU1 0000:0a:00.0".into() }]);
        }
    }

    #[test]
    fn a_card_that_fell_off_the_bus_is_listed_even_alone() {
        let cards = parse(&failing(fixture!("smi-error-fallen-off-bus"), 15)).unwrap();
        assert_eq!((cards.cards.len(), cards.cards[0].is_lost), (1, true));
    }

    #[test]
    fn every_word_in_place_of_a_figure_is_an_absent_figure_in_every_column() {
        for (word, why, is_fault) in [
            ("[N/A]", AbsentWhy::NotAvailable, false),
            ("[Not Supported]", AbsentWhy::NotSupported, false),
            ("[Unknown Error]", AbsentWhy::Failed, false),
            ("[Insufficient Permissions]", AbsentWhy::Forbidden, false),
            ("[GPU requires reset]", AbsentWhy::Failed, true),
            ("ERR!", AbsentWhy::Failed, true),
            ("[Requested functionality has been deprecated]", AbsentWhy::NotSupported, false),
        ] {
            for column in 5..11 {
                let row = fixture!("query-a100-noheader-nounits").lines().next().unwrap();
                let mut cells: Vec<&str> = row.split(", ").collect();
                cells[column] = word;
                let cards = parse(&output(&format!("{A100}{}\n", cells.join(", ")))).unwrap().cards;
                let card = &cards[0];
                let figures = [card.utilization_percent, card.temperature_c, card.power_w];
                let figures = figures
                    .map(Result::err)
                    .into_iter()
                    .chain([card.memory_total_bytes.err(), card.memory_used_bytes.err()]);
                // the free memory is of no use here
                assert_eq!(
                    figures.flatten().collect::<Vec<_>>(),
                    if column == 7 { vec![] } else { vec![why] },
                    "{word} {column}"
                );
                assert_eq!(card.health.is_ok(), is_fault, "{word}");
            }
        }
    }

    #[test]
    fn no_devices_are_no_failure() {
        assert_eq!(parse(&failing(fixture!("smi-error-no-devices"), 6)), Some(Listing::default()));
    }

    #[test]
    fn sentences_alone_are_a_failure_with_their_cause_whatever_the_status() {
        for output in [output(fixture!("smi-error-driver-comm")), failing(fixture!("smi-error-driver-comm"), 9)] {
            let cards = parse(&output).unwrap();
            assert_eq!(reasons(&cards), [Reason::DriverNotLoaded { vendor: "NVIDIA".into(), count: None }]);
            assert!(cards.is_partial);
        }
        for text in
            [fixture!("smi-error-nvml-unknown"), "Field \"mig.mode.current\" is not a valid field to query.\n", ""]
        {
            assert_eq!(parse(&failing(text, 2)), None, "{text}");
        }
    }

    #[test]
    fn an_answer_that_ends_with_a_failure_may_be_short_of_cards() {
        let cards = parse(&failing(&format!("{A100}{}", fixture!("query-a100-noheader-nounits")), 1)).unwrap();
        assert_eq!((cards.cards.len(), cards.is_partial), (2, true));
        assert!(matches!(reasons(&cards)[..], [Reason::ToolFailed { exit_code: Some(1), .. }]));
    }

    proptest::proptest! {
        #[test]
        fn an_answer_cut_off_anywhere_has_no_wrong_card(at in 0usize..600) {
            let text = format!("{A100}{}", fixture!("query-a100-noheader-nounits"));
            let whole = parse(&output(&text)).unwrap().cards;
            let cut = parse(&output(&text[..at.min(text.len())])).map(|cards| cards.cards).unwrap_or_default();
            proptest::prop_assert_eq!(&cut[..], &whole[..cut.len()]);
        }

        #[test]
        fn blanks_and_line_ends_do_not_matter(blanks in " {0,5}\r?") {
            let text = format!("{A100}{}", fixture!("query-a100-noheader-nounits"));
            proptest::prop_assert_eq!(parse(&output(&text.replace('\n', &format!("{blanks}\n")))), parse(&output(&text)));
        }

        #[test]
        fn any_answer_is_read_without_a_panic(text in "((index|name|memory.total|utilization.gpu)( \\[MiB\\])?|, |\n|[0-9]{1,12}|\\[N/A\\]|\\PC){0,60}") {
            let _ = parse(&output(&text));
        }

        #[test]
        fn digits_of_other_scripts_make_no_card(digits in "[０-９٠-٩]{1,3}") {
            let text = format!("index, name, memory.total [MiB]\n{digits}, NVIDIA A100, 1\n");
            proptest::prop_assert_eq!(parse(&output(&text)), None);
        }
    }
}
