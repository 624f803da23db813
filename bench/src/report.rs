//! What was measured, for people and for programs.

use crate::latency::{Latencies, Summary};
use crate::operator::Watched;
use crate::options::Options;
use crate::server_process::Usage;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

const MIB: f64 = 1024.0 * 1024.0;

/// What went wrong, and how often.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Failures(BTreeMap<String, u64>);

impl Failures {
    /// One more.
    pub fn add(&mut self, cause: &str) {
        *self.0.entry(cause.to_owned()).or_default() += 1;
    }

    /// How many in all.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }
}

/// Everything measured, as it comes in.
#[derive(Default)]
pub struct Measurements {
    /// From then to the end.
    pub steady: Duration,
    /// What the server's process used meanwhile.
    pub server: Option<Usage>,
    /// What the server asked its database meanwhile.
    pub statements: Option<u64>,
    /// Of each page of a list.
    pub lists: Latencies,
    /// What went wrong.
    pub failures: Failures,
    /// Attempts to get a link that failed; workers try again.
    pub attempts_failed: Failures,
    /// Links that ended although their workers wanted them.
    pub lost_links: u64,
    /// Links that stood at the end.
    pub links_at_end: usize,
    /// From each sign of life to its answer.
    pub heartbeats: Latencies,
    /// Of all workers together, both ways.
    pub worker_bytes: u64,
    /// From the beginning to the last first join.
    joining: Duration,
    joins: Latencies,
    /// How long workers that had lost their link were without one.
    without_link: Latencies,
    watchers: Vec<Watched>,
}

impl Measurements {
    /// A worker has joined, so long after the beginning.
    pub fn add_join(&mut self, took: Duration, after: Duration, without_for: Option<Duration>) {
        if let Some(without_for) = without_for {
            return self.without_link.push(without_for);
        }
        self.joining = self.joining.max(after);
        self.joins.push(took);
    }

    /// A browser has ended.
    pub fn add_watcher(&mut self, watched: Watched) {
        self.watchers.push(watched);
    }
}

/// The outcome of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    workers: u32,
    devices_per_worker: u32,
    steady_s: f64,
    joins_per_s: f64,
    join: Option<Summary>,
    heartbeat: Option<Summary>,
    links_lost: u64,
    without_link: Option<Summary>,
    links_at_end: usize,
    list_of_100: Option<Summary>,
    server: Option<Usage>,
    database_statements_per_minute: Option<f64>,
    bytes_per_worker_and_minute: f64,
    watchers: usize,
    watcher_snapshot_bytes: u64,
    watcher_events: u64,
    watcher_bytes_per_minute: f64,
    watcher_resyncs: u64,
    attempts_failed: Failures,
    failures: Failures,
}

impl Report {
    /// Brings the figures together.
    pub fn of(options: &Options, measured: Measurements) -> Self {
        let minutes = measured.steady.as_secs_f64() / 60.0;
        let joined = measured.joins.count();
        let workers = options.workers.max(1);
        let watched = &measured.watchers;
        Self {
            workers: options.workers,
            devices_per_worker: options.devices,
            steady_s: measured.steady.as_secs_f64(),
            joins_per_s: joined as f64 / measured.joining.as_secs_f64(),
            join: measured.joins.summary(),
            heartbeat: measured.heartbeats.summary(),
            links_lost: measured.lost_links,
            without_link: measured.without_link.summary(),
            links_at_end: measured.links_at_end,
            list_of_100: measured.lists.summary(),
            server: measured.server,
            database_statements_per_minute: measured.statements.map(|count| count as f64 / minutes),
            bytes_per_worker_and_minute: measured.worker_bytes as f64 / f64::from(workers) / minutes,
            watchers: watched.len(),
            watcher_snapshot_bytes: watched.iter().map(|one| one.snapshot_bytes).max().unwrap_or_default(),
            watcher_events: watched.iter().map(|one| one.events).sum(),
            watcher_bytes_per_minute: watched.iter().map(|one| one.event_bytes).sum::<u64>() as f64
                / watched.len().max(1) as f64
                / minutes,
            watcher_resyncs: watched.iter().map(|one| one.resyncs).sum(),
            attempts_failed: measured.attempts_failed,
            failures: measured.failures,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "workers          {} with {} devices each", self.workers, self.devices_per_worker)?;
        writeln!(f, "joined           {:.0} a second", self.joins_per_s)?;
        for (name, summary) in [
            ("join", &self.join),
            ("heartbeat", &self.heartbeat),
            ("list of 100", &self.list_of_100),
            ("without a link", &self.without_link),
        ] {
            match summary {
                Some(summary) => writeln!(f, "{name:<16} {summary}")?,
                None => writeln!(f, "{name:<16} not measured")?,
            }
        }
        writeln!(f, "links            {} at the end, {} lost meanwhile", self.links_at_end, self.links_lost)?;
        writeln!(f, "steady           {:.0} s", self.steady_s)?;
        writeln!(f, "worker traffic   {:.0} bytes a worker and minute", self.bytes_per_worker_and_minute)?;
        if self.watchers > 0 {
            writeln!(
                f,
                "browser traffic  {} bytes at first (compressed), then {:.0} a minute ({} events, {} resyncs, {} browsers)",
                self.watcher_snapshot_bytes,
                self.watcher_bytes_per_minute,
                self.watcher_events,
                self.watcher_resyncs,
                self.watchers
            )?;
        }
        match &self.server {
            Some(usage) => writeln!(
                f,
                "server           {:.1} % of a core, {:.1} MiB of memory, at most {:.1} MiB",
                usage.cpu_percent,
                usage.resident_bytes as f64 / MIB,
                usage.peak_resident_bytes as f64 / MIB
            )?,
            None => writeln!(f, "server           not measured: --server-pid tells which process it is")?,
        }
        match self.database_statements_per_minute {
            Some(count) => writeln!(f, "database         {count:.1} statements a minute")?,
            None => writeln!(f, "database         not measured")?,
        }
        write!(f, "failures         {}", self.failures.count())?;
        for (cause, count) in self.failures.0.iter().chain(&self.attempts_failed.0) {
            write!(f, "\n  {count} × {cause}")?;
        }
        Ok(())
    }
}
