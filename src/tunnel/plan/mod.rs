//! What is to be made: every forward, with its way, its label, and how to prove that it works.

mod make;
mod names;
mod ports;
mod routes;
mod ssh_commands;
mod ssh_config;
mod taken;

pub use make::{Made, Planned, make};
pub use names::{NameProblem, check_names};
pub use ports::{FIRST_HEALTH_PORT, PortBook, PortsError};
pub use ssh_commands::ssh_commands;
pub use ssh_config::ssh_config;

use api::{AgentPlace, ForwardDirection, ForwardRole};
use ssh::{Endpoint, Hop, HopName, Identity, Route, RouteError, Tuning};
use std::fmt;
use std::path::PathBuf;

/// Everything that a `tunnels.yaml` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// `id`: the name under which the agent joins the server. It is in every label.
    pub id: AgentName,
    /// Where the agent runs.
    pub place: AgentPlace,
    /// The state directory.
    pub state_dir: PathBuf,
    /// How the agent tells the server about its forwards; None when it does not.
    pub reporting: Option<Reporting>,
    /// Whom SSH servers are taken for.
    pub known_hosts: KnownHostsFiles,
    /// Sizes and times of SSH sessions.
    pub session: SessionSettings,
    /// The forwards, in the order of the file; one that another one goes through comes before it.
    pub forwards: Vec<PlannedForward>,
    /// What whoever reads the plan should know.
    pub notes: Vec<PlanNote>,
}

/// The agent's name: letters, digits, `.`, `_` and `-`, so that it can stand in a label and in a command line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentName(String);

/// The id of a forward, e.g. `npu-198-97.server`. Unique in a plan; the same characters as an agent's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ForwardId(String);

/// How an agent tells the server about its forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporting {
    /// The server's URL, as the agent's host reaches it; through one of its own forwards where there is no other way.
    pub server_url: String,
    /// The file with the join token; None when the agent has joined already or never does.
    pub token_file: Option<PathBuf>,
}

/// Files in which SSH servers' keys are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHostsFiles {
    /// The agent's own, to which `gpustack tunnel trust` adds.
    pub own: PathBuf,
    /// Further ones, which are only read.
    pub others: Vec<PathBuf>,
}

/// What all sessions of a plan have in common.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// Sizes and times.
    pub tuning: Tuning,
}

/// One forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedForward {
    /// Its id.
    pub id: ForwardId,
    /// What it is for.
    pub role: ForwardRole,
    /// At which end it listens.
    pub direction: ForwardDirection,
    /// Where it listens. Of a local one, an address of this host.
    pub listen: Endpoint,
    /// Where its connections go; seen from the end of the route when it is local, from this host when it is remote.
    pub target: Endpoint,
    /// The SSH servers on the way, the nearest first; at least one.
    pub route: Vec<PlannedHop>,
    /// The workers that need it, by name.
    pub workers: Vec<String>,
    /// The forward of this plan through which it reaches its target.
    pub behind: Option<ForwardId>,
    /// How to prove that it works.
    pub proof: Proof,
}

/// An SSH server on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedHop {
    /// Its name in the file, e.g. `bastion-01`; `server` for the server's host.
    pub name: String,
    /// Who logs in.
    pub user: String,
    /// Where.
    pub server: Endpoint,
    /// With what, in this order.
    pub identities: Vec<Identity>,
}

/// What has to answer through a forward for it to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A gpustack server, at `/healthz`.
    Server {
        /// How it is asked.
        scheme: Scheme,
    },
    /// This worker, at `/healthz`.
    Worker {
        /// Its name.
        name: String,
    },
    /// Anything that takes a connection.
    Connection,
}

/// How a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plainly.
    Http,
    /// Over TLS. Its certificate is not looked at: a probe tells nothing, and links have keys of their own.
    Https,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

/// What whoever reads a plan should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanNote {
    /// A worker needs no more than one forward, as it dials the server and is asked over that same connection.
    LinkIsEnough,
    /// How a worker is started, so that it finds the server, and the server it.
    StartWorkerWith {
        /// Its name.
        worker: String,
        /// Its flags, e.g. `--server-url http://127.0.0.1:8090 --worker-name npu-1 --worker-ip 127.0.0.1`.
        flags: Vec<String>,
    },
    /// A port was chosen for the first time. It is remembered when the plan is run.
    PortChosen {
        /// For which worker.
        worker: String,
        /// The port on the server's host.
        port: u16,
    },
}

impl PlannedForward {
    /// Its way, for a session.
    pub fn route(&self) -> Result<Route, RouteError> {
        let hop = |hop: &PlannedHop| Hop {
            name: HopName { user: hop.user.clone(), server: hop.server.clone() },
            identities: hop.identities.clone(),
        };
        Route::new(self.route.iter().map(hop).collect())
    }
}

impl PartialEq for SessionSettings {
    /// A session made under one is as good as one made under the other.
    fn eq(&self, other: &Self) -> bool {
        let key = |settings: &Self| {
            let tuning = &settings.tuning;
            (tuning.keep_alive_interval, tuning.keep_alives_unanswered, tuning.compression)
        };
        key(self) == key(other)
    }
}

macro_rules! name {
    ($kind:ident) => {
        impl $kind {
            /// None when a character is not allowed, or there is none, or there are more than 100.
            pub fn new(text: impl Into<String>) -> Option<Self> {
                let text = text.into();
                let allowed = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
                let fits = (1..=100).contains(&text.len()) && text.chars().all(allowed) && !text.starts_with('-');
                fits.then_some(Self(text))
            }

            /// Its text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(AgentName);
name!(ForwardId);

/// What stands in `ps`, in logs and in the environment of SSH connections, as operators label their own.
pub const LABEL_VARIABLE: &str = "ChannelType";

/// The label of a forward or an agent: `GPUStack-Tunnel-<id>`.
pub fn label(id: impl fmt::Display) -> String {
    format!("GPUStack-Tunnel-{id}")
}

#[cfg(test)]
pub(crate) mod tests;
