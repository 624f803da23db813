//! The `Authorization` header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};

const LEGACY_WORKER_PREFIX: &[u8] = b"system/worker/";

/// The token of `Authorization: Bearer <token>`.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    match Authorization::of(headers) {
        Authorization::Bearer(token) => Some(token),
        _ => None,
    }
}

pub(super) enum Authorization<'a> {
    None,
    Bearer(&'a str),
    Basic(Basic),
    Malformed,
}

/// `user:password`, decoded. GPUStack 0.7 workers put host names in it that are not Latin-1.
pub(super) struct Basic(Vec<u8>);

impl<'a> Authorization<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let Some(value) = headers.get(header::AUTHORIZATION) else { return Self::None };
        let Some((scheme, rest)) = value.to_str().ok().and_then(|text| text.trim().split_once(' ')) else {
            return Self::Malformed;
        };
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty() {
            return Self::Bearer(rest);
        }
        if scheme.eq_ignore_ascii_case("basic") {
            return STANDARD.decode(rest).map_or(Self::Malformed, |decoded| Self::Basic(Basic(decoded)));
        }
        Self::Malformed
    }
}

impl Basic {
    /// What follows `system/worker/`, when it begins so.
    pub(super) fn legacy_worker(&self) -> Option<&[u8]> {
        self.0.strip_prefix(LEGACY_WORKER_PREFIX)
    }

    /// None when it is no UTF-8 or has no colon.
    pub(super) fn user_and_password(&self) -> Option<(&str, &str)> {
        std::str::from_utf8(&self.0).ok()?.split_once(':')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        headers
    }

    #[test]
    fn a_bearer_token_is_found_in_every_spelling() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Basic YTpi", None),
        ] {
            assert_eq!(bearer(&headers(value)), token, "{value}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn a_password_may_hold_colons() {
        let encoded = STANDARD.encode("admin:a:b");
        let headers = headers(&format!("Basic {encoded}"));
        let Authorization::Basic(basic) = Authorization::of(&headers) else { panic!("not basic") };
        assert_eq!(basic.user_and_password(), Some(("admin", "a:b")));
    }

    proptest::proptest! {
        #[test]
        fn no_header_makes_it_panic(bytes in proptest::collection::vec(0u8..=255, 0..60)) {
            if let Ok(value) = http::HeaderValue::from_bytes(&bytes) {
                let mut headers = HeaderMap::new();
                headers.insert(header::AUTHORIZATION, value);
                let _ = Authorization::of(&headers);
            }
        }
    }
}
