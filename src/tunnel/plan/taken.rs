//! Two forwards cannot listen at one port of one host, nor have one id.

use super::ForwardId;
use crate::tunnel::file::{Fault, PortTaken, Position, Problem, is_loopback, is_wildcard};
use api::{ForwardDirection, ForwardRole};
use ssh::Endpoint;
use std::collections::BTreeMap;

/// What is to listen somewhere: of a forward that is planned, and of one whose way or target is wrong, which is told
/// together with a port that is taken.
#[derive(Clone, Debug)]
pub struct Listener {
    /// The forward.
    pub id: ForwardId,
    /// What that is for.
    pub role: ForwardRole,
    /// At which end it listens.
    pub direction: ForwardDirection,
    /// Where.
    pub listen: Endpoint,
    /// The SSH servers on the way; None when it is not known.
    pub way: Option<Vec<Endpoint>>,
    /// Where the forward stands in the file.
    pub position: Position,
}

/// A host, by the way to it, which tells hosts of the same address behind different bastions apart; empty for this one.
type Host<'a> = &'a [Endpoint];

/// Who listens where.
pub struct Taken<'a> {
    by_port: BTreeMap<(Host<'a>, u16), Vec<&'a Listener>>,
    by_id: BTreeMap<&'a ForwardId, Position>,
}

impl<'a> Taken<'a> {
    /// Every forward whose place is taken by one before it.
    pub fn check(listeners: &'a [Listener]) -> Vec<Problem> {
        let mut taken = Self { by_port: BTreeMap::new(), by_id: BTreeMap::new() };
        listeners.iter().filter_map(|listener| taken.add(listener)).collect()
    }

    fn add(&mut self, listener: &'a Listener) -> Option<Problem> {
        if let Some(first) = self.by_id.insert(&listener.id, listener.position) {
            let fault = Fault::ForwardNameTaken { id: listener.id.to_string(), first: first.line };
            return Some(Problem::new(listener.position, fault));
        }
        let host: Host<'a> = match (listener.direction, &listener.way) {
            (ForwardDirection::Local, _) => &[],
            (ForwardDirection::Remote, Some(way)) => way,
            (ForwardDirection::Remote, None) => return None,
        };
        let others = self.by_port.entry((host, listener.listen.port)).or_default();
        let found = others.iter().find(|other| overlap(&listener.listen.host, &other.listen.host)).copied();
        others.push(listener);
        let other = found?;
        let taken = PortTaken {
            forward: listener.id.to_string(),
            listen: listener.listen.to_string(),
            host: host.last().map(|host| host.host.clone()),
            other: other.id.to_string(),
            other_line: other.position.line,
            remedy: remedy(listener.role),
        };
        Some(Problem::new(listener.position, Fault::PortTaken(Box::new(taken))))
    }
}

fn overlap(one: &str, other: &str) -> bool {
    one == other || is_wildcard(one) || is_wildcard(other) || (is_loopback(one) && is_loopback(other))
}

/// The key of the file that moves a forward to another port; None for a forward of the user's own.
fn remedy(role: ForwardRole) -> Option<&'static str> {
    match role {
        ForwardRole::ServerHere => Some("server.local_port"),
        ForwardRole::ServerAtWorker => Some("server_port"),
        ForwardRole::WorkerHere | ForwardRole::WorkerAtServer => Some("health_port"),
        ForwardRole::Other => None,
    }
}
