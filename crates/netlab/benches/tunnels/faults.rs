//! What happens to the tunnels.

use crate::contender::Contender;
use netlab::Quality;
use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The worker's cable is pulled for so many seconds.
    WorkerCable(u64),
    /// The bastion's cable to the server is pulled.
    ServerCable(u64),
    /// Nothing arrives at the worker, and nobody is told.
    WorkerSilent(u64),
    /// The same on the way to the server.
    ServerSilent(u64),
    /// sshd on the worker's host is started anew; its sessions end.
    SshdRestarted,
    /// A router forgets all connections to the worker.
    RouterForgot,
    /// The bastion is off for so many seconds, and then starts what it starts at boot.
    BastionRebooted(u64),
    /// The worker's host is off: its cable is silent, and its sshd is another one afterwards.
    WorkerRebooted(u64),
    /// One packet of twenty is lost.
    Loss(u64),
}

pub const ALL: [Fault; 12] = [
    Fault::WorkerCable(3),
    Fault::WorkerCable(60),
    Fault::WorkerSilent(90),
    Fault::SshdRestarted,
    Fault::BastionRebooted(20),
    Fault::RouterForgot,
    Fault::ServerCable(30),
    Fault::WorkerRebooted(40),
    Fault::Loss(60),
    Fault::ServerSilent(20),
    Fault::SshdRestarted,
    Fault::BastionRebooted(20),
];

impl Fault {
    pub fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::WorkerCable(seconds)
            | Self::ServerCable(seconds)
            | Self::WorkerSilent(seconds)
            | Self::ServerSilent(seconds)
            | Self::BastionRebooted(seconds)
            | Self::WorkerRebooted(seconds)
            | Self::Loss(seconds) => seconds,
            Self::SshdRestarted => 1,
            Self::RouterForgot => 0,
        })
    }

    pub fn begin(self, contender: &mut Contender) {
        let silent = Quality { is_silent: true, ..Quality::default() };
        match self {
            Self::WorkerCable(_) => contender.worker.run("ip link set eth0 down").map(drop).unwrap(),
            Self::ServerCable(_) => contender.bastion.run("ip link set eth0 down").map(drop).unwrap(),
            Self::WorkerSilent(_) | Self::WorkerRebooted(_) => contender.worker_cable.set(silent),
            Self::ServerSilent(_) => contender.server_cable.set(silent),
            Self::SshdRestarted => contender.end_sshd(),
            Self::RouterForgot => contender.worker_cable.forget_connections(),
            Self::BastionRebooted(_) => contender.stop_bastion(),
            Self::Loss(_) => contender.worker_cable.set(Quality { loss_per_mille: 50, ..Quality::default() }),
        }
        if let Self::WorkerRebooted(_) = self {
            contender.end_sshd();
        }
    }

    pub fn end(self, contender: &mut Contender) {
        match self {
            Self::WorkerCable(_) => contender.worker.run("ip link set eth0 up").map(drop).unwrap(),
            Self::ServerCable(_) => contender.bastion.run("ip link set eth0 up").map(drop).unwrap(),
            Self::WorkerSilent(_) | Self::Loss(_) => contender.worker_cable.set(Quality::default()),
            Self::ServerSilent(_) => contender.server_cable.set(Quality::default()),
            Self::SshdRestarted => contender.start_sshd(),
            Self::RouterForgot => {}
            Self::BastionRebooted(_) => contender.start_bastion(),
            Self::WorkerRebooted(_) => {
                contender.worker_cable.set(Quality::default());
                contender.start_sshd();
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkerCable(seconds) => write!(f, "cable of the worker pulled, {seconds} s"),
            Self::ServerCable(seconds) => write!(f, "cable to the server pulled, {seconds} s"),
            Self::WorkerSilent(seconds) => write!(f, "silence before the worker, {seconds} s"),
            Self::ServerSilent(seconds) => write!(f, "silence before the server, {seconds} s"),
            Self::SshdRestarted => write!(f, "sshd of the worker restarted, 1 s"),
            Self::RouterForgot => write!(f, "a router forgot all connections"),
            Self::BastionRebooted(seconds) => write!(f, "bastion rebooted, {seconds} s"),
            Self::WorkerRebooted(seconds) => write!(f, "host of the worker rebooted, {seconds} s"),
            Self::Loss(seconds) => write!(f, "5 % of the packets lost, {seconds} s"),
        }
    }
}
