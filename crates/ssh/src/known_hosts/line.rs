//! One line of a `known_hosts` file (`sshd(8)`, `SSH_KNOWN_HOSTS FILE FORMAT`).

use crate::address::Endpoint;
use crate::known_hosts::pattern::Pattern;
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use russh::keys::PublicKey;

/// The port that goes without saying.
const SSH_PORT: u16 = 22;

/// What a line is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The key of a host.
    Host,
    /// The key of an authority that signs hosts' keys.
    Authority,
    /// A key that nobody may show any more.
    Revoked,
}

/// Whom a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// A single name, which only whoever knows it can recognise.
    Hashed { salt: Vec<u8>, hash: Vec<u8> },
    /// Any number of patterns.
    Plain(Vec<Pattern>),
}

/// A line that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub purpose: Purpose,
    pub names: Names,
    pub key: PublicKey,
}

/// How a host is called in such a file.
pub(crate) struct HostNames {
    /// With the port where it is not 22. A line by this name speaks about exactly this server.
    pub full: String,
    /// Without the port. A line by this name may vouch for the server, as it does for `ssh`.
    pub bare: String,
}

impl HostNames {
    pub fn of(host: &Endpoint) -> Self {
        let bare = host.host.to_ascii_lowercase();
        let full = if host.port == SSH_PORT { bare.clone() } else { format!("[{bare}]:{}", host.port) };
        Self { full, bare }
    }
}

impl Line {
    /// `None` for empty lines, comments, and what nobody can make sense of, which `ssh` passes over too.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return None;
        }
        let (purpose, rest) = match split_word(text)? {
            ("@cert-authority", rest) => (Purpose::Authority, rest),
            ("@revoked", rest) => (Purpose::Revoked, rest),
            (word, _) if word.starts_with('@') => return None,
            _ => (Purpose::Host, text),
        };
        let (names, rest) = split_word(rest)?;
        let (algorithm, rest) = split_word(rest)?;
        let key = rest.split_whitespace().next()?;
        let key = PublicKey::from_openssh(&format!("{algorithm} {key}")).ok()?;
        Some(Self { purpose, names: Names::parse(names)?, key })
    }

    /// Without an end of line.
    pub fn to_text(&self) -> Option<String> {
        let marker = match self.purpose {
            Purpose::Host => "",
            Purpose::Authority => "@cert-authority ",
            Purpose::Revoked => "@revoked ",
        };
        let mut key = self.key.clone();
        key.set_comment("");
        Some(format!("{marker}{} {}", self.names.to_text(), key.to_openssh().ok()?.trim_end()))
    }
}

impl Names {
    fn parse(text: &str) -> Option<Self> {
        let Some(hashed) = text.strip_prefix("|1|") else {
            return Some(Self::Plain(text.split(',').filter_map(Pattern::parse).collect()));
        };
        let (salt, hash) = hashed.split_once('|')?;
        Some(Self::Hashed { salt: STANDARD.decode(salt).ok()?, hash: STANDARD.decode(hash).ok()? })
    }

    fn to_text(&self) -> String {
        match self {
            Self::Hashed { salt, hash } => format!("|1|{}|{}", STANDARD.encode(salt), STANDARD.encode(hash)),
            Self::Plain(patterns) => patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        }
    }

    /// Whether a host called `name` is meant. A pattern that excludes it has the last word.
    pub fn match_name(&self, name: &str) -> bool {
        match self {
            // SHA-1 is what the format has; nothing hangs on it but the secrecy of the names
            Self::Hashed { salt, hash } => {
                let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
                hmac::sign(&key, name.as_bytes()).as_ref() == hash.as_slice()
            }
            Self::Plain(patterns) => {
                let mut matching = patterns.iter().filter(|pattern| pattern.matches(name)).peekable();
                matching.peek().is_some() && matching.all(|pattern| !pattern.excludes())
            }
        }
    }
}

