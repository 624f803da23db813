//! What an HTTP library's error, or an answer that is not the one asked for, means.

use super::tls::PinMismatch;
use super::{JoinError, SecretWas, now_ms};
use crate::worker::transport::CertificateClocks;
use api::{ErrorBody, ServerUrl, error_reason};
use http::StatusCode;
use http::header::{self, HeaderMap};
use rustls::{CertificateError, Error as TlsError};
use rustls_pki_types::UnixTime;
use std::error::Error as StdError;
use std::io;
use std::time::Duration;

/// A server that asks for a longer pause is not believed.
const LONGEST_RETRY_AFTER_S: u64 = 300;
/// Of texts that others wrote.
const QUOTE_LIMIT_CHARS: usize = 300;
const TITLE_LIMIT_CHARS: usize = 60;

/// `host:port`, as people write it.
pub(super) fn host_and_port(server: &ServerUrl) -> String {
    if server.host().contains(':') {
        format!("[{}]:{}", server.host(), server.port())
    } else {
        format!("{}:{}", server.host(), server.port())
    }
}

/// No HTTP answer came.
pub(super) fn no_answer(error: &reqwest::Error, server: &ServerUrl, deadline: Duration) -> JoinError {
    let address = host_and_port(server);
    if error.is_dns() {
        return JoinError::NotResolved { host: server.host().to_owned() };
    }
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(current) = next {
        if let Some(known) = known_cause(current, &address) {
            return known;
        }
        next = inner(current);
    }
    if error.is_timeout() {
        let timeout = if error.is_connect() { deadline.min(super::CONNECT_TIMEOUT) } else { deadline };
        return JoinError::TimedOut { address, timeout_s: timeout.as_secs() };
    }
    JoinError::Network { address, detail: quote(&innermost(error).to_string(), QUOTE_LIMIT_CHARS) }
}

/// An HTTP answer came that is not a good one of our server.
pub(super) fn bad_answer(
    url: &str,
    address: &str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    secret_was: SecretWas,
) -> JoinError {
    if status.is_redirection() {
        let location =
            headers.get(header::LOCATION).map_or("nowhere".into(), |value| String::from_utf8_lossy(value.as_bytes()));
        return JoinError::Redirected { url: url.to_owned(), location: quote(&location, QUOTE_LIMIT_CHARS) };
    }
    let code = status.as_u16();
    let Some(error) = our_error(status, body) else {
        if matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT) {
            return JoinError::Gateway { address: address.to_owned(), status: code };
        }
        return JoinError::OtherService { url: url.to_owned(), status: code, what: describe(headers, body) };
    };
    let message = quote(&error.message, QUOTE_LIMIT_CHARS);
    match (status, error.reason.as_str()) {
        (StatusCode::UNAUTHORIZED, _) => match secret_was {
            SecretWas::JoinToken => JoinError::WrongToken { address: address.to_owned() },
            SecretWas::Credential => JoinError::CredentialRefused { address: address.to_owned() },
        },
        (_, error_reason::SESSION_REPLACED) => JoinError::SessionReplaced,
        (_, error_reason::IDENTITY_DUPLICATED) => JoinError::IdentityDuplicated { message },
        (_, error_reason::REPLACEMENT_NEEDED) => JoinError::ReplacementNeeded { message },
        (_, error_reason::ALREADY_EXISTS) => JoinError::NameTaken { message },
        (_, error_reason::PROTOCOL_UNSUPPORTED) => JoinError::ProtocolUnsupported { message },
        (StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, _) => JoinError::OtherService {
            url: url.to_owned(),
            status: code,
            what: "a GPUStack server that does not know this worker's protocol".to_owned(),
        },
        (StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS, _) => {
            JoinError::Unavailable { status: code, message, retry_after_s: retry_after_s(headers) }
        }
        _ if status.is_server_error() => {
            JoinError::ServerFailed { status: code, message, request_id: quote(&error.request_id, TITLE_LIMIT_CHARS) }
        }
        _ => JoinError::Rejected { status: code, message },
    }
}

fn known_cause(error: &(dyn StdError + 'static), address: &str) -> Option<JoinError> {
    let address = || address.to_owned();
    if let Some(tls) = error.downcast_ref::<TlsError>() {
        return Some(tls_cause(tls, address()));
    }
    if let Some(http) = error.downcast_ref::<hyper::Error>() {
        if http.is_parse() {
            return Some(JoinError::HttpNotSpoken { address: address() });
        }
        if http.is_incomplete_message() || http.is_closed() || http.is_canceled() {
            return Some(JoinError::Closed { address: address() });
        }
        return None;
    }
    match error.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::ConnectionRefused => Some(JoinError::Refused { address: address() }),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
            Some(JoinError::NoRoute { address: address() })
        }
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Some(JoinError::Closed { address: address() }),
        _ => None,
    }
}

