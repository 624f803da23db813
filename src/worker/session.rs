//! Keeps the worker joined: dials a link, by which a session begins, serves it, and dials another when it ends, for ever.

use super::address::AddressBook;
use super::cause_log::CauseLog;
use super::host;
use super::identity::Identity;
use super::join_error::JoinError;
use super::line::{Line, LinkSetupError, Member, SessionEnd};
use super::session_state::SessionState;
use super::status::{self, LatestStatus, StatusSource};
use crate::config::WorkerConfig;
use crate::data_dir::DataDirError;
use api::{PROTOCOL_VERSION, RegisterRequest, RegisterResponse, SessionId, SystemReserved};
use axum::Router;
use link::{Carrier, Dialer, Link, Welcome};
use std::mem::{Discriminant, discriminant};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What a server asks for is kept within reason.
const HEARTBEAT_INTERVALS_S: std::ops::RangeInclusive<u64> = 1..=300;

/// Keeps the worker joined.
pub struct SessionKeeper {
    line: Line,
    /// Who the worker is.
    identity: Arc<Identity>,
    /// The address to tell.
    addresses: Arc<AddressBook>,
    /// What the worker tells, and to whom.
    parts: SessionParts,
    profile: Profile,
    causes: Mutex<CauseLog<Discriminant<JoinError>>>,
}

/// What a worker shows of itself over a link.
pub struct SessionParts {
    /// What to report.
    pub latest_status: LatestStatus,
    /// Whether somebody looks at this worker.
    pub watched: watch::Sender<bool>,
    /// Who wants to know whether there is a session.
    pub state: watch::Sender<SessionState>,
    /// What the server can ask besides.
    pub router: Router,
}

/// How a worker presents itself.
#[derive(Clone, Debug)]
struct Profile {
    /// This run of it.
    session_id: SessionId,
    /// `--worker-name`.
    name: Option<String>,
    /// `--worker-port`.
    port: u16,
    /// Kept free for the system.
    system_reserved: SystemReserved,
}

impl SessionKeeper {
    /// Reads the keys, and makes this worker's where there is none. `port` is where the worker answers health checks.
    pub fn new(
        config: &WorkerConfig,
        identity: Arc<Identity>,
        addresses: Arc<AddressBook>,
        port: u16,
        parts: SessionParts,
    ) -> Result<Self, LinkSetupError> {
        let profile = Profile {
            session_id: SessionId(Uuid::new_v4()),
            name: config.identity.name.clone(),
            port,
            system_reserved: config.system_reserved,
        };
        Ok(Self { line: Line::open(&config.into())?, identity, addresses, parts, profile, causes: Mutex::default() })
    }

    /// Whether there is anything to join with.
    pub fn can_join(&self) -> bool {
        self.line.can_join()
    }

    /// Runs until `shutdown`; then tells the server that the worker leaves.
    pub async fn run(&self, shutdown: CancellationToken) {
        self.line.keep_joined(self, &shutdown).await;
    }

    /// Keeps what the server gave. On an error nothing is kept.
    fn accept(&self, welcome: &Welcome) -> Result<RegisterResponse, JoinError> {
        let response: RegisterResponse = serde_json::from_slice(&welcome.answer)
            .map_err(|error| JoinError::AnswerNotUnderstood { detail: error.to_string() })?;
        self.line.keep_server_key(welcome.server_key);
        log_unkept(self.identity.keep_name(&response.name));
        let carrier = match welcome.carrier {
            Carrier::Stream => "",
            Carrier::WebSocket => ", over a link inside a WebSocket",
        };
        lock(&self.causes).good_news(&format!("the worker has joined the server as {}{carrier}", response.name));
        Ok(response)
    }

    async fn serve(&self, link: Link, response: &RegisterResponse, shutdown: &CancellationToken) -> SessionEnd {
        self.parts.state.send_replace(SessionState::Up);
        let stop = CancellationToken::new();
        let interval_s =
            response.heartbeat_interval_s.clamp(*HEARTBEAT_INTERVALS_S.start(), *HEARTBEAT_INTERVALS_S.end());
        let source = StatusSource {
            latest: self.parts.latest_status.clone(),
            watched: self.parts.watched.clone(),
            heartbeat_interval: Duration::from_secs(interval_s),
            stop: stop.clone(),
            leaving: shutdown.clone(),
        };
        let router = self.parts.router.clone().merge(status::routes(source));
        let mut serving = pin!(link.serve(router, stop.clone()));
        let ended = tokio::select! {
            end = &mut serving => {
                let failed = JoinError::of_end(&end, self.line.server());
                return failed.map_or(SessionEnd::Stopped, SessionEnd::Failed);
            }
            () = shutdown.cancelled() => SessionEnd::Stopped,
            choice = self.addresses.changed() => {
                tracing::info!("the worker's address is now {}; telling the server", choice.address);
                SessionEnd::Changed
            }
        };
        stop.cancel();
        // bounded by the link's own deadline
        serving.await;
        ended
    }

    async fn register_request(&self) -> RegisterRequest {
        let previous_name = self.identity.name();
        let hostname = host::hostname();
        let wished_name = self.profile.name.clone().or_else(|| previous_name.clone());
        RegisterRequest {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            worker_uuid: self.identity.uuid(),
            session_id: self.profile.session_id,
            host_key: self.identity.host_key().to_owned(),
            name: self.profile.name.clone(),
            labels: host::labels(wished_name.as_deref().unwrap_or(&hostname)),
            previous_name,
            hostname,
            ip: self.addresses.current().await.address.to_string(),
            port: self.profile.port,
            system_reserved: Some(self.profile.system_reserved),
        }
    }
}

impl Member for SessionKeeper {
    async fn session(&self, dialer: &mut Dialer, shutdown: &CancellationToken) -> Result<SessionEnd, JoinError> {
        let request = serde_json::to_vec(&self.register_request().await).unwrap_or_default();
        // boxed, so that a link that stands does not carry the memory of its beginning
        let dialled = tokio::select! {
            () = shutdown.cancelled() => return Ok(SessionEnd::Stopped),
            dialled = Box::pin(dialer.dial(request.into())) => dialled,
        };
        let link = dialled.map_err(|error| self.line.explain(&error))?;
        let response = self.accept(link.welcome())?;
        Ok(self.serve(link, &response, shutdown).await)
    }

    fn note(&self, what: &str, error: &JoinError) {
        if let JoinError::ServerStopping { .. } = error {
            tracing::info!("{error}");
        } else {
            lock(&self.causes).log(what, discriminant(error), error);
        }
        self.parts.state.send_replace(SessionState::Joining { cause: Some(error.to_string()) });
    }
}

/// This run goes on with what it has in memory.
fn log_unkept(kept: Result<(), DataDirError>) {
    if let Err(error) = kept {
        tracing::error!(%error, "what the server gave cannot be kept; a restart of this worker would not know it");
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // each change is one assignment, so a panic elsewhere leaves nothing half done here
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