fn split_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace)?;
    let (word, rest) = text.split_at_checked(end)?;
    Some((word, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    fn names(text: &str) -> Names {
        Line::parse(&format!("{text} {KEY} a comment")).unwrap().names
    }

    #[test]
    fn lines_and_what_they_are_for() {
        let table = [
            (format!("host {KEY}"), Some(Purpose::Host)),
            (format!("  host\t{KEY} comment with words"), Some(Purpose::Host)),
            (format!("@cert-authority *.example {KEY}"), Some(Purpose::Authority)),
            (format!("@revoked * {KEY}"), Some(Purpose::Revoked)),
            (format!("@unheard-of * {KEY}"), None),
            (format!("# host {KEY}"), None),
            (String::new(), None),
            ("host 1024 35 1234567890".to_owned(), None),
            ("host ssh-ed25519 AAAA".to_owned(), None),
            ("host".to_owned(), None),
        ];
        for (text, purpose) in table {
            assert_eq!(Line::parse(&text).map(|line| line.purpose), purpose, "{text}");
        }
    }

    #[test]
    fn patterns_and_whom_they_mean() {
        let table = [
            ("bastion", "bastion", true),
            ("BASTION", "bastion", true),
            ("bastion", "bastion2", false),
            ("one,bastion", "bastion", true),
            ("*", "[bastion]:2222", true),
            ("*.example", "bastion.example", true),
            ("*.example", "example", false),
            ("10.0.0.?", "10.0.0.7", true),
            ("10.0.0.?", "10.0.0.17", false),
            ("*.example,!secret.example", "secret.example", false),
            ("!secret.example,*.example", "secret.example", false),
            ("!secret.example,*.example", "open.example", true),
            ("!secret.example", "open.example", false),
            ("[bastion]:2222", "[bastion]:2222", true),
            ("[bastion]:2222", "[bastion]:2223", false),
            ("[10.0.0.1]:*", "[10.0.0.1]:443", true),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(names(pattern).match_name(name), expected, "{pattern} {name}");
        }
    }

    /// Made by `ssh-keygen -H`.
    #[test]
    fn a_hashed_name_is_recognised() {
        let hashed = names("|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg=");
        assert!(hashed.match_name("192.168.1.61"));
        assert!(!hashed.match_name("192.168.1.62"));
    }

    #[test]
    fn a_host_is_called_with_its_port_unless_it_is_the_usual_one() {
        let names = HostNames::of(&Endpoint::new("Bastion", 22));
        assert_eq!((names.full.as_str(), names.bare.as_str()), ("bastion", "bastion"));
        let names = HostNames::of(&Endpoint::new("::1", 2222));
        assert_eq!((names.full.as_str(), names.bare.as_str()), ("[::1]:2222", "::1"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in any::<String>()) {
            let _ = Line::parse(&text);
        }

        #[test]
        fn a_line_survives_its_text(
            marker in prop_oneof![Just(""), Just("@cert-authority "), Just("@revoked ")],
            names in "!?[a-z0-9.*?-]{1,20}(,[a-z0-9.*?-]{1,20}){0,3}",
        ) {
            let line = Line::parse(&format!("{marker}{names} {KEY}")).unwrap();
            prop_assert_eq!(Line::parse(&line.to_text().unwrap()).unwrap(), line);
        }

        #[test]
        fn a_plain_name_means_itself_alone(name in "[a-z0-9.-]{1,30}", other in "[a-z0-9.-]{1,30}") {
            prop_assert!(names(&name).match_name(&name));
            prop_assert_eq!(names(&name).match_name(&other), name == other);
        }

        #[test]
        fn a_hashed_name_means_itself_alone(name in "[a-z0-9.-]{1,30}", other in "[a-z0-9.-]{1,30}", salt in any::<[u8; 20]>()) {
            let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
            let hash = hmac::sign(&key, name.as_bytes()).as_ref().to_vec();
            let hashed = names(&Names::Hashed { salt: salt.to_vec(), hash }.to_text());
            prop_assert!(hashed.match_name(&name));
            prop_assert_eq!(hashed.match_name(&other), name == other);
        }
    }
}
