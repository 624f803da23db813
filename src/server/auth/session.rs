//! Logging in and out with a password, and the sessions in between.

use super::cookie::MAX_AGE_S;
use super::password::MIN_PASSWORD_CHARS;
use super::rate_limit::TooMany;
use super::{Auth, Proof, UserIdentity, origin, peer_ip, sha256_hex};
use crate::data_dir::INITIAL_ADMIN_PASSWORD;
use crate::random;
use crate::server::error::ApiError;
use crate::server::listen::PeerAddress;
use crate::server::store::{NewPassword, NewSession, UserRow, now_ms};
use api::error_reason;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use std::net::IpAddr;

/// A session ends when nobody has used it for so long.
const IDLE_MS: i64 = 12 * 60 * 60 * 1000;
/// A session ends at last, however much it is used.
const LIFETIME_MS: i64 = MAX_AGE_S * 1000;
/// The end is moved at most this often: a busy session costs one write in so long.
const EXTEND_EVERY_MS: i64 = 5 * 60 * 1000;
const MAX_SESSIONS_OF_USER: i64 = 64;

/// Somebody has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedInSession {
    /// Who.
    pub user: UserIdentity,
    /// Value of the `Set-Cookie` header.
    pub set_cookie: String,
}

/// Why somebody has not logged in.
#[derive(Debug)]
pub enum LoginError {
    /// Wrong user or password.
    Wrong,
    /// Too many attempts from this address or for this user.
    TooMany {
        /// Try again after so many seconds.
        retry_after_s: u64,
    },
    /// The request was refused, or the server could not check.
    Failed(ApiError),
}

/// Why a password was not changed.
#[derive(Debug)]
pub enum PasswordError {
    /// The caller is not logged in.
    LoggedOut,
    /// The current password is wrong.
    WrongCurrent,
    /// The new one is shorter than so many characters.
    TooShort(u32),
    /// The new one is the current one.
    Same,
    /// Too many attempts.
    TooMany {
        /// Try again after so many seconds.
        retry_after_s: u64,
    },
    /// The request was refused, or the server could not do it.
    Failed(ApiError),
}

impl From<ApiError> for LoginError {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

impl From<TooMany> for LoginError {
    fn from(refused: TooMany) -> Self {
        Self::TooMany { retry_after_s: refused.retry_after_s }
    }
}

impl From<LoginError> for ApiError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Wrong => Self::unauthorized("wrong user or password"),
            LoginError::TooMany { retry_after_s } => too_many(retry_after_s),
            LoginError::Failed(error) => error,
        }
    }
}

impl From<ApiError> for PasswordError {
    fn from(error: ApiError) -> Self {
        if error.status() == StatusCode::UNAUTHORIZED { Self::LoggedOut } else { Self::Failed(error) }
    }
}

impl From<LoginError> for PasswordError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Wrong => Self::WrongCurrent,
            LoginError::TooMany { retry_after_s } => Self::TooMany { retry_after_s },
            LoginError::Failed(error) => Self::Failed(error),
        }
    }
}

impl From<PasswordError> for ApiError {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::LoggedOut => Self::unauthorized("log in first"),
            PasswordError::WrongCurrent => Self::bad_request("the current password is wrong"),
            PasswordError::TooShort(min) => {
                Self::invalid(format!("the new password must have {min} characters or more"))
            }
            PasswordError::Same => Self::invalid("the new password is the current one; choose another"),
            PasswordError::TooMany { retry_after_s } => too_many(retry_after_s),
            PasswordError::Failed(error) => error,
        }
    }
}

fn too_many(retry_after_s: u64) -> ApiError {
    let message = format!("too many attempts; try again in {retry_after_s} s");
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, error_reason::TOO_MANY_REQUESTS, message).retry_after(retry_after_s)
}

impl Auth {
    /// Who is logged in by this request's cookie. None too when the cookie comes with a change that another site's
    /// page asked for.
    pub async fn session_of(&self, parts: &Parts) -> Result<Option<UserIdentity>, ApiError> {
        if origin::check(parts).is_err() {
            return Ok(None);
        }
        self.notice_changes_from_outside().await?;
        Ok(self.session_proof(&parts.headers).await?.map(|proof| proof.user))
    }

    /// Checks a password and begins a session.
    pub async fn login(&self, parts: &Parts, username: &str, password: &str) -> Result<LoggedInSession, LoginError> {
        origin::check(parts)?;
        self.notice_changes_from_outside().await?;
        let row = self.check_password(peer_ip(parts), username, password).await?;
        let value = random::hex(&random::bytes::<32>().map_err(ApiError::internal)?);
        let session = NewSession {
            token_sha256: &sha256_hex(value.as_bytes()),
            user_id: row.id,
            password_hash: &row.password_hash,
            expires_ms: now_ms() + IDLE_MS,
            max_of_user: MAX_SESSIONS_OF_USER,
        };
        if !self.inner.store.insert_session(session).await.map_err(ApiError::from)? {
            // the password was changed since it was checked
            return Err(LoginError::Wrong);
        }
        tracing::info!(user = row.username, peer = %peer_ip(parts), "logged in");
        // an older session may have had to make room
        self.inner.cache.clear();
        let set_cookie = self.inner.cookie.set(&value, came_over_https(parts));
        Ok(LoggedInSession { user: row.into(), set_cookie })
    }

    /// Ends the session of this request's cookie, and gives the value of the `Set-Cookie` header that removes it.
    pub async fn logout(&self, parts: &Parts) -> Result<String, ApiError> {
        origin::check(parts)?;
        if let Some(value) = self.inner.cookie.value_in(&parts.headers) {
            self.inner.store.delete_session(&sha256_hex(value.as_bytes())).await?;
            self.inner.cache.clear();
        }
        Ok(self.inner.cookie.remove())
    }

