//! The login: one key after the other, until the server takes one.

use crate::end::SessionEnd;
use crate::error::{AuthenticationError, ConnectFault};
use crate::identity::{Credential, Offer, TriedKey};
use crate::session::client::Client;
use crate::session::own_key::OwnKey;
use crate::session::shared::Shared;
use russh::client::{AuthResult, Handle};
use russh::keys::{Algorithm, HashAlg, PrivateKeyWithHashAlg};
use russh::{MethodKind, MethodSet};
use std::sync::Arc;

/// sshd's words when it has been offered too much (`MaxAuthTries`).
const TOO_MANY: &str = "Too many authentication failures";

/// What came of an offer.
enum Outcome {
    LetIn,
    Refused {
        offered: MethodSet,
        more_wanted: bool,
    },
    /// The key or ssh-agent did not sign, which is as good as a key less.
    NotSigned,
    /// The connection is no more.
    Ended,
}

/// Offers everything, until the server lets the user in.
pub(crate) async fn authenticate(
    handle: &mut Handle<Client>,
    shared: &Shared,
    offers: Vec<Offer>,
) -> Result<(), ConnectFault> {
    let user = shared.hop.user.clone();
    let mut tried: Vec<TriedKey> = Vec::new();
    // without an offer, a server says what it would take
    let mut offered = match outcome(handle.authenticate_none(user.as_str()).await, shared) {
        Outcome::LetIn => return Ok(()),
        Outcome::Refused { offered, .. } => offered,
        Outcome::NotSigned | Outcome::Ended => return Err(ended(shared, user, tried).await),
    };
    if !takes_keys(&offered) {
        return Err(AuthenticationError::KeysNotTaken { user, offered: names(&offered) }.into());
    }
    for offer in offers {
        let outcome = try_one(handle, &user, &offer.credential, shared).await;
        tried.push(offer.tried);
        match outcome {
            Outcome::LetIn => return Ok(()),
            Outcome::Refused { offered: still, more_wanted } => {
                offered = still;
                if more_wanted && !takes_keys(&offered) {
                    return Err(AuthenticationError::MoreWanted { user, offered: names(&offered) }.into());
                }
                if !takes_keys(&offered) {
                    break;
                }
            }
            Outcome::NotSigned => {}
            Outcome::Ended => return Err(ended(shared, user, tried).await),
        }
    }
    Err(AuthenticationError::Refused { user, offered: names(&offered), tried }.into())
}

async fn try_one(handle: &mut Handle<Client>, user: &str, credential: &Credential, shared: &Shared) -> Outcome {
    match credential {
        Credential::Key(key) => {
            let hash = hash_for(handle, &key.algorithm()).await;
            let key = PrivateKeyWithHashAlg::new(Arc::clone(key), hash);
            outcome(handle.authenticate_publickey(user, key).await, shared)
        }
        Credential::CertifiedKey(key, certificate) => {
            let hash = hash_for(handle, &certificate.algorithm()).await;
            let signer = &mut OwnKey(key);
            signed(handle.authenticate_certificate_with(user, certificate.clone(), hash, signer).await, shared)
        }
        Credential::AgentKey(key, agent) => {
            let hash = hash_for(handle, &key.algorithm()).await;
            let mut agent = agent.lock().await;
            signed(handle.authenticate_publickey_with(user, key.clone(), hash, &mut *agent).await, shared)
        }
        Credential::AgentCertificate(certificate, agent) => {
            let hash = hash_for(handle, &certificate.algorithm()).await;
            let mut agent = agent.lock().await;
            signed(handle.authenticate_certificate_with(user, certificate.clone(), hash, &mut *agent).await, shared)
        }
    }
}

/// RSA keys sign with the best hash that the server knows; other keys have no choice.
async fn hash_for(handle: &Handle<Client>, algorithm: &Algorithm) -> Option<HashAlg> {
    if !matches!(algorithm, Algorithm::Rsa { .. }) {
        return None;
    }
    // a server that does not say what it knows is taken for one of this century
    handle.best_supported_rsa_hash().await.ok().flatten().flatten().or(Some(HashAlg::Sha512))
}

fn outcome(result: Result<AuthResult, russh::Error>, shared: &Shared) -> Outcome {
    match result {
        Ok(AuthResult::Success) => Outcome::LetIn,
        // the library takes the end of the connection for a refusal
        Ok(AuthResult::Failure { .. }) if shared.end.is_set() => Outcome::Ended,
        Ok(AuthResult::Failure { remaining_methods, partial_success }) => {
            Outcome::Refused { offered: remaining_methods, more_wanted: partial_success }
        }
        Err(_) => Outcome::Ended,
    }
}

fn signed<E>(result: Result<AuthResult, E>, shared: &Shared) -> Outcome {
    match result {
        Ok(result) => outcome(Ok(result), shared),
        Err(_) if shared.end.is_set() => Outcome::Ended,
        Err(_) => Outcome::NotSigned,
    }
}

async fn ended(shared: &Shared, user: String, tried: Vec<TriedKey>) -> ConnectFault {
    match shared.why_ended().await {
        SessionEnd::Disconnected { message, .. } if message.contains(TOO_MANY) => {
            AuthenticationError::TooManyFailures { user, tried }.into()
        }
        end => end.into(),
    }
}

fn takes_keys(methods: &MethodSet) -> bool {
    methods.contains(&MethodKind::PublicKey)
}

fn names(methods: &MethodSet) -> Vec<String> {
    methods.iter().map(|method| String::from(<&str>::from(method))).collect()
}
