//! A bastion, a worker's host, and what keeps the two forwards between them and the server.

use crate::faults::Fault;
use crate::gpustack;
use crate::samples::Samples;
use netlab::{Cable, End, Host, PacketSize, Process, Ssh, SshServer, TunnelAgent, TunnelFolder, until};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// As the field reports' script does.
const SCRIPT_LOOKS_EVERY: Duration = Duration::from_mins(5);
/// The field reports' options for `ssh`.
const OPTIONS: [&str; 6] = ["-o", "ServerAliveInterval=30", "-o", "ServerAliveCountMax=3", "-o", "TCPKeepAlive=yes"];

/// As the guide advises. Without them sshd keeps the port of a session that vanished for a quarter of an hour, whoever
/// wants it.
const SSHD_SETTINGS: [&str; 2] = ["ClientAliveInterval 15", "ClientAliveCountMax 3"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    Gpustack,
    Autossh,
    Script,
}

pub struct Contender {
    keeper: Keeper,
    pub bastion: Host,
    pub worker: Host,
    pub server_cable: Cable,
    pub worker_cable: Cable,
    ssh: &'static Ssh,
    sshd: Option<SshServer>,
    server_address: Ipv4Addr,
    worker_address: Ipv4Addr,
    folder: TunnelFolder,
    agent: Option<TunnelAgent>,
    /// To the server, to the worker.
    processes: [Option<Process>; 2],
    next_look: Duration,
    is_off: bool,
    samples: Samples,
    met: Vec<(Fault, Duration)>,
}

impl Contender {
    pub fn new(keeper: Keeper, here: &Host, ssh: &'static Ssh) -> Self {
        let number = keeper as u8;
        let [bastion, worker] = ["bastion", "worker"].map(|name| Host::new(&format!("{name}-{number}")).unwrap());
        let address = |leg: u8, host: u8| Ipv4Addr::new(198, 18, 10 * leg + number, host);
        let lay = |one: (&Host, &str, Ipv4Addr), other: (&Host, &str, Ipv4Addr)| {
            let end = |(host, interface, address)| End { host, interface, address };
            Cable::lay(end(one), end(other), PacketSize::Ethernet).unwrap()
        };
        let to = format!("to-bastion-{number}");
        let server_cable = lay((here, &to, address(1, 10)), (&bastion, "eth0", address(1, 1)));
        let worker_cable = lay((&bastion, "eth1", address(2, 1)), (&worker, "eth0", address(2, 20)));
        let sshd = Some(ssh.serve_with(&worker, &SSHD_SETTINGS).unwrap());
        let samples = Samples::begin(&worker);
        Self {
            keeper,
            bastion,
            worker,
            server_cable,
            worker_cable,
            ssh,
            sshd,
            server_address: address(1, 10),
            worker_address: address(2, 20),
            folder: TunnelFolder::new().unwrap(),
            agent: None,
            processes: [None, None],
            next_look: SCRIPT_LOOKS_EVERY,
            is_off: false,
            samples,
            met: Vec::new(),
        }
    }

    /// Starts what keeps the forwards.
    pub fn start(&mut self) {
        match self.keeper {
            Keeper::Gpustack => {
                let config = format!(
                    "id: bastion-01\nreport: false\nssh: {{user: root, identity: {key}, known_hosts: [{known}]}}\n\
                     server: {{address: \"{server}:8090\", ssh: \"{server}\"}}\nworkers:\n  worker: {{ssh: \"{worker}\"}}\n",
                    key = self.ssh.key().display(),
                    known = self.ssh.known_hosts().unwrap().display(),
                    server = self.server_address,
                    worker = self.worker_address,
                );
                self.folder.write_config(&config).unwrap();
                self.agent = Some(TunnelAgent::start(&self.bastion, &gpustack(), &self.folder, &[]).unwrap());
            }
            Keeper::Autossh | Keeper::Script => {
                self.forward(0);
                self.forward(1);
            }
        }
    }

