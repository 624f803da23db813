//! `nvidia-smi -L`: the cards, and below each the parts it is cut into (multi-instance GPU).

use crate::card::Card;
use crate::text;
use api::DevicePartition;

/// What stands for the parts of a card in multi-instance mode until they are listed: one without a name.
pub(super) fn unknown_as_yet(mode: Option<&str>) -> Vec<DevicePartition> {
    let is_cut = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("enabled"));
    if is_cut { vec![DevicePartition::default()] } else { Vec::new() }
}

/// Whether any card is cut into parts.
pub(super) fn may_be_there(cards: &[Card]) -> bool {
    cards.iter().any(|card| !card.partitions.is_empty())
}

/// Gives each card its parts. A card in multi-instance mode can have none.
pub(super) fn add(cards: &mut [Card], printed: &str) {
    let list = parse(printed);
    for card in cards.iter_mut().filter(|card| !card.partitions.is_empty()) {
        let own = list.iter().find(|(uuid, _)| Some(uuid) == card.uuid.as_ref());
        card.partitions = own.map(|(_, partitions)| partitions.clone()).unwrap_or_default();
    }
}

/// The id of each card with its parts.
fn parse(printed: &str) -> Vec<(String, Vec<DevicePartition>)> {
    let mut cards: Vec<(String, Vec<DevicePartition>)> = Vec::new();
    for line in printed.lines() {
        let Some(uuid) = uuid(line) else { continue };
        let line = line.trim_start();
        if line.starts_with("GPU ") {
            cards.push((uuid, Vec::new()));
        } else if let Some((_, partitions)) = cards.last_mut() {
            let name = line.strip_prefix("MIG ").and_then(|rest| rest.split_whitespace().next());
            partitions.extend(name.map(|name| DevicePartition { name: text::cell(name), uuid }));
        }
    }
    cards
}

/// What stands in `(UUID: …)`.
fn uuid(line: &str) -> Option<String> {
    let (_, after) = line.split_once("(UUID:")?;
    let (uuid, _) = after.split_once(')')?;
    Some(text::cell(uuid)).filter(|uuid| !uuid.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = include_str!("../../tests/fixtures/nvidia-smi-L-mig-a100.txt");

    fn cut(uuid: &str) -> Card {
        Card {
            uuid: Some(uuid.to_owned()),
            partitions: unknown_as_yet(Some("Enabled")),
            ..Card::new(0, "NVIDIA A100-SXM4-80GB")
        }
    }

    #[test]
    fn each_card_gets_its_own_parts() {
        let mut cards = [cut("GPU-00000000-0000-0000-0000-000000000003"), cut("GPU-of-another-host")];
        add(&mut cards, LIST);
        let part = |number| DevicePartition {
            name: "1g.10gb".into(),
            uuid: format!("MIG-00000000-0000-0000-0000-00000000000{number}"),
        };
        assert_eq!(cards[0].partitions, [part(4), part(5)]);
        assert_eq!(cards[1].partitions, []);
    }

    #[test]
    fn only_the_mode_says_that_a_card_is_cut() {
        assert!(may_be_there(&[cut("")]));
        for mode in [None, Some("Disabled"), Some("[N/A]")] {
            assert_eq!(unknown_as_yet(mode), []);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_list_is_read_without_a_panic(text in "(GPU |MIG |\\(UUID:|\\)|[a-z0-9-]{1,9}| |\n|\\PC){0,60}") {
            let _ = parse(&text);
        }
    }
}
