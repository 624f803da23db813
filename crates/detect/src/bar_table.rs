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

/// A horizontal line between rows, also one that is drawn with bars at its ends.
pub(crate) fn is_border(line: &str) -> bool {
    let line = line.trim();
    let is_drawn = line.chars().all(|c| matches!(c, '+' | '-' | '=' | '|'));
    is_drawn && (line.starts_with('+') || line.starts_with("|-") || line.starts_with("|="))
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
    fn borders_are_told_from_rows() {
        for border in ["+---+", "+===+===+", "|===+===|", "|-----|"] {
            assert!(is_border(border), "{border}");
        }
        for other in ["| 0 |", "|   |", "", "text"] {
            assert!(!is_border(other), "{other}");
        }
    }
}
