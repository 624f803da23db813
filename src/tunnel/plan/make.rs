//! From what a `tunnels.yaml` says to what is to be made.

use super::ports::PortBook;
use super::routes::Routes;
use super::taken::{Listener, Taken};
use super::{
    AgentName, ForwardId, KnownHostsFiles, Plan, PlanNote, PlannedForward, PlannedHop, Proof, Reporting, Scheme,
    SessionSettings,
};
use crate::tunnel::file::{
    Clash, End, Fault, ForwardEntry, Here, Host, LOOPBACK, Lack, Listen, Named, Placed, Position, Problem, ServerEntry,
    TunnelsFile, WorkerEntry, is_loopback, is_wildcard, nearest,
};
use api::{AgentPlace, ForwardDirection, ForwardRole};
use ssh::{Endpoint, Identity};
use std::collections::{BTreeMap, BTreeSet};

/// The id of the forward that all workers share, and the name of the server's host.
pub const SERVER: &str = "server";

/// A plan, and the ports that were chosen for it and are not remembered yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What is to be made.
    pub plan: Plan,
    /// To be remembered before it is made.
    pub ports: PortBook,
}

/// What came of a file.
#[derive(Debug)]
pub struct Made {
    /// The plan, or everything that keeps it from being one.
    pub planned: Result<Planned, Vec<Problem>>,
    /// All keys that are used, as far as ways could be planned.
    pub identities: Vec<Identity>,
}

/// Makes the plan. Looks at no file.
pub fn make(file: &TunnelsFile, ports: PortBook) -> Made {
    let mut maker = Maker {
        file,
        routes: Routes::new(file),
        health_ports: BTreeMap::new(),
        ports,
        forwards: Vec::new(),
        listeners: Vec::new(),
        notes: Vec::new(),
        problems: Vec::new(),
        shared: None,
    };
    maker.everything();
    maker.finish()
}

struct Maker<'a> {
    file: &'a TunnelsFile,
    routes: Routes<'a>,
    /// By the keys of workers that have a health check.
    health_ports: BTreeMap<String, u16>,
    ports: PortBook,
    forwards: Vec<PlannedForward>,
    /// Of all forwards, also of those that cannot be planned.
    listeners: Vec<Listener>,
    notes: Vec<PlanNote>,
    problems: Vec<Problem>,
    /// The forward that brings the server's port to this host.
    shared: Option<ForwardId>,
}

