//! Text of vendors' tools made fit to be shown to people.

/// How much of a tool's output goes into a reason, in characters.
const EXCERPT_CHARACTERS: usize = 500;
/// How much of one cell of a tool's table is kept, in characters.
const CELL_CHARACTERS: usize = 64;

/// The first lines of what a tool printed, without blank lines and without characters that could move a terminal's
/// cursor or reorder text on a screen.
pub(crate) fn excerpt(output: &str) -> String {
    let lines = output.lines().map(visible).filter(|line| !line.is_empty());
    let mut excerpt = String::new();
    let mut room = EXCERPT_CHARACTERS;
    for line in lines {
        if !excerpt.is_empty() {
            excerpt.push('\n');
            room = room.saturating_sub(1);
        }
        excerpt.extend(line.chars().take(room));
        room = room.saturating_sub(line.chars().count());
        if room == 0 {
            break;
        }
    }
    excerpt.truncate(excerpt.trim_end().len());
    excerpt
}

/// One word or name out of a tool's table, bounded and clean.
pub(crate) fn cell(text: &str) -> String {
    visible(text).chars().take(CELL_CHARACTERS).collect()
}

fn visible(line: &str) -> String {
    let spaced: String = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    spaced.chars().filter(|&c| !c.is_control() && !is_invisible(c)).collect::<String>().trim().to_owned()
}

/// Zero-width characters and those that change the direction of text (Unicode, general category Cf).
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_blank_lines_go_and_lines_stay() {
        assert_eq!(excerpt("\u{1b}[31mbad\u{7}\r\n\n\tnews\u{202e}  \n"), "[31mbad\nnews");
    }

    #[test]
    fn an_excerpt_is_bounded_in_characters_not_bytes() {
        let long = "错".repeat(2_000);
        assert_eq!(excerpt(&long).chars().count(), EXCERPT_CHARACTERS);
    }

    proptest::proptest! {
        #[test]
        fn an_excerpt_is_short_and_clean_whatever_comes_in(text in "\\PC{0,300}(\n|\\x00|\u{1b}){0,9}\\PC{0,900}") {
            let excerpt = excerpt(&text);
            proptest::prop_assert!(excerpt.chars().count() <= EXCERPT_CHARACTERS);
            proptest::prop_assert!(excerpt.chars().all(|c| c == '\n' || !c.is_control()));
        }
    }
}
