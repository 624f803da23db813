//! A server on this host, and workers on others, each at the end of a cable.

use netlab::{Cable, End, Host, PacketSize, Server, Worker, WorkerFolder, has, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;

pub struct Field {
    pub here: Host,
    pub server: Server,
}

pub fn gpustack() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_gpustack"))
}

/// What a worker's row is known by, and must not change.
#[derive(Debug, PartialEq)]
pub struct Identity {
    id: Value,
    name: Value,
    hostname: Value,
    uuid: Value,
    labels: Value,
    created_at: Value,
}

impl Identity {
    pub fn of(row: &Value) -> Self {
        let field = |name: &str| row[name].clone();
        Self {
            id: field("id"),
            name: field("name"),
            hostname: field("hostname"),
            uuid: field("worker_uuid"),
            labels: field("labels"),
            created_at: field("created_at"),
        }
    }
}

impl Field {
    /// With the server's default settings.
    pub fn new() -> Self {
        Self::with(&[])
    }

    pub fn with(server_arguments: &[&str]) -> Self {
        let here = Host::here("server").unwrap();
        let server = Server::start(&here, gpustack(), server_arguments).unwrap();
        Self { here, server }
    }

    /// One more host with a cable of its own to the server. `number` tells hosts apart.
    pub fn host(&self, number: u8) -> FieldHost {
        let host = Host::new(&format!("npu-{number}")).unwrap();
        let near = Ipv4Addr::new(198, 18, number, 1);
        let far = Ipv4Addr::new(198, 18, number, 20);
        let cable = Cable::lay(
            End { host: &self.here, interface: &format!("to-npu-{number}"), address: near },
            End { host: &host, interface: "eth0", address: far },
            PacketSize::Ethernet,
        );
        let folder = new_worker_folder();
        FieldHost { host, cable: cable.unwrap(), url: Server::url(near), address: far, folder }
    }

    /// Waits until the worker is Ready, over its link and directly, gives it a label, and tells what it is known by.
    pub fn settled(&self, name: &str) -> Identity {
        self.settled_when(name, is_ready_both_ways)
    }

    pub fn settled_when(&self, name: &str, is_settled: fn(&Value) -> bool) -> Identity {
        let row = self.worker(name, "has settled", is_settled);
        let mut labels = row["labels"].clone();
        labels["rack"] = json!("r7");
        self.server.set_labels(&row["id"], &labels).unwrap();
        Identity::of(&self.worker(name, "has its label", |row| row["labels"]["rack"] == "r7"))
    }

    /// Waits until the worker is as it was when it had settled, and is the only one of its name and id.
    pub fn is_back(&self, before: &Identity) {
        self.is_back_when(before, is_ready_both_ways);
    }

    pub fn is_back_when(&self, before: &Identity, is_settled: fn(&Value) -> bool) {
        let name = before.name.as_str().unwrap();
        let row = self.worker(name, "has settled again", is_settled);
        assert_eq!(Identity::of(&row), *before);
        let rows = self.server.workers().unwrap();
        let same = rows.iter().filter(|row| row["hostname"] == before.hostname).count();
        assert_eq!(same, 1, "a worker was counted twice: {rows:?}");
    }

    /// Waits until the worker has a link, and tells the other end of its connection.
    pub fn settled_link(&self, name: &str) -> Value {
        self.worker(name, "has a link", has_link)["link"]["peer"].clone()
    }

    /// Waits until the worker has another link than the one of that connection.
    pub fn has_other_link(&self, name: &str, than: &Value) {
        self.worker(name, "has another link", |row| has_link(row) && row["link"]["peer"] != *than);
    }

    pub fn worker(&self, name: &str, what: &str, is_wished: impl Fn(&Value) -> bool) -> Value {
        self.server.worker(name, what, is_wished)
    }

    /// Waits for so many heartbeats of a worker, which must be Ready at each look.
    pub fn stays_ready(&self, name: &str, heartbeats: usize) {
        let mut times = BTreeSet::new();
        until("heartbeats", || {
            let row = self.worker(name, "is there", |_| true);
            assert_eq!(row["state"], "ready", "{row}");
            times.insert(row["heartbeat_time"].to_string());
            if times.len() > heartbeats { Ok(()) } else { Err(row) }
        });
    }

    /// What the server has open.
    pub fn open(&self) -> Open {
        Open {
            files: self.server.process().unwrap().open_files().unwrap(),
            connections: self.server.connections().unwrap(),
        }
    }

    /// Waits until the server has no more open than before. Health checks come and go.
    pub fn has_no_more_open_than(&self, before: Open) {
        until(&format!("no more open than {before:?}"), || {
            let open = self.open();
            let is_as_before = open.files <= before.files && open.connections <= before.connections;
            if is_as_before { Ok(()) } else { Err(open) }
        });
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub files: usize,
    pub connections: usize,
}

/// A worker's host.
pub struct FieldHost {
    pub host: Host,
    pub cable: Cable,
    /// The server's, as seen from here.
    pub url: String,
    pub address: Ipv4Addr,
    pub folder: WorkerFolder,
}

impl FieldHost {
    pub fn start_worker(&self, name: &str) -> Worker {
        self.start_worker_under(name, &[])
    }

    /// Under a program that changes what it sees.
    pub fn start_worker_under(&self, name: &str, wrapper: &[&str]) -> Worker {
        self.start_worker_for(&self.url, name, wrapper)
    }

    pub fn start_worker_for(&self, url: &str, name: &str, wrapper: &[&str]) -> Worker {
        Worker::start(&self.host, gpustack(), &self.folder, url, &["--worker-name", name], wrapper).unwrap()
    }

    pub fn pull_cable(&self) {
        self.host.run("ip link set eth0 down").unwrap();
    }

    pub fn plug_in_cable(&self) {
        self.host.run("ip link set eth0 up").unwrap();
    }
}

pub fn new_worker_folder() -> WorkerFolder {
    let npu_smi = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/npu-smi");
    WorkerFolder::new(&npu_smi).unwrap()
}

pub fn is_ready_both_ways(row: &Value) -> bool {
    row["state"] == "ready" && has_link(row) && has(row, "direct", "true", "direct_answered")
}

/// With no other way than its link.
pub fn is_ready_by_link(row: &Value) -> bool {
    row["state"] == "ready" && has_link(row) && has(row, "direct", "false", "direct_no_route")
}

pub fn has_link(row: &Value) -> bool {
    has(row, "link", "true", "link_up")
}

/// Whether the worker's link is down, having ended so.
pub fn lost_link(row: &Value, loss: &str) -> bool {
    has(row, "link", "false", "link_down")
        && netlab::condition(row, "link").is_some_and(|link| link["params"]["loss"] == loss)
}
