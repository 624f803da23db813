//! Patterns for hosts' names (`ssh_config(5)`, "PATTERNS").

use std::fmt;

/// A name with `*` for anything and `?` for one character; with `!` before it, the hosts that are not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    excludes: bool,
    glob: String,
}

impl Pattern {
    /// `None` for an empty one.
    pub fn parse(text: &str) -> Option<Self> {
        let (excludes, glob) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        (!glob.is_empty()).then(|| Self { excludes, glob: glob.to_ascii_lowercase() })
    }

    pub fn excludes(&self) -> bool {
        self.excludes
    }

    pub fn matches(&self, name: &str) -> bool {
        glob_matches(&self.glob, name)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.excludes { "!" } else { "" }, self.glob)
    }
}

/// Whether `glob` means `name`. Takes at most the product of their lengths in steps.
pub(crate) fn glob_matches(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    let (mut at_glob, mut at_name) = (0, 0);
    // where the last star was, and up to where it was taken to reach
    let mut star: Option<(usize, usize)> = None;
    while let Some(character) = name.get(at_name) {
        match (glob.get(at_glob), star) {
            (Some('*'), _) => {
                star = Some((at_glob, at_name));
                at_glob += 1;
            }
            (Some(wanted), _) if *wanted == '?' || wanted == character => {
                at_glob += 1;
                at_name += 1;
            }
            (_, Some((star_at, reached))) => {
                star = Some((star_at, reached + 1));
                at_glob = star_at + 1;
                at_name = reached + 1;
            }
            _ => return false,
        }
    }
    glob.iter().skip(at_glob).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, word by word; takes too long for long patterns.
    fn by_definition(glob: &[char], name: &[char]) -> bool {
        match (glob.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), None) => by_definition(rest, name),
            (Some(('*', rest)), Some((_, name_rest))) => by_definition(rest, name) || by_definition(glob, name_rest),
            (Some(('?', rest)), Some((_, name_rest))) => by_definition(rest, name_rest),
            (Some((wanted, rest)), Some((found, name_rest))) => wanted == found && by_definition(rest, name_rest),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn globs_mean_what_they_are_defined_to_mean(glob in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(glob_matches(&glob, &name), by_definition(&chars(&glob), &chars(&name)));
        }
    }
}
