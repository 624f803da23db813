//! Lists of `Key : Value`, in sections parted by blank lines.

/// One section: its keys in lower case and the values as printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section(Vec<(String, String)>);

impl Section {
    /// The first value under one of the keys, which are in lower case; a value that is an empty text is none.
    pub(crate) fn value(&self, keys: &[&str]) -> Option<&str> {
        let found = keys.iter().find_map(|wanted| self.0.iter().find(|(key, _)| key == wanted));
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| known == key)
    }
}

/// Reads all sections. A key that comes again begins a new section too: blank lines get lost on the way through other
/// programs. Lines without a colon are passed over.
pub(crate) fn parse(text: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut current = Section::default();
    for line in text.lines() {
        let Some((key, value)) = key_and_value(line) else {
            if line.trim().is_empty() {
                close(&mut current, &mut sections);
            }
            continue;
        };
        if current.has(&key) {
            close(&mut current, &mut sections);
        }
        current.0.push((key, value));
    }
    close(&mut current, &mut sections);
    sections
}

fn close(current: &mut Section, sections: &mut Vec<Section>) {
    if !current.0.is_empty() {
        sections.push(std::mem::take(current));
    }
}

/// Values hold colons as well, as PCI addresses do; keys hold none.
fn key_and_value(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim().to_lowercase();
    (!key.is_empty()).then(|| (key, crate::text::cell(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(sections: &[Section]) -> Vec<Vec<&str>> {
        sections.iter().map(|section| section.0.iter().map(|(key, _)| key.as_str()).collect()).collect()
    }

    #[test]
    fn blank_lines_and_repeated_keys_part_sections() {
        for text in ["A : 1\r\nB : 2\r\n\r\nA : 3\r\n", "A: 1\nB: 2\nA: 3", "\n\nA:1\n B:2 \n\n\n A:3 \n"] {
            assert_eq!(keys(&parse(text)), [vec!["a", "b"], vec!["a"]], "{text:?}");
        }
    }

    #[test]
    fn a_value_keeps_its_colons() {
        let sections = parse("PCIe Bus Info   : 0000:C1:00.0\n");
        assert_eq!(sections[0].value(&["pcie bus info"]), Some("0000:C1:00.0"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(\\PC|:|\n){0,300}") {
            let _ = parse(&text);
        }
    }
}
