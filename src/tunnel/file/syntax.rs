//! What is wrong with a text that is no YAML, and where: where somebody has to write something else, not where a reader
//! noticed it.

use super::problem::shown;
use super::yaml::Position;

/// A frequent slip, or another one in the words of the YAML reader.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slip {
    /// A tab, where YAML wants spaces.
    Tab,
    /// A line that should be `key: value` or `key:`, and has no colon.
    NoColon {
        /// The line.
        line: String,
    },
    /// A colon without a space behind it.
    NoSpace {
        /// What stands before the colon.
        key: String,
        /// What stands behind it.
        value: String,
    },
    /// `：`, the colon of Chinese texts.
    WideColon {
        /// What stands before it.
        key: String,
    },
    /// A value with `: ` in it.
    ColonInValue,
    /// A quotation mark without its other half.
    OpenQuote,
    /// Something behind the closing quotation mark.
    BehindQuote,
    /// `\` in double quotes begins something that does not exist.
    Escape,
    /// A bracket that does not close.
    OpenBracket {
        /// `[` or `{`.
        bracket: char,
    },
    /// Two entries in brackets without a comma in between.
    NoComma,
    /// A closing bracket that nothing opened.
    StrayBracket,
    /// A line begins further left or right than those that it belongs to.
    Indentation,
    /// A list that begins behind a key.
    ListBehindKey,
    /// A value that begins with a character which means something in YAML.
    NeedsQuotes {
        /// The character.
        first: char,
    },
    /// Something else.
    Other {
        /// The reader's words.
        said: String,
    },
}

/// The slip behind what the reader said about a place.
pub fn slip(text: &str, at: Position, said: &str) -> (Position, Slip) {
    let text = Text { lines: text.lines().collect() };
    text.slip(at, said).unwrap_or_else(|| (at, Slip::Other { said: shown(said) }))
}

struct Text<'a> {
    lines: Vec<&'a str>,
}

impl<'a> Text<'a> {
    fn slip(&self, at: Position, said: &str) -> Option<(Position, Slip)> {
        let is = |part: &str| said.contains(part);
        if is("tab") {
            return Some((self.tab(at.line)?, Slip::Tab));
        }
        if is("content after") && is("quoted") {
            return Some((at, Slip::BehindQuote));
        }
        if is("quoted scalar") {
            return Some((at, if is("escape") || is("hexadecimal") { Slip::Escape } else { Slip::OpenQuote }));
        }
        if is("flow mapping") || is("flow sequence") || is("flow construct") || is("illegal placement of ':'") {
            return Some(self.bracket(at));
        }
        if is("misplaced bracket") {
            return Some((at, Slip::StrayBracket));
        }
        if is("simple key expect") {
            return self.colon(at.line);
        }
        if is("mapping values are not allowed") {
            return self.mapping(at);
        }
        if is("block sequence entries are not allowed") {
            return Some((at, Slip::ListBehindKey));
        }
        if is("expected key") || is("indentation") || is("expected '-'") {
            return Some((at, Slip::Indentation));
        }
        if is("<document start>") {
            // the first line is further right than this one
            return Some((at, Slip::Indentation)).filter(|_| self.first().is_some_and(|line| line.starts_with(' ')));
        }
        let first = self.line(at.line)?.chars().nth(at.column.checked_sub(1)?)?;
        "@`*&!%|>".contains(first).then_some((at, Slip::NeedsQuotes { first }))
    }

