//! YAML whose every value knows its line, for errors that lead there.
//!
//! Anchors, aliases and tags are refused: a few bytes of them can stand for gigabytes, and `ssh:` says once what all
//! hosts have in common.

use super::problem::{Fault, Problem};
use super::syntax;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

/// Files beyond this describe no tunnels.
pub const MAX_BYTES: usize = 1024 * 1024;
/// Twice as deep as the form goes.
const MAX_DEPTH: usize = 8;

/// A place in a text, both numbers from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
}

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Where it begins.
    pub position: Position,
}

/// What a YAML text holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing, as in `key:`.
    Nothing,
    /// A word, number or text; the form decides which.
    Text(String),
    /// Items.
    List(Vec<Node>),
    /// Keys and values.
    Table(Vec<Entry>),
}

/// A value in its place.
pub type Node = Placed<Value>;

/// A line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Placed<String>,
    /// What belongs to it.
    pub value: Node,
}

/// Reads one document; None when it is empty.
pub fn parse(text: &str) -> Result<Option<Node>, Problem> {
    if text.len() > MAX_BYTES {
        return Err(Problem::new(Position { line: 1, column: 1 }, Fault::TooLarge { bytes: text.len() }));
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let (position, slip) = syntax::slip(text, of(error.marker()), error.info());
            Problem::new(position, Fault::Syntax { slip })
        })?;
        builder.take(event, of(&span.start))?;
    }
    Ok(builder.root)
}

fn of(marker: &Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<Open>,
}

/// A list or table of which not everything was read yet.
enum Open {
    List { position: Position, items: Vec<Node> },
    Table { position: Position, entries: Vec<Entry>, key: Option<Placed<String>> },
}

impl Builder {
    fn take(&mut self, event: Event<'_>, position: Position) -> Result<(), Problem> {
        match event {
            Event::Alias(_) => return Err(Problem::new(position, Fault::Anchor)),
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
                if anchor != 0 =>
            {
                return Err(Problem::new(position, Fault::Anchor));
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err(Problem::new(position, Fault::Tag));
            }
            Event::Scalar(text, style, ..) => {
                let is_nothing = style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null");
                let value = if is_nothing { Value::Nothing } else { Value::Text(text.into_owned()) };
                self.finish(Placed { value, position })?;
            }
            Event::SequenceStart(..) => self.begin(Open::List { position, items: Vec::new() })?,
            Event::MappingStart(..) => self.begin(Open::Table { position, entries: Vec::new(), key: None })?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    self.finish(open.close())?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, open: Open) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::new(open.position(), Fault::TooDeep));
        }
        self.open.push(open);
        Ok(())
    }

    fn finish(&mut self, node: Node) -> Result<(), Problem> {
        match self.open.last_mut() {
            None if self.root.is_some() => return Err(Problem::new(node.position, Fault::SecondDocument)),
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Table { entries, key, .. }) => match (key.take(), node) {
                (Some(key), value) => entries.push(Entry { key, value }),
                (None, Placed { value: Value::Text(text), position }) => *key = Some(Placed { value: text, position }),
                (None, Placed { position, .. }) => return Err(Problem::new(position, Fault::KeyIsNoWord)),
            },
        }
        Ok(())
    }
}

impl Open {
    fn position(&self) -> Position {
        match self {
            Self::List { position, .. } | Self::Table { position, .. } => *position,
        }
    }

    fn close(self) -> Node {
        match self {
            Self::List { position, items } => Placed { value: Value::List(items), position },
            Self::Table { position, entries, .. } => Placed { value: Value::Table(entries), position },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (usize, Fault) {
        let problem = parse(text).unwrap_err();
        (problem.position.line, problem.fault)
    }

    #[test]
    fn values_know_where_they_stand() {
        let Some(Placed { value: Value::Table(entries), .. }) = parse("a: 1\nb:\n  c: [x, 'y']\n").unwrap() else {
            panic!("no table")
        };
        let places: Vec<_> = entries.iter().map(|entry| (&*entry.key.value, entry.key.position)).collect();
        assert_eq!(places, [("a", Position { line: 1, column: 1 }), ("b", Position { line: 2, column: 1 })]);
        assert_eq!(entries[0].value.position, Position { line: 1, column: 4 });
    }

    #[test]
    fn a_quoted_word_is_a_word() {
        let value = |text| parse(text).unwrap().unwrap().value;
        assert_eq!(value("~"), Value::Nothing);
        assert_eq!(value("'~'"), Value::Text("~".to_owned()));
        assert_eq!(parse("# nothing\n").unwrap(), None);
    }

    #[test]
    fn what_could_be_a_bomb_is_refused() {
        assert_eq!(fault("a: &x [1]\nb: *x\n"), (1, Fault::Anchor));
        assert_eq!(fault("a: !!str 1\n"), (1, Fault::Tag));
        assert_eq!(fault(&"[".repeat(20)), (1, Fault::TooDeep));
        assert_eq!(fault(&"- ".repeat(100_000)), (1, Fault::TooDeep));
        assert_eq!(fault(&"#".repeat(MAX_BYTES + 1)), (1, Fault::TooLarge { bytes: MAX_BYTES + 1 }));
    }

    #[test]
    fn what_is_no_yaml_is_told_with_its_line() {
        assert!(matches!(fault("a: 1\nb: [1\n"), (2 | 3, Fault::Syntax { .. })));
        assert_eq!(fault("a: 1\n---\nb: 2\n"), (3, Fault::SecondDocument));
        assert_eq!(fault("[a]: 1\n"), (1, Fault::KeyIsNoWord));
    }
}
