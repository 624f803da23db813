//! What the user asks for.

use anyhow::{Result, ensure};
use api::ServerUrl;
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// More would not fit into the loopback addresses that the played hosts use.
const MAX_WORKERS: u32 = 50_000;

/// Plays many workers against a server and measures it.
#[derive(Clone, Debug, Parser)]
#[command(version)]
pub struct Options {
    /// The server, e.g. `http://127.0.0.1:8090`
    #[arg(long)]
    pub server: String,
    /// The join token
    #[arg(long, env = "FLEET_TOKEN", hide_env_values = true)]
    pub token: String,
    /// How many workers to play
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_WORKERS)))]
    pub workers: u32,
    /// Devices of each worker
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub devices: u32,
    /// Seconds between two reports of changed readings of one worker
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub status_interval: u64,
    /// Seconds to measure after everybody has joined; with `--hold` the longest time to stay
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub duration: u64,
    /// Workers that vanish and come back each minute, one after the other
    #[arg(long, default_value_t = 0)]
    pub churn: u32,
    /// Seconds between the last join and the beginning of the measurement
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub settle: u64,
    /// Seconds that all joins together, and one request, may take
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub timeout: u64,
    /// Names begin with this
    #[arg(long, default_value = "npu")]
    pub name_prefix: String,
    /// Browsers that watch the fleet; needs a login
    #[arg(long, default_value_t = 1)]
    pub watchers: u32,
    /// Log in as this user, to watch and to list
    #[arg(long, default_value = "admin")]
    pub user: String,
    /// Its password
    #[arg(long, env = "FLEET_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Watch and list with an API key instead of a login
    #[arg(long, env = "FLEET_API_KEY", hide_env_values = true, conflicts_with = "password")]
    pub api_key: Option<String>,
    /// Measure this process, which is the server
    #[arg(long)]
    pub server_pid: Option<u32>,
    /// Count the database statements in this log of the server, which was started with `RUST_LOG=sqlx::query=debug`;
    /// not in the same run in which processor time is measured, for such a log costs some
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
    /// Stay until standard input is closed; for tests that need a fleet to look at
    #[arg(long)]
    pub hold: bool,
    /// Play one tunnel agent instead of workers, which tells what is in this file and again when it changes; until standard
    /// input is closed
    #[arg(long, value_name = "FILE")]
    pub tunnels: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Allow a server on another host; it cannot probe the workers, which have loopback addresses
    #[arg(long)]
    pub allow_remote: bool,
}

/// How the played operator proves who it is.
#[derive(Clone, Debug)]
pub enum OperatorLogin {
    /// As a person does.
    Password {
        /// Who.
        user: String,
        /// The proof.
        password: String,
    },
    /// As a program does.
    ApiKey(String),
}

impl Options {
    /// The server's address, when it may be put under load.
    pub fn target(&self) -> Result<ServerUrl> {
        let url = ServerUrl::parse(&self.server)?;
        ensure!(!url.is_https(), "only http:// is played here");
        ensure!(
            url.is_loopback() || self.allow_remote,
            "{url} is not on this host; add --allow-remote to put load on another host that is yours"
        );
        Ok(url)
    }

    /// None when nobody watches or lists.
    pub fn operator_login(&self) -> Option<OperatorLogin> {
        if let Some(key) = &self.api_key {
            return Some(OperatorLogin::ApiKey(key.clone()));
        }
        let password = self.password.clone()?;
        Some(OperatorLogin::Password { user: self.user.clone(), password })
    }

    /// How long to measure.
    pub fn duration(&self) -> Duration {
        Duration::from_secs(self.duration)
    }

    /// How long one request may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// From one worker that vanishes to the next.
    pub fn churn_period(&self) -> Option<Duration> {
        (self.churn > 0).then(|| Duration::from_mins(1) / self.churn)
    }

    /// How long to wait before measuring.
    pub fn settle(&self) -> Duration {
        Duration::from_secs(self.settle)
    }

    /// How often a worker reports.
    pub fn status_interval(&self) -> Duration {
        Duration::from_secs(self.status_interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(more: &[&str]) -> Result<ServerUrl> {
        let args = ["fleet", "--token", "t"].iter().chain(more);
        Options::try_parse_from(args)?.target()
    }

    #[test]
    fn another_host_is_put_under_load_only_on_request() {
        assert!(target(&["--server", "http://127.0.0.1:8090"]).is_ok());
        assert!(target(&["--server", "http://10.0.0.1:8090"]).is_err());
        assert!(target(&["--server", "http://10.0.0.1:8090", "--allow-remote"]).is_ok());
    }
}
