//! What tells one certificate from all others.

use crate::random;
use rustls_pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use std::fmt;

const DIGEST_BYTES: usize = 32;
const SCHEME: &str = "sha256:";

/// The SHA-256 of a certificate in DER, which `openssl x509 -noout -fingerprint -sha256` prints too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; DIGEST_BYTES]);

impl Fingerprint {
    /// A certificate's.
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate.as_ref()).into())
    }

    /// Of a certificate with this SHA-256.
    pub fn from_bytes(sha256: [u8; DIGEST_BYTES]) -> Self {
        Self(sha256)
    }

    /// The SHA-256.
    pub fn bytes(self) -> [u8; DIGEST_BYTES] {
        self.0
    }

    /// Reads `sha256:` and 64 hexadecimal digits, and what openssl prints: `sha256 Fingerprint=AB:CD:…`.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let digits = ["sha256 fingerprint=", SCHEME].into_iter().find_map(|prefix| lower.strip_prefix(prefix));
        let digits: Vec<u8> = digits.unwrap_or(&lower).bytes().filter(|byte| *byte != b':').collect();
        if digits.len() != DIGEST_BYTES * 2 {
            return None;
        }
        let mut digest = [0; DIGEST_BYTES];
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            let is_hex = pair.iter().all(u8::is_ascii_hexdigit);
            let pair = std::str::from_utf8(pair).ok().filter(|_| is_hex)?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(digest))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", random::hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_read_as_it_is_written_and_as_openssl_writes_it() {
        let fingerprint = Fingerprint::of(&CertificateDer::from(&b"a certificate"[..]));
        let written = fingerprint.to_string();
        let digits = written.strip_prefix("sha256:").unwrap();
        let pairs: Vec<_> = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap()).collect();
        let openssl = format!("sha256 Fingerprint={}", pairs.join(":").to_uppercase());
        for text in [written.as_str(), digits, &openssl, &written.to_uppercase()] {
            assert_eq!(Fingerprint::parse(text), Some(fingerprint), "{text}");
        }
        for text in ["", "sha256:", "sha1:00", &digits[1..], &digits.replace(char::is_numeric, "g")] {
            assert_eq!(Fingerprint::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(sha256:)?[0-9a-f:+é]{0,70}") {
            let _ = Fingerprint::parse(&text);
        }
    }
}
