//! `rocm-smi … --json`, also as Hygon ships it: an object with a member for each card. The names of the members differ
//! between the two and between releases, and hold the unit.

use crate::card::Card;
use crate::figures::{self, Figure, MIB_BYTES};
use crate::one_tool::Listing;
use crate::tool::ToolOutput;
use crate::vendor::Maker;
use crate::{json, pci};
use api::AbsentWhy;
use serde_json::{Map, Value};

/// What is asked of the tool.
pub(crate) const QUESTION: &[&str] = &[
    "--showproductname",
    "--showuniqueid",
    "--showbus",
    "--showuse",
    "--showmeminfo",
    "vram",
    "--showtemp",
    "--showpower",
    "--json",
];
/// How Hygon names itself in its cards.
const HYGON: [&str; 2] = ["haiguang", "hygon"];

/// The cards that are AMD's.
pub(super) fn of_amd(output: &ToolOutput) -> Option<Listing> {
    cards_of(output, Maker::Amd)
}

/// The cards that are Hygon's.
pub(crate) fn of_hygon(output: &ToolOutput) -> Option<Listing> {
    cards_of(output, Maker::Hygon)
}

fn cards_of(output: &ToolOutput, maker: Maker) -> Option<Listing> {
    let value = json::parse(&output.stdout)?;
    let members = value.as_object()?;
    let numbered = members.iter().filter_map(|(name, card)| Some((number(name)?, card.as_object()?)));
    let all: Vec<(u32, &Map<String, Value>)> = numbered.collect();
    if all.is_empty() {
        return None;
    }
    let own = all.into_iter().filter(|(_, members)| maker_of(members) == maker);
    let mut cards: Vec<Card> = own.map(|(index, members)| card(index, members, maker)).collect();
    cards.sort_by_key(|card| card.index);
    Some(Listing::whole(cards))
}

/// `card0`.
fn number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("card")?;
    u32::try_from(figures::integer(digits).ok()?).ok()
}

fn maker_of(members: &Map<String, Value>) -> Maker {
    let vendor = named(members, |key| key == "card vendor").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    if HYGON.iter().any(|name| vendor.contains(name)) { Maker::Hygon } else { Maker::Amd }
}

fn card(index: u32, members: &Map<String, Value>, maker: Maker) -> Card {
    let word = |names: &[&str]| names.iter().find_map(|name| json::word(named(members, |key| key == *name)));
    let figure = |is_it: fn(&str) -> bool, read: fn(&str) -> Figure<f64>| json::figure(named(members, is_it), read);
    let name = word(&["card series", "device name", "card model"]).unwrap_or_else(|| maker.name().to_owned());
    Card {
        uuid: word(&["unique id", "serial number"]),
        bus_id: word(&["pci bus"]).as_deref().and_then(pci::address),
        firmware_version: word(&["vbios version"]),
        driver_version: word(&["driver version"]),
        utilization_percent: figure(|key| key.ends_with(" use (%)") && !key.contains("memory"), figures::percent),
        temperature_c: temperature(members),
        power_w: figure(|key| key.contains("power") && key.ends_with("(w)") && !key.contains("cap"), figures::watts),
        memory_total_bytes: memory(members, "vram total memory"),
        memory_used_bytes: memory(members, "vram total used memory"),
        ..Card::new(index, &name)
    }
}

/// The hottest place of the chip itself, else its edge.
fn temperature(members: &Map<String, Value>) -> Figure<f64> {
    let at =
        |place: &'static str| named(members, move |key| key.starts_with("temperature (sensor ") && key.contains(place));
    let found = at("junction").or_else(|| at("edge")).or_else(|| at("mem"));
    json::figure(found, figures::celsius)
}

/// `VRAM Total Memory (B)` or `vram Total Memory (MiB)`.
fn memory(members: &Map<String, Value>, name: &str) -> Figure<u64> {
    for (unit, unit_bytes) in [("(b)", 1), ("(mib)", MIB_BYTES), ("(mb)", MIB_BYTES)] {
        let Some(value) = named(members, |key| key.strip_suffix(unit).is_some_and(|key| key.trim() == name)) else {
            continue;
        };
        let text = json::word(Some(value)).ok_or(AbsentWhy::NotAvailable)?;
        return figures::integer(&text)?.checked_mul(unit_bytes).ok_or(AbsentWhy::Unreadable);
    }
    Err(AbsentWhy::NotTold)
}

/// The first member whose name, in lower case, is one that is looked for.
fn named(members: &Map<String, Value>, is_it: impl Fn(&str) -> bool) -> Option<&Value> {
    members.iter().find(|(key, _)| is_it(key.trim().to_lowercase().as_str())).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{DeviceType, GpuDevice};

    const RX7800XT: &str = include_str!("../../tests/fixtures/rocm-smi-json-rx7800xt-6.2.4.txt");
    const DCU: &str = include_str!("../../tests/fixtures/hy-smi-json-dcu-24.04.3.txt");

    fn output(stdout: &str) -> ToolOutput {
        ToolOutput { is_success: true, exit_code: Some(0), stdout: stdout.into(), stderr: String::new() }
    }

    fn devices(cards: Listing, maker: Maker, kind: DeviceType) -> Vec<GpuDevice> {
        cards.cards.into_iter().map(|card| card.into_device(maker, kind)).collect()
    }

    #[test]
    fn a_card_of_amd() {
        insta::assert_json_snapshot!(
            "amd_rx7800xt",
            devices(of_amd(&output(RX7800XT)).unwrap(), Maker::Amd, DeviceType::Rocm)
        );
    }

    #[test]
    fn a_card_of_hygon() {
        insta::assert_json_snapshot!(
            "hygon_dcu",
            devices(of_hygon(&output(DCU)).unwrap(), Maker::Hygon, DeviceType::Dcu)
        );
    }

    #[test]
    fn each_maker_gets_its_own_cards() {
        assert_eq!(of_hygon(&output(RX7800XT)), Some(Listing::default()));
        assert_eq!(of_amd(&output(DCU)), Some(Listing::default()));
    }

    #[test]
    fn newer_names_of_the_use_are_read() {
        let newer = DCU.replace("DCU use (%)", "HCU use (%)").replace("\"0\", \"vram", "\"12\", \"vram");
        assert_eq!(of_hygon(&output(&newer)).unwrap().cards[0].utilization_percent, Ok(12.0));
    }

    #[test]
    fn other_text_is_not_understood() {
        for text in ["", "ERROR: no such option", "{}", "{\"system\": {\"Driver version\": \"1\"}}", &DCU[..60]] {
            assert_eq!(of_hygon(&output(text)), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn an_answer_cut_off_anywhere_is_not_understood(at in 0usize..900) {
            let text = RX7800XT.trim_end();
            let at = (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap();
            if at < text.len() {
                proptest::prop_assert!(of_amd(&output(&text[..at])).is_none_or(|cards| cards.cards.is_empty()));
            }
        }
    }
}
