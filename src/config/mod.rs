//! What the user wants: flag before `GPUSTACK_*` variable before YAML file before default, checked as a whole before
//! anything starts. Names and defaults are GPUStack 0.7's where it has the setting.

mod key;
mod resources;
mod secret;
mod sources;

pub use key::Key;
pub use resources::Resources;
pub use secret::{JoinToken, Secret, TokenError};
pub use sources::{Environment, Given, Origin, Sources};

use crate::fingerprint::Fingerprint;
use api::{ServerUrl, SystemReserved};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Where the state lives unless the user says otherwise.
pub const DEFAULT_DATA_DIR: &str = "/var/lib/gpustack";
/// A worker's port unless the user says otherwise.
pub const DEFAULT_WORKER_PORT: u16 = 10150;

const DEFAULT_OFFLINE_TIMEOUT_S: u64 = 60;
/// Three heartbeats of ten seconds: fewer would call a worker lost for one packet that was.
const MIN_OFFLINE_TIMEOUT_S: u64 = 30;
const MAX_OFFLINE_TIMEOUT_S: u64 = 24 * 60 * 60;
/// How links are encrypted.
const DATA_ENCRYPTION: &str = "aes-256-gcm";
const DEFAULT_KEY_ROTATION: Duration = Duration::from_hours(24);
/// Shorter gains nothing, longer leaves one key in use for more than anybody asks for.
const KEY_ROTATIONS: RangeInclusive<Duration> = Duration::from_mins(1)..=Duration::from_hours(30 * 24);
const GIB: u64 = 1024 * 1024 * 1024;
/// Beyond every machine there is; keeps the product with [`GIB`] in range.
const MAX_RESERVED_GIB: u64 = 1024 * 1024;
/// What a server takes.
const MAX_WORKER_NAME_CHARS: usize = 128;
/// Linux: `IFNAMSIZ` less its final zero.
const MAX_IFNAME_BYTES: usize = 15;

/// Everything that was asked for.
#[derive(Clone, Debug)]
pub struct Config {
    /// Verbose log.
    pub debug: bool,
    /// Where the state is kept.
    pub data_dir: PathBuf,
    /// What to run.
    pub role: Role,
    /// What the user should know although it is no error.
    pub warnings: Vec<String>,
}

/// What one process runs.
#[derive(Clone, Debug)]
pub enum Role {
    /// A server only.
    Server(ServerConfig),
    /// A server and this host's worker.
    ServerAndWorker(ServerConfig, EmbeddedWorkerConfig),
    /// A worker of a server elsewhere.
    Worker(WorkerConfig),
}

/// How to run a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address or name to listen on.
    pub host: String,
    /// Port to listen on; 0 lets the system choose.
    pub port: u16,
    /// Where the state is kept.
    pub data_dir: PathBuf,
    /// The SQLite file.
    pub database: PathBuf,
    /// `--token`; without it the data dir's is used.
    pub token: Option<JoinToken>,
    /// The admin's first password; without it one is made.
    pub bootstrap_password: Option<Secret>,
    /// Speak TLS with these.
    pub tls: Option<TlsFiles>,
    /// A worker is Not Ready after so long without a heartbeat.
    pub worker_offline_timeout: Duration,
    /// How often links take new keys for what the server sends.
    pub key_rotation: Duration,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Private key.
    pub key: PathBuf,
    /// Certificate, then its issuers.
    pub certificate: PathBuf,
}

/// How to run a worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The server to join.
    pub server_url: ServerUrl,
    /// The join token; a worker that has joined before can do without.
    pub token: Option<JoinToken>,
    /// How the server's certificate is judged.
    pub trust: ServerTrust,
    /// Where the state is kept.
    pub data_dir: PathBuf,
    /// Name, address and port.
    pub identity: WorkerIdentity,
    /// Kept free for the system, in bytes.
    pub system_reserved: SystemReserved,
    /// How often the link takes new keys for what the worker sends.
    pub key_rotation: Duration,
    /// What is reported in place of what is found.
    pub resources: Resources,
}

