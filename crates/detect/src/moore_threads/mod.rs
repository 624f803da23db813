//! Moore Threads, by its tool `mthreads-gmi`.

use crate::card::Card;
use crate::figures;
use crate::one_tool::{Description, Listing, Way};
use crate::tool::ToolOutput;
use crate::vendor::Maker;
use crate::{json, pci};
use api::DeviceType;
use serde_json::Value;

/// The tool's name.
const TOOL: &str = "mthreads-gmi";

pub(crate) const MOORE_THREADS: Description = Description {
    maker: Maker::MooreThreads,
    kind: DeviceType::Musa,
    library: None,
    ways: &[Way { tool: TOOL, question: &["--query", "--json"], parse, more: &[] }],
    directories: &["/usr/bin", "/usr/local/musa/bin"],
    libraries: &["/usr/local/musa/lib"],
    nodes: &["/dev/mtgpu.0"],
    has_exporter: false,
    module: "mtgpu",
};

fn parse(output: &ToolOutput) -> Option<Listing> {
    let value = json::parse(&output.stdout)?;
    let listed = json::member(&value, "GPU")?.as_array()?;
    let driver_version = json::word(json::member(&value, "Driver Version"));
    let mut cards = Vec::new();
    let mut unreadable = Vec::new();
    for told in listed {
        match card(told) {
            Some(card) => cards.push(Card { driver_version: driver_version.clone(), ..card }),
            None => unreadable.push(told.to_string()),
        }
    }
    Listing::with_unreadable(TOOL, cards, &unreadable.iter().map(String::as_str).collect::<Vec<_>>())
}

fn card(value: &Value) -> Option<Card> {
    let word = |way: &[&str]| json::word(json::at(value, way));
    let figure = |way: &[&str], read| json::figure(json::at(value, way), read);
    let name = word(&["Product Name"]).unwrap_or_else(|| Maker::MooreThreads.name().to_owned());
    Some(Card {
        uuid: word(&["GPU UUID"]),
        bus_id: word(&["PCI", "Bus ID"]).as_deref().and_then(pci::address),
        firmware_version: word(&["MTBios Version"]),
        utilization_percent: figure(&["Utilization", "Gpu"], figures::percent),
        memory_total_bytes: json::bytes(json::at(value, &["FB Memory Usage", "Total"])),
        memory_used_bytes: json::bytes(json::at(value, &["FB Memory Usage", "Used"])),
        temperature_c: figure(&["Temperature", "GPU Current Temp"], figures::celsius),
        power_w: figure(&["Power Readings", "Power Draw"], figures::watts),
        ..Card::new(word(&["Index"])?.parse().ok()?, &name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const S5000: &str = include_str!("../../tests/fixtures/mthreads-gmi-query-json-s5000.txt");

    fn read(stdout: &str) -> Option<Listing> {
        parse(&ToolOutput { is_success: true, exit_code: Some(0), stdout: stdout.into(), stderr: String::new() })
    }

    #[test]
    fn a_usual_answer() {
        let devices: Vec<_> = read(S5000)
            .unwrap()
            .cards
            .into_iter()
            .map(|card| card.into_device(Maker::MooreThreads, DeviceType::Musa))
            .collect();
        insta::assert_json_snapshot!("moore_threads_s5000", devices);
    }

    #[test]
    fn other_text_is_not_understood() {
        for text in ["", "mthreads-gmi: driver not loaded", "{\"GPU\": 1}", &S5000[..200]] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
