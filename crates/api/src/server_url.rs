use std::fmt;
use thiserror::Error;

/// Where a server is: scheme, host, port and an optional base path, in one spelling however it was written.
///
/// `http://h`, `h:8090`, ` HTTP://h:80// ` and `http://h/base/` are all understood.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerUrl {
    https: bool,
    host: String,
    port: u16,
    base_path: String,
}

/// Why a text is no server URL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum ServerUrlError {
    /// Nothing is there.
    #[error("the server URL is empty; write it like http://10.0.0.1:8090")]
    Empty,
    /// Neither http nor https.
    #[error("the server URL begins with `{0}://`; only http:// and https:// can be used")]
    Scheme(String),
    /// User and password are not used and would end up in logs.
    #[error("the server URL holds a user or password before `@`; take them out and use --token")]
    UserInfo,
    /// A query or a fragment means nothing here.
    #[error("the server URL holds `?` or `#`; take it out")]
    Query,
    /// No host.
    #[error("the server URL names no host; write it like http://10.0.0.1:8090")]
    NoHost,
    /// A character that no host name has.
    #[error("`{0}` is no host name or address; write it like http://10.0.0.1:8090 or http://[fe80::1]:8090")]
    Host(String),
    /// No port number.
    #[error("`{0}` is no port; it must be a number from 1 to 65535")]
    Port(String),
}

impl ServerUrl {
    /// Reads any spelling. A missing scheme means `http`, a missing port the scheme's own.
    pub fn parse(text: &str) -> Result<Self, ServerUrlError> {
        let text = text.trim().trim_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(ServerUrlError::Empty);
        }
        let (https, rest) = match text.split_once("://") {
            None => (false, text),
            Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
                "http" => (false, rest),
                "https" => (true, rest),
                _ => return Err(ServerUrlError::Scheme(scheme.to_owned())),
            },
        };
        if rest.contains(['?', '#']) {
            return Err(ServerUrlError::Query);
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(ServerUrlError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        let port = match port {
            None | Some("") => {
                if https {
                    443
                } else {
                    80
                }
            }
            Some(digits) => match digits.parse::<u16>() {
                Ok(number) if number > 0 && digits.bytes().all(|b| b.is_ascii_digit()) => number,
                _ => return Err(ServerUrlError::Port(digits.to_owned())),
            },
        };
        let base_path: String = path.split('/').filter(|part| !part.is_empty()).fold(String::new(), |mut all, part| {
            all.push('/');
            all.push_str(part);
            all
        });
        Ok(Self { https, host, port, base_path })
    }

    /// Whether TLS is spoken.
    pub fn is_https(&self) -> bool {
        self.https
    }

    /// Name or address, an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Always given, also when it is the scheme's own.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a path on that server; `path` begins with `/`.
    pub fn join(&self, path: &str) -> String {
        format!("{self}{path}")
    }

    /// Whether only the host itself can use this address, as `localhost`, `127.0.0.1` and `0.0.0.0`.
    pub fn is_loopback(&self) -> bool {
        if self.host == "localhost" || self.host.ends_with(".localhost") {
            return true;
        }
        self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        let own_port = if self.https { 443 } else { 80 };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]", self.host)?;
        } else {
            write!(f, "{scheme}://{}", self.host)?;
        }
        if self.port != own_port {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.base_path)
    }
}

fn split_port(authority: &str) -> Result<(String, Option<&str>), ServerUrlError> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or_else(|| ServerUrlError::Host(authority.to_owned()))?;
        // a zone (`%25eth0`, RFC 6874) is not part of the address proper
        let bare = address.split('%').next().unwrap_or(address);
        if bare.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(ServerUrlError::Host(authority.to_owned()));
        }
        let port = match after.strip_prefix(':') {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return Err(ServerUrlError::Host(authority.to_owned())),
        };
        return Ok((address.to_ascii_lowercase(), port));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    if host.is_empty() {
        return Err(ServerUrlError::NoHost);
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !host.chars().all(allowed) {
        return Err(ServerUrlError::Host(host.to_owned()));
    }
    Ok((host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> Result<String, ServerUrlError> {
        ServerUrl::parse(text).map(|url| url.to_string())
    }

    #[test]
    fn every_spelling_people_use_comes_out_in_one() {
        let table = [
            ("http://h", "http://h"),
            ("http://h/", "http://h"),
            ("http://h:80//", "http://h"),
            ("h:8080", "http://h:8080"),
            ("https://h/base/", "https://h/base"),
            (" http://h \r\n", "http://h"),
            ("HTTPS://H:443", "https://h"),
            ("http://[fe80::1%25eth0]:80", "http://[fe80::1%25eth0]"),
            ("http://[::1]:8090/", "http://[::1]:8090"),
            ("127.0.0.1:8090", "http://127.0.0.1:8090"),
        ];
        for (written, meant) in table {
            assert_eq!(spelled(written).as_deref(), Ok(meant), "{written}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let table = [
            ("", ServerUrlError::Empty),
            ("ftp://h", ServerUrlError::Scheme("ftp".into())),
            ("http://user:pw@h", ServerUrlError::UserInfo),
            ("http://h/?a=1", ServerUrlError::Query),
            ("http://:8090", ServerUrlError::NoHost),
            ("http://h:99999", ServerUrlError::Port("99999".into())),
            ("http://h:+80", ServerUrlError::Port("+80".into())),
            ("http://a b", ServerUrlError::Host("a b".into())),
            ("http://[::1", ServerUrlError::Host("[::1".into())),
        ];
        for (written, error) in table {
            assert_eq!(ServerUrl::parse(written), Err(error), "{written}");
        }
    }

    #[test]
    fn an_address_that_other_hosts_cannot_use_is_known() {
        for (text, loopback) in [
            ("http://localhost:8090", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:80", true),
            ("http://0.0.0.0:8090", true),
            ("http://10.1.2.3", false),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(ServerUrl::parse(text).map(|url| url.is_loopback()), Ok(loopback), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn normalising_twice_changes_nothing(text in "(http://|https://|)[a-z0-9.\\-]{1,12}(:[1-9][0-9]{0,3})?(/[a-z/]{0,8})?") {
            if let Ok(once) = spelled(&text) {
                proptest::prop_assert_eq!(spelled(&once), Ok(once.clone()));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = ServerUrl::parse(&text);
        }
    }
}
