//! Passwords are hashed with argon2id, off the threads that answer requests and only a few at once, since each takes
//! 19 MiB and some tens of milliseconds.

use crate::server::error::ApiError;
use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Semaphore;

/// NIST SP 800-63B, section 5.1.1.1: at least eight characters, and no other rules, which only make passwords worse.
pub const MIN_PASSWORD_CHARS: u32 = 8;

const AT_ONCE: usize = 2;
const WAIT_MAX: Duration = Duration::from_secs(10);
const RETRY_AFTER_S: u64 = 5;
/// Parameters as in every hash of ours, and a sum that nothing hashes to: what an unknown user's password is checked
/// against, so that the answer takes as long as a known one's.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Why a password could not be hashed.
#[derive(Debug, Error)]
#[error("cannot hash the password: {0}")]
pub struct HashError(String);

/// The hash in PHC form. Takes tens of milliseconds.
pub fn hash_blocking(password: &str) -> Result<String, HashError> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string()).map_err(|error| HashError(error.to_string()))
}

fn verify_blocking(password: &str, hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|parsed| Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok())
}

pub(super) struct Hasher {
    permits: Arc<Semaphore>,
}

impl Hasher {
    pub(super) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    pub(super) async fn hash(&self, password: String) -> Result<String, ApiError> {
        self.run(move || hash_blocking(&password)).await?.map_err(ApiError::internal)
    }

    /// Whether the password has this hash; without a hash the same work is done for nothing.
    pub(super) async fn verify(&self, password: String, hash: Option<String>) -> Result<bool, ApiError> {
        self.run(move || {
            let is_right = verify_blocking(&password, hash.as_deref().unwrap_or(NOBODY));
            is_right && hash.is_some()
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
        let waited = tokio::time::timeout(WAIT_MAX, self.permits.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = waited else {
            return Err(ApiError::unavailable("too many logins at once; try again", RETRY_AFTER_S));
        };
        tokio::task::spawn_blocking(move || {
            // released when the work ends, also when nobody waits for it any more
            let _permit = permit;
            work()
        })
        .await
        .map_err(ApiError::internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_fits_its_password_only() {
        let hash = hash_blocking("correct horse").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(verify_blocking("correct horse", &hash));
        assert!(!verify_blocking("correct horsE", &hash));
        assert!(!verify_blocking("correct horse", "not a hash"));
    }

    #[test]
    fn checking_nobodys_password_is_real_work() {
        let parsed = PasswordHash::new(NOBODY).unwrap();
        let ours = hash_blocking("any").unwrap();
        assert_eq!(parsed.params, PasswordHash::new(&ours).unwrap().params);
        assert_eq!(parsed.hash.unwrap().as_bytes().len(), 32);
    }
}
