//! `nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv,noheader,nounits`.

use crate::card::Card;
use crate::{figures, text};
use api::DeviceProcess;

/// Gives each card its processes, none to those that are not named.
pub(super) fn add(cards: &mut [Card], printed: &str) {
    for card in cards.iter_mut().filter(|card| !card.is_lost) {
        card.processes = Some(Vec::new());
    }
    for (uuid, process) in printed.lines().filter_map(parse) {
        let card = cards.iter_mut().find(|card| card.uuid.as_deref() == Some(uuid));
        if let Some(processes) = card.and_then(|card| card.processes.as_mut()) {
            processes.push(process);
        }
    }
}

/// None for a line without a process: some cards put words in its place.
fn parse(line: &str) -> Option<(&str, DeviceProcess)> {
    let mut cells = line.splitn(4, ',').map(str::trim);
    let (uuid, pid, memory) = (cells.next()?, cells.next()?, cells.next()?);
    let process = DeviceProcess {
        pid: u32::try_from(figures::integer(pid).ok()?).ok()?,
        name: cells.next().map(text::cell).unwrap_or_default(),
        memory_bytes: figures::mebibytes(memory).ok(),
    };
    Some((uuid, process))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::MIB_BYTES;

    const PRINTED: &str = include_str!("../../tests/fixtures/nvidia-compute-apps-not-supported.txt");

    fn card(number: u32) -> Card {
        Card { uuid: Some(format!("GPU-00000000-0000-0000-0000-00000000000{number}")), ..Card::new(number, "A100") }
    }

    #[test]
    fn each_card_gets_its_own_processes_and_words_are_none() {
        let mut cards = [card(0), card(1), card(2)];
        add(&mut cards, PRINTED);
        let process = |pid, mib| DeviceProcess { pid, name: String::new(), memory_bytes: Some(mib * MIB_BYTES) };
        let processes = cards.map(|card| card.processes.unwrap());
        assert_eq!(processes, [vec![process(48_448, 4_000)], vec![], vec![process(38_310, 4_245)]]);
    }

    #[test]
    fn a_name_keeps_its_commas_and_memory_may_be_unknown() {
        let (uuid, process) = parse("GPU-1, 7, [N/A], python -c a,b").unwrap();
        assert_eq!((uuid, process.pid, process.memory_bytes), ("GPU-1", 7, None));
        assert_eq!(process.name, "python -c a,b");
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in "\\PC{0,80}") {
            let _ = parse(&line);
        }
    }
}
