//! Cambricon, by its tool `cnmon`.

use crate::bar_table::{Block, blocks};
use crate::card::Card;
use crate::figures;
use crate::one_tool::{Description, Listing, Way};
use crate::tool::ToolOutput;
use crate::vendor::Maker;
use crate::{pci, text};
use api::DeviceType;

/// The tool's name.
const TOOL: &str = "cnmon";

pub(crate) const CAMBRICON: Description = Description {
    maker: Maker::Cambricon,
    kind: DeviceType::Mlu,
    library: None,
    ways: &[Way { tool: TOOL, question: &[], parse, more: &[] }],
    directories: &["/usr/bin", "/usr/local/neuware/bin"],
    libraries: &["/usr/local/neuware/lib64"],
    nodes: &["/dev/cambricon_ctl"],
    has_exporter: false,
    module: "cambricon_drv",
};

fn parse(output: &ToolOutput) -> Option<Listing> {
    let is_heading = |cells: &[&str]| cells.len() == 3 && cells.first().is_some_and(|cell| cell.starts_with("Card "));
    let table = blocks(&output.stdout, is_heading)?;
    // Version 4 has the driver's version in place of the address.
    let with_driver = table.heading.first().and_then(|cells| cells.get(1)).is_some_and(|cell| cell.contains("Driver"));
    let of_all = text::after(&output.stdout, "Driver ").filter(|version| version.starts_with('v'));
    let card = |rows: &Block| {
        let (card, second_cell) = card(rows)?;
        let own = second_cell.split_whitespace().last().filter(|_| with_driver).map(text::cell);
        Some(Card { driver_version: own.or_else(|| of_all.clone()), ..card })
    };
    Listing::from_blocks(TOOL, &output.stdout, &table, card)
}

/// ```text
/// | 0     /   MLU370-X8    v1.1.6 |         0000:39:00.0 | 0%                N/A |
/// |  0%   32C        106 W/ 250 W |     0 MiB/ 23374 MiB | N/A           Default |
/// ```
fn card<'a>(rows: &Block<'a>) -> Option<(Card, &'a str)> {
    let [first, second] = rows.as_slice() else { return None };
    let (&[title, place, utilization], &[sensors, memory, _]) = (first.as_slice(), second.as_slice()) else {
        return None;
    };
    let title: Vec<&str> = title.split_whitespace().collect();
    let &[index, _virtual_function, name, firmware] = title.as_slice() else { return None };
    let (_fan, sensors) = text::first_word(sensors);
    let (temperature, power) = text::first_word(sensors);
    let mut card = Card {
        bus_id: pci::address(place),
        firmware_version: Some(text::cell(firmware)),
        utilization_percent: figures::percent(utilization.split_whitespace().next().unwrap_or_default()),
        temperature_c: figures::celsius(temperature),
        power_w: figures::watts(power.split('/').next().unwrap_or_default()),
        ..Card::new(u32::try_from(figures::integer(index).ok()?).ok()?, name)
    };
    card.set_memory(figures::memory_pair(memory));
    Some((card, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    const X8: &str = include_str!("../../tests/fixtures/cnmon-mlu370-x8-5.10.13.txt");
    /// The layout of version 4, with values of our own.
    const VERSION_4: &str = "\
+------------------------------------------------------------------------------+
| CNMON v4.20.11                                                               |
+-------------------------------+----------------------+-----------------------+
| Card  VF  Name       Firmware | Inited        Driver | Util        Ecc-Error |
| Fan   Temp      Pwr:Usage/Cap |         Memory-Usage |         vMemory-Usage |
|===============================+======================+=======================|
| 0     /   MLU370-X4    v1.1.6 | On          v4.20.11 | 7%          N/A       |
|  0%   32C         30 W/ 150 W |   100 MiB/ 23308 MiB | 10240 MiB/1048576 MiB |
+-------------------------------+----------------------+-----------------------+
";

    fn read(stdout: &str) -> Option<Listing> {
        parse(&ToolOutput { is_success: true, exit_code: Some(0), stdout: stdout.into(), stderr: String::new() })
    }

    #[test]
    fn a_usual_answer() {
        let devices: Vec<_> = read(X8)
            .unwrap()
            .cards
            .into_iter()
            .map(|card| card.into_device(Maker::Cambricon, DeviceType::Mlu))
            .collect();
        insta::assert_json_snapshot!("cambricon_mlu370_x8", devices);
    }

    #[test]
    fn the_older_layout_has_no_address() {
        let card = read(VERSION_4).unwrap().cards.remove(0);
        assert_eq!((card.bus_id, card.driver_version.as_deref()), (None, Some("v4.20.11")));
        assert_eq!((card.utilization_percent, card.temperature_c, card.power_w), (Ok(7.0), Ok(32.0), Ok(30.0)));
        assert_eq!(card.memory_total_bytes, Ok(23_308 * figures::MIB_BYTES));
    }

    #[test]
    fn other_text_is_not_understood() {
        for text in ["", "cnmon: no card", "+---+\n| CNMON v5 |\n+---+\n"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_table_cut_off_anywhere_has_no_wrong_card(at in 0usize..1_200) {
            let whole = read(X8).unwrap().cards;
            let cut = read(&X8[..at.min(X8.len())]).map(|cards| cards.cards).unwrap_or_default();
            proptest::prop_assert_eq!(&cut[..], &whole[..cut.len()]);
        }
    }
}
