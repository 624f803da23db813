//! What was measured, for people and for programs.

use crate::latency::{Latencies, Summary};
use crate::operator::Watched;
use crate::options::Options;
use crate::server_process::Usage;
use crate::worker::{Arrival, Work};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

const MIB: f64 = 1024.0 * 1024.0;

/// What went wrong, and how often.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Failures(BTreeMap<String, u64>);

impl Failures {
    /// One more.
    pub fn add(&mut self, what: &str, error: &anyhow::Error) {
        *self.0.entry(format!("{what}: {error:#}")).or_default() += 1;
    }

    /// Many more.
    pub fn append(&mut self, other: Self) {
        for (cause, count) in other.0 {
            *self.0.entry(cause).or_default() += count;
        }
    }

    /// How many in all.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// One of them.
    pub fn first(&self) -> Option<&str> {
        self.0.keys().next().map(String::as_str)
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
    /// From the first request to join to the last answer.
    joining: Duration,
    joins: Latencies,
    first_reports: Latencies,
    heartbeats: Latencies,
    reports: Latencies,
    worker_bytes: u64,
    watchers: Vec<Watched>,
}

impl Measurements {
    /// A worker has joined; all began at `begun`.
    pub fn add_arrival(&mut self, arrival: &Arrival, begun: Instant) {
        self.joining = self.joining.max(arrival.joined.duration_since(begun));
        self.joins.push(arrival.join);
        self.first_reports.push(arrival.first_report);
    }

    /// A worker has ended.
    pub fn add_work(&mut self, work: Work) {
        self.heartbeats.append(work.heartbeats);
        self.reports.append(work.reports);
        self.failures.append(work.failures);
        self.worker_bytes += work.bytes;
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
    first_status: Option<Summary>,
    heartbeat: Option<Summary>,
    status: Option<Summary>,
    list_of_100: Option<Summary>,
    server: Option<Usage>,
    database_statements_per_minute: Option<f64>,
    bytes_per_worker_and_minute: f64,
    watchers: usize,
    watcher_snapshot_bytes: u64,
    watcher_events: u64,
    watcher_bytes_per_minute: f64,
    watcher_resyncs: u64,
    failures: Failures,
}

impl Report {
    /// Brings the figures together.
    pub fn of(options: &Options, measured: Measurements) -> Self {
        let minutes = measured.steady.as_secs_f64() / 60.0;
        let joined = measured.joins.count();
        let watched = &measured.watchers;
        Self {
            workers: options.workers,
            devices_per_worker: options.devices,
            steady_s: measured.steady.as_secs_f64(),
            joins_per_s: joined as f64 / measured.joining.as_secs_f64(),
            join: measured.joins.summary(),
            first_status: measured.first_reports.summary(),
            heartbeat: measured.heartbeats.summary(),
            status: measured.reports.summary(),
            list_of_100: measured.lists.summary(),
            server: measured.server,
            database_statements_per_minute: measured.statements.map(|count| count as f64 / minutes),
            bytes_per_worker_and_minute: measured.worker_bytes as f64 / joined.max(1) as f64 / minutes,
            watchers: watched.len(),
            watcher_snapshot_bytes: watched.iter().map(|one| one.snapshot_bytes).max().unwrap_or_default(),
            watcher_events: watched.iter().map(|one| one.events).sum(),
            watcher_bytes_per_minute: watched.iter().map(|one| one.event_bytes).sum::<u64>() as f64
                / watched.len().max(1) as f64
                / minutes,
            watcher_resyncs: watched.iter().map(|one| one.resyncs).sum(),
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
            ("first status", &self.first_status),
            ("heartbeat", &self.heartbeat),
            ("status", &self.status),
            ("list of 100", &self.list_of_100),
        ] {
            match summary {
                Some(summary) => writeln!(f, "{name:<16} {summary}")?,
                None => writeln!(f, "{name:<16} not measured")?,
            }
        }
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
        for (cause, count) in &self.failures.0 {
            write!(f, "\n  {count} × {cause}")?;
        }
        Ok(())
    }
}