/// How to run a worker in the server's process. Where that server is becomes known when it listens.
#[derive(Clone, Debug)]
pub struct EmbeddedWorkerConfig {
    /// Where the state is kept.
    pub data_dir: PathBuf,
    /// Name, address and port.
    pub identity: WorkerIdentity,
    /// Kept free for the system, in bytes.
    pub system_reserved: SystemReserved,
    /// What is reported in place of what is found.
    pub resources: Resources,
}

impl EmbeddedWorkerConfig {
    /// The worker of the server in this process, which listens at `server_url` on the loopback interface.
    pub fn joined_to(self, server_url: ServerUrl, token: JoinToken) -> WorkerConfig {
        WorkerConfig {
            server_url,
            token: Some(token),
            trust: ServerTrust::SameProcess,
            data_dir: self.data_dir,
            identity: self.identity,
            system_reserved: self.system_reserved,
            key_rotation: DEFAULT_KEY_ROTATION,
            resources: self.resources,
        }
    }
}

/// What a worker is to call itself. What is absent is found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerIdentity {
    /// `--worker-name`.
    pub name: Option<String>,
    /// `--worker-ip`.
    pub ip: Option<IpAddr>,
    /// `--worker-ifname`.
    pub ifname: Option<String>,
    /// `--worker-port`.
    pub port: u16,
}

/// How a worker judges the certificate of an `https` server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTrust {
    /// By the authorities that the system trusts.
    System,
    /// By the authorities in this file too.
    CaFile(PathBuf),
    /// It is this one, whatever its names and dates.
    Pinned(Fingerprint),
    /// The server is this process, reached over the loopback interface: its certificate, made for another name, is
    /// not judged.
    SameProcess,
    /// Any, since the link inside proves who the server is by its key or by the token.
    LinkAlone,
}

/// Why the configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A value that cannot be meant.
    #[error("{origin} {problem}")]
    BadValue {
        /// Flag, variable or file.
        origin: Origin,
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// A variable that Kubernetes made.
    #[error(
        "{variable}={value} was set by Kubernetes for a service of that name, not by you: set `enableServiceLinks: false` in the pod, or give {flag}"
    )]
    ServiceLink {
        /// The variable.
        variable: String,
        /// What it holds.
        value: String,
        /// What wins over it.
        flag: String,
    },
    /// A key of the file that means nothing.
    #[error("unknown key `{name}` in {path}{}", suggestion.as_ref().map(|key| format!("; did you mean `{key}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key.
        name: String,
        /// The file.
        path: PathBuf,
        /// What may be meant.
        suggestion: Option<String>,
    },
    /// Something under `resources` that cannot be meant.
    #[error("`{path}` in {file} {problem}")]
    BadResource {
        /// The keys that lead to it.
        path: String,
        /// The file.
        file: PathBuf,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// The file cannot be read.
    #[error("cannot use the configuration file {path}: {problem}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// Two parts of one process cannot listen on one port.
    #[error(
        "--port and --worker-port are both {port}: the server and the worker on this host take a port each; choose another for one of them, or leave the worker out with --disable-worker"
    )]
    SamePort {
        /// The port.
        port: u16,
    },
    /// One of the pair is missing.
    #[error("{given} needs {missing} beside it: TLS takes a certificate and its private key")]
    HalfTls {
        /// What is there.
        given: Origin,
        /// The flag that is not.
        missing: String,
    },
}

impl Config {
    /// Brings all sources together and checks what the chosen role uses.
    pub fn load(
        flags: BTreeMap<Key, String>,
        config_file: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let sources = Sources::open(flags, config_file, environment)?;
        let data_dir = data_dir(&sources)?;
        let debug = switch(&sources, Key::Debug)?;
        let mut notes = Vec::new();
        let role = role(&sources, &data_dir, &mut notes)?;
        let mut warnings = sources.into_warnings();
        warnings.append(&mut notes);
        Ok(Self { debug, data_dir, role, warnings })
    }
}

/// Where the state is kept.
pub fn data_dir(sources: &Sources<'_>) -> Result<PathBuf, ConfigError> {
    Ok(path(sources, Key::DataDir)?.unwrap_or_else(|| DEFAULT_DATA_DIR.into()))
}

