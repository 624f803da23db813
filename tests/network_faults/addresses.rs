//! Workers whose address is not obvious, or of no use.

use crate::field::{Field, gpustack, has_link, new_worker_folder};
use netlab::{End, Host, Server, Worker, condition, has, wire};
use std::net::Ipv4Addr;

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 1);
/// The only one of the worker's addresses that leads to the server, which is neither its first nor its lowest.
const WORKER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 20);

/// Interfaces as container engines, hypervisors and VPNs make them, an address that nobody gave out, and a second real
/// network that does not lead to the server.
const OTHER_INTERFACES: [(&str, &str); 6] = [
    ("docker0", "172.17.0.1/16"),
    ("virbr0", "192.168.122.1/24"),
    ("cni0", "10.244.0.1/24"),
    ("tun0", "10.8.0.2/24"),
    ("bond0", "169.254.7.7/16"),
    ("eno1", "192.0.2.5/24"),
];

pub fn a_worker_with_many_interfaces_reports_the_one_that_leads_to_the_server() {
    let field = Field::new();
    let host = wired_host(&field);
    let _worker = start_worker(&host, &[]);
    let row = field.worker("npu-a", "is ready", |row| row["state"] == "ready");
    assert_eq!(row["ip"], WORKER.to_string(), "{row}");
}

pub fn a_worker_behind_a_firewall_is_ready_through_its_link() {
    let field = Field::new();
    let host = wired_host(&field);
    // Packets to it go to a network card that nobody has, and so are lost as in a firewall that drops them.
    field.here.run("ip neigh replace 198.18.10.21 lladdr 02:00:00:00:00:99 dev server0 nud permanent").unwrap();
    host.run("ip addr add 198.18.10.21/24 dev eth0").unwrap();
    let _worker = start_worker(&host, &["--worker-ip", "198.18.10.21"]);
    let row =
        field.worker("npu-a", "is walled in", |row| has_link(row) && has(row, "direct", "false", "direct_timed_out"));
    assert_eq!(row["state"], "ready", "{row}");
    assert_eq!(condition(&row, "direct").unwrap()["severity"], "ok", "{row}");
}

fn wired_host(field: &Field) -> Host {
    let host = Host::new("npu-20").unwrap();
    for (name, address) in OTHER_INTERFACES {
        host.run(&format!("ip link add {name} type bridge")).unwrap();
        host.run(&format!("ip addr add {address} dev {name}")).unwrap();
        host.run(&format!("ip link set {name} up")).unwrap();
    }
    let near = End { host: &field.here, interface: "server0", address: SERVER };
    wire(near, End { host: &host, interface: "eth0", address: WORKER }).unwrap();
    host
}

fn start_worker(host: &Host, arguments: &[&str]) -> Worker {
    let arguments = [&["--worker-name", "npu-a"], arguments].concat();
    Worker::start(host, gpustack(), &new_worker_folder(), &Server::url(SERVER), &arguments, &[]).unwrap()
}
