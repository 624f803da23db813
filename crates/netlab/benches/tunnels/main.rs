//! How much of an hour of faults a tunnel works: `cargo build --release`, then
//! `cargo bench --package netlab --bench tunnels -- faults [MINUTES]`.
//!
//! A server, and three times a bastion and a worker's host behind it, which the same faults meet at the same moments. The two
//! forwards that bring the server to the worker are kept by `gpustack tunnel run`, by `autossh`, and by `ssh` with the
//! field reports' script, which looks every five minutes. Once a second something is asked through them, from the worker's
//! host. Needs root, and the packages openssh-server and autossh.

#![expect(clippy::print_stdout, reason = "the figures are the result")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement that cannot go on ends"
)]

mod contender;
mod faults;
mod samples;

use contender::{Contender, Keeper};
use faults::Fault;
use netlab::{Host, Server, Ssh};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The faults are spread over so many minutes; of a shorter run the pauses between them are shorter.
const MINUTES: u64 = 60;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` says `--bench`; `cargo test --all-targets` runs this file too, does not, and wants no measurement
    let wanted: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--bench").collect();
    if let [samples::ASK] = wanted.as_slice() {
        return samples::ask_for_ever();
    }
    if !netlab::is_inside() {
        if wanted.len() < words.len() {
            let status = netlab::start_inside(&words).unwrap().status().unwrap();
            assert!(status.success(), "the measurement failed, or this system does not allow hosts of its own");
        }
        return;
    }
    assert!(netlab::is_inside_as_root(), "OpenSSH becomes other users, which takes root");
    println!("load average of this machine: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    match wanted.as_slice() {
        ["faults"] => measure(MINUTES),
        ["faults", minutes] => measure(minutes.parse().expect("a number of minutes")),
        _ => println!("say `faults`"),
    }
}

/// The program that `NETLAB_GPUSTACK` names, else the release build, beside this program's folder.
fn gpustack() -> PathBuf {
    if let Some(path) = std::env::var_os("NETLAB_GPUSTACK") {
        return path.into();
    }
    let this = std::env::current_exe().unwrap();
    let path = this.parent().and_then(Path::parent).unwrap().join("gpustack");
    assert!(path.exists(), "{} is missing: `cargo build --release` first", path.display());
    path
}

fn measure(minutes: u64) {
    let here = Host::here("server").unwrap();
    let _server = Server::start(&here, &gpustack(), &[]).unwrap();
    // for as long as the program runs
    let ssh: &'static Ssh = Box::leak(Box::new(Ssh::new().unwrap()));
    let _sshd = ssh.serve(&here).unwrap();
    let keepers = [Keeper::Gpustack, Keeper::Autossh, Keeper::Script];
    let mut contenders = keepers.map(|keeper| Contender::new(keeper, &here, ssh));
    for contender in &mut contenders {
        contender.start();
        contender.works();
    }
    let begun = Instant::now();
    let end = Duration::from_secs(minutes * 60);
    println!("{} faults in {minutes} minutes", faults::ALL.len());
    for (index, fault) in faults::ALL.iter().enumerate() {
        // the first one early, and time enough after the last one
        let at = end.mul_f64((index as f64 + 0.3) / faults::ALL.len() as f64);
        rest(&mut contenders, begun, at);
        println!("{:>5} s  {fault}", begun.elapsed().as_secs());
        meet(&mut contenders, *fault, begun);
    }
    rest(&mut contenders, begun, end);
    let ended = begun.elapsed();
    for contender in contenders {
        contender.report(begun, ended);
    }
}

/// Waits, while the script looks after its tunnels.
fn rest(contenders: &mut [Contender; 3], begun: Instant, until: Duration) {
    while begun.elapsed() < until {
        for contender in contenders.iter_mut() {
            contender.look(begun.elapsed());
        }
        sleep(Duration::from_millis(200).min(until.saturating_sub(begun.elapsed())));
    }
}

fn meet(contenders: &mut [Contender; 3], fault: Fault, begun: Instant) {
    for contender in contenders.iter_mut() {
        contender.note(fault, begun.elapsed());
        fault.begin(contender);
    }
    rest(contenders, begun, begun.elapsed() + fault.length());
    for contender in contenders.iter_mut() {
        fault.end(contender);
    }
}
