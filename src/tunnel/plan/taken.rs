//! Two forwards cannot listen at one port of one host, nor have one id.

use super::{ForwardId, PlannedForward};
use crate::tunnel::file::{Fault, Position, Problem, is_loopback, is_wildcard};
use api::{ForwardDirection, ForwardRole};
use ssh::Endpoint;
use std::collections::BTreeMap;

/// A host, by the way to it, which tells hosts of the same address behind different bastions apart; empty for this one.
type Host<'a> = Vec<&'a Endpoint>;

/// Who listens where.
pub struct Taken<'a> {
    by_port: BTreeMap<(Host<'a>, u16), Vec<(&'a PlannedForward, Position)>>,
    by_id: BTreeMap<&'a ForwardId, Position>,
}

impl<'a> Taken<'a> {
    /// Every forward whose place is taken by one before it.
    pub fn check(forwards: &'a [(PlannedForward, Position)]) -> Vec<Problem> {
        let mut taken = Self { by_port: BTreeMap::new(), by_id: BTreeMap::new() };
        forwards.iter().filter_map(|(forward, position)| taken.add(forward, *position)).collect()
    }

    fn add(&mut self, forward: &'a PlannedForward, position: Position) -> Option<Problem> {
        if let Some(first) = self.by_id.insert(&forward.id, position) {
            let fault = Fault::DuplicateKey { key: forward.id.to_string(), first: first.line };
            return Some(Problem::new(position, fault));
        }
        let host = match forward.direction {
            ForwardDirection::Local => Vec::new(),
            ForwardDirection::Remote => forward.route.iter().map(|hop| &hop.server).collect(),
        };
        let others = self.by_port.entry((host, forward.listen.port)).or_default();
        let found = others.iter().find(|(other, _)| overlap(&forward.listen.host, &other.listen.host)).copied();
        others.push((forward, position));
        let (other, other_position) = found?;
        let fault = Fault::PortTaken {
            forward: forward.id.to_string(),
            place: format!("{} on {}", forward.listen, host_name(forward)),
            other: other.id.to_string(),
            other_line: other_position.line,
            remedy: remedy(forward.role),
        };
        Some(Problem::new(position, fault))
    }
}

fn overlap(one: &str, other: &str) -> bool {
    one == other || is_wildcard(one) || is_wildcard(other) || (is_loopback(one) && is_loopback(other))
}

fn host_name(forward: &PlannedForward) -> String {
    match (forward.direction, forward.route.last()) {
        (ForwardDirection::Remote, Some(hop)) => hop.server.host.clone(),
        _ => "this host".to_owned(),
    }
}

fn remedy(role: ForwardRole) -> &'static str {
    match role {
        ForwardRole::ServerHere => "write another `local_port:` under `server:`",
        ForwardRole::ServerAtWorker => "write another `server_port:`",
        ForwardRole::WorkerHere | ForwardRole::WorkerAtServer => "write another `health_port:`",
        ForwardRole::Other => "write another port",
    }
}
