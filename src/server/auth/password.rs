//! Passwords are hashed with argon2id, off the threads that answer requests and one after the other, since each takes
//! 19 MiB and some tens of milliseconds.

use crate::random;
use crate::server::error::ApiError;
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use thiserror::Error;
use tokio::sync::Semaphore;

/// NIST SP 800-63B, section 5.1.1.1: at least eight characters, and no other rules, which only make passwords worse.
pub const MIN_PASSWORD_CHARS: u32 = 8;

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

/// What the hash works on is asked for as more than this many bytes, of which only those that are used take memory.
/// Of a smaller block glibc learns, when it is freed, to take such blocks from the heap of the thread (mallopt(3),
/// `M_MMAP_THRESHOLD`, at most 32 MiB), and then each thread that ever hashed keeps its 19 MiB. A larger one goes back to
/// the system at once.
const GIVEN_BACK_AT_ONCE_BYTES: usize = 33 * 1024 * 1024;

/// The hash in PHC form. Takes tens of milliseconds.
pub fn hash_blocking(password: &str) -> Result<String, HashError> {
    hash(password, &Params::DEFAULT).map_err(|error| HashError(error.to_string()))
}

fn hash(password: &str, params: &Params) -> Result<String, Box<dyn Error + Send + Sync>> {
    let salt = Salt::new(&random::bytes::<{ Salt::RECOMMENDED_LENGTH }>()?)?;
    let mut sum = [0; Params::DEFAULT_OUTPUT_LEN];
    fill(&mut sum, password, &salt, params)?;
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(params)?,
        salt: Some(salt),
        hash: Some(Output::new(&sum)?),
    };
    Ok(hash.to_string())
}

/// A hash that is not ours fits no password.
fn verify_blocking(password: &str, hash: &str) -> bool {
    fits(password, hash).unwrap_or(false)
}

fn fits(password: &str, hash: &str) -> Option<bool> {
    let parsed = PasswordHash::new(hash).ok()?;
    let is_ours = parsed.algorithm == Algorithm::Argon2id.ident() && parsed.version == Some(Version::V0x13.into());
    let params = Params::try_from(&parsed).ok().filter(|_| is_ours)?;
    let expected = parsed.hash?;
    let mut sum = vec![0; expected.len()];
    fill(&mut sum, password, &parsed.salt?, &params).ok()?;
    Some(sum.ct_eq(expected.as_bytes()).into())
}

fn fill(sum: &mut [u8], password: &str, salt: &Salt, params: &Params) -> argon2::Result<()> {
    let mut memory = Vec::with_capacity(params.block_count().max(GIVEN_BACK_AT_ONCE_BYTES / Block::SIZE));
    memory.resize(params.block_count(), Block::new());
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
    argon2.hash_password_into_with_memory(password.as_bytes(), salt, sum, &mut memory)
}

pub(super) struct Hasher {
    /// One permit: many logins at once take no more memory than one.
    turn: Arc<Semaphore>,
}

impl Hasher {
    pub(super) fn new() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)) }
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
        let waited = tokio::time::timeout(WAIT_MAX, self.turn.clone().acquire_owned()).await;
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
    fn hashes_of_other_parameters_and_other_programs_are_understood() {
        // from the tests of the reference implementation, phc-winner-argon2
        let known = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert!(verify_blocking("password", known));
        assert!(!verify_blocking("passwore", known));
        for other in [known.replace("argon2id", "argon2i"), known.replace("v=19", "v=16")] {
            assert!(!verify_blocking("password", &other), "{other}");
        }
    }

    #[test]
    fn checking_nobodys_password_is_real_work() {
        let parsed = PasswordHash::new(NOBODY).unwrap();
        let ours = hash_blocking("any").unwrap();
        assert_eq!(parsed.params, PasswordHash::new(&ours).unwrap().params);
        assert_eq!(parsed.hash.unwrap().as_bytes().len(), 32);
    }
}
