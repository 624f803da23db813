//! What a worker or a tunnel agent dials its server with: the address, the keys, the token, and whom it takes for the
//! server; and how it comes back when its session has ended.

use super::join_error::{JoinError, Pace};
use super::trust::{self, TrustError};
use crate::backoff::{Backoff, random_pause};
use crate::config::{JoinToken, ServerTrust, WorkerConfig};
use crate::data_dir::{LINK_SERVER_KEY, WORKER_LINK_KEY};
use api::ServerUrl;
use http::Uri;
use link::{
    AddressError, AllowedTargets, DialConfig, DialError, Dialer, DirectTransport, KeyError, KeyPair, PublicKey,
    ServerAddress, Tuning,
};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Somebody has to do something before these attempts succeed.
const SLOW_PAUSES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));
/// A session that lasted this long shows that all was well.
const HEALTHY_AFTER: Duration = Duration::from_mins(1);
/// For each of the server's addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// When the worker stops, requests over the link may end for so long.
const DRAIN_DEADLINE: Duration = Duration::from_secs(1);

/// Why a worker cannot have a link. Trouble with the network or the server is never among it.
#[derive(Debug, Error)]
pub enum LinkSetupError {
    /// A key file.
    #[error("a key of this worker's link cannot be used: {0}")]
    Key(#[from] KeyError),
    /// The server's URL.
    #[error("the server URL {url} cannot be used for a link: {problem}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// Whom to trust outside of the link.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// What a server is dialled with.
pub struct Line {
    server: ServerUrl,
    address: ServerAddress,
    transport: Arc<DirectTransport>,
    keys: KeyPair,
    token: Option<JoinToken>,
    tuning: Tuning,
    server_key: Mutex<Option<PublicKey>>,
    server_key_file: PathBuf,
}

/// What is set of a line.
#[derive(Clone, Debug)]
pub struct LineSettings {
    /// The server.
    pub server_url: ServerUrl,
    /// The join token; whoever has joined before can do without.
    pub token: Option<JoinToken>,
    /// How the server's certificate is judged.
    pub trust: ServerTrust,
    /// Where the keys are kept.
    pub data_dir: PathBuf,
    /// How often the link takes new keys for what is sent over it.
    pub key_rotation: Duration,
}

/// Why a session that stood is over.
#[derive(Debug)]
pub enum SessionEnd {
    /// This program stops.
    Stopped,
    /// Something about this host has changed that the server has to know; the next session begins at once.
    Changed,
    /// It broke.
    Failed(JoinError),
}

/// Whoever is kept joined.
pub trait Member: Sync {
    /// One session, from the dialling to its end.
    fn session(
        &self,
        dialer: &mut Dialer,
        shutdown: &CancellationToken,
    ) -> impl Future<Output = Result<SessionEnd, JoinError>> + Send;

    /// Notes why there is no session.
    fn note(&self, what: &str, error: &JoinError);
}

impl From<&WorkerConfig> for LineSettings {
    fn from(config: &WorkerConfig) -> Self {
        Self {
            server_url: config.server_url.clone(),
            token: config.token.clone(),
            trust: config.trust.clone(),
            data_dir: config.data_dir.clone(),
            key_rotation: config.key_rotation,
        }
    }
}

impl Line {
    /// For whoever joins: the key is made where there is none.
    pub fn open(settings: &LineSettings) -> Result<Self, LinkSetupError> {
        let keys = KeyPair::load_or_make(&settings.data_dir.join(WORKER_LINK_KEY))?;
        Self::new(settings, keys)
    }

    /// For a look at a worker's line that changes nothing: without a key of the worker, one that nobody keeps.
    pub fn look(config: &WorkerConfig) -> Result<Self, LinkSetupError> {
        let keys = match KeyPair::load(&config.data_dir.join(WORKER_LINK_KEY))? {
            Some(keys) => keys,
            None => KeyPair::generate()?,
        };
        Self::new(&config.into(), keys)
    }

    fn new(config: &LineSettings, keys: KeyPair) -> Result<Self, LinkSetupError> {
        let url = config.server_url.to_string();
        let unusable = |problem: String| LinkSetupError::Url { url: url.clone(), problem };
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| unusable(error.to_string()))?;
        let address = ServerAddress::try_from(&uri).map_err(|error: AddressError| unusable(error.to_string()))?;
        let outer_tls = trust::outer_tls(&config.server_url, &config.trust)?;
        let server_key_file = config.data_dir.join(LINK_SERVER_KEY);
        Ok(Self {
            server: config.server_url.clone(),
            transport: Arc::new(DirectTransport::new(address.clone(), outer_tls, CONNECT_TIMEOUT)),
            address,
            keys,
            token: config.token.clone(),
            tuning: Tuning { key_rotation: config.key_rotation, drain_deadline: DRAIN_DEADLINE, ..Tuning::default() },
            server_key: Mutex::new(PublicKey::load(&server_key_file)?),
            server_key_file,
        })
    }

    /// The server.
    pub fn server(&self) -> &ServerUrl {
        &self.server
    }

    /// Whether there is a join token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The key of the server that this worker has joined.
    pub fn server_key(&self) -> Option<PublicKey> {
        *self.known_server()
    }

    /// Whether there is anything to join with.
    pub fn can_join(&self) -> bool {
        self.has_token() || self.server_key().is_some()
    }

    /// One that takes nobody else for the server than the holder of `server_key`, when that is known.
    pub fn dialer(&self, server_key: Option<PublicKey>) -> Dialer {
        let token = self.token.as_ref().map(|token| link::JoinToken::new(token.expose()));
        self.dialer_with(server_key, token)
    }

    /// One that shows this token and takes anybody for the server who knows it.
    pub fn dialer_with_token(&self, token: &str) -> Dialer {
        self.dialer_with(None, Some(link::JoinToken::new(token)))
    }

    /// Has one session after the other until `shutdown`, with a pause after each that failed.
    pub async fn keep_joined(&self, member: &impl Member, shutdown: &CancellationToken) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut dialer = self.dialer(self.server_key());
        while !shutdown.is_cancelled() {
            let begun = Instant::now();
            let (what, error) = match member.session(&mut dialer, shutdown).await {
                Ok(SessionEnd::Stopped) => return,
                Ok(SessionEnd::Changed) => continue,
                Ok(SessionEnd::Failed(error)) => ("lost the link to the server", error),
                Err(error) => ("cannot join the server", error),
            };
            member.note(what, &error);
            if begun.elapsed() >= HEALTHY_AFTER {
                backoff.reset();
            }
            if matches!(error, JoinError::ServerKeyChanged { .. }) && self.has_token() {
                tracing::warn!("the server has another key than before; it has to prove that it knows the join token");
                dialer = self.dialer(None);
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(self.pause(&error, &mut backoff)) => {}
            }
        }
    }

