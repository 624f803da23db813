//! Text of vendors' tools made fit to be shown to people.

/// How much of a tool's output goes into a reason, in characters.
const EXCERPT_CHARACTERS: usize = 500;
/// How much of it is kept for a diagnostics bundle, in characters.
const SAMPLE_CHARACTERS: usize = 8_192;
/// Words whose value is nobody's business, in names of settings.
const SECRET_WORDS: [&str; 6] = ["token", "password", "passwd", "secret", "credential", "apikey"];
/// What stands in place of a secret.
const HIDDEN: &str = "***";
/// How much of one cell of a tool's table is kept, in characters.
const CELL_CHARACTERS: usize = 64;

/// The first lines of what a tool printed, without blank lines and without characters that could move a terminal's
/// cursor or reorder text on a screen.
pub(crate) fn excerpt(output: &str) -> String {
    bounded(output.lines().map(visible).filter(|line| !line.is_empty()), EXCERPT_CHARACTERS)
}

/// As much as helps to understand a layout, with its columns in place, clean like an excerpt and without secrets.
pub(crate) fn sample(output: &str) -> String {
    let kept = |line: &str| without_secrets(shown(line).trim_end());
    bounded(output.lines().map(kept).filter(|line| !line.is_empty()), SAMPLE_CHARACTERS)
}

/// Whole words only: `--token=abc`, `api_key: abc`, `--password abc`.
fn without_secrets(line: &str) -> String {
    let mut hide_next = false;
    let words = line.split(' ').map(|word| {
        if word.is_empty() {
            return word.to_owned();
        }
        if std::mem::take(&mut hide_next) {
            return HIDDEN.to_owned();
        }
        let (name, value) = word.split_once(['=', ':']).unwrap_or((word, ""));
        if !is_secret(name) {
            return word.to_owned();
        }
        hide_next = value.is_empty();
        if value.is_empty() { word.to_owned() } else { format!("{name}={HIDDEN}") }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_secret(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| letters.contains(word))
}

fn bounded(lines: impl Iterator<Item = String>, most_characters: usize) -> String {
    let mut excerpt = String::new();
    let mut room = most_characters;
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

/// The file of a loader's error: `… error while loading shared libraries: libc_sec.so: cannot open …`.
pub(crate) fn missing_library(printed: &str) -> Option<String> {
    let library = |line: &str| {
        let (_, after) = line.split_once("error while loading shared libraries:")?;
        let (library, _) = after.split_once(':')?;
        Some(cell(library))
    };
    printed.lines().find_map(library)
}

/// The first word and what follows it.
pub(crate) fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(first, rest)| (first, rest.trim_start()))
}

/// The word that follows the first `label` in what a tool printed.
pub(crate) fn after(printed: &str, label: &str) -> Option<String> {
    let (_, after) = printed.split_once(label)?;
    let word = cell(first_word(after.lines().next()?).0);
    (!word.is_empty() && crate::figures::absent(&word).is_none()).then_some(word)
}

/// One word or name out of a tool's table, bounded and clean.
pub(crate) fn cell(text: &str) -> String {
    visible(text).chars().take(CELL_CHARACTERS).collect()
}

fn visible(line: &str) -> String {
    shown(line).trim().to_owned()
}

fn shown(line: &str) -> String {
    let spaced = line.chars().map(|c| if c == '\t' { ' ' } else { c });
    spaced.filter(|&c| !c.is_control() && !is_invisible(c)).collect()
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

    #[test]
    fn a_sample_keeps_columns_and_hides_secrets() {
        let printed = "| 0   python  |\r\n\nserve --token abc --port 80 api_key=xyz HF_TOKEN:abc\n";
        assert_eq!(sample(printed), "| 0   python  |\nserve --token *** --port 80 api_key=*** HF_TOKEN=***");
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
