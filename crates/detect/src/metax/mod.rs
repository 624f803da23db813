//! MetaX, by its tool `mx-smi`.

use crate::bar_table::{Block, blocks};
use crate::card::Card;
use crate::figures;
use crate::one_tool::{Description, Listing, Way};
use crate::tool::ToolOutput;
use crate::vendor::Maker;
use crate::{pci, text};
use api::{DeviceHealth, DeviceType};

/// The tool's name.
const TOOL: &str = "mx-smi";

pub(crate) const METAX: Description = Description {
    maker: Maker::MetaX,
    kind: DeviceType::Maca,
    library: None,
    ways: &[Way { tool: TOOL, question: &[], parse, more: &[] }],
    directories: &["/opt/mxdriver/bin", "/opt/maca/bin", "/opt/mxn100/bin"],
    libraries: &["/opt/mxdriver/lib", "/opt/maca/lib"],
    nodes: &["/dev/mxcd"],
    has_exporter: false,
    module: "metax",
};

fn parse(output: &ToolOutput) -> Option<Listing> {
    let table = blocks(&output.stdout, |cells| {
        cells.len() == 3 && cells.first().is_some_and(|cell| cell.starts_with("GPU")) && cells.get(1) == Some(&"Bus-id")
    })?;
    let of_driver = text::after(&output.stdout, "Kernel Mode Driver Version:");
    let (bios, runtime) = (text::after(&output.stdout, "BIOS Version:"), text::after(&output.stdout, "MACA Version:"));
    let card = |rows: &Block| {
        let card = card(rows)?;
        Some(Card {
            driver_version: of_driver.clone(),
            firmware_version: bios.clone(),
            runtime_version: runtime.clone(),
            ..card
        })
    };
    Listing::from_blocks(TOOL, &output.stdout, &table, card)
}

/// ```text
/// | 0           MetaX C500             | 0000:01:00.0        | 0%                   |
/// | 45C         48W / 350W             | 858/65536 MiB       | Available            |
/// ```
fn card(rows: &Block) -> Option<Card> {
    let [first, second] = rows.as_slice() else { return None };
    let (&[title, bus_id, utilization], &[sensors, memory, state]) = (first.as_slice(), second.as_slice()) else {
        return None;
    };
    let (index, name) = text::first_word(title);
    let (temperature, power) = text::first_word(sensors);
    let power_now = power.split('/').next().unwrap_or_default();
    let mut card = Card {
        bus_id: pci::address(bus_id),
        utilization_percent: figures::percent(utilization),
        temperature_c: figures::celsius(temperature),
        power_w: figures::watts(power_now),
        health: Ok((health(state), text::cell(state))),
        ..Card::new(u32::try_from(figures::integer(index).ok()?).ok()?, name)
    };
    card.set_memory(figures::memory_pair(memory));
    Some(card)
}

/// `Available`, `Not Available(…)`.
fn health(state: &str) -> DeviceHealth {
    let state = state.to_ascii_lowercase();
    if state.starts_with("available") {
        DeviceHealth::Ok
    } else if state.starts_with("not available") {
        DeviceHealth::Critical
    } else {
        DeviceHealth::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const C500: &str = include_str!("../../tests/fixtures/mx-smi-c500-2.2.4.txt");

    fn read(stdout: &str) -> Option<Listing> {
        parse(&ToolOutput { is_success: true, exit_code: Some(0), stdout: stdout.into(), stderr: String::new() })
    }

    #[test]
    fn a_usual_answer() {
        let devices: Vec<_> = read(C500)
            .unwrap()
            .cards
            .into_iter()
            .map(|card| card.into_device(Maker::MetaX, DeviceType::Maca))
            .collect();
        insta::assert_json_snapshot!("metax_c500", devices);
    }

    #[test]
    fn a_card_that_is_not_available_is_listed_as_broken() {
        let cards = read(&C500.replace("| Available            |", "| Not Available(RAS)   |")).unwrap().cards;
        assert_eq!(cards[0].health, Ok((DeviceHealth::Critical, "Not Available(RAS)".to_owned())));
        assert!(cards[0].unhealthy().is_some());
    }

    #[test]
    fn other_text_is_not_understood() {
        for text in ["", "mx-smi  version: 2.2.4\n\nNo MetaX device found", "| GPU | Bus |"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_table_cut_off_anywhere_has_no_wrong_card(at in 0usize..1_400) {
            let whole = read(C500).unwrap().cards;
            let at = (0..=at.min(C500.len())).rev().find(|&at| C500.is_char_boundary(at)).unwrap();
            let cut = read(&C500[..at]).map(|cards| cards.cards).unwrap_or_default();
            proptest::prop_assert_eq!(&cut[..], &whole[..cut.len()]);
        }
    }
}
