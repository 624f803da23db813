//! Plays many workers against a server and measures it: `fleet --help`.
//!
//! Each played worker has a real link, over which it sends signs of life and changing readings, and answers the server's
//! probe at a loopback address of its own. When the server goes and comes back, the workers do what real ones do. Browsers
//! that watch, and a program that lists, can be played beside.

mod agent;
mod beats;
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
use std::future::Future;
use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, interval, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use worker::{Happening, PlayedWorker, Shared};

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
    if let Some(file) = &options.tunnels {
        return tokio::select! {
            played = agent::play(&options, &server, file.clone()) => played,
            () = until_input_closes(&options) => Ok(()),
        };
    }
    let operator = match options.operator_login() {
        None => None,
        Some(login) => Some(Arc::new(Operator::log_in(server.clone(), login).await?)),
    };
    let mut measurements = Measurements::default();
    let mut fleet = Fleet::start(&options, &server).await?;
    fleet.join_all(&options, &mut measurements).await?;
    say(&format!("{} workers have joined", fleet.links))?;
    work_all(&options, &mut fleet, operator, &mut measurements).await?;
    finish(&options, measurements)
}

/// All played workers.
struct Fleet {
    workers: Vec<Arc<PlayedWorker>>,
    playing: Vec<Playing>,
    shared: Arc<Shared>,
    happenings: mpsc::UnboundedReceiver<Happening>,
    begun: Instant,
    /// How many stand.
    links: usize,
}

/// A worker at play; dropped, it vanishes.
struct Playing {
    stop: CancellationToken,
    _task: AbortOnDropHandle<()>,
}

impl Playing {
    fn start(worker: &Arc<PlayedWorker>) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(Arc::clone(worker).play(stop.clone()));
        Self { stop, _task: AbortOnDropHandle::new(task) }
    }
}

impl Fleet {
    /// All begin at once, as after a power cut.
    async fn start(options: &Options, server: &ServerUrl) -> Result<Self> {
        let (sender, happenings) = mpsc::unbounded_channel();
        let shared = Shared::new(sender);
        let hosts = host::listen(options.workers).await?;
        let numbered = (0..options.workers).zip(hosts);
        let workers = numbered
            .map(|(number, host)| PlayedWorker::new(number, host, options, server, &shared).map(Arc::new))
            .collect::<Result<Vec<_>>>()?;
        let begun = Instant::now();
        let playing = workers.iter().map(Playing::start).collect();
        Ok(Self { workers, playing, shared, happenings, begun, links: 0 })
    }

    async fn join_all(&mut self, options: &Options, measurements: &mut Measurements) -> Result<()> {
        let deadline = self.begun + options.timeout();
        while self.links < self.workers.len() {
            let Ok(Some(happening)) = timeout_at(deadline, self.happenings.recv()).await else {
                bail!("{} of {} workers have joined in time", self.links, self.workers.len());
            };
            self.note(happening, measurements);
        }
        Ok(())
    }

    fn note(&mut self, happening: Happening, measurements: &mut Measurements) {
        match happening {
            Happening::Joined { took, at, without_for } => {
                self.links += 1;
                measurements.add_join(took, at - self.begun, without_for);
            }
            Happening::Ended => {
                self.links = self.links.saturating_sub(1);
                measurements.lost_links += 1;
            }
            Happening::Failed(error) => measurements.attempts_failed.add(&error),
        }
    }

    /// One worker vanishes and is there again at once, as after a crash.
    fn churn(&mut self, number: usize) {
        let (Some(worker), Some(playing)) = (self.workers.get(number), self.playing.get_mut(number)) else { return };
        // nobody is told of a link that this program ends itself
        self.links = self.links.saturating_sub(1);
        *playing = Playing::start(worker);
    }

    /// Notes what happens until `end`, and lets workers come and go.
    async fn play_until(&mut self, end: impl Future<Output = ()>, options: &Options, measurements: &mut Measurements) {
        let mut end = pin!(end);
        let mut churn = options.churn_period().map(interval);
        let mut next = 0;
        loop {
            tokio::select! {
                () = &mut end => return,
                Some(happening) = self.happenings.recv() => self.note(happening, measurements),
                () = tick(&mut churn) => {
                    self.churn(next);
                    // a step that has no common divisor with the usual numbers of workers visits all
                    next = (next + 7_919) % self.workers.len().max(1);
                }
            }
        }
    }

    fn stop(&self) {
        for playing in &self.playing {
            playing.stop.cancel();
        }
    }
}

/// Never, when there is none.
async fn tick(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// Everybody at work for a while, and the server watched meanwhile.
async fn work_all(
    options: &Options,
    fleet: &mut Fleet,
    operator: Option<Arc<Operator>>,
    measurements: &mut Measurements,
) -> Result<()> {
    sleep(options.settle()).await;
    let process = options.server_pid.map(ServerProcess::new);
    let (stop, stopped) = watch::channel(false);
    let begun = Instant::now();
    let usage_before = process.as_ref().map(ServerProcess::sample).transpose()?;
    let statements_before = statements(options)?;
    let bytes_before = fleet.shared.traffic.bytes();
    fleet.shared.beats.take();
    let mut watching = JoinSet::new();
    let mut listing = JoinSet::new();
    if let Some(operator) = &operator {
        for _ in 0..options.watchers {
            watching.spawn(Arc::clone(operator).watch(stopped.clone()));
        }
        listing.spawn(Arc::clone(operator).list_every_second(stopped.clone()));
    }
    let end = async {
        if options.hold {
            until_input_closes(options).await;
        } else {
            sleep(options.duration()).await;
        }
    };
    fleet.play_until(end, options, measurements).await;

    measurements.steady = begun.elapsed();
    measurements.links_at_end = fleet.links;
    measurements.worker_bytes = fleet.shared.traffic.bytes() - bytes_before;
    measurements.heartbeats = fleet.shared.beats.take();
    // a server that was started anew meanwhile is another process
    if let (Some(process), Some(before)) = (&process, usage_before) {
        measurements.server = process.sample().ok().map(|usage| usage.since(before, measurements.steady));
    }
    let statements_after = statements(options)?;
    measurements.statements =
        statements_after.zip(statements_before).map(|(after, before)| after.saturating_sub(before));
    // nobody listens any more when everything has failed
    let _ = stop.send(true);
    fleet.stop();
    for watched in watching.join_all().await {
        match watched {
            Ok(watched) => measurements.add_watcher(watched),
            Err(error) => measurements.failures.add(&format!("watch: {error:#}")),
        }
    }
    for latencies in listing.join_all().await {
        match latencies {
            Ok(latencies) => measurements.lists.append(latencies),
            Err(error) => measurements.failures.add(&format!("list: {error:#}")),
        }
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
