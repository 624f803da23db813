//! Changes that a browser asks for must come from our own pages. `SameSite` cookies do not see to it: they take all
//! ports of a host for one site.

use crate::server::error::ApiError;
use http::request::Parts;
use http::{HeaderMap, Method, header};

/// Refuses a change that another site's page asked for. Programs send neither header and pass.
pub(super) fn check(parts: &Parts) -> Result<(), ApiError> {
    if parts.method.is_safe() || parts.method == Method::CONNECT {
        return Ok(());
    }
    // Browsers send this one only over https and to the loopback address, and nobody can forge it there.
    if let Some(site) = text(&parts.headers, "sec-fetch-site") {
        return if matches!(site, "same-origin" | "none") { Ok(()) } else { Err(refused()) };
    }
    let Some(origin) = text(&parts.headers, header::ORIGIN.as_str()) else { return Ok(()) };
    let Some((scheme, origin_host)) = origin.split_once("://") else { return Err(refused()) };
    let default_port = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    let same = |host: &str| {
        let without_port = |name: &str| name.strip_suffix(default_port).unwrap_or(name).to_ascii_lowercase();
        without_port(host) == without_port(origin_host)
    };
    // HTTP/2 has the host in the URI; a proxy that changes `Host` tells the browser's in `X-Forwarded-Host`, which a
    // page of another site cannot set.
    let hosts = [
        parts.uri.authority().map(http::uri::Authority::as_str),
        text(&parts.headers, header::HOST.as_str()),
        text(&parts.headers, "x-forwarded-host"),
    ];
    if hosts.into_iter().flatten().any(same) { Ok(()) } else { Err(refused()) }
}

fn refused() -> ApiError {
    ApiError::forbidden(
        "the request comes from a page of another site; if a proxy stands in between, let it pass the browser's Host on \
         (nginx: proxy_set_header Host $http_host)",
    )
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn passes(method: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().method(method).uri("/v1/workers/1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check(&parts).is_ok()
    }

    #[test]
    fn changes_pass_from_our_own_pages_and_from_programs_only() {
        type Headers = &'static [(&'static str, &'static str)];
        let table: [(&str, Headers, bool); 14] = [
            ("DELETE", &[("host", "gpu:8090")], true),
            ("DELETE", &[("host", "gpu:8090"), ("origin", "http://gpu:8090")], true),
            ("DELETE", &[("host", "GPU"), ("origin", "http://gpu")], true),
            ("DELETE", &[("host", "gpu:80"), ("origin", "http://gpu")], true),
            ("DELETE", &[("host", "gpu:443"), ("origin", "https://gpu")], true),
            ("DELETE", &[("host", "gpu:8090"), ("origin", "http://gpu:8091")], false),
            ("DELETE", &[("host", "gpu:8090"), ("origin", "http://evil")], false),
            ("DELETE", &[("host", "gpu:8090"), ("origin", "null")], false),
            ("DELETE", &[("host", "upstream"), ("x-forwarded-host", "gpu"), ("origin", "https://gpu")], true),
            ("POST", &[("host", "gpu"), ("sec-fetch-site", "same-origin")], true),
            ("POST", &[("host", "gpu"), ("sec-fetch-site", "same-site"), ("origin", "http://gpu")], false),
            ("POST", &[("host", "gpu"), ("sec-fetch-site", "cross-site")], false),
            ("GET", &[("host", "gpu"), ("sec-fetch-site", "cross-site")], true),
            ("POST", &[("host", "gpu"), ("sec-fetch-site", "none")], true),
        ];
        for (method, headers, expected) in table {
            assert_eq!(passes(method, headers), expected, "{method} {headers:?}");
        }
    }
}
