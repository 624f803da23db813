//! Who is asking: users by session cookie, API key or password, GPUStack 0.7 workers by the join token.
//!
//! Only hashes of secrets are stored. What was looked up is remembered for a minute, so that a page that polls costs
//! no statements; everything is forgotten at once when a password, a session or a key changes here, and within
//! seconds when another process changes a password.

mod api_key;
mod cache;
mod cookie;
mod credential;
mod extract;
mod first_admin;
mod origin;
mod password;
mod rate_limit;
mod session;

pub use api_key::CreatedApiKey;
pub use credential::bearer;
pub use extract::{ActiveUser, AdminUser, Caller, LoggedIn};
pub use first_admin::{ADMIN_NAME, FirstLogin};
pub use password::{HashError, MIN_PASSWORD_CHARS, hash_blocking};
pub use session::{LoggedInSession, LoginError, PasswordError, came_over_https};

use crate::config::{JoinToken, ServerConfig};
use crate::data_dir::{DataDir, DataDirError, TOKEN};
use crate::random;
use crate::server::error::ApiError;
use crate::server::listen::PeerAddress;
use crate::server::store::{Store, UserRow};
use cache::{Cache, CacheKey};
use cookie::CookieName;
use credential::{Authorization, Basic};
use http::request::Parts;
use password::Hasher;
use rate_limit::RateLimiter;
use sha2::{Digest, Sha256};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf, absolute};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;
use thiserror::Error;
use tokio::time::Instant;

const INSTANCE_ID: &str = "instance_id";
/// How soon a password that another process changed is noticed.
const EPOCH_CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// Who is asking, when it is a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserIdentity {
    /// The row.
    pub id: i64,
    /// Login name.
    pub username: String,
    /// May do everything.
    pub is_admin: bool,
    /// Nothing else is allowed before the password is changed.
    pub require_password_change: bool,
}

impl From<UserRow> for UserIdentity {
    fn from(row: UserRow) -> Self {
        Self {
            id: row.id,
            username: row.username,
            is_admin: row.is_admin,
            require_password_change: row.require_password_change,
        }
    }
}

/// Checks who is asking. Cloning it clones a handle.
#[derive(Clone)]
pub struct Auth {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    data_dir: DataDir,
    join_token: JoinToken,
    join_token_file: Option<PathBuf>,
    instance_id: String,
    cookie: CookieName,
    first_login: FirstLogin,
    hasher: Hasher,
    limiter: RateLimiter,
    cache: Cache,
    epoch: Mutex<SeenEpoch>,
}

struct SeenEpoch {
    checked_at: Instant,
    epoch: Option<String>,
}