    /// On top of the server's wish, unless that is spread already, else all workers would come back at one moment.
    fn pause(&self, error: &JoinError, backoff: &mut Backoff) -> Duration {
        if let JoinError::ServerStopping { retry_after } = error {
            return *retry_after;
        }
        let proves_token_next = matches!(error, JoinError::ServerKeyChanged { .. }) && self.has_token();
        let pause = match error.pace() {
            Pace::Slow if !proves_token_next => random_pause(SLOW_PAUSES.0, SLOW_PAUSES.1),
            Pace::Slow | Pace::Quick => backoff.next_pause(),
        };
        error.retry_after().unwrap_or_default() + pause
    }

    fn dialer_with(&self, server_key: Option<PublicKey>, token: Option<link::JoinToken>) -> Dialer {
        Dialer::new(DialConfig {
            transport: Arc::clone(&self.transport) as Arc<dyn link::Transport>,
            address: self.address.clone(),
            keys: self.keys.clone(),
            server_key,
            token,
            targets: AllowedTargets::none(),
            tuning: self.tuning.clone(),
        })
    }

    /// What it means that no link came about.
    pub fn explain(&self, error: &DialError) -> JoinError {
        JoinError::of_dial(error, &self.server, CONNECT_TIMEOUT, &self.server_key_file)
    }

    /// Takes the holder of this key for the server from now on.
    pub fn keep_server_key(&self, key: PublicKey) {
        let before = self.known_server().replace(key);
        if before == Some(key) {
            return;
        }
        if let Err(error) = key.save(&self.server_key_file) {
            tracing::error!(%error, "the server's key cannot be kept; after a restart this worker needs the join token");
        }
    }

    fn known_server(&self) -> MutexGuard<'_, Option<PublicKey>> {
        // each change is one assignment, so a panic elsewhere leaves nothing half done here
        self.server_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
