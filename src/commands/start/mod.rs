//! `gpustack start`: a server, a worker, or both in one process.

mod args;
mod limits;
mod listener;
mod welcome;

pub use args::StartArgs;

use super::exit::CommandError;
use super::{logging, output, stop};
use crate::config::{Config, EmbeddedWorkerConfig, Environment, Role, ServerConfig, WorkerConfig};
use crate::data_dir::{DataDir, InstanceLock, LockName};
use crate::server::Server;
use crate::worker;
use api::ServerUrl;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Work that cannot be interrupted, such as the hash of a password, may end for so long after all else has.
const LAST_WORK_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs until it is told to stop.
pub fn run(args: StartArgs) -> Result<(), CommandError> {
    let (flags, config_file) = args.into_flags();
    let config = Config::load(flags, config_file.as_deref(), &Environment::of_process())?;
    logging::start(config.debug);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    heap::settle();
    limits::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(limits::threads()).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let stopping = stop::on_signal()?;
        match config.role {
            Role::Server(server) => run_server(server, None, stopping).await,
            Role::ServerAndWorker(server, worker) => run_server(server, Some(worker), stopping).await,
            Role::Worker(worker) => run_worker(worker, stopping).await,
        }
    });
    runtime.shutdown_timeout(LAST_WORK_TIMEOUT);
    outcome
}

async fn run_worker(config: WorkerConfig, stopping: CancellationToken) -> Result<(), CommandError> {
    let listener = worker::bind(config.identity.port).await?;
    Ok(worker::run(listener, config, stopping).await?)
}

/// Everything that can fail for a reason which the user must remove fails here, before the server answers anybody.
async fn run_server(
    config: ServerConfig,
    embedded: Option<EmbeddedWorkerConfig>,
    stopping: CancellationToken,
) -> Result<(), CommandError> {
    let _lock = lock(&config)?;
    let listener = listener::bind(&config.host, config.port).await?;
    // the one that the system chose, when it was to choose
    let config = ServerConfig { port: listener.local_addr()?.port(), ..config };
    let worker_listener = match &embedded {
        Some(worker) => Some((worker::bind(worker.identity.port).await?, worker.clone())),
        None => None,
    };
    // the worker says goodbye to a server that still answers
    let server_stopping = CancellationToken::new();
    let server = Server::open(&config, server_stopping.clone()).await?;
    let worker = match worker_listener {
        Some((listener, worker)) => {
            let url = own_url(&config)?;
            Some((listener, worker.joined_to(url, server.auth().join_token().clone())))
        }
        None => None,
    };
    output::print(&welcome::text(&config, server.auth(), server.tls()))?;
    run_together((server, listener, server_stopping), worker, stopping).await
}

fn lock(config: &ServerConfig) -> Result<InstanceLock, CommandError> {
    Ok(DataDir::open(&config.data_dir)?.lock(LockName::Server)?)
}

/// Where the worker in this process finds the server: on the loopback interface, unless the server listens on
/// another address only.
fn own_url(config: &ServerConfig) -> Result<ServerUrl, CommandError> {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let host = match config.host.as_str() {
        "0.0.0.0" => "127.0.0.1".to_owned(),
        "::" => "[::1]".to_owned(),
        host if host.contains(':') => format!("[{host}]"),
        host => host.to_owned(),
    };
    ServerUrl::parse(&format!("{scheme}://{host}:{}", config.port)).map_err(CommandError::failed)
}

/// When one of the two ends, the other is stopped.
async fn run_together(
    (server, listener, server_stopping): (Server, TcpListener, CancellationToken),
    worker: Option<(TcpListener, WorkerConfig)>,
    stopping: CancellationToken,
) -> Result<(), CommandError> {
    let worker_part = async {
        let _stop_server = server_stopping.clone().drop_guard();
        let Some((listener, config)) = worker else {
            stopping.cancelled().await;
            return Ok(());
        };
        worker::run(listener, config, stopping.clone()).await.map_err(CommandError::from)
    };
    let server_part = async {
        let _stop_worker = stopping.clone().drop_guard();
        server.serve(listener, server_stopping.clone()).await;
    };
    let (worker_ended, ()) = tokio::join!(worker_part, server_part);
    worker_ended
}
