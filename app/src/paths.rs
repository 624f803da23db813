//! Addresses of the pages.

/// The login page.
pub const LOGIN: &str = "/login";
/// All workers.
pub const WORKERS: &str = "/workers";
/// The page that gives the join command.
pub const ADD_WORKER: &str = "/workers/add";
/// The devices of all workers.
pub const DEVICES: &str = "/devices";
/// SSH forwards, and the agents that keep them.
pub const TUNNELS: &str = "/tunnels";
/// Behind the page of a worker: its host, point by point.
pub const HOST: &str = "/host";
/// Settings.
pub const SETTINGS: &str = "/settings";
/// The change of one's own password.
pub const PASSWORD: &str = "/settings/password";

/// The page of one worker.
pub fn worker(id: api::WorkerId) -> String {
    format!("{WORKERS}/{id}")
}

/// The host of one worker, point by point.
pub fn host(id: api::WorkerId) -> String {
    format!("{WORKERS}/{id}{HOST}")
}

/// The login page, which leads to `next` afterwards.
pub fn login_then(next: &str) -> String {
    if next == "/" || next.starts_with(LOGIN) {
        return LOGIN.to_owned();
    }
    format!("{LOGIN}?next={}", escape_query(next))
}

/// The page to show after a login, from the query's `next`: a path of this server and nothing else, so that a link
/// cannot lead a user who has just logged in to another site.
pub fn after_login(next: Option<&str>) -> &str {
    match next {
        Some(path) if path.starts_with('/') && !path.starts_with("//") && !path.contains(browsers_read_otherwise) => {
            path
        }
        _ => WORKERS,
    }
}

/// Browsers read a backslash as a slash and leave out tabs and line breaks (WHATWG URL, "basic URL parser"), which
/// can make `//` of what was none.
fn browsers_read_otherwise(c: char) -> bool {
    c == '\\' || c.is_control()
}

/// Percent-encodes a value of a query (RFC 3986, section 2.3: all but the unreserved characters).
pub fn escape_query(value: &str) -> String {
    value.bytes().fold(String::with_capacity(value.len()), |mut escaped, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            escaped.extend(
                [byte >> 4, byte & 15].map(|digit| char::from(digit + if digit < 10 { b'0' } else { b'A' - 10 })),
            );
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_only_to_pages_of_this_server() {
        for (next, expected) in [
            (None, WORKERS),
            (Some("/workers/3?tab=1"), "/workers/3?tab=1"),
            (Some("//evil.example"), WORKERS),
            (Some("/\\evil.example"), WORKERS),
            (Some("/\t/evil.example"), WORKERS),
            (Some("https://evil.example"), WORKERS),
            (Some(""), WORKERS),
        ] {
            assert_eq!(after_login(next), expected, "{next:?}");
        }
    }

    #[test]
    fn the_login_address_carries_the_page() {
        assert_eq!(login_then("/workers?q=a b&state=ready"), "/login?next=%2Fworkers%3Fq%3Da%20b%26state%3Dready");
        assert_eq!(login_then("/"), "/login");
        assert_eq!(escape_query("节"), "%E8%8A%82");
    }
}
