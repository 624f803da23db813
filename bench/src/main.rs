//! Plays many workers against a server and measures it: `fleet --help`.
//!
//! Each played worker joins, sends heartbeats and changing readings on a connection of its own, and answers the
//! server's probe at a loopback address of its own. Browsers that watch, and a program that lists, can be played beside.

mod client;
mod host;
mod latency;
mod operator;
mod options;
mod report;
mod server_log;
mod server_process;
mod traffic;
mod worker;

use anyhow::{Context, Result, bail, ensure};
use api::ServerUrl;
use clap::Parser;
use operator::Operator;
use options::Options;
use report::{Measurements, Report};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server_process::ServerProcess;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use worker::PlayedWorker;

fn main() -> ExitCode {
    let options = Options::parse();
    raise_open_files();
    let outcome =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime").and_then(
            |runtime| {
                let outcome = runtime.block_on(play(options));
                // the thread that waits for the end of the input may wait for ever
                runtime.shutdown_background();
                outcome
            },
        );
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fleet: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Each connection is a file descriptor, and the usual 1024 are soon used up. Where no more is allowed, connections fail
/// and are reported.
fn raise_open_files() {
    let allowed = getrlimit(Resource::Nofile).maximum;
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: allowed, maximum: allowed }) {
        eprintln!("fleet: the limit of open files cannot be raised: {error}");
    }
}

async fn play(options: Options) -> Result<()> {
    let server = options.target()?;
    let operator = match options.operator_login() {
        None => None,
        Some(login) => Some(Arc::new(Operator::log_in(server.clone(), login).await?)),
    };
    let mut measurements = Measurements::default();
    let workers = join_all(&options, &server, &mut measurements).await?;
    say(&format!("{} workers have joined", workers.len()))?;
    work_all(&options, workers, operator, &mut measurements).await?;
    finish(&options, measurements)
}

/// All at once, as after a power cut.
async fn join_all(options: &Options, server: &ServerUrl, measurements: &mut Measurements) -> Result<Vec<PlayedWorker>> {
    let hosts = host::listen(options.workers).await?;
    let begun = Instant::now();
    let mut joining = JoinSet::new();
    for (number, host) in (0..options.workers).zip(hosts) {
        joining.spawn(PlayedWorker::new(number, host, options, server).join(options.token.clone()));
    }
    let mut joined = Vec::new();
    while let Some(outcome) = joining.join_next().await {
        match outcome.context("a played worker broke")? {
            Ok((worker, arrival)) => {
                measurements.add_arrival(&arrival, begun);
                joined.push(worker);
            }
            Err(error) => measurements.failures.add("join", &error),
        }
    }
    if joined.is_empty() {
        bail!("no worker could join; {}", measurements.failures.first().unwrap_or("nobody tells why"));
    }
    Ok(joined)
}

/// Everybody at work for a while, and the server watched meanwhile.
async fn work_all(
    options: &Options,
    workers: Vec<PlayedWorker>,
    operator: Option<Arc<Operator>>,
    measurements: &mut Measurements,
) -> Result<()> {
    let process = options.server_pid.map(ServerProcess::new);
    let (stop, stopped) = watch::channel(false);
    let begun = Instant::now();
    let usage_before = process.as_ref().map(ServerProcess::sample).transpose()?;
    let statements_before = statements(options)?;
    let mut at_work = JoinSet::new();
    for worker in workers {
        at_work.spawn(worker.work(stopped.clone()));
    }
    let mut watching = JoinSet::new();
    let mut listing = JoinSet::new();
    if let Some(operator) = &operator {
        for _ in 0..options.watchers {
            watching.spawn(Arc::clone(operator).watch(stopped.clone()));
        }
        listing.spawn(Arc::clone(operator).list_every_second(stopped.clone()));
    }

    if options.hold {
        until_input_closes(options).await;
    } else {
        sleep(options.duration()).await;
    }

    measurements.steady = begun.elapsed();
    if let (Some(process), Some(before)) = (&process, usage_before) {
        measurements.server = Some(process.sample()?.since(before, measurements.steady));
    }
    let statements_after = statements(options)?;
    measurements.statements =
        statements_after.zip(statements_before).map(|(after, before)| after.saturating_sub(before));
    // nobody listens any more when everything has failed
    let _ = stop.send(true);
    for work in at_work.join_all().await {
        measurements.add_work(work);
    }
    for watched in watching.join_all().await {
        measurements.add_watcher(watched?);
    }
    for latencies in listing.join_all().await {
        measurements.lists.append(latencies?);
    }
    Ok(())
}

/// Until the one who started this program closes its input, or the time is over.
async fn until_input_closes(options: &Options) {
    let input_closed = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    tokio::select! {
        _ = input_closed => {}
        () = sleep(options.duration()) => {}
    }
}

fn statements(options: &Options) -> Result<Option<u64>> {
    options.server_log.as_deref().map(server_log::count_statements).transpose()
}

fn finish(options: &Options, measurements: Measurements) -> Result<()> {
    let failures = measurements.failures.count();
    let report = Report::of(options, measurements);
    if options.json {
        say(&serde_json::to_string_pretty(&report)?)?;
    } else {
        say(&report.to_string())?;
    }
    ensure!(failures == 0, "{failures} requests failed");
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("cannot write the report")
}
