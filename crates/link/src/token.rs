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

/// What a worker has shown of the join token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownToken {
    /// Nothing: it has none.
    None,
    /// A proof that is of none of the tokens that are valid.
    Wrong,
    /// A proof of this one.
    Valid(JoinToken),
}

impl ShownToken {
    /// Checks a proof against the tokens that are valid.
    ///
    /// All are tried however early one fits, so the time tells nothing of which it was.
    pub(crate) fn check<'a>(
        proof: Option<&[u8; PROOF_BYTES]>,
        bound: &Bound,
        valid: impl IntoIterator<Item = &'a JoinToken>,
    ) -> Self {
        let Some(proof) = proof else { return Self::None };
        valid.into_iter().fold(Self::Wrong, |found, token| {
            let fits = token.proves(Prover::Worker, bound, proof);
            if fits { Self::Valid(token.clone()) } else { found }
        })
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

    fn check(shown: &str, valid: &[JoinToken]) -> ShownToken {
        let proof = JoinToken::new(shown).prove(Prover::Worker, &bound(0));
        ShownToken::check(Some(&proof), &bound(0), valid)
    }

    #[test]
    fn the_token_is_found_among_several() {
        let tokens = ["first", "second", "third"].map(JoinToken::new);
        for token in &tokens {
            assert_eq!(check(&token.0, &tokens), ShownToken::Valid(token.clone()));
        }
    }

    #[test]
    fn another_token_is_not_and_no_proof_is_something_else() {
        let tokens = ["token"].map(JoinToken::new);
        assert_eq!(check("other", &tokens), ShownToken::Wrong);
        assert_eq!(check("token", &[]), ShownToken::Wrong);
        assert_eq!(ShownToken::check(None, &bound(0), &tokens), ShownToken::None);
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
        for text in [format!("{token:?}"), format!("{:?}", ShownToken::Valid(token.clone()))] {
            assert!(!text.contains("0123"), "{text}");
        }
    }
}
