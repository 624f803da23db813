//! The join token, and the proofs of it: each side shows the other that it knows the token, and neither sends it.
//!
//! A proof is an HMAC-SHA256, keyed with the token, over the exporter of the very TLS connection that it travels in
//! (RFC 8446, section 7.5) and both sides' keys. On another connection it is worth nothing, so whoever sits between two
//! connections cannot pass it on, and replaying it later is no use. The two directions carry different labels, so it
//! cannot be sent back to where it came from either.

use crate::keys::PublicKey;
use aws_lc_rs::hmac;
use std::fmt;

/// The length of a proof.
pub(crate) const PROOF_BYTES: usize = 32;

/// What the TLS exporter is asked with.
pub(crate) const EXPORTER_LABEL: &[u8] = b"EXPORTER-gpustack-link-join-v1";

/// The secret with which a worker joins. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken(Box<str>);

impl JoinToken {
    /// The token with this text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    pub(crate) fn prove(&self, prover: Prover, bound: &Bound) -> [u8; PROOF_BYTES] {
        let tag = self.tag(prover, bound);
        let mut proof = [0; PROOF_BYTES];
        proof.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        proof
    }

    /// Compares in a time that does not depend on where the two differ.
    pub(crate) fn proves(&self, prover: Prover, bound: &Bound, proof: &[u8; PROOF_BYTES]) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(self.tag(prover, bound).as_ref(), proof).is_ok()
    }

    fn tag(&self, prover: Prover, bound: &Bound) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes()));
        // every part has a fixed length, so no two inputs run together to the same bytes
        context.update(prover.label());
        context.update(&bound.exporter);
        context.update(bound.worker.as_bytes());
        context.update(bound.server.as_bytes());
        context.sign()
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinToken([hidden])")
    }
}

/// Who shows that it knows the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prover {
    Worker,
    Server,
}

impl Prover {
    fn label(self) -> &'static [u8; 24] {
        match self {
            Self::Worker => b"gpustack-link/1 worker\0\0",
            Self::Server => b"gpustack-link/1 server\0\0",
        }
    }
}

/// What a proof is tied to.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    /// Known to the two ends of one TLS connection and to nobody else.
    pub exporter: [u8; 32],
    /// The exporter of TLS 1.3 does not cover the client's key, hence it is named here.
    pub worker: PublicKey,
    pub server: PublicKey,
}

/// A worker's proof that it knows a join token, to be checked against the tokens that are valid.
pub struct TokenProof {
    pub(crate) proof: [u8; PROOF_BYTES],
    pub(crate) bound: Bound,
}

/// A token that the worker has proved to know. The server proves it back.
pub struct VerifiedToken {
    token: JoinToken,
}

impl TokenProof {
    /// Which of `tokens` the worker knows; `None` when it is none of them.
    ///
    /// All are tried however early one fits, so the time tells nothing of which it was.
    pub fn verify<'a>(&self, tokens: impl IntoIterator<Item = &'a JoinToken>) -> Option<VerifiedToken> {
        tokens.into_iter().fold(None, |found, token| {
            let fits = token.proves(Prover::Worker, &self.bound, &self.proof);
            found.or_else(|| fits.then(|| VerifiedToken { token: token.clone() }))
        })
    }
}

impl fmt::Debug for TokenProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenProof")
    }
}

impl VerifiedToken {
    /// The token that it was.
    pub fn token(&self) -> &JoinToken {
        &self.token
    }
}

impl fmt::Debug for VerifiedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifiedToken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(exporter: u8) -> Bound {
        Bound {
            exporter: [exporter; 32],
            worker: PublicKey::from_bytes([1; 32]),
            server: PublicKey::from_bytes([2; 32]),
        }
    }

    fn proof_of(token: &str, bound: Bound) -> TokenProof {
        TokenProof { proof: JoinToken::new(token).prove(Prover::Worker, &bound), bound }
    }

    #[test]
    fn the_token_is_found_among_several() {
        let tokens = ["first", "second", "third"].map(JoinToken::new);
        let found = proof_of("second", bound(0)).verify(&tokens).unwrap();
        assert_eq!(found.token(), &tokens[1]);
    }

    #[test]
    fn another_token_is_not() {
        assert!(proof_of("other", bound(0)).verify(&[JoinToken::new("token")]).is_none());
        assert!(proof_of("other", bound(0)).verify([]).is_none());
    }

    #[test]
    fn a_proof_holds_for_one_connection_and_one_pair_of_keys_only() {
        let token = JoinToken::new("token");
        let proof = token.prove(Prover::Worker, &bound(0));
        let swapped = Bound { worker: bound(0).server, server: bound(0).worker, ..bound(0) };
        for other in [bound(1), swapped] {
            assert!(!token.proves(Prover::Worker, &other, &proof));
        }
    }

    #[test]
    fn a_proof_cannot_be_sent_back() {
        let token = JoinToken::new("token");
        let proof = token.prove(Prover::Worker, &bound(0));
        assert!(!token.proves(Prover::Server, &bound(0), &proof));
    }

    #[test]
    fn nothing_prints_the_token() {
        let token = JoinToken::new("0123456789abcdef");
        let verified = VerifiedToken { token: token.clone() };
        for text in [format!("{token:?}"), format!("{verified:?}"), format!("{:?}", proof_of("0123", bound(0)))] {
            assert!(!text.contains("0123"), "{text}");
        }
    }
}