    /// Changes the caller's own password, and ends all its sessions but the one that asks.
    pub async fn change_password(&self, parts: &Parts, current: &str, new: &str) -> Result<(), PasswordError> {
        let proof = self.prove(parts).await?;
        if new.chars().nth(MIN_PASSWORD_CHARS as usize - 1).is_none() {
            return Err(PasswordError::TooShort(MIN_PASSWORD_CHARS));
        }
        if new == current {
            return Err(PasswordError::Same);
        }
        self.check_password(peer_ip(parts), &proof.user.username, current).await?;
        let hash = self.inner.hasher.hash(new.to_owned()).await.map_err(PasswordError::Failed)?;
        let password = NewPassword {
            password_hash: &hash,
            require_password_change: false,
            kept_session: proof.session_sha256.as_deref(),
        };
        let changed = self.inner.store.set_password(proof.user.id, password).await;
        self.inner.cache.clear();
        changed.map_err(|error| PasswordError::Failed(error.into()))?;
        tracing::info!(user = proof.user.username, peer = %peer_ip(parts), "password changed");
        self.forget_initial_password();
        Ok(())
    }

    /// The user with this name and password. Every try counts until one succeeds, except for one that is known to be
    /// wrong: it tells the caller nothing new.
    pub(super) async fn check_password(
        &self,
        peer: IpAddr,
        username: &str,
        password: &str,
    ) -> Result<UserRow, LoginError> {
        let key = self.password_key(username, password);
        if self.inner.cache.is_wrong(&key) {
            tracing::debug!(%peer, "wrong user or password, once more");
            return Err(LoginError::Wrong);
        }
        let generation = self.inner.cache.generation();
        self.inner.limiter.count_try(peer, username)?;
        let row = self.inner.store.user_by_name(username).await.map_err(ApiError::from)?;
        let hash = row.as_ref().map(|row| row.password_hash.clone());
        let is_right = self.inner.hasher.verify(password.to_owned(), hash).await?;
        let Some(row) = row.filter(|_| is_right) else {
            // not the name: people type their password there
            tracing::warn!(%peer, "wrong user or password");
            self.inner.cache.put_wrong(key, generation);
            return Err(LoginError::Wrong);
        };
        self.inner.limiter.succeeded(peer, username);
        Ok(row)
    }

    pub(super) async fn session_proof(&self, headers: &HeaderMap) -> Result<Option<Proof>, ApiError> {
        let Some(value) = self.inner.cookie.value_in(headers) else { return Ok(None) };
        let token_sha256 = sha256_hex(value.as_bytes());
        let cache_key = self.inner.cache.key("session", &[value.as_bytes()]);
        if let Some(user) = self.inner.cache.get(&cache_key) {
            return Ok(Some(Proof { user, session_sha256: Some(token_sha256) }));
        }
        let generation = self.inner.cache.generation();
        let Some(session) = self.inner.store.session(&token_sha256).await? else { return Ok(None) };
        let now_ms = now_ms();
        let end_ms = session.session_created_ms.saturating_add(LIFETIME_MS).min(now_ms + IDLE_MS);
        if end_ms - session.session_expires_ms > EXTEND_EVERY_MS {
            self.inner.store.extend_session(&token_sha256, end_ms).await?;
        }
        let remaining_ms = end_ms.max(session.session_expires_ms) - now_ms;
        let user = UserIdentity::from(session.user);
        self.remember(cache_key, &user, Some(remaining_ms), generation);
        Ok(Some(Proof { user, session_sha256: Some(token_sha256) }))
    }

    /// The file tells a password that holds no more. That it cannot be removed must not undo the change.
    fn forget_initial_password(&self) {
        if let Err(error) = self.inner.data_dir.remove(INITIAL_ADMIN_PASSWORD) {
            tracing::warn!(%error, "the password is changed, but the file with the first one is still there");
        }
    }
}

/// Whether the browser speaks https, to us or to a proxy near us that says so.
pub fn came_over_https(parts: &Parts) -> bool {
    let Some(peer) = parts.extensions.get::<PeerAddress>() else { return false };
    if peer.https {
        return true;
    }
    let forwarded = parts.headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    is_near(peer.addr.ip()) && forwarded.is_some_and(says_https)
}

/// Of several proxies the one that the browser talks to comes first.
fn says_https(forwarded: &str) -> bool {
    forwarded.split(',').next().is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"))
}

/// Where proxies stand: on this host or in a private network.
fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn https(peer: &str, tls: bool, forwarded: Option<&str>) -> bool {
        let mut request = http::Request::builder();
        if let Some(proto) = forwarded {
            request = request.header("x-forwarded-proto", proto);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(PeerAddress { addr: format!("{peer}:1").parse().unwrap(), https: tls });
        came_over_https(&parts)
    }

    #[test]
    fn https_is_what_the_browser_speaks() {
        for (peer, tls, forwarded, expected) in [
            ("127.0.0.1", false, None, false),
            ("127.0.0.1", false, Some("https"), true),
            ("127.0.0.1", false, Some("http"), false),
            ("127.0.0.1", false, Some("https, http"), true),
            ("127.0.0.1", false, Some("http,https"), false),
            ("172.17.0.1", false, Some("https"), true),
            ("[::ffff:127.0.0.1]", false, Some("https"), true),
            ("203.0.113.9", false, Some("https"), false),
            ("203.0.113.9", true, None, true),
        ] {
            assert_eq!(https(peer, tls, forwarded), expected, "{peer} {tls} {forwarded:?}");
        }
    }
}
