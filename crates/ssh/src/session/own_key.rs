//! Signatures for certificates with a key that this process holds.
//!
//! The protocol library's own way of doing so signs for RSA certificates as nobody accepts it any more (SHA-1).

use russh::keys::agent::AgentIdentity;
use russh::keys::signature::Signer as Sign;
use russh::keys::ssh_encoding::Encode;
use russh::keys::ssh_key::private::KeypairData;
use russh::keys::ssh_key::{self, Signature};
use russh::keys::{HashAlg, PrivateKey};
use russh::{SendError, Signer};
use thiserror::Error;

/// A key, as it signs.
pub(crate) struct OwnKey<'a>(pub &'a PrivateKey);

/// There is no signature.
#[derive(Debug, Error)]
pub(crate) enum NoSignature {
    #[error("the session ended")]
    Ended,
    #[error("the key does not sign: {0}")]
    Key(String),
}

impl From<SendError> for NoSignature {
    fn from(_: SendError) -> Self {
        Self::Ended
    }
}

impl Signer for OwnKey<'_> {
    type Error = NoSignature;

    /// Gives what was to be signed, and the signature after it, as a `string` of RFC 4251.
    async fn auth_sign(
        &mut self,
        _identity: &AgentIdentity,
        hash: Option<HashAlg>,
        mut to_sign: Vec<u8>,
    ) -> Result<Vec<u8>, NoSignature> {
        let signature = sign(self.0, hash, &to_sign).map_err(|error| NoSignature::Key(error.to_string()))?;
        signature.encode_prefixed(&mut to_sign).map_err(|error| NoSignature::Key(error.to_string()))?;
        Ok(to_sign)
    }
}

fn sign(key: &PrivateKey, hash: Option<HashAlg>, bytes: &[u8]) -> ssh_key::Result<Signature> {
    let signature: Signature = match key.key_data() {
        KeypairData::Rsa(rsa) => (rsa, hash.or(Some(HashAlg::Sha512))).try_sign(bytes)?,
        other => other.try_sign(bytes)?,
    };
    Ok(signature)
}
