//! Keys for programs, in GPUStack's form: one half names the key, the other proves it.

use super::{Auth, UserIdentity, sha256_hex};
use crate::random;
use crate::server::error::ApiError;
use crate::server::store::{ApiKeyRow, NewApiKey, now_ms};
use std::io;
use subtle::ConstantTimeEq;

const ACCESS_KEY_BYTES: usize = 8;
const SECRET_BYTES: usize = 16;

/// A new key. Its value is nowhere else.
pub struct CreatedApiKey {
    /// What is stored of it.
    pub row: ApiKeyRow,
    /// `gpustack_<16 hex>_<32 hex>`.
    pub value: String,
}

impl Auth {
    /// Makes a key; None when the user has one of that name.
    pub async fn create_api_key(
        &self,
        user: &UserIdentity,
        name: &str,
        description: Option<&str>,
        expires_ms: Option<i64>,
    ) -> Result<Option<CreatedApiKey>, ApiError> {
        let (access_key, secret) = draw().map_err(ApiError::internal)?;
        let key = NewApiKey {
            user_id: user.id,
            name,
            description,
            access_key: &access_key,
            secret_sha256: &sha256_hex(secret.as_bytes()),
            expires_ms,
        };
        let row = self.inner.store.insert_api_key(key).await?;
        Ok(row.map(|row| CreatedApiKey { row, value: format!("gpustack_{access_key}_{secret}") }))
    }

    /// A user's keys, newest first.
    pub async fn api_keys(&self, user: &UserIdentity) -> Result<Vec<ApiKeyRow>, ApiError> {
        Ok(self.inner.store.api_keys(user.id).await?)
    }

    /// Deletes a user's key, which admits nobody from then on; false when there is none.
    pub async fn delete_api_key(&self, user: &UserIdentity, id: i64) -> Result<bool, ApiError> {
        let deleted = self.inner.store.delete_api_key(user.id, id).await;
        self.inner.cache.clear();
        Ok(deleted?)
    }

    pub(super) async fn user_of_api_key(&self, key: &str) -> Result<UserIdentity, ApiError> {
        let refused = || ApiError::unauthorized("the API key is unknown, was deleted or has expired");
        if self.is_join_token(key) {
            return Err(ApiError::unauthorized(
                "this is the join token, which is for workers to join with; send an API key (`gpustack_…`, made by \
                 POST /v1/api-keys), or log in",
            ));
        }
        let (access_key, secret) = split(key).ok_or_else(refused)?;
        let cache_key = self.inner.cache.key("api key", &[key.as_bytes()]);
        if let Some(user) = self.inner.cache.get(&cache_key) {
            return Ok(user);
        }
        let generation = self.inner.cache.generation();
        let owner = self.inner.store.api_key_owner(access_key).await?.ok_or_else(refused)?;
        let secret_sha256 = sha256_hex(secret.as_bytes());
        let is_right: bool = owner.secret_sha256.as_bytes().ct_eq(secret_sha256.as_bytes()).into();
        let remaining_ms = owner.key_expires_ms.map(|expires_ms| expires_ms.saturating_sub(now_ms()));
        if !is_right || remaining_ms.is_some_and(|left_ms| left_ms <= 0) {
            return Err(refused());
        }
        let user = UserIdentity::from(owner.user);
        self.remember(cache_key, &user, remaining_ms, generation);
        Ok(user)
    }
}

fn draw() -> io::Result<(String, String)> {
    Ok((random::hex(&random::bytes::<ACCESS_KEY_BYTES>()?), random::hex(&random::bytes::<SECRET_BYTES>()?)))
}

/// The halves of `gpustack_<16 hex>_<32 hex>`.
fn split(key: &str) -> Option<(&str, &str)> {
    let (access_key, secret) = key.strip_prefix("gpustack_")?.split_once('_')?;
    let is_hex = |text: &str, bytes: usize| text.len() == bytes * 2 && text.bytes().all(|b| b.is_ascii_hexdigit());
    (is_hex(access_key, ACCESS_KEY_BYTES) && is_hex(secret, SECRET_BYTES)).then_some((access_key, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_key_is_split() {
        let key = format!("gpustack_{}_{}", "a".repeat(16), "b".repeat(32));
        assert_eq!(split(&key), Some(("a".repeat(16).as_str(), "b".repeat(32).as_str())));
        for wrong in ["", "gpustack_", "gpustack_aa_bb", &key[1..], &format!("{key}0"), &key.replace('b', "g")] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_drawn_is_split_again() {
        let (access_key, secret) = draw().unwrap();
        let key = format!("gpustack_{access_key}_{secret}");
        assert_eq!(split(&key), Some((access_key.as_str(), secret.as_str())));
    }

    proptest::proptest! {
        #[test]
        fn no_key_makes_it_panic(key in "(gpustack_)?[0-9a-f_]{0,50}\\PC{0,3}") {
            let _ = split(&key);
        }
    }
}
