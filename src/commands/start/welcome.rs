//! What a server prints when it is ready: where it is, how to log in, how workers join.

use crate::config::ServerConfig;
use crate::server::auth::{ADMIN_NAME, Auth, FirstLogin};
use crate::server::listen::Tls;
use std::fmt::Write;
use std::net::IpAddr;

/// These lines. The password is among them only when it was made just now.
pub fn text(config: &ServerConfig, auth: &Auth, tls: Option<&Tls>) -> String {
    let addresses = addresses(&config.host);
    let urls: Vec<_> = addresses.iter().map(|host| url(host, config.port, config.tls.is_some())).collect();
    let mut text = String::from("GPUStack is ready.\n");
    let lines = [
        ("Address", urls.join("  ")),
        ("User", ADMIN_NAME.to_owned()),
        ("Password", password(auth.first_login())),
        ("Join token", join_token(auth)),
    ];
    let certificate = tls.and_then(certificate).map(|value| ("Certificate", value));
    for (name, value) in lines.into_iter().chain(certificate) {
        // writing to a String cannot fail
        let _ = writeln!(text, "  {name:<12}{value}");
    }
    text
}

fn certificate(tls: &Tls) -> Option<String> {
    let fingerprint = tls.fingerprint()?;
    if tls.is_self_signed() {
        return Some(format!("{fingerprint}, signed by itself: workers need --server-fingerprint {fingerprint}"));
    }
    Some(fingerprint.to_string())
}

fn password(first_login: &FirstLogin) -> String {
    match first_login {
        FirstLogin::Generated { password, file } => {
            format!("{} (also in {} until it is changed)", password.expose(), file.display())
        }
        FirstLogin::Bootstrap => "the one that was given with --bootstrap-password".to_owned(),
        FirstLogin::InFile(file) => format!("in {} until it is changed", file.display()),
        FirstLogin::Chosen => "the one you chose (forgotten: gpustack reset-admin-password)".to_owned(),
    }
}

fn join_token(auth: &Auth) -> String {
    match auth.join_token_file() {
        None => "the one that was given with --token".to_owned(),
        Some(file) => format!("in {}", file.display()),
    }
}

/// The host as others may write it: for a server that listens everywhere, this host's addresses.
fn addresses(host: &str) -> Vec<String> {
    let is_everywhere = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    if !is_everywhere {
        return vec![host.to_owned()];
    }
    let own = if_addrs::get_if_addrs().unwrap_or_default();
    let others = own.iter().map(if_addrs::Interface::ip).filter(|ip| ip.is_ipv4() && !ip.is_loopback());
    std::iter::once("127.0.0.1".to_owned()).chain(others.map(|ip| ip.to_string())).collect()
}

fn url(host: &str, port: u16, https: bool) -> String {
    let (scheme, own_port) = if https { ("https", 443) } else { ("http", 80) };
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    if port == own_port { format!("{scheme}://{host}") } else { format!("{scheme}://{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_the_port_only_when_it_must() {
        for (host, port, https, expected) in [
            ("10.0.0.1", 80, false, "http://10.0.0.1"),
            ("10.0.0.1", 443, false, "http://10.0.0.1:443"),
            ("10.0.0.1", 443, true, "https://10.0.0.1"),
            ("::1", 8090, false, "http://[::1]:8090"),
        ] {
            assert_eq!(url(host, port, https), expected);
        }
    }

    #[test]
    fn a_server_that_listens_everywhere_names_an_address_that_works_here() {
        assert_eq!(addresses("0.0.0.0")[0], "127.0.0.1");
        assert_eq!(addresses("10.1.2.3"), ["10.1.2.3"]);
    }
}