/// Why logins cannot be set up.
#[derive(Debug, Error)]
pub enum AuthOpenError {
    /// The database failed.
    #[error("cannot read or write users in the database: {0}")]
    Database(#[from] sqlx::Error),
    /// The data directory failed.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The operating system gives no random numbers.
    #[error(transparent)]
    Random(#[from] io::Error),
    /// The password could not be hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
}

/// A proved identity, and the session when a cookie proved it.
struct Proof {
    user: UserIdentity,
    session_sha256: Option<String>,
}

impl Auth {
    /// Reads or makes the join token and this instance's id, and the admin when nobody is there yet.
    pub async fn open(store: Store, config: &ServerConfig) -> Result<Self, AuthOpenError> {
        let data_dir = DataDir::open(&config.data_dir)?;
        let join_token = data_dir.join_token(config.token.as_ref())?;
        let fresh_id = random::hex(&random::bytes::<16>()?);
        let instance_id = store.setting_or_insert(INSTANCE_ID, &fresh_id).await?;
        let first_login = first_admin::ensure(&store, &data_dir, config.bootstrap_password.as_ref()).await?;
        let epoch = store.credentials_epoch().await?;
        let inner = Inner {
            cookie: CookieName::of_instance(&instance_id),
            instance_id,
            store,
            data_dir,
            join_token,
            join_token_file: config
                .token
                .is_none()
                .then(|| config.data_dir.join(TOKEN))
                .map(|file| absolute(&file).unwrap_or(file)),
            first_login,
            hasher: Hasher::new(),
            limiter: RateLimiter::new(),
            cache: Cache::new(random::bytes()?),
            epoch: Mutex::new(SeenEpoch { checked_at: Instant::now(), epoch }),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// How the admin can log in, for the lines that a server prints when it starts.
    pub fn first_login(&self) -> &FirstLogin {
        &self.inner.first_login
    }

    /// Random, made once for this database.
    pub fn instance_id(&self) -> &str {
        &self.inner.instance_id
    }

    /// The secret with which a worker joins.
    pub fn join_token(&self) -> &JoinToken {
        &self.inner.join_token
    }

    /// Where the join token is on disk; None when it was given another way, for then it is in no file.
    pub fn join_token_file(&self) -> Option<&Path> {
        self.inner.join_token_file.as_deref()
    }

    /// Whether `candidate` is the join token. Takes the same time for every candidate of one length.
    pub fn is_join_token(&self, candidate: &str) -> bool {
        self.join_token_matches(candidate.as_bytes())
    }

    /// Forgets everything that was looked up. For whoever changes users, sessions or keys.
    pub fn forget_lookups(&self) {
        self.inner.cache.clear();
    }

    /// A user's account as the API shows it.
    pub async fn account(&self, user: &UserIdentity) -> Result<api::User, ApiError> {
        let row = self.inner.store.user_by_id(user.id).await?.ok_or_else(|| ApiError::not_found("user"))?;
        Ok(api::User {
            username: row.username,
            is_admin: row.is_admin,
            full_name: row.full_name,
            require_password_change: row.require_password_change,
            id: row.id,
            created_at: rfc3339(row.created_ms),
            updated_at: rfc3339(row.updated_ms),
        })
    }

    /// Changes a user's name for people.
    pub async fn set_full_name(&self, user: &UserIdentity, full_name: Option<&str>) -> Result<(), ApiError> {
        Ok(self.inner.store.set_full_name(user.id, full_name).await?)
    }

    fn join_token_matches(&self, candidate: &[u8]) -> bool {
        self.inner.join_token.expose().as_bytes().ct_eq(candidate).into()
    }

    /// Who sends this request: by API key, by session cookie, or by password, in this order. A cookie comes before a
    /// password because a proxy that asks for its own password passes that on.
    async fn prove(&self, parts: &Parts) -> Result<Proof, ApiError> {
        self.notice_changes_from_outside().await?;
        let authorization = Authorization::of(&parts.headers);
        if let Authorization::Bearer(key) = &authorization {
            let user = self.user_of_api_key(key).await?;
            return Ok(Proof { user, session_sha256: None });
        }
        origin::check(parts)?;
        if let Some(proof) = self.session_proof(&parts.headers).await? {
            return Ok(proof);
        }
        match authorization {
            Authorization::Basic(basic) => {
                let user = self.user_of_basic(peer_ip(parts), &basic).await?;
                Ok(Proof { user, session_sha256: None })
            }
            Authorization::Malformed => Err(ApiError::unauthorized("the Authorization header cannot be read")),
            Authorization::Bearer(_) | Authorization::None if self.inner.cookie.is_in(&parts.headers) => {
                Err(ApiError::unauthorized("the session has ended; log in again"))
            }
            Authorization::Bearer(_) | Authorization::None => {
                Err(ApiError::unauthorized("log in, or send an API key as `Authorization: Bearer gpustack_…`"))
            }
        }
    }

    /// The address that a GPUStack 0.7 worker gives as `system/worker/<address>` with the join token as password.
    /// None when the request is not such a worker's; an error when the token is wrong.
    fn legacy_worker(&self, parts: &Parts) -> Option<Result<String, ApiError>> {
        let Authorization::Basic(basic) = Authorization::of(&parts.headers) else { return None };
        let claimed = basic.legacy_worker()?;
        // An IPv6 address has colons of its own, so the password is found from the end.
        let token_bytes = self.inner.join_token.expose().len();
        let split_at = claimed.len().checked_sub(token_bytes).and_then(|start| claimed.split_at_checked(start));
        let proved = split_at.and_then(|(before, token)| {
            let address = before.strip_suffix(b":")?;
            self.join_token_matches(token).then(|| String::from_utf8_lossy(address).into_owned())
        });
        Some(proved.ok_or_else(|| {
            ApiError::unauthorized("the join token is wrong; `gpustack token` on the server prints the right one")
        }))
    }

    async fn user_of_basic(&self, peer: IpAddr, basic: &Basic) -> Result<UserIdentity, ApiError> {
        let (username, password) = basic
            .user_and_password()
            .ok_or_else(|| ApiError::unauthorized("the Authorization header holds no user and password"))?;
        let cache_key = self.password_key(username, password);
        self.inner.limiter.check(peer, username).map_err(LoginError::from)?;
        if let Some(user) = self.inner.cache.get(&cache_key) {
            return Ok(user);
        }
        let generation = self.inner.cache.generation();
        let user = UserIdentity::from(self.check_password(peer, username, password).await?);
        self.remember(cache_key, &user, None, generation);
        Ok(user)
    }

    fn password_key(&self, username: &str, password: &str) -> CacheKey {
        self.inner.cache.key("password", &[username.as_bytes(), password.as_bytes()])
    }

    fn remember(&self, key: CacheKey, user: &UserIdentity, remaining_ms: Option<i64>, generation: u64) {
        let remaining = remaining_ms.map(|left_ms| Duration::from_millis(u64::try_from(left_ms).unwrap_or(0)));
        self.inner.cache.put(key, user.clone(), remaining, generation);
    }

    async fn notice_changes_from_outside(&self) -> Result<(), ApiError> {
        {
            let mut seen = self.inner.seen_epoch();
            if seen.checked_at.elapsed() < EPOCH_CHECK_INTERVAL {
                return Ok(());
            }
            // others need not wait for the answer
            seen.checked_at = Instant::now();
        }
        let asked = self.inner.store.credentials_epoch().await;
        let Ok(epoch) = asked else {
            self.inner.cache.clear();
            return asked.map(|_| ()).map_err(ApiError::from);
        };
        let mut seen = self.inner.seen_epoch();
        if epoch != seen.epoch {
            seen.epoch = epoch;
            self.inner.cache.clear();
        }
        Ok(())
    }
}

impl Inner {
    fn seen_epoch(&self) -> MutexGuard<'_, SeenEpoch> {
        // every change is complete at each point where it could panic
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn peer_ip(parts: &Parts) -> IpAddr {
    // a request that came through no listener of ours, as in tests of routers, shares one bucket
    parts.extensions.get::<PeerAddress>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.addr.ip())
}

/// A time in the form that GPUStack's API has: whole seconds, UTC.
pub fn rfc3339(ms: i64) -> String {
    let time = chrono::DateTime::from_timestamp_millis(ms).unwrap_or_default();
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// SHA-256 in hexadecimal digits: enough for secrets of 128 random bits, which nobody guesses.
fn sha256_hex(bytes: &[u8]) -> String {
    random::hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests;
