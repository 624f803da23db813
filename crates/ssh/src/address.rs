//! Where something listens: a host and a port.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A host, by name or address, and a TCP port.
///
/// Whoever connects resolves the name: this host for the first hop of a route, and each bastion for what comes after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A text names no host and port.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no host and port: write host:port, or [address]:port for IPv6")]
pub struct NoEndpoint(String);

impl Endpoint {
    /// A host and a port.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Endpoint {
    type Err = NoEndpoint;

    fn from_str(text: &str) -> Result<Self, NoEndpoint> {
        let no_endpoint = || NoEndpoint(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(no_endpoint)?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err(no_endpoint());
        }
        let host = bare.unwrap_or(host);
        if host.is_empty() || host.chars().any(|character| character.is_whitespace() || "[]@/".contains(character)) {
            return Err(no_endpoint());
        }
        Ok(Self::new(host, port.parse().map_err(|_| no_endpoint())?))
    }
}

/// An account on a server: what tells one hop of a route from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HopName {
    /// Who logs in.
    pub user: String,
    /// Where.
    pub server: Endpoint,
}

impl fmt::Display for HopName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_survive_their_text() {
        for text in ["bastion:22", "10.0.0.1:8090", "[::1]:22", "[fe80::1%eth0]:2222"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_no_endpoints() {
        for text in ["", "bastion", ":22", "bastion:", "bastion:x", "bastion:65536", "::1", "a b:22", "u@h:22", "[]:1"]
        {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}