    fn line(&self, number: usize) -> Option<&'a str> {
        self.lines.get(number.checked_sub(1)?).copied()
    }

    /// The first line that says something.
    fn first(&self) -> Option<&'a str> {
        self.lines.iter().copied().find(|line| is_said(line))
    }

    /// The last line that says something, before this one.
    fn before(&self, number: usize) -> Option<(usize, &'a str)> {
        (1..number).rev().filter_map(|number| Some((number, self.line(number)?))).find(|(_, line)| is_said(line))
    }

    /// The first tab that indents, from a line on; where none does, the first of that line.
    fn tab(&self, number: usize) -> Option<Position> {
        let place = |line: usize, text: &str| {
            let column = text.chars().position(|c| c == '\t')? + 1;
            Some(Position { line, column })
        };
        let indents = |text: &str| text.get(..text.len() - text.trim_start().len()).map(|indent| indent.contains('\t'));
        let from = (number..=self.lines.len()).filter_map(|line| Some((line, self.line(line)?)));
        let indented = from.into_iter().find(|(_, text)| indents(text) == Some(true));
        indented.and_then(|(line, text)| place(line, text)).or_else(|| place(number, self.line(number)?))
    }

    /// A colon where none may be: the value has one, the line before is none of `key: value`, or this one does not belong
    /// under that.
    fn mapping(&self, at: Position) -> Option<(Position, Slip)> {
        let line = self.line(at.line)?;
        let first_colon = key_end(line)?;
        if column_of(line, first_colon) < at.column {
            return Some((begin(at.line, line, first_colon + 1), Slip::ColonInValue));
        }
        let (number, before) = self.before(at.line)?;
        match key_end(before) {
            Some(_) => Some((begin(at.line, line, 0), Slip::Indentation)),
            None => Some(no_colon(number, before)),
        }
    }

    /// The last line without a colon, from this one on upwards.
    fn colon(&self, number: usize) -> Option<(Position, Slip)> {
        let lines = (1..=number).rev().filter_map(|number| Some((number, self.line(number)?)));
        let (number, line) = lines.filter(|(_, line)| is_said(line)).find(|(_, line)| key_end(line).is_none())?;
        Some(no_colon(number, line))
    }

    /// The innermost bracket that is open before a place; a comma is missing when it closes in its line.
    fn bracket(&self, at: Position) -> (Position, Slip) {
        let mut open: Vec<(Position, char)> = Vec::new();
        for (index, line) in self.lines.iter().enumerate().take(at.line) {
            for (column, c) in outside_quotes(line) {
                let place = Position { line: index + 1, column: column + 1 };
                if place >= at {
                    break;
                }
                match c {
                    '[' | '{' => open.push((place, c)),
                    ']' | '}' => drop(open.pop()),
                    _ => {}
                }
            }
        }
        let Some((place, bracket)) = open.last().copied() else { return (at, Slip::StrayBracket) };
        let closing = if bracket == '[' { ']' } else { '}' };
        let rest = self.line(place.line).map(outside_quotes).unwrap_or_default();
        let closes = place.line == at.line && rest.iter().any(|(column, c)| *column >= place.column && *c == closing);
        if closes { (at, Slip::NoComma) } else { (place, Slip::OpenBracket { bracket }) }
    }
}

