//! `amd-smi metric --json` and `amd-smi static --json`: a list of cards, in later releases under `gpu_data`.

use crate::card::Card;
use crate::figures::{self, Figure};
use crate::json;
use crate::one_tool::Listing;
use crate::pci;
use crate::tool::ToolOutput;
use api::AbsentWhy;
use serde_json::Value;

/// Of a chip with less memory of its own than this share of what it may take of the host's, the models are in the
/// host's.
const UNIFIED_ABOVE: u64 = 4;

pub(super) fn parse(output: &ToolOutput) -> Option<Listing> {
    let value = json::parse(&output.stdout)?;
    // Partitions of a card repeat it.
    Some(Listing::whole(cards(&value)?.iter().filter_map(card).collect()))
}

fn cards(value: &Value) -> Option<&Vec<Value>> {
    json::member(value, "gpu_data").unwrap_or(value).as_array()
}

fn index(card: &Value) -> Option<u32> {
    json::word(json::member(card, "gpu"))?.parse().ok()
}

fn card(value: &Value) -> Option<Card> {
    let figure = |way: &[&str], read| json::figure(json::at(value, way), read);
    let temperature = ["hotspot", "edge", "mem"].iter().map(|place| figure(&["temperature", place], figures::celsius));
    let mut card = Card {
        utilization_percent: figure(&["usage", "gfx_activity"], figures::percent),
        temperature_c: first_known(temperature),
        power_w: first_known(
            ["socket_power", "current_socket_power", "average_socket_power"]
                .iter()
                .map(|name| figure(&["power", name], figures::watts)),
        ),
        ..Card::new(index(value)?, "AMD")
    };
    set_memory(&mut card, value);
    Some(card)
}

/// The first figure that is there; of those that are not, the reason of the first.
fn first_known(mut figures: impl Iterator<Item = Figure<f64>>) -> Figure<f64> {
    let first = figures.next().unwrap_or(Err(AbsentWhy::NotTold));
    first.or_else(|why| figures.find(Result::is_ok).unwrap_or(Err(why)))
}

fn set_memory(card: &mut Card, value: &Value) {
    let size = |name: &str| json::bytes(json::at(value, &["mem_usage", name]));
    let (own, of_host) = (size("total_vram"), size("total_gtt"));
    card.is_unified_memory =
        own.is_ok_and(|own| of_host.is_ok_and(|of_host| own.saturating_mul(UNIFIED_ABOVE) < of_host));
    (card.memory_total_bytes, card.memory_used_bytes) =
        if card.is_unified_memory { (of_host, size("used_gtt")) } else { (own, size("used_vram")) };
}

/// Adds what `static` tells: names, addresses, versions.
pub(super) fn add_names(cards: &mut [Card], printed: &str) {
    let Some(value) = json::parse(printed) else { return };
    for told in self::cards(&value).into_iter().flatten() {
        let Some(card) = cards.iter_mut().find(|card| Some(card.index) == index(told)) else { continue };
        let word = |way: &[&str]| json::word(json::at(told, way));
        if let Some(name) = word(&["asic", "market_name"]) {
            card.name = name;
        }
        card.uuid = word(&["asic", "asic_serial"]);
        card.bus_id = word(&["bus", "bdf"]).as_deref().and_then(pci::address);
        card.driver_version = word(&["driver", "version"]);
        card.firmware_version = word(&["vbios", "version"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::MIB_BYTES;
    use crate::vendor::Maker;
    use api::{DeviceType, GpuDevice};

    const MI355X: &str = include_str!("../../tests/fixtures/amd-smi-metric-json-mi355x-gpu_data.txt");
    const APU: &str = include_str!("../../tests/fixtures/amd-smi-metric-json-apu-gtt.txt");

    fn read(stdout: &str) -> Option<Listing> {
        parse(&ToolOutput { is_success: true, exit_code: Some(0), stdout: stdout.into(), stderr: String::new() })
    }

    fn devices(stdout: &str) -> Vec<GpuDevice> {
        read(stdout).unwrap().cards.into_iter().map(|card| card.into_device(Maker::Amd, DeviceType::Rocm)).collect()
    }

    #[test]
    fn a_card_of_a_server() {
        insta::assert_json_snapshot!("amd_mi355x", devices(MI355X));
    }

    #[test]
    fn a_processor_that_computes_in_the_hosts_memory() {
        let devices = devices(APU);
        let memory = devices[0].memory.as_ref().unwrap();
        assert_eq!(memory.is_unified_memory, Some(true));
        assert_eq!((memory.total, memory.used), (Some(98_304 * MIB_BYTES), Some(40_960 * MIB_BYTES)));
    }

    #[test]
    fn a_bare_list_with_plain_numbers_is_the_same() {
        let text = r#"[{"gpu": 0, "usage": {"gfx_activity": "N/A"}, "mem_usage": {"total_vram": 20464, "used_vram": 100}, "temperature": {"hotspot": "N/A", "edge": 41}}]"#;
        let card = read(text).unwrap().cards.remove(0);
        assert_eq!((card.memory_total_bytes, card.memory_used_bytes), (Ok(20_464 * MIB_BYTES), Ok(100 * MIB_BYTES)));
        assert_eq!((card.utilization_percent, card.temperature_c), (Err(AbsentWhy::NotAvailable), Ok(41.0)));
    }

    #[test]
    fn partitions_are_the_same_card() {
        let text = r#"[{"gpu": 0}, {"gpu": 0}, {"gpu": 1}, {"gpu": "N/A"}]"#;
        assert_eq!(read(text).unwrap().cards.len(), 2);
    }

    #[test]
    fn names_are_added_to_their_cards() {
        let mut cards = read(MI355X).unwrap().cards;
        add_names(
            &mut cards,
            r#"{"gpu_data": [{"gpu": 0, "asic": {"market_name": "AMD Instinct MI355X", "asic_serial": "0x01"}, "bus": {"bdf": "0000:05:00.0"}, "driver": {"version": "6.14"}}, {"gpu": 7}]}"#,
        );
        let card = &cards[0];
        assert_eq!((card.name.as_str(), card.bus_id.as_deref()), ("AMD Instinct MI355X", Some("0000:05:00.0")));
        assert_eq!(card.driver_version.as_deref(), Some("6.14"));
    }

    #[test]
    fn other_text_is_not_understood() {
        for text in ["", "AMD-SMI: error: invalid choice", "{\"other\": 1}", &MI355X[..40]] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
