//! Iluvatar, by its tool `ixsmi`.

use crate::bar_table::{Block, blocks};
use crate::card::Card;
use crate::figures;
use crate::one_tool::{Description, Listing, Way};
use crate::tool::ToolOutput;
use crate::vendor::Maker;
use crate::{pci, text};
use api::DeviceType;

/// The tool's name.
const TOOL: &str = "ixsmi";

pub(crate) const ILUVATAR: Description = Description {
    maker: Maker::Iluvatar,
    kind: DeviceType::Corex,
    library: None,
    ways: &[Way { tool: TOOL, question: &[], parse, more: &[] }],
    directories: &["/usr/local/corex/bin", "/usr/bin"],
    libraries: &["/usr/local/corex/lib64", "/usr/local/corex/lib"],
    nodes: &["/dev/iluvatar0"],
    has_exporter: false,
    module: "iluvatar",
};

fn parse(output: &ToolOutput) -> Option<Listing> {
    let is_heading = |cells: &[&str]| cells.len() == 3 && cells.first().is_some_and(|cell| cell.starts_with("GPU "));
    let table = blocks(&output.stdout, is_heading)?;
    let of_driver = text::after(&output.stdout, "Driver Version:");
    Listing::from_blocks(TOOL, &output.stdout, &table, |rows| {
        Some(Card { driver_version: of_driver.clone(), ..card(rows)? })
    })
}

/// ```text
/// | 0    Iluvatar BI-V150S        | 00000000:8A:00.0     | 500MHz    1600MHz    |
/// | 0%   33C   P0    N/A / N/A    | 114MiB / 32768MiB    | 0%        Default    |
/// ```
fn card(rows: &Block) -> Option<Card> {
    let [first, second] = rows.as_slice() else { return None };
    let (&[title, bus_id, _], &[sensors, memory, utilization]) = (first.as_slice(), second.as_slice()) else {
        return None;
    };
    let (index, name) = text::first_word(title);
    let sensors: Vec<&str> = sensors.split_whitespace().collect();
    let word = |at: usize| sensors.get(at).copied().unwrap_or_default();
    let mut card = Card {
        bus_id: pci::address(bus_id),
        utilization_percent: figures::percent(utilization.split_whitespace().next().unwrap_or_default()),
        temperature_c: figures::celsius(word(1)),
        power_w: figures::watts(word(3)),
        ..Card::new(u32::try_from(figures::integer(index).ok()?).ok()?, name)
    };
    card.set_memory(figures::memory_pair(memory));
    Some(card)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V150S: &str = include_str!("../../tests/fixtures/ixsmi-bi-v150s-4.0.0.txt");

    fn read(stdout: &str) -> Option<Listing> {
        parse(&ToolOutput { is_success: true, exit_code: Some(0), stdout: stdout.into(), stderr: String::new() })
    }

    #[test]
    fn a_usual_answer() {
        let devices: Vec<_> = read(V150S)
            .unwrap()
            .cards
            .into_iter()
            .map(|card| card.into_device(Maker::Iluvatar, DeviceType::Corex))
            .collect();
        insta::assert_json_snapshot!("iluvatar_bi_v150s", devices);
    }

    #[test]
    fn a_power_reading_is_read_where_there_is_one() {
        let card = read(&V150S.replace("N/A / N/A", "66W / 350W")).unwrap().cards.remove(0);
        assert_eq!(card.power_w, Ok(66.0));
    }

    #[test]
    fn other_text_is_not_understood() {
        for text in ["", "ixsmi: no devices", "| GPU | x |"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_table_cut_off_anywhere_has_no_wrong_card(at in 0usize..900) {
            let whole = read(V150S).unwrap().cards;
            let cut = read(&V150S[..at.min(V150S.len())]).map(|cards| cards.cards).unwrap_or_default();
            proptest::prop_assert_eq!(&cut[..], &whole[..cut.len()]);
        }
    }
}
