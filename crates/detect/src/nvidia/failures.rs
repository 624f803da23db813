//! What `nvidia-smi` says in sentences: that it cannot do its work, or that one card is gone.

use super::TOOL;
use crate::{pci, text};
use api::Reason;

/// How a sentence about a card that is gone begins.
const LOST: &str = "unable to determine the device handle for ";

/// A card that its driver does not reach any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LostCard {
    /// As far as the tool gives it.
    pub index: Option<u32>,
    pub bus_id: Option<String>,
    /// e.g. `GPU is lost`.
    pub why: String,
}

impl LostCard {
    /// `tool` is who says so.
    pub(super) fn reason(&self, tool: &str) -> Reason {
        let index = self.index.map(|index| format!("GPU{index}"));
        let device = index.into_iter().chain(self.bus_id.clone()).collect::<Vec<_>>().join(" ");
        Reason::DeviceLost { tool: tool.to_owned(), device }
    }
}

/// Reads `Unable to determine the device handle for GPU1: 0000:0A:00.0: GPU is lost.  Reboot the system …` and
/// `… for GPU0000:01:00.0: GPU has fallen off the bus.`; None for other lines.
pub(super) fn lost_card(line: &str) -> Option<LostCard> {
    let line = line.trim();
    let is_sentence = line.get(..LOST.len()).is_some_and(|start| start.eq_ignore_ascii_case(LOST));
    let rest = line.get(LOST.len()..).filter(|_| is_sentence)?;
    let rest = rest.strip_prefix("GPU").or_else(|| rest.strip_prefix("gpu")).unwrap_or(rest);
    let words: Vec<&str> = rest.split_whitespace().collect();
    let bare = |word: &&str| word.trim_end_matches(':').to_owned();
    let address_at = words.iter().position(|word| pci::address(&bare(word)).is_some());
    let index = words.first().filter(|_| address_at != Some(0)).and_then(|word| bare(word).parse().ok());
    let why_from = address_at.or(index.map(|_| 0)).map_or(0, |at| at + 1);
    let why = words.get(why_from..).unwrap_or_default().join(" ");
    let why = why.split_once('.').map_or(why.as_str(), |(first, _)| first);
    let bus_id = address_at.and_then(|at| words.get(at)).and_then(|word| pci::address(&bare(word)));
    (index.is_some() || bus_id.is_some()).then(|| LostCard { index, bus_id, why: text::cell(why) })
}

/// The cause that the tool's own words give; None when they give none.
pub(super) fn diagnose(printed: &str) -> Option<Reason> {
    let lower = printed.to_lowercase();
    let vendor = || "NVIDIA".to_owned();
    if lower.contains("driver/library version mismatch") {
        return Some(Reason::DriverMismatch {
            vendor: vendor(),
            running: None,
            installed: library_version(printed),
            firmware: None,
        });
    }
    if lower.contains("couldn't communicate with the nvidia driver") || lower.contains("driver not loaded") {
        return Some(Reason::DriverNotLoaded { vendor: vendor(), count: None });
    }
    if lower.contains("couldn't find libnvidia-ml.so") {
        return Some(Reason::DriverLibraryMissing { tool: TOOL.to_owned(), library: "libnvidia-ml.so".to_owned() });
    }
    if lower.contains("insufficient permissions") {
        return Some(Reason::ReadingsForbidden { tool: TOOL.to_owned() });
    }
    None
}

/// Says that there is no card, which is no failure.
pub(super) fn finds_none(printed: &str) -> bool {
    printed.lines().any(|line| line.trim().eq_ignore_ascii_case("no devices were found"))
}

/// `NVML library version: 580.126`.
fn library_version(printed: &str) -> Option<String> {
    let version = |line: &str| line.split_once("NVML library version:").map(|(_, version)| text::cell(version));
    printed.lines().find_map(version).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! fixture {
        ($name:literal) => {
            include_str!(concat!("../../tests/fixtures/nvidia-", $name, ".txt"))
        };
    }

    fn lost(index: Option<u32>, bus_id: &str, why: &str) -> LostCard {
        LostCard { index, bus_id: Some(bus_id.to_owned()), why: why.to_owned() }
    }

    #[test]
    fn a_lost_card_is_known_by_its_number_or_its_address() {
        assert_eq!(
            fixture!("query-one-gpu-lost").lines().find_map(lost_card),
            Some(lost(Some(1), "0000:0a:00.0", "GPU is lost"))
        );
        assert_eq!(
            lost_card(fixture!("smi-error-fallen-off-bus")),
            Some(lost(None, "0000:01:00.0", "GPU has fallen off the bus"))
        );
        assert_eq!(
            lost_card("Unable to determine the device handle for GPU 0000:65:00.0: Unknown Error"),
            Some(lost(None, "0000:65:00.0", "Unknown Error"))
        );
    }

    #[test]
    fn other_sentences_are_about_no_card() {
        for line in ["", "No devices were found", "Unable to determine the device handle for", "0, NVIDIA A100"] {
            assert_eq!(lost_card(line), None, "{line}");
        }
    }

    #[test]
    fn failures_are_told_by_cause() {
        assert_eq!(
            diagnose(fixture!("smi-error-driver-comm")),
            Some(Reason::DriverNotLoaded { vendor: "NVIDIA".into(), count: None })
        );
        assert_eq!(
            diagnose("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126\n"),
            Some(Reason::DriverMismatch {
                vendor: "NVIDIA".into(),
                running: None,
                installed: Some("580.126".into()),
                firmware: None
            })
        );
        assert_eq!(
            diagnose("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system."),
            Some(Reason::DriverLibraryMissing { tool: TOOL.into(), library: "libnvidia-ml.so".into() })
        );
        assert_eq!(
            diagnose("Failed to initialize NVML: Insufficient Permissions"),
            Some(Reason::ReadingsForbidden { tool: TOOL.into() })
        );
        for text in [fixture!("smi-error-nvml-unknown"), fixture!("smi-error-no-devices"), ""] {
            assert_eq!(diagnose(text), None, "{text}");
        }
        assert!(finds_none(fixture!("smi-error-no-devices")));
    }

    proptest::proptest! {
        #[test]
        fn any_sentence_is_read_without_a_panic(rest in "(GPU|[0-9a-fA-F]{1,4}|[:. ]|\\PC){0,40}") {
            let _ = lost_card(&format!("Unable to determine the device handle for {rest}"));
            let _ = lost_card(&rest);
        }
    }
}
