//! Keeps the worker's link beside its session: one connection that it dials, over which the server reaches it. With it
//! a worker needs no port that the server can reach.
//!
//! A link that does not come about is no reason to end a session: heartbeats and reports go their own way.

use super::cause_log::CauseLog;
use super::session::Session;
use super::transport::{TransportError, client_tls};
use crate::config::{ServerTrust, WorkerConfig};
use crate::data_dir::{LINK_KEY, LINK_SERVER_KEY};
use api::{LinkDeclined, LinkJoinRequest, PROTOCOL_VERSION};
use axum::Router;
use bytes::Bytes;
use http::Uri;
use link::{
    AddressError, AllowedTargets, Carrier, DialConfig, DialError, Dialer, DirectTransport, JoinError, JoinToken,
    KeyError, KeyPair, LinkEnd, LinkUser, Next, OuterTls, PublicKey, Refusal, ServerAddress, Tuning, Welcome,
};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// When the worker stops, requests over the link may end for so long.
const DRAIN_DEADLINE: Duration = Duration::from_secs(1);
/// Longer than the link takes to end by itself.
const STOP_DEADLINE: Duration = Duration::from_millis(1_500);

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
    Trust(#[from] TransportError),
}

/// What links are made with.
pub struct LinkKeeper {
    address: ServerAddress,
    transport: Arc<DirectTransport>,
    keys: KeyPair,
    token: Option<JoinToken>,
    tuning: Tuning,
    /// What the server can ask.
    router: Router,
    server_key_file: PathBuf,
    server_key: Mutex<Option<PublicKey>>,
    causes: Mutex<CauseLog<String>>,
}

impl LinkKeeper {
    /// Reads the keys, and makes this worker's where there is none. None for the worker in the server's own process:
    /// that server is on the same host, where nothing stands between the two, and the encryption of a link would only
    /// cost.
    pub fn new(config: &WorkerConfig, router: Router) -> Result<Option<Self>, LinkSetupError> {
        if config.trust == ServerTrust::SameProcess {
            return Ok(None);
        }
        let url = config.server_url.to_string();
        let unusable = |problem: String| LinkSetupError::Url { url: url.clone(), problem };
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| unusable(error.to_string()))?;
        let address = ServerAddress::try_from(&uri).map_err(|error: AddressError| unusable(error.to_string()))?;
        let outer_tls = OuterTls::with_config(client_tls(&config.server_url, &config.trust)?);
        let server_key_file = config.data_dir.join(LINK_SERVER_KEY);
        Ok(Some(Self {
            transport: Arc::new(DirectTransport::new(address.clone(), outer_tls, CONNECT_TIMEOUT)),
            address,
            keys: KeyPair::load_or_make(&config.data_dir.join(LINK_KEY))?,
            token: config.token.as_ref().map(|token| JoinToken::new(token.expose())),
            tuning: Tuning { key_rotation: config.key_rotation, drain_deadline: DRAIN_DEADLINE, ..Tuning::default() },
            router,
            server_key: Mutex::new(PublicKey::load(&server_key_file)?),
            server_key_file,
            causes: Mutex::default(),
        }))
    }

    /// Begins to keep a link for this session.
    pub fn start(self: &Arc<Self>, session: Arc<Session>) -> RunningLink {
        let (keeper, stop) = (Arc::clone(self), CancellationToken::new());
        let stopping = stop.clone();
        let task = tokio::spawn(async move { keeper.run(&session, stopping).await });
        RunningLink { task: AbortOnDropHandle::new(task), stop }
    }

    async fn run(&self, session: &Session, stop: CancellationToken) {
        let mut server_key = *lock(&self.server_key);
        while !stop.is_cancelled() {
            let user = SessionLink { keeper: self, session };
            Dialer::new(self.dial_config(server_key)).run(&user, self.router.clone(), stop.clone()).await;
            // it gives up only when the server shows another key than the known one, and has to prove the token then
            server_key = None;
        }
    }

    fn dial_config(&self, server_key: Option<PublicKey>) -> DialConfig {
        DialConfig {
            transport: Arc::clone(&self.transport) as Arc<dyn link::Transport>,
            address: self.address.clone(),
            keys: self.keys.clone(),
            server_key,
            token: self.token.clone(),
            targets: AllowedTargets::none(),
            tuning: self.tuning.clone(),
        }
    }

    fn keep_server_key(&self, key: PublicKey) {
        let before = lock(&self.server_key).replace(key);
        if before == Some(key) {
            return;
        }
        if let Err(error) = key.save(&self.server_key_file) {
            tracing::error!(%error, "the server's key cannot be kept; after a restart this worker needs the join token");
        }
    }
}

