//! Every parser against real output that has been damaged: cut off, mixed up, spiced with characters that no tool
//! prints. None may panic, and what is read must be in order. `PROPTEST_CASES` makes the runs longer.

use crate::card::Card;
use crate::one_tool::{Listing, Way};
use crate::tool::ToolOutput;
use api::GpuDevice;
use proptest::prelude::*;
use std::collections::HashSet;

/// Ways to damage a text.
#[derive(Clone, Debug)]
enum Damage {
    Delete { from: prop::sample::Index, length: usize },
    Repeat { from: prop::sample::Index, length: usize },
    Insert { at: prop::sample::Index, text: String },
    Replace { at: prop::sample::Index, text: String },
    SwapLines { first: prop::sample::Index, second: prop::sample::Index },
    Truncate { at: prop::sample::Index },
}

fn spice() -> impl Strategy<Value = String> {
    let words = [
        "|",
        "+",
        "-",
        "=",
        ":",
        ",",
        "/",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\n",
        "\r\n",
        "\t",
        "\0",
        "\u{202e}",
        "\u{200b}",
        "\u{fffd}",
        "０",
        "１２３",
        "٣",
        "一",
        "🙂",
        "NA",
        "N/A",
        "[N/A]",
        "ERR!",
        "-1",
        "1e400",
        "nan",
        "inf",
        "4294967296",
        "18446744073709551616",
        "MiB",
        "%",
        "NPU",
        "Chip",
        "GPU",
        "Card",
        "Process id",
        "0000:00:00.0",
    ];
    prop_oneof![prop::sample::select(words.to_vec()).prop_map(str::to_owned), "\\PC{0,8}", "[0-9]{1,25}"]
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), 1usize..200).prop_map(|(from, length)| Damage::Delete { from, length }),
        (index(), 1usize..200).prop_map(|(from, length)| Damage::Repeat { from, length }),
        (index(), spice()).prop_map(|(at, text)| Damage::Insert { at, text }),
        (index(), spice()).prop_map(|(at, text)| Damage::Replace { at, text }),
        (index(), index()).prop_map(|(first, second)| Damage::SwapLines { first, second }),
        index().prop_map(|at| Damage::Truncate { at }),
    ]
}

fn apply(text: &str, damage: &Damage) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return text.to_owned();
    }
    let place = |index: &prop::sample::Index| index.index(characters.len());
    match damage {
        Damage::Delete { from, length } => {
            let from = place(from);
            let to = (from + length).min(characters.len());
            characters.drain(from..to);
        }
        Damage::Repeat { from, length } => {
            let from = place(from);
            let piece = characters[from..(from + length).min(characters.len())].to_vec();
            characters.splice(from..from, piece);
        }
        Damage::Insert { at, text } => {
            let at = place(at);
            characters.splice(at..at, text.chars());
        }
        Damage::Replace { at, text } => {
            let at = place(at);
            characters.splice(at..=at, text.chars());
        }
        Damage::SwapLines { first, second } => {
            let mut lines: Vec<&str> = text.split('\n').collect();
            let (first, second) = (first.index(lines.len()), second.index(lines.len()));
            lines.swap(first, second);
            return lines.join("\n");
        }
        Damage::Truncate { at } => characters.truncate(place(at)),
    }
    characters.into_iter().collect()
}

/// One of the texts, damaged a few times.
pub(crate) fn damaged(texts: Vec<&'static str>) -> impl Strategy<Value = String> {
    (prop::sample::select(texts), prop::collection::vec(damage(), 0..6))
        .prop_map(|(text, damages)| damages.iter().fold(text.to_owned(), |text, damage| apply(&text, damage)))
}

