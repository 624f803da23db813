//! What goes over a worker's cable.

use crate::{Outpost, gpustack, recorded};
use netlab::{Cable, Host, Server, Traffic};
use std::thread::sleep;
use std::time::Duration;

/// After this a worker that has joined has said what it says once.
const SETTLES: Duration = Duration::from_secs(30);

pub fn measure(minutes: u32) {
    println!(
        "{:46} {:>8} {:>16} {:>14} {:>14}",
        "a worker with 8 devices, a minute", "packets", "Ethernet bytes", "to the server", "to the worker"
    );
    let here = Host::here("server").unwrap();
    let now = worker(&here, minutes);
    let then = recorded::minute(&here);
    let of_then = |bytes: u64, then: u64| bytes as f64 / then as f64 * 100.0;
    println!(
        "the worker's share of what was recorded: {:.1} % on the cable, {:.1} % of the payload",
        of_then(now.all().ethernet_bytes(), then.all().ethernet_bytes()),
        of_then(now.all().payload_bytes, then.all().payload_bytes)
    );
}

fn worker(here: &Host, minutes: u32) -> BothWays {
    let server = Server::start(here, &gpustack(), &[]).unwrap();
    let outpost = Outpost::new(here, 20);
    let _worker = outpost.start_worker("npu-a");
    server.worker("npu-a", "is ready", |row| row["state"] == "ready");
    sleep(SETTLES);
    let (before, link_before) = (BothWays::of(&outpost.cable), link_bytes(&server));
    sleep(Duration::from_mins(1) * minutes);
    let used = BothWays::of(&outpost.cable).since(before).divided_by(u64::from(minutes));
    let link = link_bytes(&server);
    used.print("this program, its health checks included");
    let [to_server, to_worker] = [0, 1].map(|way| (link[way] - link_before[way]) / u64::from(minutes));
    println!("{:46} {:8} {:16} {to_server:14} {to_worker:14}", "  of it over the link, as the server counts", "", "");
    used
}

/// Bytes that the server received and sent over the worker's link, encryption included.
fn link_bytes(server: &Server) -> [u64; 2] {
    let row = server.worker("npu-a", "has a link", |row| !row["link"].is_null());
    [1, 2].map(|at| row["link"]["readings"][at].as_u64().unwrap())
}

/// Traffic of a cable from the server to a worker.
#[derive(Clone, Copy)]
pub struct BothWays {
    to_worker: Traffic,
    to_server: Traffic,
}

impl BothWays {
    pub fn of(cable: &Cable) -> Self {
        Self { to_worker: cable.forth(), to_server: cable.back() }
    }

    pub fn since(self, before: Self) -> Self {
        Self { to_worker: self.to_worker.since(before.to_worker), to_server: self.to_server.since(before.to_server) }
    }

    fn divided_by(self, parts: u64) -> Self {
        let part = |traffic: Traffic| Traffic {
            packets: traffic.packets / parts,
            bytes: traffic.bytes / parts,
            payload_bytes: traffic.payload_bytes / parts,
        };
        Self { to_worker: part(self.to_worker), to_server: part(self.to_server) }
    }

    fn all(self) -> Traffic {
        let (one, other) = (self.to_worker, self.to_server);
        Traffic {
            packets: one.packets + other.packets,
            bytes: one.bytes + other.bytes,
            payload_bytes: one.payload_bytes + other.payload_bytes,
        }
    }

    /// Payload for each way, the rest together.
    pub fn print(self, who: &str) {
        let all = self.all();
        println!(
            "{who:46} {:8} {:16} {:14} {:14}",
            all.packets,
            all.ethernet_bytes(),
            self.to_server.payload_bytes,
            self.to_worker.payload_bytes
        );
    }
}
