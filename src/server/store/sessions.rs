//! Browsers' logins.

use super::{Store, UserRow, now_ms};
use sqlx::FromRow;

/// A login and its user.
#[derive(Clone, FromRow)]
pub struct SessionRow {
    /// Milliseconds since 1970.
    pub session_created_ms: i64,
    /// Milliseconds since 1970.
    pub session_expires_ms: i64,
    /// Whose it is.
    #[sqlx(flatten)]
    pub user: UserRow,
}

/// A login to be.
#[derive(Clone, Copy)]
pub struct NewSession<'a> {
    /// SHA-256 of the cookie's value, in hexadecimal digits.
    pub token_sha256: &'a str,
    /// Whose it is.
    pub user_id: i64,
    /// The hash that the password was checked against.
    pub password_hash: &'a str,
    /// Milliseconds since 1970.
    pub expires_ms: i64,
    /// So many logins a user keeps.
    pub max_of_user: i64,
}

impl Store {
    /// The login with this hash of its cookie, unless it has expired.
    pub async fn session(&self, token_sha256: &str) -> sqlx::Result<Option<SessionRow>> {
        sqlx::query_as(
            "SELECT sessions.created_ms AS session_created_ms, sessions.expires_ms AS session_expires_ms, users.* \
             FROM sessions JOIN users ON users.id = sessions.user_id \
             WHERE sessions.token_sha256 = $1 AND sessions.expires_ms > $2",
        )
        .bind(token_sha256)
        .bind(now_ms())
        .fetch_optional(self.readers())
        .await
    }

    /// Adds a login, and removes expired ones and the user's oldest beyond the maximum. False, and nothing is added,
    /// when the user's password is another one by now.
    pub async fn insert_session(&self, session: NewSession<'_>) -> sqlx::Result<bool> {
        let now_ms = now_ms();
        let mut transaction = self.writer().begin().await?;
        let inserted = sqlx::query(
            "INSERT INTO sessions (token_sha256, user_id, created_ms, expires_ms) \
             SELECT $1, id, $2, $3 FROM users WHERE id = $4 AND password_hash = $5",
        )
        .bind(session.token_sha256)
        .bind(now_ms)
        .bind(session.expires_ms)
        .bind(session.user_id)
        .bind(session.password_hash)
        .execute(&mut *transaction)
        .await?;
        if inserted.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query("DELETE FROM sessions WHERE expires_ms <= $1").bind(now_ms).execute(&mut *transaction).await?;
        sqlx::query(
            "DELETE FROM sessions WHERE user_id = $1 AND token_sha256 <> $2 AND token_sha256 NOT IN \
             (SELECT token_sha256 FROM sessions WHERE user_id = $1 ORDER BY created_ms DESC, token_sha256 LIMIT $3)",
        )
        .bind(session.user_id)
        .bind(session.token_sha256)
        .bind(session.max_of_user)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Lets a login live longer.
    pub async fn extend_session(&self, token_sha256: &str, expires_ms: i64) -> sqlx::Result<()> {
        sqlx::query("UPDATE sessions SET expires_ms = $1 WHERE token_sha256 = $2")
            .bind(expires_ms)
            .bind(token_sha256)
            .execute(self.writer())
            .await?;
        Ok(())
    }

    /// Ends a login; one that is not there is no error.
    pub async fn delete_session(&self, token_sha256: &str) -> sqlx::Result<()> {
        sqlx::query("DELETE FROM sessions WHERE token_sha256 = $1").bind(token_sha256).execute(self.writer()).await?;
        Ok(())
    }
}