/// Names are short and clean, numbers are possible, no two devices have one number.
pub(crate) fn are_in_order(devices: &[GpuDevice]) -> bool {
    let is_clean = |text: &str| text.chars().count() <= 64 && !text.chars().any(char::is_control);
    let numbers: HashSet<u32> = devices.iter().map(|device| device.index).collect();
    let is_in_order = |device: &GpuDevice| {
        let percent = device.core.as_ref().and_then(|core| core.utilization_rate);
        let memory = device.memory.as_ref();
        let texts =
            [&device.uuid, &device.bus_id, &device.driver_version, &device.firmware_version, &device.runtime_version];
        percent.is_none_or(|percent| (0.0..=100.0).contains(&percent))
            && device.temperature.is_none_or(|degrees| (-100.0..=200.0).contains(&degrees))
            && device.power_w.is_none_or(|watts| (0.0..=100_000.0).contains(&watts))
            && memory.and_then(|memory| memory.total).is_none_or(|total| total > 0)
            && memory.and_then(|memory| memory.utilization_rate).is_none_or(|rate| (0.0..=100.0).contains(&rate))
            && is_clean(&device.name)
            && texts.into_iter().flatten().all(|text| is_clean(text))
    };
    numbers.len() == devices.len() && devices.iter().all(is_in_order)
}

fn parse_all(ways: &[Way], text: &str) -> Vec<Listing> {
    let mut listings = Vec::new();
    for is_success in [true, false] {
        let output = ToolOutput { is_success, exit_code: Some(0), stdout: text.to_owned(), stderr: String::new() };
        for way in ways {
            let Some(mut listing) = (way.parse)(&output) else { continue };
            for more in way.more {
                (more.add)(&mut listing.cards, text);
            }
            listings.push(listing);
        }
    }
    listings
}

fn all_are_in_order(ways: &[Way], text: &str) -> bool {
    let devices = |cards: Vec<Card>| -> Vec<GpuDevice> {
        cards.into_iter().map(|card| card.into_device(crate::vendor::Maker::Amd, api::DeviceType::Unknown)).collect()
    };
    parse_all(ways, text).into_iter().all(|listing| are_in_order(&devices(listing.cards)))
}

macro_rules! fixtures {
    ($($name:literal),* $(,)?) => {
        vec![$(include_str!(concat!("../tests/fixtures/", $name, ".txt"))),*]
    };
}

proptest! {
    #[test]
    fn damaged_output_for_nvidia(text in damaged(fixtures![
        "nvidia-query-gb10-index-name", "nvidia-query-mig-insufficient-permissions", "nvidia-query-one-gpu-lost",
        "nvidia-query-a100-noheader-nounits", "nvidia-compute-apps-not-supported", "nvidia-smi-L-mig-a100",
        "nvidia-smi-table-mig-enabled-a800", "nvidia-smi-error-fallen-off-bus", "nvidia-smi-error-driver-comm",
    ]), with_heading in any::<bool>()) {
        let heading = "index, name, uuid, memory.total [MiB], memory.used [MiB], utilization.gpu [%], mig.mode.current\n";
        let text = if with_heading { format!("{heading}{text}") } else { text };
        prop_assert!(all_are_in_order(crate::nvidia::NVIDIA.ways, &text));
    }

    #[test]
    fn damaged_output_for_amd_and_hygon(text in damaged(fixtures![
        "amd-smi-metric-json-apu-gtt", "amd-smi-metric-json-mi355x-gpu_data", "rocm-smi-json-rx7800xt-6.2.4",
        "hy-smi-json-dcu-24.04.3", "hy-smi-table-bw1000",
    ])) {
        prop_assert!(all_are_in_order(crate::amd::AMD.ways, &text));
        prop_assert!(all_are_in_order(crate::hygon::HYGON.ways, &text));
    }

    #[test]
    fn damaged_output_for_other_makers(text in damaged(fixtures![
        "mx-smi-c500-2.2.4", "cnmon-mlu370-x8-5.10.13", "ixsmi-bi-v150s-4.0.0", "mthreads-gmi-query-json-s5000",
    ])) {
        prop_assert!(all_are_in_order(crate::metax::METAX.ways, &text));
        prop_assert!(all_are_in_order(crate::cambricon::CAMBRICON.ways, &text));
        prop_assert!(all_are_in_order(crate::iluvatar::ILUVATAR.ways, &text));
        prop_assert!(all_are_in_order(crate::moore_threads::MOORE_THREADS.ways, &text));
    }
}