impl Maker<'_> {
    fn everything(&mut self) {
        self.problems.extend(self.routes.check_names());
        self.problems.extend(self.routes.check_bastions());
        self.check_server();
        self.check_worker_names();
        self.choose_ports();
        match &self.file.here.value {
            Here::Bastion => self.shared_forward(),
            Here::Server => {}
            Here::Worker(key) => self.check_here(key),
        }
        for worker in &self.file.workers {
            if self.is_planned(worker) {
                self.worker(worker);
            }
        }
        for forward in &self.file.forwards {
            self.forward(forward);
        }
        if self.file.workers.is_empty() && self.file.forwards.is_empty() {
            self.problem(Position { line: 1, column: 1 }, Fault::Nothing);
        }
    }

    fn problem(&mut self, position: Position, fault: Fault) {
        self.problems.push(Problem::new(position, fault));
    }

    /// On a worker's host nobody cares for the other ones.
    fn is_planned(&self, worker: &WorkerEntry) -> bool {
        match &self.file.here.value {
            Here::Worker(key) => *key == worker.key.value,
            Here::Bastion | Here::Server => true,
        }
    }

    fn check_here(&mut self, key: &str) {
        let known: Vec<&str> = self.file.workers.iter().map(|worker| worker.key.value.as_str()).collect();
        if !known.contains(&key) {
            let fault = Fault::UnknownName {
                key: "here".to_owned(),
                name: key.to_owned(),
                of: Named::Here,
                nearest: nearest(key, known.into_iter().chain(["bastion", SERVER])),
            };
            self.problem(self.file.here.position, fault);
        }
    }

    fn check_server(&mut self) {
        if self.file.server.is_some() {
            return;
        }
        let first_worker = self.file.workers.first();
        if let Some(worker) = first_worker {
            self.problem(worker.key.position, Fault::Missing { table: String::new(), lack: Lack::Server });
        } else if self.file.is_reporting && self.file.server_url.is_none() {
            let top = Position { line: 1, column: 1 };
            self.problem(top, Fault::Missing { table: String::new(), lack: Lack::ReportServer });
        }
    }

    fn check_worker_names(&mut self) {
        let mut seen: BTreeMap<&str, Position> = BTreeMap::new();
        for worker in &self.file.workers {
            let position = worker.key.position;
            if let Some(first) = seen.insert(&worker.name, position) {
                let (name, first_line) = (worker.name.clone(), first.line);
                self.problem(position, Fault::SameWorkerName { name, first_line });
            }
        }
    }

    /// Of all workers, also on the host of one: the same file leads to the same ports everywhere.
    fn choose_ports(&mut self) {
        let file = self.file;
        let checked = || file.workers.iter().filter(|worker| worker.has_health_check);
        for worker in checked() {
            if let Some(port) = self.explicit_port(worker) {
                self.health_ports.insert(worker.key.value.clone(), port);
            } else if let Some(port) = self.ports.remembered(&worker.key.value) {
                self.health_ports.insert(worker.key.value.clone(), port);
            }
        }
        let used = self.used_ports();
        for worker in checked() {
            let key = &worker.key.value;
            if self.health_ports.contains_key(key) {
                continue;
            }
            let taken = |port| used.contains(&port);
            let Some(port) = self.ports.choose(key, taken) else {
                let ports_file = self.ports.path().display().to_string();
                self.problem(worker.key.position, Fault::NoPortLeft { worker: key.clone(), file: ports_file });
                continue;
            };
            self.health_ports.insert(key.clone(), port);
            self.notes.push(PlanNote::PortChosen { worker: worker.name.clone(), port });
        }
    }

    /// What the file says. The server asks at the port that the worker was started with, so one names the other.
    fn explicit_port(&mut self, worker: &WorkerEntry) -> Option<u16> {
        let key = &worker.key.value;
        if let (Some(worker_port), Some(health_port)) = (&worker.worker_port, &worker.health_port)
            && worker_port.value != health_port.value
        {
            let (worker_port, health_port) = (worker_port.value, health_port.value);
            let position = worker.health_port.as_ref().map_or(worker.key.position, |port| port.position);
            self.problem(position, Fault::PortsDiffer { worker: key.clone(), worker_port, health_port });
        }
        let Placed { value: port, position } = worker.health_port.as_ref().or(worker.worker_port.as_ref())?;
        let holder = self.ports.holder(*port).filter(|holder| holder != key).map(str::to_owned);
        let is_there = |name: &String| {
            self.file
                .workers
                .iter()
                .any(|worker| worker.key.value == *name && worker.health_port.is_none() && worker.worker_port.is_none())
        };
        if let Some(other) = holder.filter(is_there) {
            let file = self.ports.path().display().to_string();
            self.problem(*position, Fault::PortRemembered { worker: key.clone(), port: *port, other, file });
        }
        Some(*port)
    }

    /// Ports that no health check can have, whichever host they are on: a port that is free everywhere is free.
    fn used_ports(&self) -> BTreeSet<u16> {
        let server = self.file.server.as_ref();
        let server_ports = server.and_then(|server| server.address.as_ref()).map(|address| address.value.port);
        let local_port = server.and_then(|server| server.local_port);
        let others = self.file.forwards.iter().filter_map(|forward| match &forward.listen.as_ref()?.value {
            Listen::Local(listen) | Listen::Remote(listen) => Some(listen.port),
        });
        self.health_ports.values().copied().chain(server_ports).chain(local_port).chain(others).collect()
    }

    /// `ssh -L`: brings the server's port to this host, when the server cannot be reached from here by itself.
    fn shared_forward(&mut self) {
        let Some(server) = &self.file.server else { return };
        let Some(address) = &server.address else { return };
        let route = self.server_route(server);
        if route.as_ref().is_some_and(Vec::is_empty) {
            if server.local_port.is_some() {
                let key = "server.local_port".to_owned();
                self.problem(server.position, Fault::Conflict { key, clash: Clash::NoForwardNeeded });
            }
            return;
        }
        let listen = Endpoint::new(LOOPBACK, server.local_port.unwrap_or(address.value.port));
        let workers = self.file.workers.iter().map(|worker| worker.name.clone()).collect();
        let forward = Draft {
            id: SERVER.to_owned(),
            role: ForwardRole::ServerHere,
            direction: ForwardDirection::Local,
            listen,
            target: Some(address.value.clone()),
            route,
            workers,
            behind: None,
            proof: Proof::Server { scheme: self.scheme() },
        };
        self.shared = self.add(forward, server.position);
    }

    /// The way to where the server's address is seen from; empty when that is this host. None when it is wrong.
    fn server_route(&mut self, server: &ServerEntry) -> Option<Vec<PlannedHop>> {
        if server.is_host_broken {
            return None;
        }
        let route = match &server.host {
            Some(host) => self.routes.to(host, SERVER),
            None => self.routes.through(&server.via),
        };
        self.noted(route)
    }

    fn noted<T>(&mut self, result: Result<T, Vec<Problem>>) -> Option<T> {
        result.map_err(|problems| self.problems.extend(problems)).ok()
    }

    fn worker(&mut self, worker: &WorkerEntry) {
        match self.file.here.value {
            Here::Bastion | Here::Server => self.worker_elsewhere(worker),
            Here::Worker(_) => self.worker_here(worker),
        }
        self.start_worker_with(worker);
    }

    fn worker_elsewhere(&mut self, worker: &WorkerEntry) {
        let key = &worker.key.value;
        let route = worker.host.as_ref().map(|host| self.routes.to(host, key));
        let route = route.and_then(|route| self.noted(route));
        if let Some(target) = self.server_from_here() {
            let forward = Draft {
                id: format!("{key}.server"),
                role: ForwardRole::ServerAtWorker,
                direction: ForwardDirection::Remote,
                listen: Endpoint::new(LOOPBACK, self.server_port(worker)),
                target: Some(target),
                route: route.clone(),
                workers: vec![worker.name.clone()],
                behind: self.shared.clone(),
                proof: Proof::Server { scheme: self.scheme() },
            };
            self.add(forward, worker.key.position);
        }
        if worker.has_health_check {
            self.health_elsewhere(worker, route);
        }
    }

    /// The server's address, as this host reaches it: where the shared forward listens, or where the server does.
    fn server_from_here(&self) -> Option<Endpoint> {
        let server = self.file.server.as_ref()?;
        let address = server.address.as_ref()?.value.clone();
        if self.shared.is_some() {
            return Some(Endpoint::new(LOOPBACK, server.local_port.unwrap_or(address.port)));
        }
        Some(address)
    }

    fn server_port(&self, worker: &WorkerEntry) -> u16 {
        let server = self.file.server.as_ref();
        let is_here = matches!(&self.file.here.value, Here::Worker(key) if *key == worker.key.value);
        let named = worker.server_port.as_ref().map(|port| port.value);
        let of_this_host = || server.filter(|_| is_here)?.local_port;
        let of_server = || Some(server?.address.as_ref()?.value.port);
        named.or_else(of_this_host).or_else(of_server).unwrap_or_default()
    }

    fn health_elsewhere(&mut self, worker: &WorkerEntry, route: Option<Vec<PlannedHop>>) {
        let key = &worker.key.value;
        let Some(port) = self.health_ports.get(key).copied() else { return };
        let is_on_server = self.file.here.value == Here::Server;
        let (id, role) = if is_on_server {
            (format!("{key}.health"), ForwardRole::WorkerAtServer)
        } else {
            (format!("{key}.health-here"), ForwardRole::WorkerHere)
        };
        let here = Endpoint::new(LOOPBACK, port);
        let forward = Draft {
            id,
            role,
            direction: ForwardDirection::Local,
            listen: here.clone(),
            target: Some(Endpoint::new(LOOPBACK, worker.worker_port.as_ref().map_or(port, |port| port.value))),
            route,
            workers: vec![worker.name.clone()],
            behind: None,
            proof: Proof::Worker { name: worker.name.clone() },
        };
        let behind = self.add(forward, worker.key.position);
        if !is_on_server {
            self.health_at_server(worker, here, behind);
        }
    }

    /// `ssh -R` on the server's host: what is asked there arrives at `target` here.
    fn health_at_server(&mut self, worker: &WorkerEntry, target: Endpoint, behind: Option<ForwardId>) {
        let key = &worker.key.value;
        let Some(port) = self.health_ports.get(key).copied() else { return };
        let Some(server) = &self.file.server else { return };
        if server.host.is_none() {
            if !server.is_host_broken {
                self.problem(worker.key.position, Fault::HealthCheckNeedsServer { worker: key.clone() });
            }
            return;
        }
        let route = self.server_route(server);
        let forward = Draft {
            id: format!("{key}.health"),
            role: ForwardRole::WorkerAtServer,
            direction: ForwardDirection::Remote,
            listen: Endpoint::new(LOOPBACK, port),
            target: Some(target),
            route,
            workers: vec![worker.name.clone()],
            behind,
            proof: Proof::Worker { name: worker.name.clone() },
        };
        self.add(forward, worker.key.position);
    }

    fn worker_here(&mut self, worker: &WorkerEntry) {
        let key = &worker.key.value;
        let Some(server) = &self.file.server else { return };
        if let Some(address) = &server.address {
            let route = self.server_route(server);
            if route.as_ref().is_some_and(Vec::is_empty) {
                let fault = Fault::Missing { table: SERVER.to_owned(), lack: Lack::WayToServer };
                self.problem(server.position, fault);
                return;
            }
            let forward = Draft {
                id: format!("{key}.server"),
                role: ForwardRole::ServerAtWorker,
                direction: ForwardDirection::Local,
                listen: Endpoint::new(LOOPBACK, self.server_port(worker)),
                target: Some(address.value.clone()),
                route,
                workers: vec![worker.name.clone()],
                behind: None,
                proof: Proof::Server { scheme: self.scheme() },
            };
            self.add(forward, worker.key.position);
        }
        if worker.has_health_check {
            let port = self.health_ports.get(key).copied().unwrap_or_default();
            let worker_port = worker.worker_port.as_ref().map_or(port, |port| port.value);
            self.health_at_server(worker, Endpoint::new(LOOPBACK, worker_port), None);
        }
    }

    fn scheme(&self) -> Scheme {
        let is_tls = self.file.server_url.as_ref().is_some_and(|url| url.starts_with("https://"));
        if is_tls { Scheme::Https } else { Scheme::Http }
    }

    fn start_worker_with(&mut self, worker: &WorkerEntry) {
        let url = format!("{}://{LOOPBACK}:{}", self.scheme(), self.server_port(worker));
        let mut flags = vec!["--server-url".to_owned(), url, "--worker-name".to_owned(), worker.name.clone()];
        if let Some(port) = self.health_ports.get(&worker.key.value) {
            flags.extend(["--worker-ip", LOOPBACK, "--worker-port"].map(str::to_owned));
            flags.push(port.to_string());
            if !self.notes.contains(&PlanNote::LinkIsEnough) {
                self.notes.insert(0, PlanNote::LinkIsEnough);
            }
        }
        self.notes.push(PlanNote::StartWorkerWith { worker: worker.name.clone(), flags });
    }

    fn forward(&mut self, entry: &ForwardEntry) {
        let name = &entry.name.value;
        self.check_workers(entry);
        let route = entry.end.as_ref().map(|end| match end {
            End::Host(host) => self.routes.to(host, name),
            End::Named(end) => self.routes.to_named(end),
        });
        let route = route.and_then(|route| self.noted(route));
        let Some(listen) = &entry.listen else { return };
        let (direction, address) = match &listen.value {
            Listen::Local(address) => (ForwardDirection::Local, address.clone()),
            Listen::Remote(address) => (ForwardDirection::Remote, address.clone()),
        };
        let worker_name = |key: &Placed<String>| {
            let entry = self.file.workers.iter().find(|worker| worker.key.value == key.value);
            entry.map_or_else(|| key.value.clone(), |worker| worker.name.clone())
        };
        let forward = Draft {
            id: name.clone(),
            role: ForwardRole::Other,
            direction,
            listen: address,
            target: entry.target.clone(),
            route,
            workers: entry.workers.iter().map(worker_name).collect(),
            behind: None,
            proof: Proof::Connection,
        };
        self.add(forward, entry.name.position);
    }

    fn check_workers(&mut self, entry: &ForwardEntry) {
        let known: Vec<&str> = self.file.workers.iter().map(|worker| worker.key.value.as_str()).collect();
        for worker in entry.workers.iter().filter(|worker| !known.contains(&worker.value.as_str())) {
            let fault = Fault::UnknownName {
                key: format!("forwards.{}.workers", entry.name.value),
                name: worker.value.clone(),
                of: Named::Worker,
                nearest: nearest(&worker.value, known.iter().copied()),
            };
            self.problem(worker.position, fault);
        }
    }

    /// A name that cannot be an id was told when it was read.
    fn add(&mut self, draft: Draft, position: Position) -> Option<ForwardId> {
        let Draft { id, role, direction, listen, target, route, workers, behind, proof } = draft;
        let id = ForwardId::new(id)?;
        let way = route.as_ref().map(|route| route.iter().map(|hop| hop.server.clone()).collect());
        self.listeners.push(Listener { id: id.clone(), role, direction, listen: listen.clone(), way, position });
        // without them there is a problem already
        if let (Some(target), Some(route)) = (target, route) {
            let id = id.clone();
            self.forwards.push(PlannedForward { id, role, direction, listen, target, route, workers, behind, proof });
        }
        Some(id)
    }

    /// Nobody logs in with nothing. Of hosts that no way uses, nobody asks.
    fn check_identities(&mut self) {
        let is_used = |host: &Host| {
            let is_it = |hop: &PlannedHop| hop.server == host.server && hop.user == host.user;
            self.forwards.iter().flat_map(|forward| &forward.route).any(is_it)
        };
        let without = self.file.hosts().filter(|(_, host)| host.identities.is_empty() && is_used(host));
        let problems: Vec<Problem> = without
            .map(|(name, host)| Problem::new(host.position, Fault::NoIdentity { key: name.to_owned() }))
            .collect();
        self.problems.extend(problems);
    }

    fn finish(mut self) -> Made {
        self.problems.extend(Taken::check(&self.listeners));
        self.check_identities();
        let mut identities: Vec<Identity> = Vec::new();
        for hop in self.forwards.iter().flat_map(|forward| &forward.route) {
            let new: Vec<Identity> =
                hop.identities.iter().filter(|known| !identities.contains(known)).cloned().collect();
            identities.extend(new);
        }
        let planned = match self.file.id.clone() {
            Some(id) if self.problems.is_empty() => Ok(self.planned(id)),
            _ => Err(self.problems),
        };
        Made { planned, identities }
    }

    fn planned(self, id: AgentName) -> Planned {
        let file = self.file;
        let reporting = file.is_reporting.then(|| Reporting {
            server_url: file.server_url.clone().unwrap_or_else(|| self.derived_url()),
            token_file: file.token_file.as_ref().map(|path| path.value.clone()),
        });
        let place = match &file.here.value {
            Here::Bastion => AgentPlace::Bastion,
            Here::Server => AgentPlace::Server,
            Here::Worker(key) => AgentPlace::Worker { worker: self.worker_name(key) },
        };
        let plan = Plan {
            id,
            place,
            state_dir: file.state_dir.value.clone(),
            reporting,
            known_hosts: KnownHostsFiles {
                own: file.state_dir.value.join("known_hosts"),
                others: file.known_hosts.clone(),
            },
            session: SessionSettings { tuning: file.tuning.clone() },
            forwards: in_order(self.forwards),
            notes: self.notes,
        };
        Planned { plan, ports: self.ports }
    }

    fn worker_name(&self, key: &str) -> String {
        let entry = self.file.workers.iter().find(|worker| worker.key.value == key);
        entry.map_or_else(|| key.to_owned(), |worker| worker.name.clone())
    }

    fn derived_url(&self) -> String {
        let own = self.forwards.iter().find(|forward| {
            let brings_server = matches!(forward.role, ForwardRole::ServerHere | ForwardRole::ServerAtWorker);
            brings_server && forward.direction == ForwardDirection::Local
        });
        let address = own.map(|forward| forward.listen.clone()).or_else(|| self.server_from_here());
        address.map(|address| format!("http://{address}")).unwrap_or_default()
    }
}