fn tls_cause(error: &TlsError, address: String) -> JoinError {
    let clocks = |limit: Option<&UnixTime>| CertificateClocks {
        limit_ms: limit.and_then(|time| i64::try_from(time.as_secs()).ok()?.checked_mul(1000)),
        ours_ms: now_ms(),
        server_ms: None,
    };
    match error {
        TlsError::InvalidMessage(_) => JoinError::TlsNotSpoken { address },
        TlsError::InvalidCertificate(certificate) => match certificate {
            // a bad signature is an authority that was made anew under its old name
            CertificateError::UnknownIssuer | CertificateError::BadSignature => JoinError::UnknownAuthority { address },
            CertificateError::NotValidForName => {
                JoinError::CertificateName { address, names: "other names".to_owned() }
            }
            CertificateError::NotValidForNameContext { presented, .. } => {
                JoinError::CertificateName { address, names: names(presented) }
            }
            CertificateError::Expired => JoinError::CertificateExpired { address, clocks: clocks(None) },
            CertificateError::ExpiredContext { not_after, .. } => {
                JoinError::CertificateExpired { address, clocks: clocks(Some(not_after)) }
            }
            CertificateError::NotValidYet => JoinError::CertificateNotYetValid { address, clocks: clocks(None) },
            CertificateError::NotValidYetContext { not_before, .. } => {
                JoinError::CertificateNotYetValid { address, clocks: clocks(Some(not_before)) }
            }
            CertificateError::Other(other) => refused_otherwise(other, address),
            other => JoinError::Tls { address, detail: quote(&other.to_string(), QUOTE_LIMIT_CHARS) },
        },
        other => JoinError::Tls { address, detail: quote(&other.to_string(), QUOTE_LIMIT_CHARS) },
    }
}

fn refused_otherwise(error: &rustls::OtherError, address: String) -> JoinError {
    if let Some(PinMismatch { expected, presented }) = error.0.downcast_ref() {
        let (expected, presented) = (expected.to_string(), presented.to_string());
        return JoinError::OtherCertificate { address, expected, presented };
    }
    if is_its_own_authority(error) {
        return JoinError::UnknownAuthority { address };
    }
    JoinError::Tls { address, detail: quote(&error.to_string(), QUOTE_LIMIT_CHARS) }
}

/// A self-signed certificate as `openssl req -x509` makes them: the authority's and the server's in one.
fn is_its_own_authority(error: &rustls::OtherError) -> bool {
    matches!(error.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// The names in a certificate; the TLS library writes them like `DnsName("h")`.
fn names(presented: &[String]) -> String {
    if presented.is_empty() {
        return "no name at all".to_owned();
    }
    let bare: Vec<&str> = presented
        .iter()
        .map(|name| {
            let inside = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest.trim_end_matches(')'));
            inside.trim_matches('"')
        })
        .collect();
    quote(&bare.join(", "), QUOTE_LIMIT_CHARS)
}

/// The next error inside. An `io::Error` passes over the error that it wraps in its own `source`.
fn inner<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    let wrapped = error.downcast_ref::<io::Error>().and_then(|io_error| io_error.get_ref());
    match wrapped {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

fn innermost<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
    let mut current = error;
    while let Some(next) = inner(current) {
        current = next;
    }
    current
}

/// The error body of our server, or of a GPUStack, when it is one.
fn our_error(status: StatusCode, body: &[u8]) -> Option<ErrorBody> {
    let error: ErrorBody = serde_json::from_slice(body).ok()?;
    (error.code == status.as_u16()).then_some(error)
}

fn retry_after_s(headers: &HeaderMap) -> Option<u64> {
    let seconds: u64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.min(LONGEST_RETRY_AFTER_S))
}

/// What another service answered, in a few words.
fn describe(headers: &HeaderMap, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if content_type.contains("html") || text.trim_start().starts_with('<') {
        return match title(&text) {
            Some(title) => format!("an HTML page titled \"{title}\""),
            None => "an HTML page".to_owned(),
        };
    }
    if text.trim().is_empty() {
        return "an empty answer".to_owned();
    }
    if content_type.contains("json") {
        return "JSON of another kind".to_owned();
    }
    format!("\"{}\"", quote(&text, TITLE_LIMIT_CHARS))
}

fn title(html: &str) -> Option<String> {
    // ASCII case folding keeps every byte offset
    let folded = html.to_ascii_lowercase();
    let start = folded.find("<title>")? + "<title>".len();
    let length = folded.get(start..)?.find("</title>")?;
    let title = quote(html.get(start..start + length)?, TITLE_LIMIT_CHARS);
    (!title.is_empty()).then_some(title)
}

