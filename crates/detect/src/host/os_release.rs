//! `/etc/os-release` (os-release(5)).

use api::OsInfo;

/// The distribution's name and version. None when the file names none.
pub(crate) fn parse(text: &str) -> Option<OsInfo> {
    let value = |wanted: &str| text.lines().find_map(|line| assignment(line, wanted));
    let name = value("NAME").or_else(|| value("ID"))?;
    Some(OsInfo { name, version: value("VERSION").or_else(|| value("VERSION_ID")).unwrap_or_default() })
}

/// The file is a shell's: a value may stand in quotes, in which a backslash takes the next character as it is.
fn assignment(line: &str, wanted: &str) -> Option<String> {
    let (name, value) = line.trim().split_once('=')?;
    if name != wanted {
        return None;
    }
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inner = quote.and_then(|quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value);
    let mut plain = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    Some(plain).filter(|plain| !plain.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_version_are_read_with_and_without_quotes() {
        let cases = [
            (
                "NAME=\"Ubuntu\"\nVERSION_ID=\"22.04\"\nVERSION=\"22.04.5 LTS (Jammy Jellyfish)\"\n",
                "Ubuntu",
                "22.04.5 LTS (Jammy Jellyfish)",
            ),
            ("NAME=openEuler\nVERSION='22.03 (LTS-SP4)'", "openEuler", "22.03 (LTS-SP4)"),
            ("PRETTY_NAME=\"X\"\nID=alpine\nVERSION_ID=3.20", "alpine", "3.20"),
            ("NAME=\"A \\\"quoted\\\" name\"", "A \"quoted\" name", ""),
        ];
        for (text, name, version) in cases {
            assert_eq!(parse(text), Some(OsInfo { name: name.into(), version: version.into() }), "{text}");
        }
    }

    #[test]
    fn a_file_without_a_name_says_nothing() {
        for text in ["", "NAME=", "NAME=\"\"", "VERSION=1", "NAME"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