/// Whether it is more than a comment.
fn is_said(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// Where the colon behind a line's key is, in bytes.
fn key_end(line: &str) -> Option<usize> {
    let before_comment = line.split(" #").next().unwrap_or(line);
    before_comment.find(": ").or_else(|| {
        let trimmed = before_comment.trim_end();
        trimmed.ends_with(':').then(|| trimmed.len() - 1)
    })
}

/// The number, from 1, of the character that begins at a byte.
fn column_of(line: &str, byte: usize) -> usize {
    line.get(..byte).map_or(1, |before| before.chars().count() + 1)
}

/// The first character of a line, from a byte on, that is no space.
fn begin(number: usize, line: &str, from: usize) -> Position {
    let spaces = line.get(from..).map_or(0, |rest| rest.len() - rest.trim_start().len());
    Position { line: number, column: column_of(line, from + spaces) }
}

fn no_colon(number: usize, line: &str) -> (Position, Slip) {
    let place = begin(number, line, 0);
    let said = line.trim().trim_start_matches("- ");
    let slip = match said.split_once([':', '：']) {
        Some((key, _)) if said.contains('：') => Slip::WideColon { key: shown(key) },
        Some((key, value)) => Slip::NoSpace { key: shown(key), value: shown(value) },
        None => Slip::NoColon { line: shown(said) },
    };
    (place, slip)
}

/// The characters of a line that no quotation marks hold, with their places from 0, as far as its comment.
fn outside_quotes(line: &str) -> Vec<(usize, char)> {
    let mut quote = None;
    let mut before = ' ';
    let mut outside = Vec::new();
    for (column, c) in line.chars().enumerate() {
        match quote {
            Some(mark) if c == mark => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"') && !before.is_alphanumeric() => quote = Some(c),
            None if c == '#' && before == ' ' => break,
            None => outside.push((column, c)),
        }
        before = c;
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::super::problem::Fault;
    use super::super::yaml::parse;
    use super::*;

    fn found(text: &str) -> (usize, usize, Slip) {
        let problem = parse(text).unwrap_err();
        let Fault::Syntax { slip } = problem.fault else { panic!("{text}: {:?}", problem.fault) };
        (problem.position.line, problem.position.column, slip)
    }

    fn no_colon(line: &str) -> Slip {
        Slip::NoColon { line: line.to_owned() }
    }

    #[test]
    fn frequent_slips_are_told_where_they_are() {
        let space = |key: &str, value: &str| Slip::NoSpace { key: key.to_owned(), value: value.to_owned() };
        let wide = || Slip::WideColon { key: "id".to_owned() };
        let table = [
            ("a: 1\nworkers:\n\tnpu-1: {ssh: x}\n", 3, 1, Slip::Tab),
            ("workers:\n  npu-1:\n  \tssh: x\n", 3, 3, Slip::Tab),
            ("report: false\n\tid: x\n", 2, 1, Slip::Tab),
            ("id: x\nhere bastion\nreport: true\n", 2, 1, no_colon("here bastion")),
            ("id: x\nhere bastion\n\n# more\n", 2, 1, no_colon("here bastion")),
            ("id x\nhere: bastion\n", 1, 1, no_colon("id x")),
            ("server:\n  address 10.0.0.1\n  ssh: root@x\n", 2, 3, no_colon("address 10.0.0.1")),
            ("id: x\nserver\n  address: x\nworkers:\n  a: b\n", 2, 1, no_colon("server")),
            ("workers:\n  npu-1\n    ssh: root@x\n", 2, 3, no_colon("npu-1")),
            ("id: x\nhere:bastion\nreport: true\n", 2, 1, space("here", "bastion")),
            ("id：x\nhere: y\n", 1, 1, wide()),
            ("here: y\nid：x\n", 2, 1, wide()),
            ("id: a: b\n", 1, 5, Slip::ColonInValue),
            ("id: 'x\nhere: bastion\n", 1, 5, Slip::OpenQuote),
            ("server:\n  address: \"10.0.0.1\n  ssh: x\nworkers: {}\n", 2, 12, Slip::OpenQuote),
            ("id: \"x\"y\n", 1, 8, Slip::BehindQuote),
            ("id: \"\\q\"\n", 1, 5, Slip::Escape),
            ("workers:\n  a: {ssh: x\n  b: {ssh: y}\n", 2, 6, Slip::OpenBracket { bracket: '{' }),
            ("ssh:\n  identity: [/a, /b\nid: x\n", 2, 13, Slip::OpenBracket { bracket: '[' }),
            ("a: {b: 1 c: 2}\n", 1, 11, Slip::NoComma),
            ("id: x\nb: ]\n", 2, 4, Slip::StrayBracket),
            ("server:\n  address: x\n ssh: y\n", 3, 2, Slip::Indentation),
            ("server:\n  address: x\n    ssh: y\n", 3, 5, Slip::Indentation),
            ("  id: x\nhere: y\n", 2, 1, Slip::Indentation),
            ("id: x\n  here: y\n", 2, 3, Slip::Indentation),
            ("via: - a\n", 1, 6, Slip::ListBehindKey),
            ("id: @x\n", 1, 5, Slip::NeedsQuotes { first: '@' }),
            ("id: *\n", 1, 5, Slip::NeedsQuotes { first: '*' }),
        ];
        for (text, line, column, slip) in table {
            assert_eq!(found(text), (line, column, slip), "{text}");
        }
    }

    #[test]
    fn other_slips_are_told_in_the_readers_words() {
        let at = Position { line: 1, column: 1 };
        assert_eq!(slip("a: 1", at, "unexpected eof"), (at, Slip::Other { said: "unexpected eof".to_owned() }));
    }
}
