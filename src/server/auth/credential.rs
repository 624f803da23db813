//! The `Authorization` header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};

const LEGACY_WORKER_PREFIX: &[u8] = b"system/worker/";
const ACCESS_KEY_DIGITS: usize = 16;
const SECRET_DIGITS: usize = 32;

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

/// The halves of `gpustack_<16 hex>_<32 hex>`.
pub(super) fn split_api_key(key: &str) -> Option<(&str, &str)> {
    let (access_key, secret) = key.strip_prefix("gpustack_")?.split_once('_')?;
    let is_hex = |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex(access_key, ACCESS_KEY_DIGITS) && is_hex(secret, SECRET_DIGITS)).then_some((access_key, secret))
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

    #[test]
    fn only_a_whole_api_key_is_split() {
        let key = format!("gpustack_{}_{}", "a".repeat(16), "b".repeat(32));
        assert_eq!(split_api_key(&key), Some(("a".repeat(16).as_str(), "b".repeat(32).as_str())));
        for wrong in ["", "gpustack_", "gpustack_aa_bb", &key[1..], &format!("{key}0"), &key.replace('b', "g")] {
            assert_eq!(split_api_key(wrong), None, "{wrong}");
        }
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