/// A text that somebody else wrote, on one line and not too long.
fn quote(text: &str, limit_chars: usize) -> String {
    let line = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    match line.char_indices().nth(limit_chars) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, content_type: &str, body: &str, secret_was: SecretWas) -> JoinError {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        headers.insert(header::RETRY_AFTER, "7".parse().unwrap());
        bad_answer(
            "http://h/v1/x",
            "h:80",
            StatusCode::from_u16(status).unwrap(),
            &headers,
            body.as_bytes(),
            secret_was,
        )
    }

    fn ours(status: u16, reason: &str) -> String {
        format!(r#"{{"code":{status},"reason":"{reason}","message":"what the server says","request_id":"r1"}}"#)
    }

    #[test]
    fn every_error_of_our_server_has_its_meaning() {
        let message = || "what the server says".to_owned();
        let address = || "h:80".to_owned();
        let table = [
            (401, error_reason::UNAUTHORIZED, SecretWas::JoinToken, JoinError::WrongToken { address: address() }),
            (
                401,
                error_reason::CREDENTIAL_REVOKED,
                SecretWas::Credential,
                JoinError::CredentialRefused { address: address() },
            ),
            (
                401,
                error_reason::UNAUTHORIZED,
                SecretWas::Credential,
                JoinError::CredentialRefused { address: address() },
            ),
            (409, error_reason::SESSION_REPLACED, SecretWas::Credential, JoinError::SessionReplaced),
            (409, error_reason::ALREADY_EXISTS, SecretWas::JoinToken, JoinError::NameTaken { message: message() }),
            (
                409,
                error_reason::REPLACEMENT_NEEDED,
                SecretWas::JoinToken,
                JoinError::ReplacementNeeded { message: message() },
            ),
            (
                409,
                error_reason::IDENTITY_DUPLICATED,
                SecretWas::Credential,
                JoinError::IdentityDuplicated { message: message() },
            ),
            (
                426,
                error_reason::PROTOCOL_UNSUPPORTED,
                SecretWas::JoinToken,
                JoinError::ProtocolUnsupported { message: message() },
            ),
            (422, error_reason::INVALID, SecretWas::JoinToken, JoinError::Rejected { status: 422, message: message() }),
            (
                503,
                error_reason::UNAVAILABLE,
                SecretWas::JoinToken,
                JoinError::Unavailable { status: 503, message: message(), retry_after_s: Some(7) },
            ),
            (
                429,
                error_reason::TOO_MANY_REQUESTS,
                SecretWas::JoinToken,
                JoinError::Unavailable { status: 429, message: message(), retry_after_s: Some(7) },
            ),
            (
                500,
                error_reason::INTERNAL,
                SecretWas::JoinToken,
                JoinError::ServerFailed { status: 500, message: message(), request_id: "r1".to_owned() },
            ),
        ];
        for (status, reason, secret_was, expected) in table {
            assert_eq!(
                answer(status, "application/json", &ours(status, reason), secret_was),
                expected,
                "{status} {reason}"
            );
        }
    }

    #[test]
    fn another_service_is_described() {
        let table = [
            (
                200,
                "text/html",
                "<!doctype html><html><head><TITLE>Welcome\n to nginx!</TITLE>",
                "an HTML page titled \"Welcome to nginx!\"",
            ),
            (404, "text/html", "<h1>Not Found</h1>", "an HTML page"),
            (200, "application/json", r#"{"ok":true}"#, "JSON of another kind"),
            (401, "application/json", r#"{"error":"no"}"#, "JSON of another kind"),
            (404, "text/plain", "404 page not found\n", "\"404 page not found\""),
            (204, "text/plain", "", "an empty answer"),
            (
                404,
                "application/json",
                &ours(404, error_reason::NOT_FOUND),
                "a GPUStack server that does not know this worker's protocol",
            ),
        ];
        for (status, content_type, body, what) in table {
            let expected = JoinError::OtherService { url: "http://h/v1/x".to_owned(), status, what: what.to_owned() };
            assert_eq!(answer(status, content_type, body, SecretWas::JoinToken), expected);
        }
    }

    #[test]
    fn a_proxy_that_cannot_reach_the_server_is_told_from_the_server() {
        for status in [502, 503, 504] {
            let error = answer(status, "text/html", "<html><title>502 Bad Gateway</title>", SecretWas::JoinToken);
            assert_eq!(error, JoinError::Gateway { address: "h:80".to_owned(), status });
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_answered_becomes_one_line(status in 200u16..600, body in ".{0,400}") {
            let line = answer(status, "text/html", &body, SecretWas::JoinToken).to_string();
            proptest::prop_assert!(!line.contains(['\n', '\r']));
        }
    }
}
