//! The server: registry of workers, judge of their state, REST API and admin UI.

pub mod announcer;
mod assets;
pub mod auth;
pub mod dial;
pub mod error;
pub mod examination;
pub mod flush;
mod give_back;
pub mod journal;
pub mod links;
pub mod listen;
pub mod load;
pub mod membership;
mod pages;
pub mod probe;
pub mod registry;
pub mod rest;
pub mod sse;
pub mod store;
pub mod supervisor;
pub mod tunnels;
pub mod watching;

use crate::config::ServerConfig;
use crate::data_dir::LINK_KEY;
use announcer::Announcer;
use api::WorkerEventKind;
use auth::{Auth, AuthOpenError};
use axum::extract::FromRef;
use flush::Flusher;
use journal::Journal;
use link::KeyPair;
use links::{Hosts, Links, LinksError};
use listen::{Tls, TlsError};
use load::LoadHistory;
use membership::Membership;
use registry::Registry;
use registry::assess::Policy;
use registry::time::{ServerClock, system_ms};
use rest::Streams;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::workers::StoredWorker;
use store::{OpenError, Store};
use supervisor::Supervisor;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tunnels::Tunnels;
use watching::Watching;

/// What handlers work with; each takes of it what it names.
#[derive(Clone, FromRef)]
pub struct ServerState {
    /// Who is asking.
    pub auth: Auth,
    /// All workers.
    pub registry: Registry,
    /// Decides about workers' rows.
    pub membership: Membership,
    /// Tells what changed.
    pub announcer: Announcer,
    /// How busy the fleet was.
    pub load: LoadHistory,
    /// What happened and is not in the database yet.
    pub journal: Journal,
    /// The database.
    pub store: Store,
    /// The background jobs.
    pub supervisor: Supervisor,
    /// Answers that do not end.
    pub streams: Streams,
    /// At which workers somebody looks.
    pub watching: Watching,
    /// All tunnel agents.
    pub tunnels: Tunnels,
    /// The links of workers and tunnel agents.
    pub links: Links,
    /// The server's own key on links.
    pub server_key: link::PublicKey,
    /// Takes new ones.
    pub link_acceptor: link::Acceptor,
}

