//! The texts of which a `tunnels.yaml` is made: hosts, ports, accounts, paths, times. An error says what may stand
//! there.

use super::problem::Rule;
use crate::config::length_of_time;
use ssh::Endpoint;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where `sshd` listens unless it was told otherwise.
pub const SSH_PORT: u16 = 22;

/// `[user@]host[:port]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// None when the defaults say it.
    pub user: Option<String>,
    /// Where.
    pub server: Endpoint,
}

/// Reads `[user@]host[:port]`.
pub fn account(text: &str) -> Result<Account, Rule> {
    if text.contains("://") || text.contains(char::is_whitespace) {
        return Err(Rule::BareAccount);
    }
    let (user, rest) = match text.rsplit_once('@') {
        Some((user, rest)) => (Some(self::user(user)?), rest),
        None => (None, text),
    };
    let is_bare_v6 = !rest.starts_with('[') && rest.matches(':').count() > 1;
    if is_bare_v6 {
        return Err(Rule::Brackets);
    }
    let has_port = if rest.starts_with('[') { rest.contains("]:") } else { rest.contains(':') };
    let with_port = if has_port { rest.to_owned() } else { format!("{rest}:{SSH_PORT}") };
    let server = address(&with_port).map_err(|_| Rule::Account)?;
    Ok(Account { user, server })
}

/// Reads the name of an account.
pub fn user(text: &str) -> Result<String, Rule> {
    let allowed = |c: char| c.is_alphanumeric() || "._-@\\+".contains(c);
    let fits = !text.is_empty() && text.chars().all(allowed) && !text.starts_with('-');
    if fits { Ok(text.to_owned()) } else { Err(Rule::User) }
}

/// Reads `host:port`.
pub fn address(text: &str) -> Result<Endpoint, Rule> {
    if text.contains("://") {
        return Err(Rule::NoUrl);
    }
    if let Some((_, port)) = text.rsplit_once(':')
        && !port.contains(']')
    {
        self::port(port)?;
    }
    let endpoint: Endpoint = text.parse().map_err(|_| Rule::Address)?;
    if is_host(&endpoint.host) { Ok(endpoint) } else { Err(Rule::Address) }
}

/// Reads `host:port` or `port`, which is one of the loopback interface.
pub fn listen(text: &str) -> Result<Endpoint, Rule> {
    if text.starts_with("*:") {
        return Err(Rule::NoStar);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Endpoint::new(LOOPBACK, port(text)?));
    }
    address(text)
}

/// Reads a port.
pub fn port(text: &str) -> Result<u16, Rule> {
    let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|port| digits_only && *port != 0);
    number.ok_or(Rule::Port)
}

/// Where hosts reach themselves.
pub const LOOPBACK: &str = "127.0.0.1";

/// Whether a host is this one, by its own view.
pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || host == "::1" || host.starts_with("127.")
}

/// Whether a listener there is reached from everywhere.
pub fn is_wildcard(host: &str) -> bool {
    host == "0.0.0.0" || host == "::"
}

fn is_host(host: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || ".-_:%".contains(c);
    host.chars().all(allowed) && !host.starts_with('-')
}

/// Reads a path; `~` is `home`.
pub fn path(text: &str, home: Option<&Path>) -> Result<PathBuf, Rule> {
    if text.contains(char::is_control) {
        return Err(Rule::PlainPath);
    }
    let below_home = match text.strip_prefix('~') {
        Some("") => Some(""),
        Some(rest) => rest.strip_prefix('/'),
        None => None,
    };
    match (below_home, home) {
        (Some(rest), Some(home)) => Ok(home.join(rest)),
        (Some(_), None) => Err(Rule::NoHome),
        (None, _) if text.starts_with('/') => Ok(text.into()),
        (None, _) => Err(Rule::WholePath),
    }
}

/// The times that make sense for a sign of life.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_hours(1);

/// Reads how often a sign of life is asked for.
pub fn keep_alive(text: &str) -> Result<Duration, Rule> {
    let length = length_of_time(text).filter(|length| (SHORTEST..=LONGEST).contains(length));
    length.ok_or(Rule::KeepAlive)
}

/// Reads how many signs of life may fail to come.
pub fn unanswered(text: &str) -> Result<u32, Rule> {
    text.parse().ok().filter(|count| *count <= 100).ok_or(Rule::Unanswered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_as_ssh_reads_them() {
        for (text, user, server) in [
            ("root@10.0.0.1", Some("root"), "10.0.0.1:22"),
            ("10.0.0.1", None, "10.0.0.1:22"),
            ("tunnel@npu:2222", Some("tunnel"), "npu:2222"),
            ("a@corp.example@npu", Some("a@corp.example"), "npu:22"),
            ("root@[fe80::1%eth0]:2222", Some("root"), "[fe80::1%eth0]:2222"),
            ("root@[::1]", Some("root"), "[::1]:22"),
        ] {
            let account = account(text).unwrap();
            assert_eq!((account.user.as_deref(), &*account.server.to_string()), (user, server), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_accounts() {
        for text in
            ["", "@npu", "root@", "root@npu:0", "root@npu:65536", "ssh://npu", "-oProxyCommand=x", "a b@npu", "::1"]
        {
            assert!(account(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bare_port_is_one_of_the_loopback_interface() {
        assert_eq!(listen("9090").unwrap().to_string(), "127.0.0.1:9090");
        assert_eq!(listen("0.0.0.0:9090").unwrap().to_string(), "0.0.0.0:9090");
        for text in ["0", "65536", "*:9090", ":9090", "x"] {
            assert!(listen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_are_whole_or_below_the_home() {
        let home = Some(Path::new("/home/t"));
        assert_eq!(path("~/.ssh/key", home), Ok("/home/t/.ssh/key".into()));
        assert_eq!(path("/etc/key", None), Ok("/etc/key".into()));
        assert!(path("~/.ssh/key", None).is_err() && path("key", home).is_err() && path("~other/key", home).is_err());
    }

    #[test]
    fn times_have_units_and_bounds() {
        assert_eq!(keep_alive("30s"), Ok(Duration::from_secs(30)));
        assert!(["10", "0s", "2h", "x"].into_iter().all(|text| keep_alive(text).is_err()));
    }
}
