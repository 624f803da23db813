//! Flags that several commands have.

use crate::config::{ConfigError, Environment, Key, Sources};
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the state of the server on this host is.
#[derive(Clone, Debug, Args)]
pub struct ServerStateArgs {
    /// The server's data directory [default: /var/lib/gpustack]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// The server's configuration file
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
}

impl ServerStateArgs {
    /// With what variables and the configuration file say.
    pub fn sources<'a>(&self, environment: &'a Environment) -> Result<Sources<'a>, ConfigError> {
        let flags = self.data_dir.iter().map(|dir| (Key::DataDir, dir.clone())).collect::<BTreeMap<_, _>>();
        Sources::open(flags, self.config_file.as_deref(), environment)
    }
}
