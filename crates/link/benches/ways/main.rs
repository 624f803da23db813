//! What a link costs compared with other ways to a worker: `cargo bench --package link --bench ways`.
//!
//! A server, a bastion and a worker on hosts of their own, with 0, 1 and 10 ms of added round trip, half of it on each
//! side of the bastion. All ways lie side by side and take turns, so that whatever else the machine does falls on all of
//! them:
//!
//! - directly to the worker's port, through a bastion that forwards packets, as no bastion does in the field;
//! - a link, dialled by the worker the same way;
//! - the same reversed HTTP/2 without encryption;
//! - OpenSSH's two forwards, with and without its compression;
//! - a link through OpenSSH's two forwards of the server's port.
//!
//! Needs root, or a system that lets its users have network namespaces; OpenSSH needs root.

#![expect(clippy::print_stdout, reason = "the figures are the result")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on ends")]

mod client;
mod hosts;
mod server;
mod worker;

use client::{Client, Way};
use hosts::{Hosts, RoundTrip};
use std::fmt;
use std::time::{Duration, Instant};

/// Ways take turns after so many requests.
const TURN: usize = 100;
const BULKS: usize = 3;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word] = arguments.as_slice()
        && word == worker::WORD
    {
        return runtime().block_on(worker::run());
    }
    if netlab::is_inside() {
        println!("load average of this machine: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
        return runtime().block_on(measure());
    }
    // `cargo bench` says `--bench`; `cargo test --all-targets` runs this file too, does not, and wants no measurement
    arguments.retain(|word| word == "--bench");
    if !arguments.is_empty() {
        let status = netlab::start_inside(arguments).unwrap().status().unwrap();
        assert!(status.success(), "the measurement failed, or this system does not allow hosts of its own");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn measure() {
    let hosts = Hosts::connect();
    let ways = server::start(&hosts).await;
    for round_trip in RoundTrip::ALL {
        hosts.set(round_trip);
        println!("\n{round_trip}");
        println!("{:52} {:>12} {:>12} {:>9} {:>10}", "way", "small p50 ms", "small p99 ms", "to direct", "bulk MB/s");
        let figures = compare(&ways, round_trip).await;
        let direct_ms = figures.first().map_or(f64::NAN, |direct| direct.p50_ms);
        for Figures { name, p50_ms, p99_ms, bulk_mb_per_s } in figures {
            let more = (p50_ms / direct_ms - 1.0) * 100.0;
            println!("{name:52} {p50_ms:12.3} {p99_ms:12.3} {more:+8.1}% {bulk_mb_per_s:10.0}");
        }
    }
}

struct Figures {
    name: &'static str,
    p50_ms: f64,
    p99_ms: f64,
    bulk_mb_per_s: f64,
}

/// One way, as it is measured.
struct Measured<'a> {
    way: &'a Way,
    client: Client,
    small: Vec<Duration>,
    bulk_mb_per_s: Vec<f64>,
}

async fn compare(ways: &[Way], round_trip: RoundTrip) -> Vec<Figures> {
    let mut all = Vec::new();
    for way in ways {
        let mut client = way.client().await;
        // what begins slowly, as TCP does, has begun
        client.ask(worker::BULK).await;
        all.push(Measured { way, client, small: Vec::new(), bulk_mb_per_s: Vec::new() });
    }
    for _ in 0..round_trip.small_requests() / TURN {
        for measured in &mut all {
            for _ in 0..TURN {
                let begun = Instant::now();
                measured.client.ask(worker::SMALL).await;
                measured.small.push(begun.elapsed());
            }
        }
    }
    for _ in 0..BULKS {
        for measured in &mut all {
            let begun = Instant::now();
            let bytes = measured.client.ask(worker::BULK).await;
            measured.bulk_mb_per_s.push(bytes as f64 / begun.elapsed().as_secs_f64() / 1e6);
        }
    }
    all.into_iter().map(Measured::figures).collect()
}

impl Measured<'_> {
    fn figures(mut self) -> Figures {
        self.small.sort_unstable();
        self.bulk_mb_per_s.sort_by(f64::total_cmp);
        let small_ms = |percent: usize| self.small.get(self.small.len() * percent / 100).map(Duration::as_secs_f64);
        Figures {
            name: self.way.name,
            p50_ms: small_ms(50).unwrap_or(f64::NAN) * 1e3,
            p99_ms: small_ms(99).unwrap_or(f64::NAN) * 1e3,
            bulk_mb_per_s: self.bulk_mb_per_s.get(BULKS / 2).copied().unwrap_or(f64::NAN),
        }
    }
}

impl fmt::Display for RoundTrip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms of added round trip, {} small requests each", self.added().as_millis(), self.small_requests())
    }
}
