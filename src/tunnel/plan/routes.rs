//! Ways to hosts, through any number of bastions.

use super::make::SERVER;
use super::{AgentName, PlannedHop};
use crate::tunnel::file::{BastionEntry, Fault, Here, Host, Lack, Named, Placed, Problem, TunnelsFile, nearest};
use std::collections::BTreeMap;

/// The bastions of a file, and who else can be named.
pub struct Routes<'a> {
    file: &'a TunnelsFile,
    bastions: BTreeMap<&'a str, &'a BastionEntry>,
}

/// A way, or why there is none. Nothing is said twice: what is wrong with names and with bastions say
/// [`Routes::check_names`] and [`Routes::check_bastions`].
type Way = Result<Vec<PlannedHop>, Vec<Problem>>;

impl<'a> Routes<'a> {
    pub fn new(file: &'a TunnelsFile) -> Self {
        let bastions = file.bastions.iter().map(|bastion| (bastion.name.value.as_str(), bastion)).collect();
        Self { file, bastions }
    }

    /// What is wrong with the ways between bastions.
    pub fn check_bastions(&self) -> Vec<Problem> {
        let circles = self.bastions.iter().filter_map(|(name, bastion)| self.circle(name, bastion.host.as_ref()?));
        circles.collect()
    }

    /// The names in `via` that nobody has; also of hosts that cannot be used for another reason.
    pub fn check_names(&self) -> Vec<Problem> {
        let vias = self.file.vias.iter().filter(|via| self.is_gone(&via.key));
        vias.flat_map(|via| self.unknown(&via.names, &via.key)).collect()
    }

    /// Whether the way with this `via` is one that this host may have to go: several hosts may share a file.
    fn is_gone(&self, key: &str) -> bool {
        match &self.file.here.value {
            Here::Bastion => true,
            Here::Server => key != "server.via",
            Here::Worker(own) => !key.starts_with("workers.") || key == format!("workers.{own}.via"),
        }
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
                of: Named::Bastion,
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

    /// The way to a host.
    pub fn to(&self, host: &Host, name: &str) -> Way {
        let mut hops = self.through(&host.via)?;
        hops.push(hop(name, host));
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
            return self.to(host, name);
        }
        if let Some(worker) = self.file.workers.iter().find(|worker| worker.key.value == name) {
            let host = worker.host.as_ref().ok_or_else(Vec::new)?;
            return self.to(host, name);
        }
        let server = self.file.server.as_ref();
        match server.and_then(|server| server.host.as_ref()) {
            Some(host) => self.to(host, SERVER),
            None if server.is_some_and(|server| server.is_host_broken) => Err(Vec::new()),
            None => {
                let fault = Fault::Missing { table: SERVER.to_owned(), lack: Lack::EndAtServer };
                Err(vec![Problem::new(end.position, fault)])
            }
        }
    }

    /// The bastions of a `via`. The first one is reached as it says itself, each further one from the one before.
    pub fn through(&self, via: &[Placed<String>]) -> Way {
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
            hops.push(hop(name, host));
            // of a list, the last is the nearest to the bastion
            hops.extend(host.via.iter().skip(1).rev().filter_map(|name| self.bastion_hop(&name.value).ok()));
            next = host.via.first().map(|name| name.value.as_str());
        }
        hops.reverse();
        Ok(hops)
    }

    fn bastion_hop(&self, name: &str) -> Result<PlannedHop, Vec<Problem>> {
        let host = self.bastions.get(name).and_then(|bastion| bastion.host.as_ref()).ok_or_else(Vec::new)?;
        Ok(hop(name, host))
    }
}

fn hop(name: &str, host: &Host) -> PlannedHop {
    let Host { user, server, identities, .. } = host;
    PlannedHop { name: name.to_owned(), user: user.clone(), server: server.clone(), identities: identities.clone() }
}