/// The SQLite file of the server whose state is in `data_dir`.
pub fn database(sources: &Sources<'_>, data_dir: &Path) -> Result<PathBuf, ConfigError> {
    let Some(given) = sources.get(Key::DatabaseUrl)? else { return Ok(data_dir.join("gpustack.db")) };
    given.parse(sqlite_path)
}

fn role(sources: &Sources<'_>, data_dir: &Path, notes: &mut Vec<String>) -> Result<Role, ConfigError> {
    if let Some(given) = sources.get(Key::ServerUrl)? {
        let server_url = given.parse(|text| ServerUrl::parse(text).map_err(|error| format!("is wrong: {error}")))?;
        if !given.text.contains("://") {
            notes.push(format!("{} has no scheme; taken as {server_url}", given.origin));
        }
        return Ok(Role::Worker(worker(sources, data_dir, server_url)?));
    }
    let server = server(sources, data_dir)?;
    if switch(sources, Key::DisableWorker)? {
        return Ok(Role::Server(server));
    }
    let embedded = EmbeddedWorkerConfig {
        data_dir: data_dir.to_owned(),
        identity: worker_identity(sources)?,
        system_reserved: system_reserved(sources)?,
        resources: sources.resources().clone(),
    };
    let port = server.port;
    if port != 0 && port == embedded.identity.port {
        return Err(ConfigError::SamePort { port });
    }
    Ok(Role::ServerAndWorker(server, embedded))
}

fn server(sources: &Sources<'_>, data_dir: &Path) -> Result<ServerConfig, ConfigError> {
    let tls = tls_files(sources)?;
    let default_port = if tls.is_some() { 443 } else { 80 };
    let host = match sources.get(Key::Host)? {
        Some(given) => given.parse(listen_host)?,
        None => "0.0.0.0".to_owned(),
    };
    Ok(ServerConfig {
        host,
        port: port(sources, Key::Port, default_port)?,
        data_dir: data_dir.to_owned(),
        database: database(sources, data_dir)?,
        token: token(sources)?,
        bootstrap_password: bootstrap_password(sources)?,
        tls,
        worker_offline_timeout: offline_timeout(sources)?,
        key_rotation: key_rotation(sources)?,
    })
}

fn worker(sources: &Sources<'_>, data_dir: &Path, server_url: ServerUrl) -> Result<WorkerConfig, ConfigError> {
    Ok(WorkerConfig {
        trust: server_trust(sources, &server_url)?,
        server_url,
        token: token(sources)?,
        data_dir: data_dir.to_owned(),
        identity: worker_identity(sources)?,
        system_reserved: system_reserved(sources)?,
        key_rotation: key_rotation(sources)?,
        resources: sources.resources().clone(),
    })
}

fn server_trust(sources: &Sources<'_>, server_url: &ServerUrl) -> Result<ServerTrust, ConfigError> {
    let ca_file = path(sources, Key::CaFile)?;
    let Some(given) = sources.get(Key::ServerFingerprint)? else {
        return Ok(ca_file.map_or(ServerTrust::System, ServerTrust::CaFile));
    };
    if ca_file.is_some() {
        return Err(given.bad("cannot be given together with --ca-file: it alone says which certificate is right"));
    }
    if !server_url.is_https() {
        return Err(given.bad(format!("needs a server that speaks TLS, and {server_url} does not")));
    }
    given.parse(|text| {
        let expected = "it must be sha256: and 64 hexadecimal digits, as the server prints them when it starts";
        Fingerprint::parse(text).map(ServerTrust::Pinned).ok_or_else(|| format!("is `{text}`; {expected}"))
    })
}

fn worker_identity(sources: &Sources<'_>) -> Result<WorkerIdentity, ConfigError> {
    let ip = match sources.get(Key::WorkerIp)? {
        None => None,
        Some(given) => Some(given.parse(|text| {
            let bare = text.trim_start_matches('[').trim_end_matches(']');
            bare.parse::<IpAddr>().map_err(|_| format!("is `{text}`; it must be an IP address such as 10.0.0.7"))
        })?),
    };
    let name = match sources.get(Key::WorkerName)? {
        None => None,
        Some(given) => Some(given.parse(worker_name)?),
    };
    let ifname = match sources.get(Key::WorkerIfname)? {
        None => None,
        Some(given) => Some(given.parse(interface_name)?),
    };
    Ok(WorkerIdentity { name, ip, ifname, port: port(sources, Key::WorkerPort, DEFAULT_WORKER_PORT)? })
}

