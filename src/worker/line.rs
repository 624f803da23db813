//! What a worker dials its server with: the address, the keys, the token, and whom it takes for the server.

use super::join_error::JoinError;
use super::trust::{self, TrustError};
use crate::config::{JoinToken, WorkerConfig};
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

/// What a worker dials its server with.
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

impl Line {
    /// For a worker: its key is made where there is none.
    pub fn open(config: &WorkerConfig) -> Result<Self, LinkSetupError> {
        let keys = KeyPair::load_or_make(&config.data_dir.join(WORKER_LINK_KEY))?;
        Self::new(config, keys)
    }

    /// For a look at a worker's line that changes nothing: without a key of the worker, one that nobody keeps.
    pub fn look(config: &WorkerConfig) -> Result<Self, LinkSetupError> {
        let keys = match KeyPair::load(&config.data_dir.join(WORKER_LINK_KEY))? {
            Some(keys) => keys,
            None => KeyPair::generate()?,
        };
        Self::new(config, keys)
    }

    fn new(config: &WorkerConfig, keys: KeyPair) -> Result<Self, LinkSetupError> {
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
