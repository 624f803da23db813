//! The flags of `gpustack start`. Values are checked where those of variables and files are.

use crate::config::Key;
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;

const PRECEDENCE: &str = "Every flag can also be given as a variable (--worker-name as GPUSTACK_WORKER_NAME) or as a key of \
the configuration file (worker_name). A flag wins over a variable, a variable over the file.";

/// What to start.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = PRECEDENCE)]
pub struct StartArgs {
    /// Read settings from a YAML file
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Log more
    #[arg(short, long)]
    debug: bool,
    /// Keep the state in this directory [default: /var/lib/gpustack]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// The join token. A server without it uses, or makes, the file `token` in its data directory
    #[arg(short, long, value_name = "TOKEN")]
    token: Option<String>,

    /// Listen on this address [default: 0.0.0.0]
    #[arg(long, help_heading = "Server", value_name = "ADDRESS")]
    host: Option<String>,
    /// Listen on this port [default: 80, with TLS 443]
    #[arg(long, help_heading = "Server", value_name = "PORT")]
    port: Option<String>,
    /// The admin's first password. Without it one is made and put into the file `initial_admin_password`
    #[arg(long, help_heading = "Server", value_name = "PASSWORD")]
    bootstrap_password: Option<String>,
    /// Do not make this host a worker
    #[arg(long, help_heading = "Server")]
    disable_worker: bool,
    /// Private key for TLS, in PEM
    #[arg(long, help_heading = "Server", value_name = "FILE")]
    ssl_keyfile: Option<String>,
    /// Certificate for TLS and its issuers, in PEM
    #[arg(long, help_heading = "Server", value_name = "FILE")]
    ssl_certfile: Option<String>,
    /// The database
    #[arg(
        long,
        help_heading = "Server",
        value_name = "URL",
        help = "The database [default: sqlite:///DATA_DIR/gpustack.db]"
    )]
    database_url: Option<String>,
    /// Call a worker Not Ready after so long without a heartbeat [default: 60]
    #[arg(long, help_heading = "Server", value_name = "SECONDS")]
    worker_offline_timeout: Option<String>,

    /// Be a worker of this server
    #[arg(
        short,
        long,
        help_heading = "Worker",
        value_name = "URL",
        help = "Be a worker of this server, e.g. http://10.0.0.1:8090"
    )]
    server_url: Option<String>,
    /// The address at which the server reaches this worker [default: found out]
    #[arg(long, help_heading = "Worker", value_name = "ADDRESS")]
    worker_ip: Option<String>,
    /// Take the address of this network interface
    #[arg(long, help_heading = "Worker", value_name = "INTERFACE")]
    worker_ifname: Option<String>,
    /// Answer health checks on this port [default: 10150]
    #[arg(long, help_heading = "Worker", value_name = "PORT")]
    worker_port: Option<String>,
    /// Be called this [default: the host's name]
    #[arg(long, help_heading = "Worker", value_name = "NAME")]
    worker_name: Option<String>,
    /// Trust the server's certificate if one of these authorities issued it, in PEM
    #[arg(long, help_heading = "Worker", value_name = "FILE")]
    ca_file: Option<String>,
    /// Trust a server that shows the certificate with this fingerprint, and no other: sha256:HEX, as the server logs it
    #[arg(long, help_heading = "Worker", value_name = "FINGERPRINT")]
    server_fingerprint: Option<String>,
    /// Keep this free for the system, in GiB [default: {"ram": 2, "vram": 1}]
    #[arg(long, help_heading = "Worker", value_name = "JSON")]
    system_reserved: Option<String>,

    /// How links between workers and server are encrypted; aes-256-gcm is the only value
    #[arg(long, help_heading = "Security", value_name = "CIPHER")]
    data_encryption: Option<String>,
    /// Take new keys for links this often [default: 24h]
    #[arg(long, help_heading = "Security", value_name = "TIME")]
    key_rotation: Option<String>,
}

impl StartArgs {
    /// The settings that are given, and the configuration file.
    pub fn into_flags(self) -> (BTreeMap<Key, String>, Option<PathBuf>) {
        let switch = |is_given: bool| is_given.then(|| "true".to_owned());
        let all = [
            (Key::Debug, switch(self.debug)),
            (Key::DataDir, self.data_dir),
            (Key::Token, self.token),
            (Key::Host, self.host),
            (Key::Port, self.port),
            (Key::BootstrapPassword, self.bootstrap_password),
            (Key::DisableWorker, switch(self.disable_worker)),
            (Key::SslKeyfile, self.ssl_keyfile),
            (Key::SslCertfile, self.ssl_certfile),
            (Key::DatabaseUrl, self.database_url),
            (Key::WorkerOfflineTimeout, self.worker_offline_timeout),
            (Key::ServerUrl, self.server_url),
            (Key::WorkerIp, self.worker_ip),
            (Key::WorkerIfname, self.worker_ifname),
            (Key::WorkerPort, self.worker_port),
            (Key::WorkerName, self.worker_name),
            (Key::CaFile, self.ca_file),
            (Key::ServerFingerprint, self.server_fingerprint),
            (Key::SystemReserved, self.system_reserved),
            (Key::DataEncryption, self.data_encryption),
            (Key::KeyRotation, self.key_rotation),
        ];
        let given = all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        (given, self.config_file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Environment, Role};
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        start: StartArgs,
    }

    fn parsed(line: &str) -> StartArgs {
        Line::try_parse_from(std::iter::once("start").chain(line.split_whitespace())).unwrap().start
    }

    fn flags(line: &str) -> Vec<(Key, String)> {
        parsed(line).into_flags().0.into_iter().collect()
    }

    #[test]
    fn every_setting_has_its_flag() {
        let command = Line::command();
        for key in Key::ALL {
            let long = key.flag();
            assert!(command.get_arguments().any(|arg| arg.get_long() == long.strip_prefix("--")), "{long}");
            let is_switch = matches!(key, Key::Debug | Key::DisableWorker);
            let line = if is_switch { long } else { format!("{long} true") };
            assert_eq!(flags(&line), [(key, "true".to_owned())]);
        }
    }

    #[test]
    fn a_server_starts_as_the_articles_have_it() {
        let (flags, file) = parsed("--port 8090 --debug").into_flags();
        let config = Config::load(flags, file.as_deref(), &Environment::default()).unwrap();
        assert!(config.debug);
        let Role::ServerAndWorker(server, _) = config.role else { panic!("wrong role") };
        assert_eq!(server.port, 8090);
    }

    #[test]
    fn a_worker_starts_as_the_articles_have_it() {
        let line = "--server-url http://127.0.0.1:8090 --worker-ip 127.0.0.1 --worker-port 10150 \
                    --worker-name npu-198-97 --token c8e291d8045736ab3aa5ddb6de619291";
        let (flags, file) = parsed(line).into_flags();
        let config = Config::load(flags, file.as_deref(), &Environment::default()).unwrap();
        let Role::Worker(worker) = config.role else { panic!("wrong role") };
        assert_eq!(worker.server_url.to_string(), "http://127.0.0.1:8090");
        assert_eq!(worker.identity.name.as_deref(), Some("npu-198-97"));
    }

    #[test]
    fn short_flags_mean_what_they_mean_in_gpustack() {
        let expected = [(Key::Debug, "true"), (Key::Token, "t"), (Key::ServerUrl, "h")];
        assert_eq!(flags("-d -t t -s h"), expected.map(|(key, text)| (key, text.to_owned())));
    }

    #[test]
    fn a_flag_that_comes_again_wins() {
        assert_eq!(flags("--port 1 --port 2"), [(Key::Port, "2".to_owned())]);
    }
}
