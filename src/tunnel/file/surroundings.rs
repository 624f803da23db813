//! What a `tunnels.yaml` leaves to the host on which it is read.

use crate::worker;
use ssh::Identity;
use std::path::PathBuf;

/// The keys that `ssh` uses when nobody names one, in its order.
const DEFAULT_KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// What a file leaves open.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// The host's name.
    pub hostname: String,
    /// ssh-agent.
    pub agent: Option<Identity>,
    /// The keys in `~/.ssh` that are used when none is named.
    pub default_keys: Vec<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let keys = home.iter().flat_map(|home| DEFAULT_KEYS.map(|name| home.join(".ssh").join(name)));
        let default_keys = keys.filter(|path| path.is_file()).collect();
        Self { home, hostname: worker::hostname(), agent: Identity::agent_of_environment(), default_keys }
    }
}
