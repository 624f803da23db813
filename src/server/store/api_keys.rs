//! Keys for programs.

use super::{Store, UserRow, now_ms};
use sqlx::FromRow;

/// One row of `api_keys`.
#[derive(Clone, FromRow)]
pub struct ApiKeyRow {
    /// The row.
    pub id: i64,
    /// Unique for its user.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
    /// Milliseconds since 1970; None for never.
    pub expires_ms: Option<i64>,
}

/// What checking a key takes, and its user.
#[derive(Clone, FromRow)]
pub struct ApiKeyOwner {
    /// SHA-256 of the secret half, in hexadecimal digits.
    pub secret_sha256: String,
    /// Milliseconds since 1970; None for never.
    pub key_expires_ms: Option<i64>,
    /// Whose it is.
    #[sqlx(flatten)]
    pub user: UserRow,
}

/// A key to be.
#[derive(Clone, Copy)]
pub struct NewApiKey<'a> {
    /// Whose it is.
    pub user_id: i64,
    /// Unique for its user.
    pub name: &'a str,
    /// For people.
    pub description: Option<&'a str>,
    /// The half that names the key.
    pub access_key: &'a str,
    /// SHA-256 of the secret half, in hexadecimal digits.
    pub secret_sha256: &'a str,
    /// Milliseconds since 1970; None for never.
    pub expires_ms: Option<i64>,
}

impl Store {
    /// Whose key this is, by the half that names it.
    pub async fn api_key_owner(&self, access_key: &str) -> sqlx::Result<Option<ApiKeyOwner>> {
        sqlx::query_as(
            "SELECT api_keys.secret_sha256, api_keys.expires_ms AS key_expires_ms, users.* \
             FROM api_keys JOIN users ON users.id = api_keys.user_id WHERE api_keys.access_key = $1",
        )
        .bind(access_key)
        .fetch_optional(self.readers())
        .await
    }

    /// A user's keys, newest first.
    pub async fn api_keys(&self, user_id: i64) -> sqlx::Result<Vec<ApiKeyRow>> {
        sqlx::query_as("SELECT * FROM api_keys WHERE user_id = $1 ORDER BY id DESC")
            .bind(user_id)
            .fetch_all(self.readers())
            .await
    }

    /// Adds a key; None when the user has one of that name.
    pub async fn insert_api_key(&self, key: NewApiKey<'_>) -> sqlx::Result<Option<ApiKeyRow>> {
        sqlx::query_as(
            "INSERT INTO api_keys (user_id, name, description, access_key, secret_sha256, created_ms, updated_ms, expires_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $6, $7) ON CONFLICT (user_id, name) DO NOTHING RETURNING *",
        )
        .bind(key.user_id)
        .bind(key.name)
        .bind(key.description)
        .bind(key.access_key)
        .bind(key.secret_sha256)
        .bind(now_ms())
        .bind(key.expires_ms)
        .fetch_optional(self.writer())
        .await
    }

    /// Removes a user's key; false when there is none.
    pub async fn delete_api_key(&self, user_id: i64, id: i64) -> sqlx::Result<bool> {
        let deleted = sqlx::query("DELETE FROM api_keys WHERE user_id = $1 AND id = $2")
            .bind(user_id)
            .bind(id)
            .execute(self.writer())
            .await?;
        Ok(deleted.rows_affected() > 0)
    }
}