/// `--token`, wherever it was given.
pub fn token(sources: &Sources<'_>) -> Result<Option<JoinToken>, ConfigError> {
    let Some(given) = sources.get(Key::Token)? else { return Ok(None) };
    JoinToken::parse(&given.text).map(Some).map_err(|error| given.bad(error.to_string()))
}

fn bootstrap_password(sources: &Sources<'_>) -> Result<Option<Secret>, ConfigError> {
    let Some(given) = sources.get(Key::BootstrapPassword)? else { return Ok(None) };
    if given.text.is_empty() {
        return Err(given.bad("is empty; give a password, or leave it out and one is made"));
    }
    // a password is taken as it is, spaces too
    Ok(Some(Secret::new(given.text)))
}

fn tls_files(sources: &Sources<'_>) -> Result<Option<TlsFiles>, ConfigError> {
    let key = sources.get(Key::SslKeyfile)?;
    let certificate = sources.get(Key::SslCertfile)?;
    match (key, certificate) {
        (None, None) => Ok(None),
        (Some(key), Some(certificate)) => {
            Ok(Some(TlsFiles { key: key.parse(path_text)?, certificate: certificate.parse(path_text)? }))
        }
        (Some(key), None) => Err(ConfigError::HalfTls { given: key.origin, missing: Key::SslCertfile.flag() }),
        (None, Some(certificate)) => {
            Err(ConfigError::HalfTls { given: certificate.origin, missing: Key::SslKeyfile.flag() })
        }
    }
}

fn offline_timeout(sources: &Sources<'_>) -> Result<Duration, ConfigError> {
    let Some(given) = sources.get(Key::WorkerOfflineTimeout)? else {
        return Ok(Duration::from_secs(DEFAULT_OFFLINE_TIMEOUT_S));
    };
    given.parse(|text| {
        let range = format!("it must be a number of seconds from {MIN_OFFLINE_TIMEOUT_S} to {MAX_OFFLINE_TIMEOUT_S}");
        let seconds: u64 = text.parse().map_err(|_| format!("is `{text}`; {range}"))?;
        if seconds < MIN_OFFLINE_TIMEOUT_S {
            return Err(format!("is {seconds}; {range}: a worker must be able to miss two of its 10 s heartbeats"));
        }
        if seconds > MAX_OFFLINE_TIMEOUT_S {
            return Err(format!("is {seconds}; {range}"));
        }
        Ok(Duration::from_secs(seconds))
    })
}

/// How often links take new keys; with it goes the check of how they are encrypted, which cannot be chosen.
fn key_rotation(sources: &Sources<'_>) -> Result<Duration, ConfigError> {
    if let Some(given) = sources.get(Key::DataEncryption)? {
        given.parse(|text| {
            let is_known = text.eq_ignore_ascii_case(DATA_ENCRYPTION);
            let only =
                format!("is `{text}`; links are always encrypted with {DATA_ENCRYPTION}, which is the only value");
            is_known.then_some(()).ok_or(only)
        })?;
    }
    let Some(given) = sources.get(Key::KeyRotation)? else { return Ok(DEFAULT_KEY_ROTATION) };
    given.parse(|text| {
        let shape = "it must be a time from 1m to 30d, such as 24h";
        let length = length_of_time(text).ok_or_else(|| format!("is `{text}`; {shape}"))?;
        if KEY_ROTATIONS.contains(&length) { Ok(length) } else { Err(format!("is `{text}`; {shape}")) }
    })
}

