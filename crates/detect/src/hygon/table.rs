//! The table of `hy-smi` without arguments: a heading of names and a line of words for each card. Which columns there
//! are differs from release to release.

use super::TOOL;
use crate::card::Card;
use crate::figures::{self, Figure};
use crate::one_tool::Listing;
use crate::tool::ToolOutput;
use api::AbsentWhy;

pub(super) fn parse(output: &ToolOutput) -> Option<Listing> {
    let mut lines = output.stdout.lines();
    let columns = lines.find_map(columns)?;
    let rows: Vec<&str> = lines.map(str::trim).take_while(|line| !line.starts_with("===")).collect();
    let (mut cards, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows.into_iter().filter(|row| !row.is_empty()) {
        match card(&columns, row) {
            Some(card) => cards.push(card),
            None => unreadable.push(row),
        }
    }
    // Without the line below it the table is cut off.
    let ends = output.stdout.lines().filter(|line| line.trim_start().starts_with("===")).count();
    let answer = Listing::with_unreadable(TOOL, cards, &unreadable)?;
    Some(if ends < 3 { answer.cut_off(TOOL, &output.stdout) } else { answer })
}

fn columns(line: &str) -> Option<Vec<String>> {
    let words: Vec<String> = line.split_whitespace().map(str::to_lowercase).collect();
    let is_heading =
        matches!(words.first().map(String::as_str), Some("hcu" | "dcu")) && words.iter().any(|word| word == "temp");
    is_heading.then_some(words)
}

fn card(columns: &[String], row: &str) -> Option<Card> {
    let words: Vec<&str> = row.split_whitespace().collect();
    if words.len() != columns.len() {
        return None;
    }
    let figure = |names: &[&str], read: fn(&str) -> Figure<f64>| {
        let at = columns.iter().position(|column| names.contains(&column.as_str()));
        at.and_then(|at| words.get(at)).map_or(Err(AbsentWhy::NotTold), |word| read(word))
    };
    let index = u32::try_from(figures::integer(words.first()?).ok()?).ok()?;
    Some(Card {
        utilization_percent: figure(&["hcu%", "dcu%"], figures::percent),
        temperature_c: figure(&["temp"], figures::celsius),
        power_w: figure(&["avgpwr"], figures::watts),
        ..Card::new(index, "Hygon DCU")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::Maker;
    use api::DeviceType;

    const BW1000: &str = include_str!("../../tests/fixtures/hy-smi-table-bw1000.txt");

    fn read(stdout: &str) -> Option<Listing> {
        parse(&ToolOutput { is_success: true, exit_code: Some(0), stdout: stdout.into(), stderr: String::new() })
    }

    #[test]
    fn a_table_with_use_of_decoders() {
        let cards = read(BW1000).unwrap();
        assert!(!cards.is_partial);
        let devices: Vec<_> =
            cards.cards.into_iter().map(|card| card.into_device(Maker::Hygon, DeviceType::Dcu)).collect();
        insta::assert_json_snapshot!("hygon_bw1000", devices);
    }

    #[test]
    fn a_table_without_them() {
        let older = BW1000
            .replace("Dec%      Enc%      ", "")
            .replace("0.0%      0.0%      Normal", "Normal")
            .replace("HCU", "DCU");
        let cards = read(&older).unwrap().cards;
        assert_eq!((cards.len(), cards[1].temperature_c, cards[1].power_w), (2, Ok(52.0), Ok(89.0)));
    }

    #[test]
    fn a_line_shown_once_more_is_one_card() {
        let row = BW1000.lines().find(|line| line.starts_with("0 ")).unwrap();
        assert_eq!(read(&BW1000.replace(row, &format!("{row}\n{row}"))).unwrap().cards.len(), 2);
    }

    #[test]
    fn other_text_is_not_understood() {
        for text in ["", "hy-smi: error while loading", "HCU is not here"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_table_cut_off_anywhere_has_no_wrong_card_or_is_partial(at in 0usize..600) {
            let whole = read(BW1000).unwrap().cards;
            let Some(cut) = read(&BW1000[..at.min(BW1000.len())]) else { return Ok(()) };
            proptest::prop_assert!(cut.is_partial || cut.cards == whole);
            proptest::prop_assert!(cut.cards.len() <= whole.len());
        }
    }
}
