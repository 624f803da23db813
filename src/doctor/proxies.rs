//! Variables that send requests to the server through a proxy. This program's own traffic ignores them; other programs'
//! does not, and an operator who tries the way with one of those is led astray.

use api::{Check, HostReason, Seen, Severity};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Each in small and in capital letters (`curl(1)`, ENVIRONMENT).
const PROXIES: [&str; 6] = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const EXCEPTIONS: [&str; 2] = ["no_proxy", "NO_PROXY"];

pub(super) fn look(server_host: &str, variables: &BTreeMap<String, String>) -> Check {
    let proxies = set(&PROXIES, variables);
    let exceptions = set(&EXCEPTIONS, variables);
    let is_excepted = exceptions.iter().any(|(_, list)| excepts(list, server_host));
    let captures = !proxies.is_empty() && !is_excepted;
    let told = |(name, value): &(&str, &str)| format!("{name}={}", place_of(value));
    let excepted = |(name, list): &(&str, &str)| format!("{name}={}", list.rsplit('@').next().unwrap_or_default());
    let variables = proxies.iter().map(told).chain(exceptions.iter().map(excepted)).collect();
    let seen = Seen::Proxies { variables };
    if captures {
        let host = server_host.to_owned();
        return Check::bad(seen, Severity::Warning, HostReason::ProxyInTheWay { host });
    }
    Check::good(seen)
}

fn set<'a>(names: &[&'a str], variables: &'a BTreeMap<String, String>) -> Vec<(&'a str, &'a str)> {
    let value_of = |name: &&'a str| Some((*name, variables.get(*name)?.as_str()));
    names.iter().filter_map(value_of).filter(|(_, value)| !value.trim().is_empty()).collect()
}

/// Whether a list of exceptions has the host: by name, by a domain that it is in, by address, or by a network in CIDR
/// notation.
fn excepts(list: &str, host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    list.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        let domain = entry.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
        let host = host.to_ascii_lowercase();
        entry == "*"
            || host == domain
            || (address.is_none() && host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.')))
            || address.is_some_and(|address| is_in_network(entry, address))
    })
}

fn is_in_network(network: &str, address: IpAddr) -> bool {
    let Some((base, length)) = network.split_once('/') else { return false };
    let (Ok(base), Ok(length)) = (base.parse::<IpAddr>(), length.parse::<u32>()) else { return false };
    let prefix = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()).checked_shr(32_u32.saturating_sub(length)),
        IpAddr::V6(v6) => v6.to_bits().checked_shr(128_u32.saturating_sub(length)),
    };
    base.is_ipv4() == address.is_ipv4() && prefix(base).unwrap_or(0) == prefix(address).unwrap_or(0)
}

/// Where a proxy is. Whatever else stands in its URL, or in place of one, may be a user's password.
fn place_of(value: &str) -> String {
    let (scheme, rest) = value.split_once("://").map_or((None, value), |(scheme, rest)| (Some(scheme), rest));
    let (hidden, place) = rest.rsplit_once('@').map_or(("", rest), |(_, place)| ("***@", place));
    let place = place.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = place.rsplit_once(':').unwrap_or((place, ""));
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    let is_plain = host.chars().all(is_host) && port.bytes().all(|byte| byte.is_ascii_digit());
    let scheme = scheme.filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let place = if is_plain { place } else { "***" };
    scheme.map_or_else(|| format!("{hidden}{place}"), |scheme| format!("{scheme}://{hidden}{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Verdict;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_proxy_is_in_the_way_unless_the_server_is_excepted() {
        type Case = (&'static [(&'static str, &'static str)], &'static str, Verdict);
        const PROXY: (&str, &str) = ("http_proxy", "http://proxy.corp:3128");
        let table: [Case; 11] = [
            (&[], "10.0.0.1", Verdict::Ok),
            (&[("http_proxy", " ")], "10.0.0.1", Verdict::Ok),
            (&[PROXY], "10.0.0.1", Verdict::Warning),
            (&[PROXY, ("no_proxy", "localhost,10.0.0.1")], "10.0.0.1", Verdict::Ok),
            (&[PROXY, ("NO_PROXY", "10.0.0.0/8")], "10.9.9.9", Verdict::Ok),
            (&[PROXY, ("NO_PROXY", "10.0.0.0/8")], "11.0.0.1", Verdict::Warning),
            (&[PROXY, ("no_proxy", "0.0.0.0/0")], "11.0.0.1", Verdict::Ok),
            (&[PROXY, ("no_proxy", "fd00::/8")], "fd00::1", Verdict::Ok),
            (&[PROXY, ("no_proxy", ".corp, other")], "gpu.corp", Verdict::Ok),
            (&[PROXY, ("no_proxy", "corp")], "gpucorp", Verdict::Warning),
            (&[("ALL_PROXY", "socks5://p:1"), ("no_proxy", "*")], "gpu.corp", Verdict::Ok),
        ];
        for (pairs, host, verdict) in table {
            assert_eq!(look(host, &variables(pairs)).verdict(), verdict, "{pairs:?} {host}");
        }
    }

    #[test]
    fn a_password_is_not_told() {
        for (value, told) in [
            ("http://proxy:3128", "http://proxy:3128"),
            ("http://me:secret@proxy:3128/", "http://***@proxy:3128"),
            ("me:secret@proxy:3128", "***@proxy:3128"),
            ("me:secret", "***"),
            ("http://me:secret%40proxy", "http://***"),
            ("http://proxy:3128/?password=secret", "http://proxy:3128"),
            ("http://[fd00::1]:3128", "http://[fd00::1]:3128"),
        ] {
            let check = look("gpu.corp", &variables(&[("https_proxy", value)]));
            assert_eq!(check.seen, Seen::Proxies { variables: vec![format!("https_proxy={told}")] }, "{value}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_list_makes_it_panic(list in ".{0,40}", host in ".{0,20}") {
            excepts(&list, &host);
            is_in_network(&list, std::net::Ipv4Addr::LOCALHOST.into());
        }
    }
}
