//! Keeps the worker joined: begins a session, keeps it alive, and begins another when it ends, for ever.

use super::address::{AddressBook, Choice};
use super::backoff::{Backoff, random_pause};
use super::cause_log::CauseLog;
use super::identity::{Identity, parse_credential};
use super::link::{LinkKeeper, RunningLink};
use super::report::{self, LatestStatus};
use super::session_state::SessionState;
use super::transport::{JoinError, Pace, Proof, Transport};
use super::{heartbeat, host};
use crate::config::{JoinToken, Secret};
use crate::data_dir::DataDirError;
use api::{PROTOCOL_VERSION, RegisterRequest, RegisterResponse, SessionId, SystemReserved};
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Somebody has to do something before these attempts succeed.
const SLOW_PAUSES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));
/// A session that lasted this long shows that all was well.
const HEALTHY_AFTER: Duration = Duration::from_mins(1);
/// What a server asks for is kept within reason.
const HEARTBEAT_INTERVALS_S: std::ops::RangeInclusive<u64> = 1..=300;

/// A session with the server.
#[derive(Debug)]
pub struct Session {
    /// This run of the worker.
    pub id: SessionId,
    /// The name that the server gave.
    pub name: String,
    /// The worker's own.
    pub credential: Secret,
    /// Between two heartbeats.
    pub heartbeat_interval: Duration,
}

/// Keeps the worker joined.
pub struct SessionKeeper {
    /// The way to the server.
    pub transport: Arc<dyn Transport>,
    /// Who the worker is.
    pub identity: Arc<Identity>,
    /// The address to tell.
    pub addresses: Arc<AddressBook>,
    /// What to report.
    pub latest_status: LatestStatus,
    /// Who wants to know whether there is a session.
    pub state: watch::Sender<SessionState>,
    /// Keeps a link beside each session; None for the worker of the server in this process.
    pub link: Option<Arc<LinkKeeper>>,
    /// How the worker presents itself.
    pub profile: Profile,
}

/// How a worker presents itself.
#[derive(Clone, Debug)]
pub struct Profile {
    /// This run of it.
    pub session_id: SessionId,
    /// The join token; a worker that has joined before can do without.
    pub token: Option<JoinToken>,
    /// `--worker-name`.
    pub name: Option<String>,
    /// `--worker-port`.
    pub port: u16,
    /// Kept free for the system.
    pub system_reserved: SystemReserved,
}

/// Why a session is over.
#[derive(Debug)]
enum SessionEnd {
    Failed(JoinError),
    AddressChanged(Choice),
    TaskDied(String),
    Stopped,
}

