//! Tables drawn with bars, as most vendors' tools print them: cells between `|`, rows between lines of `+`, `-`, `=`.

/// The cells of a table row, trimmed; None for anything else. A row that lost its end has no closing bar: its last
/// number may be cut off, so nothing of it is believed.
pub(crate) fn row_cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// Whether a line begins like a row, whole or not.
pub(crate) fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// A horizontal line between rows, also one that is drawn with bars at its ends. One that lost its end is none.
pub(crate) fn is_border(line: &str) -> bool {
    let line = line.trim();
    let is_drawn = line.chars().all(|c| matches!(c, '+' | '-' | '=' | '|'));
    let begins = line.starts_with('+') || line.starts_with("|-") || line.starts_with("|=");
    is_drawn && begins && line.ends_with(['+', '|'])
}

/// The cells of a few rows that belong together.
pub(crate) type Block<'a> = Vec<Vec<&'a str>>;

/// A table in which every card has a block of rows between borders.
#[derive(Debug, PartialEq)]
pub(crate) struct Blocks<'a> {
    pub heading: Block<'a>,
    pub cards: Vec<Block<'a>>,
    /// The border at the end is missing: there may be more.
    pub is_cut_off: bool,
}

/// Reads the table below the first block whose first row is a heading. It ends at rows of another width, as those of a
/// table of processes are. None without such a heading.
pub(crate) fn blocks(text: &str, is_heading: impl Fn(&[&str]) -> bool) -> Option<Blocks<'_>> {
    let lines: Vec<&str> = text.lines().filter(|line| is_border(line) || is_row(line)).collect();
    let mut parts = lines.split(|line| is_border(line)).filter(|rows| !rows.is_empty());
    let heading: Block = parts.by_ref().map(read_block).find(|rows| rows.first().is_some_and(|row| is_heading(row)))?;
    let width = heading.first().map_or(0, Vec::len);
    let is_card = |block: &Block| block.iter().all(|row| row.is_empty() || row.len() == width);
    let mut cards: Vec<Block> = parts.map(read_block).take_while(is_card).collect();
    let is_cut_off = lines.last().is_none_or(|last| is_row(last) && !is_border(last));
    if is_cut_off {
        // Either the last card lacks rows, or what follows the cards lacks some.
        cards.retain(|block| block.iter().all(|row| !row.is_empty()));
    }
    Some(Blocks { heading, cards, is_cut_off })
}

/// A row that lost its end has no cells.
fn read_block<'a>(rows: &[&'a str]) -> Block<'a> {
    rows.iter().map(|row| row_cells(row).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_its_closing_bar_is_no_row() {
        assert_eq!(row_cells("| 0 | OK |"), Some(vec!["0", "OK"]));
        assert_eq!(row_cells("| 0 | 3410 / 655"), None);
    }

    #[test]
    fn cards_stand_between_borders_and_end_at_another_table() {
        let text = "+--+\n| x |\n+--+\n| Card | Bus |\n| Temp | Memory |\n|==+==|\n| 0 | a |\n| 1C | 2 |\n+--+\n\n+--+\n| Process |\n+--+\n";
        let table = blocks(text, |cells| cells.first() == Some(&"Card")).unwrap();
        assert_eq!(table.cards, [vec![vec!["0", "a"], vec!["1C", "2"]]]);
        assert!(!table.is_cut_off);
        assert_eq!(blocks(text, |cells| cells.first() == Some(&"GPU")), None);
    }

    #[test]
    fn a_table_that_ends_within_a_card_is_cut_off() {
        let text = "+--+\n| Card | Bus |\n|==+==|\n| 0 | a |\n+--+\n| 1 | b";
        let table = blocks(text, |cells| cells.first() == Some(&"Card")).unwrap();
        assert_eq!((table.cards.len(), table.is_cut_off), (1, true));
    }

    #[test]
    fn borders_are_told_from_rows() {
        for border in ["+---+", "+===+===+", "|===+===|", "|-----|"] {
            assert!(is_border(border), "{border}");
        }
        for other in ["| 0 |", "|   |", "", "text", "+---+--"] {
            assert!(!is_border(other), "{other}");
        }
    }
}
