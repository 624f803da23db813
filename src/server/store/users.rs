//! Users of the UI and the API.

use super::{Store, now_ms};
use sqlx::{FromRow, SqliteConnection};

/// Counts changes of passwords, so that a server notices one that another process made.
const CREDENTIALS_EPOCH: &str = "credentials_epoch";

/// One row of `users`.
#[derive(Clone, FromRow)]
pub struct UserRow {
    /// The row.
    pub id: i64,
    /// Login name.
    pub username: String,
    /// For people.
    pub full_name: Option<String>,
    /// May do everything.
    pub is_admin: bool,
    /// In PHC form.
    pub password_hash: String,
    /// Nothing else is allowed before the password is changed.
    pub require_password_change: bool,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
}

/// A user to be.
#[derive(Clone, Copy)]
pub struct NewUser<'a> {
    /// Login name.
    pub username: &'a str,
    /// For people.
    pub full_name: &'a str,
    /// May do everything.
    pub is_admin: bool,
    /// In PHC form.
    pub password_hash: &'a str,
    /// Nothing else is allowed before the password is changed.
    pub require_password_change: bool,
}

/// A password to be.
#[derive(Clone, Copy)]
pub struct NewPassword<'a> {
    /// In PHC form.
    pub password_hash: &'a str,
    /// Nothing else is allowed before the password is changed again.
    pub require_password_change: bool,
    /// The session that goes on; all others of the user end.
    pub kept_session: Option<&'a str>,
}

impl Store {
    /// The user of this login name.
    pub async fn user_by_name(&self, username: &str) -> sqlx::Result<Option<UserRow>> {
        sqlx::query_as("SELECT * FROM users WHERE username = $1").bind(username).fetch_optional(self.readers()).await
    }

    /// The user of this row.
    pub async fn user_by_id(&self, id: i64) -> sqlx::Result<Option<UserRow>> {
        sqlx::query_as("SELECT * FROM users WHERE id = $1").bind(id).fetch_optional(self.readers()).await
    }

    /// The administrator who was there first.
    pub async fn first_admin(&self) -> sqlx::Result<Option<UserRow>> {
        sqlx::query_as("SELECT * FROM users WHERE is_admin ORDER BY id LIMIT 1").fetch_optional(self.readers()).await
    }

    /// Adds a user and gives its row.
    pub async fn insert_user(&self, user: NewUser<'_>) -> sqlx::Result<i64> {
        sqlx::query_scalar(
            "INSERT INTO users (username, full_name, is_admin, password_hash, require_password_change, created_ms, updated_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING id",
        )
        .bind(user.username)
        .bind(user.full_name)
        .bind(user.is_admin)
        .bind(user.password_hash)
        .bind(user.require_password_change)
        .bind(now_ms())
        .fetch_one(self.writer())
        .await
    }

    /// Changes a name for people.
    pub async fn set_full_name(&self, user_id: i64, full_name: Option<&str>) -> sqlx::Result<()> {
        sqlx::query("UPDATE users SET full_name = $1, updated_ms = $2 WHERE id = $3")
            .bind(full_name)
            .bind(now_ms())
            .bind(user_id)
            .execute(self.writer())
            .await?;
        Ok(())
    }

    /// Changes a password and ends the user's sessions, all or nothing.
    pub async fn set_password(&self, user_id: i64, password: NewPassword<'_>) -> sqlx::Result<()> {
        let mut transaction = self.writer().begin().await?;
        sqlx::query("UPDATE users SET password_hash = $1, require_password_change = $2, updated_ms = $3 WHERE id = $4")
            .bind(password.password_hash)
            .bind(password.require_password_change)
            .bind(now_ms())
            .bind(user_id)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("DELETE FROM sessions WHERE user_id = $1 AND token_sha256 <> $2")
            .bind(user_id)
            .bind(password.kept_session.unwrap_or(""))
            .execute(&mut *transaction)
            .await?;
        count_credentials_change(&mut transaction).await?;
        transaction.commit().await
    }

    /// A number that is another one after every change of a password.
    pub async fn credentials_epoch(&self) -> sqlx::Result<Option<String>> {
        self.setting(CREDENTIALS_EPOCH).await
    }
}

async fn count_credentials_change(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO settings (name, value) VALUES ($1, '1') \
         ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(settings.value AS BIGINT) + 1 AS TEXT)",
    )
    .bind(CREDENTIALS_EPOCH)
    .execute(connection)
    .await?;
    Ok(())
}