/// A link that is kept; dropped, it ends at once.
pub struct RunningLink {
    task: AbortOnDropHandle<()>,
    stop: CancellationToken,
}

impl RunningLink {
    /// Waits until it is kept no more, which only a fault of this program brings about, and tells that.
    pub async fn died(&mut self) -> String {
        match (&mut self.task).await {
            Ok(()) => "the task of the link has ended".to_owned(),
            Err(died) => format!("the task of the link died: {died}"),
        }
    }

    /// Ends it in good order: requests that run may end for a moment.
    pub async fn stop(self) {
        self.stop.cancel();
        // one that takes longer is cut off
        let _ = timeout(STOP_DEADLINE, self.task).await;
    }
}

/// The links of one session.
struct SessionLink<'a> {
    keeper: &'a LinkKeeper,
    session: &'a Session,
}

impl SessionLink<'_> {
    fn log(&self, what: &str, kind: String, cause: &str) {
        lock(&self.keeper.causes).log(what, kind, &cause);
    }
}

impl LinkUser for SessionLink<'_> {
    fn join_request(&self) -> Bytes {
        let request = LinkJoinRequest {
            protocol: PROTOCOL_VERSION,
            session_id: self.session.id,
            credential: self.session.credential.expose().to_owned(),
        };
        serde_json::to_vec(&request).unwrap_or_default().into()
    }

    fn joined(&self, welcome: &Welcome) {
        self.keeper.keep_server_key(welcome.server_key);
        let carrier = match welcome.carrier {
            Carrier::Stream => "",
            Carrier::WebSocket => ", inside a WebSocket",
        };
        lock(&self.keeper.causes).good_news(&format!("the link to the server stands{carrier}"));
    }

    fn ended(&self, end: &LinkEnd, _retry_in: Duration) -> Next {
        if let LinkEnd::ServerStopping(_) = end {
            tracing::info!("the link ended: {end}");
        } else {
            self.log("the link ended", end.to_string(), &end.to_string());
        }
        Next::Retry
    }

    fn failed(&self, error: &DialError, _retry_in: Duration) -> Next {
        if let DialError::Join(JoinError::ServerKeyChanged { .. }) = error
            && self.keeper.token.is_some()
        {
            tracing::warn!("the server has another key than before; it has to prove that it knows the join token");
            return Next::GiveUp;
        }
        let cause = sentence(error, &self.keeper.server_key_file);
        // how long to wait differs from time to time
        let kind = if error.retry_after().is_some() { "busy".to_owned() } else { cause.clone() };
        self.log("no link to the server", kind, &cause);
        Next::Retry
    }
}

fn sentence(error: &DialError, server_key_file: &std::path::Path) -> String {
    match error {
        DialError::Join(JoinError::Refused { refusal: Refusal::Declined { detail }, .. }) => {
            serde_json::from_slice(detail).map_or_else(
                |_| error.to_string(),
                |LinkDeclined { message, .. }| format!("the server declines it: {message}"),
            )
        }
        DialError::Join(JoinError::ServerKeyChanged { .. }) => format!(
            "the server has another key than the one that this worker joined; if it was set up anew, give its join token \
             with --token or remove {}, else somebody is in between",
            server_key_file.display()
        ),
        _ => error.to_string(),
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // each change is one assignment, so a panic elsewhere leaves nothing half done here
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
