//! The server's network, the worker's, and a bastion between them.

use netlab::{Cable, End, Host, PacketSize, Quality};
use std::net::Ipv4Addr;
use std::time::Duration;

pub const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 10);
const TOWARDS_SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 1);
const TOWARDS_WORKER: Ipv4Addr = Ipv4Addr::new(198, 18, 20, 1);
pub const WORKER: Ipv4Addr = Ipv4Addr::new(198, 18, 20, 20);

/// What the cables add to a round trip.
#[derive(Clone, Copy)]
pub struct RoundTrip {
    added: Duration,
    small_requests: usize,
}

impl RoundTrip {
    pub const ALL: [Self; 3] = [
        Self { added: Duration::ZERO, small_requests: 10_000 },
        Self { added: Duration::from_millis(1), small_requests: 5_000 },
        Self { added: Duration::from_millis(10), small_requests: 2_000 },
    ];

    pub fn added(self) -> Duration {
        self.added
    }

    pub fn small_requests(self) -> usize {
        self.small_requests
    }
}

/// The hosts. This process's own is the server's.
pub struct Hosts {
    pub here: Host,
    pub bastion: Host,
    pub worker: Host,
    cables: [Cable; 2],
}

impl Hosts {
    pub fn connect() -> Self {
        let [here, bastion, worker] =
            [Host::here("server").unwrap(), Host::new("bastion").unwrap(), Host::new("npu").unwrap()];
        let lay = |one: (&Host, &str, Ipv4Addr), other: (&Host, &str, Ipv4Addr)| {
            let end = |(host, interface, address)| End { host, interface, address };
            Cable::lay(end(one), end(other), PacketSize::Large).unwrap()
        };
        let cables = [
            lay((&here, "eth0", SERVER), (&bastion, "eth0", TOWARDS_SERVER)),
            lay((&bastion, "eth1", TOWARDS_WORKER), (&worker, "eth0", WORKER)),
        ];
        let mut forward = bastion.command("sh");
        let forwards = forward.args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).status().unwrap();
        assert!(forwards.success());
        here.run(&format!("ip route add {WORKER} via {TOWARDS_SERVER}")).unwrap();
        worker.run(&format!("ip route add {SERVER} via {TOWARDS_WORKER}")).unwrap();
        Self { here, bastion, worker, cables }
    }

    /// A quarter for each of the two cables and each of the two ways.
    pub fn set(&self, round_trip: RoundTrip) {
        for cable in &self.cables {
            cable.set(Quality { delay: round_trip.added() / 4, ..Quality::default() });
        }
    }
}
