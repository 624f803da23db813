//! Where a server may open TCP connections to, through a worker.

use std::ops::RangeInclusive;

/// The targets that a worker allows; by default none.
///
/// A name is compared as it is asked for, before it is resolved: what is allowed under one name is not allowed under
/// another name of the same host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedTargets {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    host: String,
    ports: RangeInclusive<u16>,
}

impl AllowedTargets {
    /// None at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// One more: these ports of this host, a name or an IP address.
    pub fn and(mut self, host: &str, ports: RangeInclusive<u16>) -> Self {
        self.rules.push(Rule { host: bare(host).to_owned(), ports });
        self
    }

    /// Whether a connection to this port of this host is allowed.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        let host = bare(host);
        self.rules.iter().any(|rule| rule.host.eq_ignore_ascii_case(host) && rule.ports.contains(&port))
    }
}

/// An IPv6 address stands in brackets where a port may follow.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_allowed() {
        let targets = AllowedTargets::none().and("127.0.0.1", 8000..=8010).and("Model", 80..=80).and("::1", 22..=22);
        let table = [
            ("127.0.0.1", 8000, true),
            ("127.0.0.1", 8010, true),
            ("127.0.0.1", 8011, false),
            ("localhost", 8000, false),
            ("model", 80, true),
            ("model", 8000, false),
            ("[::1]", 22, true),
            ("127.0.0.1.evil", 8000, false),
        ];
        for (host, port, allowed) in table {
            assert_eq!(targets.allows(host, port), allowed, "{host}:{port}");
        }
        assert!(!AllowedTargets::none().allows("127.0.0.1", 8000));
    }
}
