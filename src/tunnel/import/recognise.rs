//! Which forwards bring a worker and its server together. All others stay what they are.

use super::command::{Forward, Login, SshCommand};
use super::{Address, ImportNote, NoteKind};
use crate::tunnel::file::{is_loopback, is_placeholder};
use crate::tunnel::plan::{FIRST_HEALTH_PORT, ForwardId};
use api::ForwardDirection;
use std::ops::Range;

/// Ports of workers begin at 10150, and no server listens there.
const WORKER_PORTS: Range<u16> = FIRST_HEALTH_PORT..FIRST_HEALTH_PORT + 100;
const SERVER: &str = "server";

/// What the commands amount to.
#[derive(Debug, Default, PartialEq)]
pub struct Recognised<'a> {
    /// The server, when workers come to it.
    pub server: Option<Server<'a>>,
    /// The workers that do.
    pub workers: Vec<Worker<'a>>,
    /// Everything else, with names.
    pub others: Vec<(String, &'a SshCommand, &'a Forward)>,
}

/// The server.
#[derive(Debug, PartialEq)]
pub struct Server<'a> {
    /// Where it listens.
    pub address: &'a Address,
    /// The port at which it is found on this host, when that is another one.
    pub local_port: Option<&'a str>,
    /// The command that makes the forward to it.
    pub command: &'a SshCommand,
    /// Whether that command logs in at the server's host, or at a bastion before it.
    pub has_ssh: bool,
}

/// A worker.
#[derive(Debug, PartialEq)]
pub struct Worker<'a> {
    /// The name that it gets.
    pub name: String,
    /// The command that brings the server's port there.
    pub command: &'a SshCommand,
    /// The port at which it finds the server there.
    pub server_port: &'a str,
    /// The port for health checks.
    pub health_port: Option<&'a str>,
}

impl Recognised<'_> {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.server.is_none() && self.others.is_empty()
    }
}

/// A forward of a command, and whether somebody has it already.
struct Candidate<'a> {
    command: &'a SshCommand,
    forward: &'a Forward,
    is_used: bool,
}

/// Sorts the forwards.
pub fn recognise<'a>(commands: &'a [SshCommand], notes: &mut Vec<ImportNote>) -> Recognised<'a> {
    let mut candidates: Vec<Candidate<'a>> = Vec::new();
    for (command, forward) in
        commands.iter().flat_map(|command| command.forwards.iter().map(move |forward| (command, forward)))
    {
        let is_again = candidates.iter().any(|other| other.forward == forward && is_same_way(other.command, command));
        if !is_again {
            candidates.push(Candidate { command, forward, is_used: false });
        }
    }
    let mut recognised = Recognised::default();
    if let Some(server) = take_server(&mut candidates) {
        recognised.workers = take_workers(&mut candidates, &server);
        if server.has_ssh {
            take_health_checks(&mut candidates, &server, &mut recognised.workers);
        }
        recognised.server = Some(server);
    }
    name_workers(&mut recognised.workers, notes);
    let mut names = vec![SERVER.to_owned()];
    for candidate in candidates.iter().filter(|candidate| !candidate.is_used) {
        notes.extend(unclear(candidate, &recognised));
        let name = unique(&forward_name(candidate), &mut names);
        recognised.others.push((name, candidate.command, candidate.forward));
    }
    recognised
}

/// Whether a forward was probably meant for health checks of one of the workers, and does not lead there.
fn unclear(candidate: &Candidate<'_>, recognised: &Recognised<'_>) -> Option<ImportNote> {
    let (command, forward) = (candidate.command, candidate.forward);
    let port = forward.listen.port.parse().ok().filter(|port| WORKER_PORTS.contains(port))?;
    let is_unchecked = recognised.workers.iter().any(|worker| worker.health_port.is_none());
    let is_meant = is_unchecked && forward.direction == ForwardDirection::Remote && is_loopback(&forward.target.host);
    is_meant.then_some(ImportNote { line: command.line, kind: NoteKind::HealthCheckUnclear { port } })
}

/// The local forward behind which most remote ones are; the first of several. A worker's port makes none.
fn take_server<'a>(candidates: &mut [Candidate<'a>]) -> Option<Server<'a>> {
    let mut best: Option<(usize, usize)> = None;
    for (index, candidate) in candidates.iter().enumerate() {
        let forward = candidate.forward;
        let is_workers = forward.target.port.parse().is_ok_and(|port| WORKER_PORTS.contains(&port));
        if forward.direction != ForwardDirection::Local || !is_loopback(&forward.listen.host) || is_workers {
            continue;
        }
        let behind = candidates.iter().filter(|other| is_behind(other, candidate)).count();
        if behind > best.map_or(0, |(_, most)| most) {
            best = Some((index, behind));
        }
    }
    let chosen = candidates.get_mut(best?.0)?;
    chosen.is_used = true;
    let (command, Forward { listen, target, .. }) = (chosen.command, chosen.forward);
    Some(Server {
        address: target,
        local_port: Some(listen.port.as_str()).filter(|port| *port != target.port),
        command,
        has_ssh: target.host == command.login.host || is_loopback(&target.host),
    })
}

