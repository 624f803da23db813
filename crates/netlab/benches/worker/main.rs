//! What a worker's death and a worker's life look like on its cable: `cargo build --release`, then
//!
//! - `cargo bench --package netlab --bench worker -- seen`: how long it takes until a dead worker is shown;
//! - `cargo bench --package netlab --bench worker -- bytes [MINUTES]`: what a worker with eight devices at work sends and
//!   receives, beside what GPUStack 0.7.1 was recorded to.
//!
//! Needs root, or a system that lets its users have network namespaces.

#![expect(clippy::print_stdout, reason = "the figures are the result")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement that cannot go on ends; a field of a row that is absent is null"
)]

mod bytes;
mod recorded;
mod seen;

use netlab::{Cable, End, Host, PacketSize, Server, WorkerFolder};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` says `--bench`; `cargo test --all-targets` runs this file too, does not, and wants no measurement
    let wanted: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--bench").collect();
    if let [recorded::PLAY_WORKER, server] = wanted.as_slice() {
        return recorded::play_worker(server.parse().unwrap());
    }
    if !netlab::is_inside() {
        if wanted.len() < words.len() {
            let status = netlab::start_inside(&words).unwrap().status().unwrap();
            assert!(status.success(), "the measurement failed, or this system does not allow hosts of its own");
        }
        return;
    }
    println!("load average of this machine: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    match wanted.as_slice() {
        ["seen"] => seen::measure(),
        ["bytes"] => bytes::measure(3),
        ["bytes", minutes] => bytes::measure(minutes.parse().expect("a number of minutes")),
        _ => println!("say `seen` or `bytes`"),
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

/// A worker's host at the end of a cable to the server's.
struct Outpost {
    host: Host,
    cable: Cable,
    url: String,
    folder: WorkerFolder,
}

impl Outpost {
    fn new(here: &Host, number: u8) -> Self {
        let host = Host::new(&format!("npu-{number}")).unwrap();
        let near = Ipv4Addr::new(198, 18, number, 1);
        let one = End { host: here, interface: &format!("to-npu-{number}"), address: near };
        let other = End { host: &host, interface: "eth0", address: Ipv4Addr::new(198, 18, number, 20) };
        let cable = Cable::lay(one, other, PacketSize::Ethernet).unwrap();
        let npu_smi = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/worker/npu-smi");
        Self { host, cable, url: Server::url(near), folder: WorkerFolder::new(&npu_smi).unwrap() }
    }

    fn start_worker(&self, name: &str) -> netlab::Worker {
        let arguments = ["--worker-name", name];
        netlab::Worker::start(&self.host, &gpustack(), &self.folder, &self.url, &arguments, &[]).unwrap()
    }
}
