//! Ways to hosts, through any number of bastions.

use super::make::SERVER;
use super::{AgentName, PlannedHop};
use crate::tunnel::file::{BastionEntry, Fault, Here, Host, Placed, Problem, TunnelsFile, nearest};
use std::collections::BTreeMap;

/// The bastions of a file, and who else can be named.
pub struct Routes<'a> {
    file: &'a TunnelsFile,
    bastions: BTreeMap<&'a str, &'a BastionEntry>,
}

/// A way, or why there is none. Nothing is said twice: what is wrong with bastions says [`Routes::check_bastions`].
type Way = Result<Vec<PlannedHop>, Vec<Problem>>;

impl<'a> Routes<'a> {
    pub fn new(file: &'a TunnelsFile) -> Self {
        let bastions = file.bastions.iter().map(|bastion| (bastion.name.value.as_str(), bastion)).collect();
        Self { file, bastions }
    }

    /// What is wrong with the ways between bastions.
    pub fn check_bastions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, bastion) in &self.bastions {
            let Some(host) = &bastion.host else { continue };
            problems.extend(self.unknown(&host.via, &format!("bastions.{name}.via")));
            problems.extend(self.circle(name, host));
        }
        problems
    }

    /// The circle that a bastion is part of; told once, at the one whose name comes first.
    fn circle(&self, name: &str, host: &Host) -> Option<Problem> {
        let mut names = vec![name.to_owned()];
        let mut next = host.via.first()?;
        loop {
            if next.value == name {
                let is_first = names.iter().min().is_some_and(|first| first == name);
                names.push(name.to_owned());
                let position = host.via.first()?.position;
                return is_first.then(|| Problem::new(position, Fault::Circle { names }));
            }
            if names.contains(&next.value) || self.is_here(&next.value) {
                return None;
            }
            names.push(next.value.clone());
            next = self.bastions.get(next.value.as_str())?.host.as_ref()?.via.first()?;
        }
    }

    fn unknown(&self, via: &[Placed<String>], key: &str) -> Vec<Problem> {
        let unknown =
            via.iter().filter(|name| !self.bastions.contains_key(name.value.as_str()) && !self.is_here(&name.value));
        let problem = |name: &Placed<String>| {
            let fault = Fault::UnknownName {
                key: key.to_owned(),
                name: name.value.clone(),
                what: "bastion under `bastions:`",
                nearest: nearest(&name.value, self.bastions.keys().copied()),
            };
            Problem::new(name.position, fault)
        };
        unknown.map(problem).collect()
    }

    /// An agent on a bastion is there already.
    fn is_here(&self, name: &str) -> bool {
        self.file.here.value == Here::Bastion && self.file.id.as_ref().map(AgentName::as_str) == Some(name)
    }

    /// The way to a host. `key` is where its `via` stands.
    pub fn to(&self, host: &Host, name: &str, key: &str) -> Way {
        let mut hops = self.through(&host.via, key)?;
        hops.push(hop(name, host)?);
        for (index, hop) in hops.iter().enumerate() {
            let is_same = |earlier: &&PlannedHop| earlier.user == hop.user && earlier.server == hop.server;
            if hops.iter().take(index).any(|earlier| is_same(&earlier)) {
                let fault = Fault::PassesTwice { end: name.to_owned(), hop: format!("{}@{}", hop.user, hop.server) };
                return Err(vec![Problem::new(host.position, fault)]);
            }
        }
        Ok(hops)
    }

    /// The way to a bastion, a worker or the server's host, by name.
    pub fn to_named(&self, end: &Placed<String>) -> Way {
        let name = end.value.as_str();
        let is_own = match &self.file.here.value {
            Here::Bastion => self.is_here(name),
            Here::Server => name == SERVER,
            Here::Worker(key) => name == key,
        };
        if is_own {
            return Err(vec![Problem::new(end.position, Fault::EndsHere { name: name.to_owned() })]);
        }
        if let Some(bastion) = self.bastions.get(name) {
            let host = bastion.host.as_ref().ok_or_else(Vec::new)?;
            return self.to(host, name, &format!("bastions.{name}.via"));
        }
        if let Some(worker) = self.file.workers.iter().find(|worker| worker.key.value == name) {
            let host = worker.host.as_ref().ok_or_else(Vec::new)?;
            return self.to(host, name, &format!("workers.{name}.via"));
        }
        let server = self.file.server.as_ref();
        match server.and_then(|server| server.host.as_ref()) {
            Some(host) => self.to(host, SERVER, "server.via"),
            None if server.is_some_and(|server| server.is_host_broken) => Err(Vec::new()),
            None => {
                let (what, example) =
                    ("`server`".to_owned(), "`ssh: user@host` under `server:`, as a forward ends there");
                Err(vec![Problem::new(end.position, Fault::Missing { what, key: "ssh", example })])
            }
        }
    }

    /// The bastions of a `via`. The first one is reached as it says itself, each further one from the one before.
    pub fn through(&self, via: &[Placed<String>], key: &str) -> Way {
        let problems = self.unknown(via, key);
        if !problems.is_empty() {
            return Err(problems);
        }
        let Some(first) = via.first() else { return Ok(Vec::new()) };
        let mut hops = self.chain(&first.value)?;
        for name in via.iter().skip(1) {
            if self.is_here(&name.value) {
                hops.clear();
            } else {
                hops.push(self.bastion_hop(&name.value)?);
            }
        }
        Ok(hops)
    }

    /// A bastion, and what is before it.
    fn chain(&self, name: &str) -> Way {
        let mut names: Vec<&str> = Vec::new();
        let mut hops = Vec::new();
        let mut next = Some(name);
        while let Some(name) = next.filter(|name| !self.is_here(name)) {
            let host = self.bastions.get(name).and_then(|bastion| bastion.host.as_ref()).ok_or_else(Vec::new)?;
            if names.contains(&name) {
                return Err(Vec::new());
            }
            names.push(name);
            hops.push(hop(name, host)?);
            // of a list, the last is the nearest to the bastion
            hops.extend(host.via.iter().skip(1).rev().filter_map(|name| self.bastion_hop(&name.value).ok()));
            next = host.via.first().map(|name| name.value.as_str());
        }
        hops.reverse();
        Ok(hops)
    }

    fn bastion_hop(&self, name: &str) -> Result<PlannedHop, Vec<Problem>> {
        let host = self.bastions.get(name).and_then(|bastion| bastion.host.as_ref()).ok_or_else(Vec::new)?;
        hop(name, host)
    }
}

fn hop(name: &str, host: &Host) -> Result<PlannedHop, Vec<Problem>> {
    let Host { user, server, identities, position, .. } = host;
    if identities.is_empty() {
        return Err(vec![Problem::new(*position, Fault::NoIdentity { key: name.to_owned() })]);
    }
    Ok(PlannedHop { name: name.to_owned(), user: user.clone(), server: server.clone(), identities: identities.clone() })
}
