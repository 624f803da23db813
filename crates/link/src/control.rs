//! What the two ends of a link say to one another beside the requests that they carry.
//!
//! It travels as requests to an authority that no other request can have, since the handle sets the authority of those.

use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use std::time::Duration;

/// The authority of requests that are for the link itself.
const CONTROL_AUTHORITY: &str = "link.invalid";
/// The authority of all others.
pub(crate) const WORKER_AUTHORITY: &str = "worker";

const GOODBYE_PATH: &str = "/goodbye";
const REASON: &str = "goodbye-reason";
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// On a worker's answer to CONNECT: which kind of failure a status stands for.
pub(crate) const CONNECT_REFUSED_STATUS: StatusCode = StatusCode::FORBIDDEN;
pub(crate) const CONNECT_FAILED_STATUS: StatusCode = StatusCode::BAD_GATEWAY;
pub(crate) const CONNECT_TIMED_OUT_STATUS: StatusCode = StatusCode::GATEWAY_TIMEOUT;

/// Why the server ends a link that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goodbye {
    /// The server stops; the worker comes back after a while that the server chose for it.
    Stopping {
        /// When to come back.
        retry_after: Duration,
    },
    /// A newer link of the same worker has taken over.
    Replaced,
    /// The worker was removed.
    Revoked,
}

impl Goodbye {
    fn word(self) -> &'static str {
        match self {
            Self::Stopping { .. } => "stopping",
            Self::Replaced => "replaced",
            Self::Revoked => "revoked",
        }
    }

    pub(crate) fn request(self) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri(CONTROL_AUTHORITY, GOODBYE_PATH);
        request.headers_mut().insert(REASON, HeaderValue::from_static(self.word()));
        if let Self::Stopping { retry_after } = self {
            let ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
            request.headers_mut().insert(RETRY_AFTER_MS, HeaderValue::from(ms));
        }
        request
    }

    fn read(headers: &HeaderMap) -> Option<Self> {
        match headers.get(REASON)?.to_str().ok()? {
            "replaced" => Some(Self::Replaced),
            "revoked" => Some(Self::Revoked),
            _ => {
                let ms = headers.get(RETRY_AFTER_MS)?.to_str().ok()?.parse().ok()?;
                Some(Self::Stopping { retry_after: Duration::from_millis(ms) })
            }
        }
    }
}

/// What a request that arrives at the worker is.
pub(crate) enum Incoming {
    Goodbye(Goodbye),
    /// For the link, and not understood: a later version's.
    UnknownControl,
    Connect,
    /// For the worker's service.
    Request,
}

pub(crate) fn classify<B>(request: &Request<B>) -> Incoming {
    if request.method() == Method::CONNECT {
        return Incoming::Connect;
    }
    if request.uri().authority().map(http::uri::Authority::as_str) != Some(CONTROL_AUTHORITY) {
        return Incoming::Request;
    }
    match (request.uri().path(), Goodbye::read(request.headers())) {
        (GOODBYE_PATH, Some(goodbye)) => Incoming::Goodbye(goodbye),
        _ => Incoming::UnknownControl,
    }
}

/// The request's target with the authority of ordinary requests.
pub(crate) fn worker_uri(asked: &Uri) -> Uri {
    uri(WORKER_AUTHORITY, asked.path_and_query().map_or("/", http::uri::PathAndQuery::as_str))
}

fn uri(authority: &str, path_and_query: &str) -> Uri {
    let built = Uri::builder().scheme(Scheme::HTTP).authority(authority).path_and_query(path_and_query).build();
    // both parts come from constants or from a `Uri`, so they are valid
    built.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goodbye_arrives_as_it_was_said() {
        let table =
            [Goodbye::Stopping { retry_after: Duration::from_millis(1234) }, Goodbye::Replaced, Goodbye::Revoked];
        for said in table {
            assert!(matches!(classify(&said.request()), Incoming::Goodbye(heard) if heard == said));
        }
    }

    #[test]
    fn an_ordinary_request_cannot_pass_for_the_links_own() {
        let mut request = Goodbye::Revoked.request();
        *request.uri_mut() = worker_uri(request.uri());
        assert_eq!(request.uri(), "http://worker/goodbye");
        assert!(matches!(classify(&request), Incoming::Request));
    }

    #[test]
    fn a_control_request_of_a_later_version_is_not_for_the_service() {
        let mut request = Goodbye::Replaced.request();
        *request.uri_mut() = uri(CONTROL_AUTHORITY, "/new");
        assert!(matches!(classify(&request), Incoming::UnknownControl));
    }
}