/// A number with `s`, `m`, `h` or `d` behind it.
pub(crate) fn length_of_time(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds_a_unit = match unit.to_ascii_lowercase() {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return None,
    };
    let count: u32 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    Some(Duration::from_secs(u64::from(count) * seconds_a_unit))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReservedGib {
    #[serde(alias = "memory", default = "default_reserved_ram")]
    ram: u64,
    #[serde(alias = "gpu_memory", default = "default_reserved_vram")]
    vram: u64,
}

fn default_reserved_ram() -> u64 {
    2
}

fn default_reserved_vram() -> u64 {
    1
}

fn system_reserved(sources: &Sources<'_>) -> Result<SystemReserved, ConfigError> {
    let Some(given) = sources.get(Key::SystemReserved)? else {
        return Ok(SystemReserved { ram: default_reserved_ram() * GIB, vram: default_reserved_vram() * GIB });
    };
    given.parse(|text| {
        let shape = r#"it must be JSON with whole numbers of GiB, such as {"ram": 2, "vram": 1}"#;
        let reserved: ReservedGib =
            serde_json::from_str(text).map_err(|error| format!("cannot be read: {error}; {shape}"))?;
        if reserved.ram > MAX_RESERVED_GIB || reserved.vram > MAX_RESERVED_GIB {
            return Err(format!("is larger than any memory; {shape}"));
        }
        Ok(SystemReserved { ram: reserved.ram * GIB, vram: reserved.vram * GIB })
    })
}

fn switch(sources: &Sources<'_>, key: Key) -> Result<bool, ConfigError> {
    let Some(given) = sources.get(key)? else { return Ok(false) };
    given.parse(|text| match text.to_ascii_lowercase().as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("is `{text}`; it must be true or false")),
    })
}

fn port(sources: &Sources<'_>, key: Key, default: u16) -> Result<u16, ConfigError> {
    let Some(given) = sources.get(key)? else { return Ok(default) };
    given.parse(|text| {
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits_only);
        number.ok_or_else(|| format!("is `{text}`; it must be a port number from 0 to 65535 (0: any free port)"))
    })
}

fn path(sources: &Sources<'_>, key: Key) -> Result<Option<PathBuf>, ConfigError> {
    sources.get(key)?.map(|given| given.parse(path_text)).transpose()
}

fn path_text(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("is empty; it must be a path".to_owned());
    }
    Ok(text.into())
}

fn listen_host(text: &str) -> Result<String, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let is_name = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    if is_name || bare.parse::<IpAddr>().is_ok() {
        return Ok(bare.to_owned());
    }
    Err(format!("is `{text}`; it must be an address or a name of this host without a port, such as 0.0.0.0"))
}

fn worker_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("is empty; give a name, or leave it out and the host's name is taken".to_owned());
    }
    if text.chars().count() > MAX_WORKER_NAME_CHARS {
        return Err(format!("is longer than {MAX_WORKER_NAME_CHARS} characters"));
    }
    if text.contains(char::is_control) {
        return Err("holds a control character".to_owned());
    }
    Ok(text.to_owned())
}

fn interface_name(text: &str) -> Result<String, String> {
    let allowed = !text.is_empty()
        && text.len() <= MAX_IFNAME_BYTES
        && !text.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
    if allowed {
        return Ok(text.to_owned());
    }
    Err(format!("is `{text}`; it must be the name of a network interface, such as eth0"))
}

fn sqlite_path(url: &str) -> Result<PathBuf, String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("is no URL; write it like sqlite:///var/lib/gpustack/gpustack.db".to_owned());
    };
    // the rest of another scheme's URL holds a password
    if !scheme.eq_ignore_ascii_case("sqlite") {
        return Err(format!("begins with `{scheme}://`; only sqlite:///path can be used in this version"));
    }
    // SQLAlchemy, which GPUStack 0.7 uses, writes absolute paths with four slashes
    let path = rest.trim_start_matches('/');
    if !rest.starts_with('/') || path.is_empty() || path.contains(['?', '#']) {
        return Err(
            "must name an absolute path and nothing after it, like sqlite:///var/lib/gpustack/gpustack.db".to_owned()
        );
    }
    let path = Path::new("/").join(path);
    if path.file_name().is_some_and(|name| name == "database.db") {
        return Err(
            "names database.db, which is GPUStack 0.7's database and is left untouched; choose another name".to_owned()
        );
    }
    Ok(path)
}

#[cfg(test)]
mod tests;
