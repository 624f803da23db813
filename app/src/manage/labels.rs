//! Labels as lines of text.

use std::collections::BTreeMap;

/// Reads one label a line, as `key=value`; empty lines are left out.
///
/// # Errors
/// The first line that is no label.
#[cfg(any(feature = "ssr", test))]
pub fn read(text: &str) -> Result<BTreeMap<String, String>, String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let label = line.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
            label.filter(|(key, _)| !key.is_empty()).ok_or_else(|| line.to_owned())
        })
        .collect()
}

/// Writes one label a line.
pub fn write(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_labels() {
        let labels = read(" rack = b07 \n\nzone=a=b\r\nempty=").unwrap();
        assert_eq!(write(&labels), "empty=\nrack=b07\nzone=a=b");
    }

    #[test]
    fn a_line_without_a_key_is_named() {
        assert_eq!(read("rack=b07\nno label").unwrap_err(), "no label");
        assert_eq!(read("=x").unwrap_err(), "=x");
    }

    proptest::proptest! {
        #[test]
        fn what_was_read_reads_back(text in "[a-c= \\n]{0,30}") {
            if let Ok(labels) = read(&text) {
                proptest::prop_assert_eq!(read(&write(&labels)), Ok(labels));
            }
        }
    }
}