/// A remote forward whose connections go to where the local one listens.
fn is_behind(remote: &Candidate<'_>, local: &Candidate<'_>) -> bool {
    let (remote_forward, local_forward) = (remote.forward, local.forward);
    remote_forward.direction == ForwardDirection::Remote
        && is_loopback(&remote_forward.target.host)
        && is_loopback(&remote_forward.listen.host)
        && remote_forward.target.port == local_forward.listen.port
        && remote.command.login.host != local.command.login.host
}

fn take_workers<'a>(candidates: &mut [Candidate<'a>], server: &Server<'a>) -> Vec<Worker<'a>> {
    let mut workers: Vec<Worker<'a>> = Vec::new();
    let port = server.local_port.unwrap_or(&server.address.port);
    for candidate in candidates.iter_mut() {
        let (command, forward) = (candidate.command, candidate.forward);
        let leads_to_server = forward.direction == ForwardDirection::Remote
            && is_loopback(&forward.target.host)
            && is_loopback(&forward.listen.host)
            && forward.target.port == port
            && command.login.host != server.command.login.host;
        let is_new = workers.iter().all(|worker| worker.command.login != command.login);
        if leads_to_server && is_new {
            candidate.is_used = true;
            let server_port = forward.listen.port.as_str();
            workers.push(Worker { name: String::new(), command, server_port, health_port: None });
        }
    }
    workers
}

/// `-L 10150:WORKER:10150 user@WORKER` and behind it `-R 10150:127.0.0.1:10150 user@SERVER`.
fn take_health_checks<'a>(candidates: &mut [Candidate<'a>], server: &Server<'a>, workers: &mut [Worker<'a>]) {
    for worker in workers {
        let local = candidates.iter().position(|candidate| is_health_here(candidate, worker));
        let Some(local) = local else { continue };
        let Some(port) = candidates.get(local).map(|candidate| candidate.forward.listen.port.as_str()) else {
            continue;
        };
        let remote = candidates.iter().position(|candidate| is_health_at_server(candidate, server, port));
        let Some(remote) = remote else { continue };
        for index in [local, remote] {
            if let Some(candidate) = candidates.get_mut(index) {
                candidate.is_used = true;
            }
        }
        worker.health_port = Some(port);
    }
}

fn is_health_here(candidate: &Candidate<'_>, worker: &Worker<'_>) -> bool {
    let (command, Forward { direction, listen, target }) = (candidate.command, candidate.forward);
    !candidate.is_used
        && *direction == ForwardDirection::Local
        && is_same_way(command, worker.command)
        && is_loopback(&listen.host)
        && (target.host == command.login.host || is_loopback(&target.host))
        && target.port == listen.port
}

fn is_health_at_server(candidate: &Candidate<'_>, server: &Server<'_>, port: &str) -> bool {
    let (command, Forward { direction, listen, target }) = (candidate.command, candidate.forward);
    !candidate.is_used
        && *direction == ForwardDirection::Remote
        && is_same_way(command, server.command)
        && is_loopback(&listen.host)
        && is_loopback(&target.host)
        && listen.port == port
        && target.port == port
}

/// Both log in at the same place over the same bastions.
fn is_same_way(one: &SshCommand, other: &SshCommand) -> bool {
    one.login == other.login && one.jumps == other.jumps
}

fn name_workers(workers: &mut [Worker<'_>], notes: &mut Vec<ImportNote>) {
    let mut names = vec![SERVER.to_owned(), "bastion".to_owned()];
    for worker in workers {
        worker.name = unique(&host_name(&worker.command.login, "worker"), &mut names);
        let kind = NoteKind::WorkerNamed { name: worker.name.clone() };
        notes.push(ImportNote { line: worker.command.line, kind });
    }
}

/// A host's name as far as it can be one here.
pub fn host_name(login: &Login, otherwise: &str) -> String {
    if is_placeholder(&login.host) {
        return otherwise.to_owned();
    }
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = login.host.chars().map(allowed).take(60).collect();
    let name = name.trim_start_matches('-');
    if name.is_empty() { otherwise.to_owned() } else { name.to_owned() }
}

fn forward_name(candidate: &Candidate<'_>) -> String {
    let of_label = candidate.command.id.as_ref().filter(|id| id.len() <= 60 && ForwardId::new(id.as_str()).is_some());
    let port = || candidate.forward.listen.port.parse::<u16>().map(|port| format!("-{port}")).unwrap_or_default();
    of_label.cloned().unwrap_or_else(|| format!("{}{}", host_name(&candidate.command.login, "forward"), port()))
}

/// The name, with a number when somebody has it.
pub fn unique(name: &str, taken: &mut Vec<String>) -> String {
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.unwrap_or_else(|| name.to_owned());
    taken.push(free.clone());
    free
}
