//! How long it takes until a dead worker is shown.

use crate::{Outpost, gpustack};
use netlab::{Host, Quality, Server};
use serde_json::Value;
use std::thread::sleep;
use std::time::{Duration, Instant};

const KILLS: usize = 20;
const VANISHING: u8 = 5;
/// Between their ends, which so lie everywhere between two heartbeats.
const APART: Duration = Duration::from_secs(2);

pub fn measure() {
    let here = Host::here("server").unwrap();
    let server = Server::start(&here, &gpustack(), &[]).unwrap();
    println!("{:60} {:>8} {:>8} {:>8}", "seconds until the server shows it", "least", "median", "most");
    killed(&here, &server);
    vanished(&here, &server);
}

/// Its host closes the connection.
fn killed(here: &Host, server: &Server) {
    let outpost = Outpost::new(here, 20);
    let mut unreachable_s = Vec::new();
    for _ in 0..KILLS {
        let worker = outpost.start_worker("npu-killed");
        server.worker("npu-killed", "is ready both ways", is_ready_both_ways);
        worker.kill();
        let begun = Instant::now();
        server.worker("npu-killed", "is unreachable", |row| row["state"] != "ready");
        unreachable_s.push(begun.elapsed().as_secs_f64());
    }
    print("killed, its connection is closed: no longer Ready", unreachable_s);
}

/// Nobody closes anything.
fn vanished(here: &Host, server: &Server) {
    let outposts: Vec<(String, Outpost)> =
        (1..=VANISHING).map(|number| (format!("npu-{number}"), Outpost::new(here, 20 + number))).collect();
    let mut no_longer_ready_s = Vec::new();
    let mut not_ready_s = Vec::new();
    std::thread::scope(|scope| {
        let vanishing = (0_u32..).zip(&outposts).map(|(number, (name, outpost))| {
            scope.spawn(move || {
                let _worker = outpost.start_worker(name);
                server.worker(name, "is ready both ways", is_ready_both_ways);
                sleep(APART * number);
                outpost.cable.set(Quality { is_silent: true, ..Quality::default() });
                let begun = Instant::now();
                server.worker(name, "is not ready any longer", |row| row["state"] != "ready");
                let no_longer_ready = begun.elapsed();
                server.worker(name, "is Not Ready", |row| row["state"] == "not_ready");
                (no_longer_ready.as_secs_f64(), begun.elapsed().as_secs_f64())
            })
        });
        for thread in vanishing.collect::<Vec<_>>() {
            let (no_longer_ready, not_ready) = thread.join().unwrap();
            no_longer_ready_s.push(no_longer_ready);
            not_ready_s.push(not_ready);
        }
    });
    print("vanished without a word: no longer Ready (Unreachable)", no_longer_ready_s);
    print("vanished without a word: Not Ready, with 60 s of offline timeout", not_ready_s);
}

fn is_ready_both_ways(row: &Value) -> bool {
    row["state"] == "ready"
        && netlab::has(row, "link", "true", "link_up")
        && netlab::has(row, "direct", "true", "direct_answered")
}

fn print(what: &str, mut seconds: Vec<f64>) {
    seconds.sort_by(f64::total_cmp);
    let [least, median, most] = [0, seconds.len() / 2, seconds.len() - 1].map(|at| seconds[at]);
    println!("{what:60} {least:8.2} {median:8.2} {most:8.2}");
}
