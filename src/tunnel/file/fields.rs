//! Tables with known keys, read one value after the other; what is wrong is collected, and reading goes on.

use super::problem::{Expected, Fault, Problem, Rule, nearest, shown};
use super::yaml::{Entry, Node, Placed, Position, Value};
use std::collections::BTreeMap;

/// What was wrong so far.
#[derive(Debug, Default)]
pub struct Reader {
    /// In no order.
    pub problems: Vec<Problem>,
}

/// A table.
#[derive(Debug)]
pub struct Fields<'a> {
    /// Its path in the file, e.g. `workers.npu-1`; empty for the whole file.
    pub path: String,
    /// Where it begins: its key's place.
    pub position: Position,
    /// False for what is no table: then nobody wonders what is missing.
    pub is_table: bool,
    entries: BTreeMap<&'a str, &'a Entry>,
}

impl<'a> Fields<'a> {
    /// The path of a key of it.
    pub fn path_of(&self, key: &str) -> String {
        let key = shown(key);
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    /// The value of `key`, where it stands in the table.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Where `key` stands; where the table begins when it does not.
    pub fn position_of(&self, key: &str) -> Position {
        self.entries.get(key).map_or(self.position, |entry| entry.key.position)
    }
}

impl Reader {
    /// Notes what is wrong.
    pub fn note(&mut self, position: Position, fault: Fault) {
        self.problems.push(Problem::new(position, fault));
    }

    /// A table of which all keys are known. What is none reads as an empty one.
    pub fn table<'a>(&mut self, node: &'a Node, at: (&str, Position), known: &'static [&'static str]) -> Fields<'a> {
        let (path, position) = at;
        let is_table = matches!(node.value, Value::Table(_) | Value::Nothing);
        let mut fields = Fields { path: path.to_owned(), position, is_table, entries: BTreeMap::new() };
        for entry in self.entries(node, path) {
            let key = entry.key.value.as_str();
            if known.contains(&key) {
                self.insert(&mut fields, entry);
            } else {
                self.note(entry.key.position, unknown(key, path, known));
            }
        }
        fields
    }

    /// The entries of a table whose keys are names; each name once.
    pub fn named<'a>(&mut self, fields: &Fields<'a>, key: &str) -> Vec<&'a Entry> {
        let Some(node) = fields.get(key) else { return Vec::new() };
        let path = fields.path_of(key);
        let mut seen = Fields { path: path.clone(), position: node.position, is_table: true, entries: BTreeMap::new() };
        let entries = self.entries(node, &path);
        entries.iter().filter(|entry| self.insert(&mut seen, entry)).collect()
    }

    fn entries<'a>(&mut self, node: &'a Node, path: &str) -> &'a [Entry] {
        match &node.value {
            Value::Table(entries) => entries,
            Value::Nothing => &[],
            Value::Text(_) | Value::List(_) => {
                let expected = if path == "ssh" { Expected::Common } else { Expected::Table };
                self.note(node.position, Fault::WrongType { key: path.to_owned(), expected });
                &[]
            }
        }
    }

    /// False when the key was there before.
    fn insert<'a>(&mut self, fields: &mut Fields<'a>, entry: &'a Entry) -> bool {
        let key = entry.key.value.as_str();
        if let Some(first) = fields.entries.get(key) {
            let first = first.key.position.line;
            self.note(entry.key.position, Fault::DuplicateKey { key: fields.path_of(key), first });
            return false;
        }
        fields.entries.insert(key, entry);
        true
    }

    /// A text, when the key is there and has one.
    pub fn text(&mut self, fields: &Fields<'_>, key: &str) -> Option<Placed<String>> {
        let node = fields.get(key)?;
        self.text_of(node, &fields.path_of(key), fields.position_of(key))
    }

    fn text_of(&mut self, node: &Node, key: &str, key_position: Position) -> Option<Placed<String>> {
        let key = || key.to_owned();
        match &node.value {
            Value::Text(text) if text.trim().is_empty() => self.note(node.position, Fault::NoValue { key: key() }),
            Value::Text(text) => return Some(Placed { value: text.trim().to_owned(), position: node.position }),
            // a value that is not there has its place on the next line
            Value::Nothing => self.note(key_position, Fault::NoValue { key: key() }),
            Value::List(_) | Value::Table(_) => {
                self.note(node.position, Fault::WrongType { key: key(), expected: Expected::OneValue });
            }
        }
        None
    }

    /// A text or a list of texts.
    pub fn texts(&mut self, fields: &Fields<'_>, key: &str) -> Vec<Placed<String>> {
        let Some(node) = fields.get(key) else { return Vec::new() };
        let path = fields.path_of(key);
        match &node.value {
            Value::List(items) => items.iter().filter_map(|item| self.text_of(item, &path, item.position)).collect(),
            _ => self.text_of(node, &path, fields.position_of(key)).into_iter().collect(),
        }
    }

    /// A value that `parse` understands; its error says what may stand there.
    pub fn parse<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, Rule>,
    ) -> Option<Placed<T>> {
        let text = self.text(fields, key)?;
        self.parse_text(&text, &fields.path_of(key), parse)
    }

    /// As [`Self::parse`], of a text that was read already.
    pub fn parse_text<T>(
        &mut self,
        text: &Placed<String>,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, Rule>,
    ) -> Option<Placed<T>> {
        let (key, value) = (key.to_owned(), shown(&text.value));
        if is_placeholder(&text.value) {
            self.note(text.position, Fault::Placeholder { key, value });
            return None;
        }
        match parse(&text.value) {
            Ok(value) => Some(Placed { value, position: text.position }),
            Err(rule) => {
                self.note(text.position, Fault::BadValue { key, value, rule });
                None
            }
        }
    }

    /// `true` or `false`.
    pub fn switch(&mut self, fields: &Fields<'_>, key: &str) -> Option<bool> {
        let parsed = self.parse(fields, key, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Rule::Switch),
        });
        parsed.map(|placed| placed.value)
    }
}

/// What is wrong with a key that does not belong into the table at `path`.
fn unknown(key: &str, path: &str, known: &[&'static str]) -> Fault {
    let table = path.to_owned();
    if let Some((before, after)) = key.split_once([':', '：'])
        && known.contains(&before.trim())
    {
        return Fault::NoSpace {
            table,
            key: before.trim().to_owned(),
            value: shown(after.trim()),
            is_wide: key.contains('：'),
        };
    }
    if let Some((before, after)) = key.split_once('.')
        && known.contains(&before)
    {
        return Fault::DottedKey { key: shown(key), table: before.to_owned(), inner: shown(after) };
    }
    Fault::UnknownKey { table, key: shown(key), nearest: nearest(key, known.iter().copied()), known: known.to_vec() }
}

/// `<server's address>`, `${VARIABLE}`, `$VARIABLE`, `{{ template }}`.
pub fn is_placeholder(text: &str) -> bool {
    let is_bracketed = text.find('<').is_some_and(|start| text.get(start..).is_some_and(|rest| rest.contains('>')));
    is_bracketed || text.contains('$') || text.contains("{{")
}
