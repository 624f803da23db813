//! How an HTTP/1.1 connection becomes a link: the words of the upgrade, and the server's answer to it.

use crate::websocket;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONNECTION, HeaderName, HeaderValue, RETRY_AFTER, UPGRADE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::Full;
use std::time::Duration;

/// Where the server takes links.
pub const LINK_PATH: &str = "/v1/link";

/// The link's own word in `Upgrade`.
pub(crate) const PROTOCOL: &str = "gpustack-link/1";
/// What [`PROTOCOL`] begins with in every version.
const PROTOCOL_NAME: &str = "gpustack-link/";

pub(crate) const WEBSOCKET: &str = "websocket";
pub(crate) const WEBSOCKET_VERSION: &str = "13";
/// The link's word in `Sec-WebSocket-Protocol`.
pub(crate) const WEBSOCKET_PROTOCOL: &str = "gpustack-link.1";

/// On every answer of a server that knows links, so that it is told apart from a proxy's.
pub(crate) const MARK: HeaderName = HeaderName::from_static("gpustack-link");

pub(crate) const SEC_WEBSOCKET_KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
pub(crate) const SEC_WEBSOCKET_ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
pub(crate) const SEC_WEBSOCKET_VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
pub(crate) const SEC_WEBSOCKET_PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");

/// What carries the link's bytes after the upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The connection itself.
    Stream,
    /// Binary messages of a WebSocket, since something in between lets nothing else through.
    WebSocket,
}

/// What a request at [`LINK_PATH`] asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A link; `websocket_accept` is what the answer has to say for a WebSocket.
    Link { carrier: Carrier, websocket_accept: Option<String> },
    /// Something else.
    Other(NoLink),
}

/// Why a request cannot become a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLink {
    Method,
    /// No upgrade: a browser, or a proxy that took it away.
    NoUpgrade,
    /// A later or an unknown version.
    Version,
    /// Not as RFC 6455 has it.
    BadWebSocket,
}

/// Reads a request.
pub(crate) fn asked<B>(request: &Request<B>) -> Asked {
    let headers = request.headers();
    if request.method() != Method::GET {
        return Asked::Other(NoLink::Method);
    }
    if request.version() != Version::HTTP_11 || !has_token(headers, &CONNECTION, "upgrade") {
        return Asked::Other(NoLink::NoUpgrade);
    }
    if has_token(headers, &UPGRADE, PROTOCOL) {
        return Asked::Link { carrier: Carrier::Stream, websocket_accept: None };
    }
    if has_token(headers, &UPGRADE, WEBSOCKET) {
        return asked_websocket(headers);
    }
    let other_version = tokens(headers, &UPGRADE).any(|token| token.starts_with(PROTOCOL_NAME));
    Asked::Other(if other_version { NoLink::Version } else { NoLink::NoUpgrade })
}

fn asked_websocket(headers: &HeaderMap) -> Asked {
    if !has_token(headers, &SEC_WEBSOCKET_PROTOCOL, WEBSOCKET_PROTOCOL) {
        return Asked::Other(NoLink::Version);
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|key| {
        let nonce = STANDARD.decode(key.as_bytes());
        nonce.is_ok_and(|nonce| nonce.len() == 16)
    });
    match key {
        Some(key) if has_token(headers, &SEC_WEBSOCKET_VERSION, WEBSOCKET_VERSION) => {
            Asked::Link { carrier: Carrier::WebSocket, websocket_accept: Some(websocket::accept_key(key.as_bytes())) }
        }
        _ => Asked::Other(NoLink::BadWebSocket),
    }
}

fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

pub(crate) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|found| found.eq_ignore_ascii_case(token))
}

/// 101: what follows is the link.
pub(crate) fn switching(carrier: Carrier, websocket_accept: Option<&str>) -> Response<Full<Bytes>> {
    let mut response = answer(StatusCode::SWITCHING_PROTOCOLS, "");
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    match carrier {
        Carrier::Stream => {
            headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        }
        Carrier::WebSocket => {
            headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(WEBSOCKET_PROTOCOL));
            if let Some(accept) = websocket_accept.and_then(|accept| HeaderValue::from_str(accept).ok()) {
                headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
            }
        }
    }
    response
}

/// The answer to what cannot become a link.
pub(crate) fn no_link(problem: NoLink) -> Response<Full<Bytes>> {
    let (status, text) = match problem {
        NoLink::Method => (StatusCode::METHOD_NOT_ALLOWED, "Workers link here with GET.\n"),
        NoLink::NoUpgrade => (
            StatusCode::UPGRADE_REQUIRED,
            "Workers link here. If this was one, a proxy in between took the headers Upgrade and Connection away: \
             let it pass them on.\n",
        ),
        NoLink::Version => {
            (StatusCode::UPGRADE_REQUIRED, "This server speaks gpustack-link/1: update the older of the two.\n")
        }
        NoLink::BadWebSocket => (StatusCode::BAD_REQUEST, "This is not how a WebSocket begins (RFC 6455).\n"),
    };
    let mut response = answer(status, text);
    if status == StatusCode::UPGRADE_REQUIRED {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    }
    response
}

/// 503: come back later.
pub(crate) fn busy(retry_after: Duration) -> Response<Full<Bytes>> {
    let mut response = answer(StatusCode::SERVICE_UNAVAILABLE, "No more links for the moment.\n");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after.as_secs().max(1)));
    response
}

fn answer(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(MARK, HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request<()> {
        let builder = Request::builder().uri(LINK_PATH);
        headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value)).body(()).unwrap()
    }

    #[test]
    fn the_requests_that_become_a_link_and_those_that_do_not() {
        let websocket = |key, version, protocol| {
            asked(&request(&[
                ("connection", "keep-alive, Upgrade"),
                ("upgrade", "WebSocket"),
                ("sec-websocket-key", key),
                ("sec-websocket-version", version),
                ("sec-websocket-protocol", protocol),
            ]))
        };
        let stream = Asked::Link { carrier: Carrier::Stream, websocket_accept: None };
        let by_websocket = Asked::Link {
            carrier: Carrier::WebSocket,
            websocket_accept: Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned()),
        };
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let table = [
            (asked(&request(&[("connection", "upgrade"), ("upgrade", "gpustack-link/1")])), stream),
            (websocket(key, "13", "gpustack-link.1"), by_websocket),
            (websocket(key, "12", "gpustack-link.1"), Asked::Other(NoLink::BadWebSocket)),
            (websocket("short", "13", "gpustack-link.1"), Asked::Other(NoLink::BadWebSocket)),
            (websocket(key, "13", "chat"), Asked::Other(NoLink::Version)),
            (asked(&request(&[("upgrade", "gpustack-link/1")])), Asked::Other(NoLink::NoUpgrade)),
            (asked(&request(&[("connection", "upgrade"), ("upgrade", "h2c")])), Asked::Other(NoLink::NoUpgrade)),
            (
                asked(&request(&[("connection", "upgrade"), ("upgrade", "gpustack-link/2")])),
                Asked::Other(NoLink::Version),
            ),
            (asked(&request(&[])), Asked::Other(NoLink::NoUpgrade)),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
        let post = Request::post(LINK_PATH).body(()).unwrap();
        assert_eq!(asked(&post), Asked::Other(NoLink::Method));
    }
}