impl SessionKeeper {
    /// Runs until `shutdown`; then tells the server that the worker leaves.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut causes = CauseLog::default();
        loop {
            let session = tokio::select! {
                () = shutdown.cancelled() => return,
                session = self.join(&mut backoff, &mut causes) => Arc::new(session),
            };
            let begun = Instant::now();
            match self.keep(&session, &shutdown).await {
                SessionEnd::Stopped => return heartbeat::leave(&*self.transport, &session).await,
                SessionEnd::AddressChanged(choice) => {
                    tracing::info!("the worker's address is now {}; telling the server", choice.address);
                }
                SessionEnd::TaskDied(what) => tracing::error!("{what}; beginning a new session"),
                SessionEnd::Failed(error) => {
                    causes.log("lost the session", discriminant(&error), &error);
                    self.state.send_replace(SessionState::Joining { cause: Some(error.to_string()) });
                }
            }
            if begun.elapsed() >= HEALTHY_AFTER {
                backoff.reset();
            } else {
                pause(backoff.next_pause(), &shutdown).await;
            }
        }
    }

    /// Tries until it succeeds.
    async fn join(&self, backoff: &mut Backoff, causes: &mut CauseLog<Discriminant<JoinError>>) -> Session {
        loop {
            let error = match self.join_once().await {
                Ok(session) => {
                    causes.good_news(&format!("the worker has joined the server as {}", session.name));
                    return session;
                }
                Err(error) => error,
            };
            causes.log("cannot join the server", discriminant(&error), &error);
            let pause = match error.pace() {
                Pace::Quick => backoff.next_pause(),
                Pace::Slow => random_pause(SLOW_PAUSES.0, SLOW_PAUSES.1),
            };
            self.state.send_replace(SessionState::Joining { cause: Some(error.to_string()) });
            // on top of the server's wish, else all workers would come back at one moment
            sleep(error.retry_after().unwrap_or_default() + pause).await;
        }
    }

    async fn join_once(&self) -> Result<Session, JoinError> {
        let request = self.register_request().await;
        let credential = self.identity.credential();
        let response = self.begin_session(&request, credential.as_ref()).await?;
        self.accept(response, credential)
    }

    /// With the worker's own credential if it has one. If the server refuses that, because the worker was deleted
    /// there, then once with the join token.
    async fn begin_session(
        &self,
        request: &RegisterRequest,
        credential: Option<&Secret>,
    ) -> Result<RegisterResponse, JoinError> {
        let with_token = async || match &self.profile.token {
            Some(token) => Some(self.transport.begin_session(request, &Proof::JoinToken(token.clone())).await),
            None => None,
        };
        let Some(credential) = credential else {
            return with_token().await.unwrap_or(Err(JoinError::NoToken));
        };
        match self.transport.begin_session(request, &Proof::Credential(credential.clone())).await {
            Err(refused @ JoinError::CredentialRefused { .. }) => with_token().await.unwrap_or(Err(refused)),
            answered => answered,
        }
    }

    fn accept(&self, response: RegisterResponse, held: Option<Secret>) -> Result<Session, JoinError> {
        let fresh = response.credential.as_deref().and_then(parse_credential);
        if let Some(fresh) = &fresh {
            log_unkept(self.identity.keep_credential(fresh.clone()));
        }
        log_unkept(self.identity.keep_name(&response.name));
        let interval_s =
            response.heartbeat_interval_s.clamp(*HEARTBEAT_INTERVALS_S.start(), *HEARTBEAT_INTERVALS_S.end());
        Ok(Session {
            id: self.profile.session_id,
            name: response.name,
            credential: fresh.or(held).ok_or(JoinError::NoCredentialGiven)?,
            heartbeat_interval: Duration::from_secs(interval_s),
        })
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

    /// Keeps the session alive until it is over. Each part runs in its own task, so that none can hold up another.
    async fn keep(&self, session: &Arc<Session>, shutdown: &CancellationToken) -> SessionEnd {
        self.state.send_replace(SessionState::Up);
        let status_wanted = Arc::new(Notify::new());
        // dropping the set ends the tasks
        let mut tasks = JoinSet::new();
        {
            let beats = heartbeat::run(Arc::clone(&self.transport), Arc::clone(session), Arc::clone(&status_wanted));
            tasks.spawn(async move { SessionEnd::Failed(beats.await) });
        }
        {
            let latest = self.latest_status.clone();
            let reports = report::run(Arc::clone(&self.transport), Arc::clone(session), latest, status_wanted);
            tasks.spawn(async move { SessionEnd::Failed(reports.await) });
        }
        let addresses = Arc::clone(&self.addresses);
        tasks.spawn(async move { SessionEnd::AddressChanged(addresses.changed().await) });
        let mut link = self.link.as_ref().map(|keeper| keeper.start(Arc::clone(session)));
        tokio::select! {
            () = shutdown.cancelled() => {
                if let Some(link) = link {
                    link.stop().await;
                }
                SessionEnd::Stopped
            }
            died = link_died(&mut link) => SessionEnd::TaskDied(died),
            ended = tasks.join_next() => match ended {
                Some(Ok(end)) => end,
                Some(Err(died)) => SessionEnd::TaskDied(format!("a task of the session died: {died}")),
                None => SessionEnd::TaskDied("all tasks of the session have gone".to_owned()),
            },
        }
    }
}

/// Never, when there is none.
async fn link_died(link: &mut Option<RunningLink>) -> String {
    match link {
        Some(link) => link.died().await,
        None => std::future::pending().await,
    }
}

/// This run goes on with what it has in memory.
fn log_unkept(kept: Result<(), DataDirError>) {
    if let Err(error) = kept {
        tracing::error!(%error, "what the server gave cannot be kept; a restart of this worker would not know it");
    }
}

async fn pause(length: Duration, shutdown: &CancellationToken) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = sleep(length) => {}
    }
}

#[cfg(test)]
mod tests;
