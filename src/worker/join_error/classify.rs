//! What an error of the link, or the end of one, means to whoever runs the worker.

use super::JoinError;
use crate::fingerprint::Fingerprint;
use api::{ErrorBody, RegisterDeclined, ServerUrl, error_reason};
use http::StatusCode;
use link::{DialError, ForeignAnswer, LINK_PATH, LinkEnd, PinMismatch, Refusal, TransportError, UpgradeError};
use rustls::{CertificateError, Error as TlsError};
use std::error::Error as StdError;
use std::io;
use std::path::Path;
use std::time::Duration;

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

impl JoinError {
    /// Why no link came about. `connect_timeout` is what each connection had, `server_key_file` where the server's key
    /// is kept.
    pub fn of_dial(error: &DialError, server: &ServerUrl, connect_timeout: Duration, server_key_file: &Path) -> Self {
        let address = host_and_port(server);
        match error {
            DialError::Deadline { deadline, .. } => Self::TimedOut { address, timeout_s: deadline.as_secs() },
            DialError::Upgrade(error) => of_upgrade(error, server, connect_timeout),
            DialError::Join(error) => of_join(error, address, server_key_file),
        }
    }

    /// Why a link that stood is no more; None when the worker itself ended it.
    pub fn of_end(end: &LinkEnd, server: &ServerUrl) -> Option<Self> {
        match end {
            LinkEnd::Shutdown => None,
            LinkEnd::ServerStopping(retry_after) => Some(Self::ServerStopping { retry_after: *retry_after }),
            LinkEnd::Replaced => Some(Self::TakenOver),
            LinkEnd::Revoked => Some(Self::Deleted),
            LinkEnd::Closed => Some(Self::Closed { address: host_and_port(server) }),
            LinkEnd::Silent => Some(Self::Silent),
            LinkEnd::Broken(detail) => Some(Self::Broken { detail: quote(detail, QUOTE_LIMIT_CHARS) }),
        }
    }
}

fn of_upgrade(error: &UpgradeError, server: &ServerUrl, connect_timeout: Duration) -> JoinError {
    let address = host_and_port(server);
    match error {
        UpgradeError::Transport(TransportError::Resolve { host, .. }) => JoinError::NotResolved { host: host.clone() },
        UpgradeError::Transport(TransportError::Connect { source, .. }) if source.kind() == io::ErrorKind::TimedOut => {
            JoinError::TimedOut { address, timeout_s: connect_timeout.as_secs() }
        }
        UpgradeError::TakenAway => JoinError::UpgradeTakenAway { address },
        UpgradeError::Busy { retry_after } => JoinError::Unavailable { retry_after: Some(*retry_after) },
        UpgradeError::Foreign(answer) => foreign(answer, server, address),
        UpgradeError::Transport(_) | UpgradeError::NoAnswer(_) => of_network(error, address),
    }
}

fn of_join(error: &link::JoinError, address: String, server_key_file: &Path) -> JoinError {
    match error {
        link::JoinError::NothingToJoinWith => JoinError::NoToken,
        link::JoinError::ServerKeyChanged { .. } => {
            JoinError::ServerKeyChanged { address, file: server_key_file.to_owned() }
        }
        link::JoinError::ServerNotProven => JoinError::ServerNotProven { address },
        link::JoinError::Refused { refusal, .. } => refused(refusal, address),
        link::JoinError::Encryption(_) | link::JoinError::Message(_) => of_network(error, address),
    }
}

fn refused(refusal: &Refusal, address: String) -> JoinError {
    match refusal {
        Refusal::WrongToken => JoinError::WrongToken { address },
        Refusal::UnknownKey | Refusal::Revoked => JoinError::WorkerUnknown { address },
        Refusal::Busy { retry_after } => JoinError::Unavailable { retry_after: Some(*retry_after) },
        Refusal::VersionUnsupported { .. } => JoinError::ProtocolUnsupported { message: refusal.to_string() },
        Refusal::Malformed => JoinError::Rejected { message: refusal.to_string() },
        Refusal::Declined { detail } => match serde_json::from_slice(detail) {
            Ok(told) => declined(&told, address),
            Err(error) => JoinError::AnswerNotUnderstood { detail: error.to_string() },
        },
    }
}

fn declined(told: &RegisterDeclined, address: String) -> JoinError {
    let message = quote(&told.message, QUOTE_LIMIT_CHARS);
    match told.reason.as_str() {
        error_reason::WORKER_UNKNOWN => JoinError::WorkerUnknown { address },
        error_reason::ALREADY_EXISTS => JoinError::NameTaken { message },
        error_reason::REPLACEMENT_NEEDED => JoinError::ReplacementNeeded { message },
        error_reason::IDENTITY_DUPLICATED => JoinError::IdentityDuplicated { message },
        error_reason::PROTOCOL_UNSUPPORTED => JoinError::ProtocolUnsupported { message },
        _ => JoinError::Rejected { message },
    }
}