    /// Starts one of the two `ssh`.
    fn forward(&mut self, which: usize) {
        let (server, worker) = (format!("root@{}", self.server_address), format!("root@{}", self.worker_address));
        let local = format!("8090:{}:8090", self.server_address);
        let words = if which == 0 { ["-L", &local, &server] } else { ["-R", "8090:127.0.0.1:8090", &worker] };
        let words = [&OPTIONS[..], &words].concat();
        self.processes[which] = Some(match self.keeper {
            Keeper::Autossh => self.ssh.forward_by_autossh(&self.bastion, &words).unwrap(),
            Keeper::Gpustack | Keeper::Script => self.ssh.forward(&self.bastion, &words).unwrap(),
        });
    }

    /// Waits until something is answered through the tunnel. The script is helped: what failed is started again.
    pub fn works(&mut self) {
        let mut tries = 0;
        until("an answer through the tunnel", || {
            tries += 1;
            if self.keeper == Keeper::Script && tries % 20 == 0 {
                self.restart_ended();
            }
            if self.samples.last() == Some(true) { Ok(()) } else { Err(self.keeper) }
        });
    }

    /// What looks after the tunnels now and then.
    pub fn look(&mut self, now: Duration) {
        if self.keeper != Keeper::Script || now < self.next_look {
            return;
        }
        self.next_look = now + SCRIPT_LOOKS_EVERY;
        if !self.is_off {
            self.restart_ended();
        }
    }

    fn restart_ended(&mut self) {
        for which in 0..self.processes.len() {
            if !self.processes[which].as_mut().is_some_and(Process::is_running) {
                self.forward(which);
            }
        }
    }

    pub fn end_sshd(&mut self) {
        self.sshd = None;
        self.worker.kill_all("sshd").unwrap();
    }

    pub fn start_sshd(&mut self) {
        self.sshd = Some(self.ssh.serve_with(&self.worker, &SSHD_SETTINGS).unwrap());
    }

    /// Nobody is told that it is off; when it is back, it knows nothing of its former connections, and says so.
    pub fn stop_bastion(&mut self) {
        let silent = netlab::Quality { is_silent: true, ..netlab::Quality::default() };
        self.server_cable.set(silent);
        self.worker_cable.set(silent);
        self.is_off = true;
        self.agent = None;
        self.processes = [None, None];
        for program in ["autossh", "ssh", "gpustack"] {
            self.bastion.kill_all(program).unwrap();
        }
    }

    /// A service manager starts the agent and autossh at boot; the script comes when it is time.
    pub fn start_bastion(&mut self) {
        self.is_off = false;
        self.server_cable.set(netlab::Quality::default());
        self.worker_cable.set(netlab::Quality::default());
        if self.keeper != Keeper::Script {
            self.start();
        }
    }

    pub fn note(&mut self, fault: Fault, at: Duration) {
        self.met.push((fault, at));
    }

    pub fn report(self, begun: Instant, length: Duration) {
        let all = self.samples.between(begun, begun + length);
        let worked = all.iter().filter(|works| **works).count();
        let share = 100.0 * worked as f64 / all.len().max(1) as f64;
        println!("{:?}: worked in {worked} of {} seconds, {share:.2} %", self.keeper, all.len());
        for (index, (fault, at)) in self.met.iter().enumerate() {
            let next = self.met.get(index + 1).map_or(length, |(_, at)| *at);
            let seconds = self.samples.between(begun + *at, begun + next);
            let out = seconds.iter().filter(|works| !**works).count();
            let repaired = seconds.iter().rposition(|works| !works).map_or(0, |last| last + 1);
            let after = (repaired as u64).saturating_sub(fault.length().as_secs());
            let mended = if repaired < seconds.len() { format!("{after} s after its end") } else { "never".to_owned() };
            println!("  {fault}: {out} s without an answer, the last one {mended}");
        }
    }
}