/// Why a server could not run.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Workers or tunnel agents cannot be read from the database.
    #[error("cannot read the workers and tunnel agents from the database: {0}")]
    Workers(#[source] sqlx::Error),
    /// Logins cannot be set up.
    #[error(transparent)]
    Auth(#[from] AuthOpenError),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Workers' links cannot be taken.
    #[error(transparent)]
    Links(#[from] LinksError),
}

/// A server that is ready to answer.
pub struct Server {
    state: ServerState,
    flusher: Flusher,
    tls: Option<Tls>,
    /// They go on until the last request is answered.
    jobs: DropGuard,
}

/// Runs a server on `listener` until `shutdown` is cancelled; then requests in flight are answered and everything that
/// is in memory reaches the database.
pub async fn run(listener: TcpListener, config: ServerConfig, shutdown: CancellationToken) -> Result<(), ServerError> {
    Server::open(&config, shutdown.clone()).await?.serve(listener, shutdown).await;
    Ok(())
}

impl Server {
    /// Opens the database and starts the background jobs. Answers that do not end by themselves end with `shutdown`.
    pub async fn open(config: &ServerConfig, shutdown: CancellationToken) -> Result<Self, ServerError> {
        let tls = config.tls.as_ref().map(Tls::load).transpose()?;
        let store = Store::open(&config.database).await?;
        let auth = Auth::open(store.clone(), config).await?;
        let stored = store.load_workers().await.map_err(ServerError::Workers)?;
        tracing::info!(workers = stored.len(), "workers are known from before");
        let journal = Journal::default();
        note_downtime(&journal, &stored, config.worker_offline_timeout);
        let policy = Policy { offline_timeout: config.worker_offline_timeout };
        let registry = Registry::new(ServerClock::start(policy.offline_timeout), policy, stored);
        let links = Links::default();
        let (membership, decider) = Membership::new(registry.clone(), store.clone(), journal.clone(), links.clone());
        let watching = Watching::new();
        let agents = store.load_tunnel_agents().await.map_err(ServerError::Workers)?;
        let tunnels = Tunnels::new(registry.clone(), store.clone(), links.clone(), agents);
        let keys = KeyPair::load_or_make(&config.data_dir.join(LINK_KEY)).map_err(LinksError::Key)?;
        let hosts = Hosts { registry: &registry, membership: &membership, tunnels: &tunnels, watching: &watching };
        let link_acceptor = links.acceptor(&keys, config, &auth, hosts)?;
        let flusher = Flusher::new(registry.clone(), tunnels.clone(), store.clone(), journal.clone());
        let jobs_end = CancellationToken::new();
        let state = ServerState {
            auth,
            registry,
            membership,
            announcer: Announcer::default(),
            load: LoadHistory::default(),
            journal,
            store,
            supervisor: Supervisor::new(jobs_end.clone()),
            streams: Streams::new(shutdown, watching.clone()),
            watching,
            tunnels,
            links,
            server_key: keys.public(),
            link_acceptor,
        };
        state.start_jobs(&flusher, decider, &config.data_dir);
        Ok(Self { state, flusher, tls, jobs: jobs_end.drop_guard() })
    }

    /// How it speaks TLS; None when it does not.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Who may log in and how; for the lines that a server prints when it starts.
    pub fn auth(&self) -> &Auth {
        &self.state.auth
    }

    /// Answers until `shutdown`, then puts everything away.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        let port = listener.local_addr().map_or(0, |address| address.port());
        let router = rest::router(self.state.clone(), pages::router(self.state.clone(), port, self.tls.clone()));
        let links_end = async {
            shutdown.cancelled().await;
            self.state.links.drain().await;
        };
        // at the same time, so that both together take no longer than the slower one
        tokio::join!(listen::serve(listener, router, self.tls, shutdown.clone()), links_end);
        drop(self.jobs);
        self.state.supervisor.ended().await;
        if let Err(error) = self.flusher.flush_all().await {
            tracing::error!(%error, "the last heartbeats cannot be written to the database");
        }
        self.state.store.close().await;
    }
}

/// Tells, on the page of each worker that was alive when the server ended, that nobody could be heard until now.
fn note_downtime(journal: &Journal, stored: &[StoredWorker], offline_timeout: Duration) {
    let now_ms = system_ms();
    let Some(last_ms) = stored.iter().filter_map(|worker| worker.heartbeat_ms).max() else { return };
    let timeout_ms = i64::try_from(offline_timeout.as_millis()).unwrap_or(i64::MAX);
    let gap_ms = now_ms.saturating_sub(last_ms);
    if gap_ms <= timeout_ms {
        return;
    }
    let seconds = u64::try_from(gap_ms / 1000).unwrap_or(0);
    for worker in stored {
        let was_alive = worker.heartbeat_ms.is_some_and(|heard_ms| last_ms.saturating_sub(heard_ms) <= timeout_ms);
        if was_alive {
            journal.note(worker.row.id, now_ms, WorkerEventKind::ServerGap { seconds });
        }
    }
}

impl ServerState {
    fn start_jobs(&self, flusher: &Flusher, decider: Arc<membership::Decider>, data_dir: &Path) {
        let Self { registry, announcer, load, journal, supervisor, links, watching, tunnels, .. } = self.clone();
        supervisor.start("decide about workers", move |job| membership::run(decider.clone(), job));
        supervisor.start("announce changes", {
            let registry = registry.clone();
            move |job| announcer::run(announcer.clone(), registry.clone(), journal.clone(), watching.clone(), job)
        });
        supervisor.start("sample the load", {
            let registry = registry.clone();
            move |job| load::run(load.clone(), registry.clone(), job)
        });
        supervisor.start("give memory back", {
            let links = links.clone();
            move |job| give_back::run(links.clone(), job)
        });
        supervisor.start("probe workers", {
            let links = links.clone();
            move |job| probe::run(registry.clone(), links.clone(), job)
        });
        supervisor.start("renew certificates of tunnels", {
            let (tunnels, links, data_dir) = (tunnels.clone(), links.clone(), data_dir.to_owned());
            move |job| tunnels::renewal::run(tunnels.clone(), links.clone(), data_dir.clone(), job)
        });
        supervisor.start("tell workers of their tunnels", move |job| tunnels::run(tunnels.clone(), job));
        let flusher = flusher.clone();
        supervisor.start("write to the database", move |job| flush::run(flusher.clone(), job));
    }
}