/// HTTP, but no link.
fn foreign(answer: &ForeignAnswer, server: &ServerUrl, address: String) -> JoinError {
    let url = server.join(LINK_PATH);
    let status = answer.status.as_u16();
    if answer.status.is_redirection() {
        let location = answer.location.as_deref().unwrap_or("nowhere");
        return JoinError::Redirected { url, location: quote(location, QUOTE_LIMIT_CHARS) };
    }
    if serde_json::from_slice::<ErrorBody>(&answer.body).is_ok_and(|error| error.code == status) {
        let what = "a GPUStack server that knows no links; is it as new as this worker?".to_owned();
        return JoinError::OtherService { url, status, what };
    }
    let is_gateway = matches!(
        answer.status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    );
    if is_gateway {
        return JoinError::Gateway { address, status };
    }
    let what = describe(answer.content_type.as_deref().unwrap_or_default(), &answer.body);
    JoinError::OtherService { url, status, what }
}

/// The first cause that says something, from the outside in.
fn of_network(error: &(dyn StdError + 'static), address: String) -> JoinError {
    let mut innermost = error;
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(known) = known_cause(current, &address) {
            return known;
        }
        innermost = current;
        next = inner(current);
    }
    JoinError::Network { address, detail: quote(&innermost.to_string(), QUOTE_LIMIT_CHARS) }
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
            CertificateError::Other(other) => refused_otherwise(other, address),
            other => JoinError::Tls { address, detail: quote(&other.to_string(), QUOTE_LIMIT_CHARS) },
        },
        other => JoinError::Tls { address, detail: quote(&other.to_string(), QUOTE_LIMIT_CHARS) },
    }
}

fn refused_otherwise(error: &rustls::OtherError, address: String) -> JoinError {
    if let Some(PinMismatch { expected, presented }) = error.0.downcast_ref() {
        let text = |sha256: &[u8; 32]| Fingerprint::from_bytes(*sha256).to_string();
        return JoinError::OtherCertificate { address, expected: text(expected), presented: text(presented) };
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

/// What another service answered, in a few words.
fn describe(content_type: &str, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
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
    use bytes::Bytes;

    fn server() -> ServerUrl {
        ServerUrl::parse("http://h").unwrap()
    }

    fn answer(status: u16, content_type: &str, body: &str) -> JoinError {
        let answer = ForeignAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            location: None,
            content_type: Some(content_type.to_owned()),
            body: Bytes::copy_from_slice(body.as_bytes()),
        };
        foreign(&answer, &server(), "h:80".to_owned())
    }

    #[test]
    fn every_refusal_has_its_meaning() {
        let message = || "what the server says".to_owned();
        let address = || "h:80".to_owned();
        let told = |reason: &str| {
            let detail = serde_json::to_vec(&RegisterDeclined { reason: reason.to_owned(), message: message() });
            Refusal::Declined { detail: detail.unwrap().into() }
        };
        let table = [
            (Refusal::WrongToken, JoinError::WrongToken { address: address() }),
            (Refusal::UnknownKey, JoinError::WorkerUnknown { address: address() }),
            (Refusal::Revoked, JoinError::WorkerUnknown { address: address() }),
            (told(error_reason::WORKER_UNKNOWN), JoinError::WorkerUnknown { address: address() }),
            (told(error_reason::ALREADY_EXISTS), JoinError::NameTaken { message: message() }),
            (told(error_reason::REPLACEMENT_NEEDED), JoinError::ReplacementNeeded { message: message() }),
            (told(error_reason::IDENTITY_DUPLICATED), JoinError::IdentityDuplicated { message: message() }),
            (told(error_reason::PROTOCOL_UNSUPPORTED), JoinError::ProtocolUnsupported { message: message() }),
            (told(error_reason::INVALID), JoinError::Rejected { message: message() }),
            (
                Refusal::Busy { retry_after: Duration::from_secs(7) },
                JoinError::Unavailable { retry_after: Some(Duration::from_secs(7)) },
            ),
        ];
        for (refusal, expected) in table {
            assert_eq!(refused(&refusal, address()), expected, "{refusal}");
        }
        let strange = refused(&Refusal::Declined { detail: Bytes::from_static(b"[]") }, address());
        assert!(matches!(strange, JoinError::AnswerNotUnderstood { .. }), "{strange}");
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
            (404, "text/plain", "404 page not found\n", "\"404 page not found\""),
            (204, "text/plain", "", "an empty answer"),
            (
                404,
                "application/json",
                r#"{"code":404,"reason":"NotFound","message":"no","request_id":"1"}"#,
                "a GPUStack server that knows no links; is it as new as this worker?",
            ),
        ];
        for (status, content_type, body, what) in table {
            let expected =
                JoinError::OtherService { url: "http://h/v1/link".to_owned(), status, what: what.to_owned() };
            assert_eq!(answer(status, content_type, body), expected);
        }
    }

    #[test]
    fn a_proxy_that_cannot_reach_the_server_is_told_from_the_server() {
        for status in [502, 503, 504] {
            let error = answer(status, "text/html", "<html><title>502 Bad Gateway</title>");
            assert_eq!(error, JoinError::Gateway { address: "h:80".to_owned(), status });
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_answered_becomes_one_line(status in 200u16..600, body in ".{0,400}") {
            let line = answer(status, "text/html", &body).to_string();
            proptest::prop_assert!(!line.contains(['\n', '\r']));
        }
    }
}