/// A forward whose name was not looked at yet. What could not be read is None, and has been told.
struct Draft {
    id: String,
    role: ForwardRole,
    direction: ForwardDirection,
    listen: Endpoint,
    target: Option<Endpoint>,
    route: Option<Vec<PlannedHop>>,
    workers: Vec<String>,
    behind: Option<ForwardId>,
    proof: Proof,
}

/// Puts forwards that others go through before those.
fn in_order(mut forwards: Vec<PlannedForward>) -> Vec<PlannedForward> {
    find_behind(&mut forwards);
    let by_id: BTreeMap<&ForwardId, &PlannedForward> = forwards.iter().map(|forward| (&forward.id, forward)).collect();
    let mut placed = BTreeSet::new();
    let mut ordered = Vec::with_capacity(forwards.len());
    for forward in &forwards {
        // one that others go through is local, and goes through none itself
        let before = forward.behind.as_ref().and_then(|id| by_id.get(id)).copied();
        for next in before.into_iter().chain([forward]) {
            if placed.insert(&next.id) {
                ordered.push(next.clone());
            }
        }
    }
    ordered
}

/// A remote forward whose target is where a local one listens goes through that one.
fn find_behind(forwards: &mut [PlannedForward]) {
    let is_reached = |listen: &Endpoint| is_loopback(&listen.host) || is_wildcard(&listen.host);
    let local = forwards.iter().filter(|forward| forward.direction == ForwardDirection::Local);
    let listeners: BTreeMap<u16, ForwardId> = local
        .filter(|forward| is_reached(&forward.listen))
        .map(|forward| (forward.listen.port, forward.id.clone()))
        .collect();
    let remote = forwards.iter_mut().filter(|forward| forward.direction == ForwardDirection::Remote);
    for forward in remote.filter(|forward| forward.behind.is_none() && is_loopback(&forward.target.host)) {
        forward.behind = listeners.get(&forward.target.port).cloned();
    }
}
