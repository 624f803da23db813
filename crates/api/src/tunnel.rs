//! Tunnels: what the agent that keeps SSH forwards tells the server about them.
//!
//! Times are ages, in milliseconds before the moment of the report: the agent's clock decides nothing.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// Where a tunnel agent answers, on its link, with what it sees of its forwards.
pub const TUNNELS_PATH: &str = "/v1/tunnels";
/// Where a tunnel agent takes, on its link, a certificate that the server has signed for it.
pub const CERTIFICATE_PATH: &str = "/v1/certificate";

/// The server's number for a tunnel agent. Never used again after a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct TunnelAgentId(pub i64);

impl fmt::Display for TunnelAgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who a tunnel agent is: random, made on its first start and kept in its state directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct TunnelAgentUuid(pub Uuid);

impl fmt::Display for TunnelAgentUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a tunnel agent says, inside its encrypted link, to be let in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunnelAgentRequest {
    /// [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION).
    pub protocol: u32,
    /// Who it is; that this field is there tells an agent from a worker.
    pub tunnel_agent: TunnelAgentUuid,
    /// The agent program's version.
    pub version: String,
    /// `id` of its `tunnels.yaml`, which is also in the labels of its SSH connections.
    pub name: String,
    /// The host's name.
    pub hostname: String,
}

/// The agent is let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelAgentResponse {
    /// The agent's row.
    pub agent_id: TunnelAgentId,
    /// Its name.
    pub name: String,
    /// The server's version.
    pub server_version: String,
}

/// Everything a tunnel agent sees, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TunnelReport {
    /// Where the agent runs.
    pub place: AgentPlace,
    /// Its forwards, in the order of its file.
    pub forwards: Vec<ForwardReport>,
    /// The certificates that it logs in with.
    pub certificates: Vec<CertificateReport>,
    /// Why a changed `tunnels.yaml` was not taken over, with file and line, in English; the one before it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_config: Option<String>,
    /// The same in Chinese.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_config_zh: Option<String>,
}

/// Where a tunnel agent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum AgentPlace {
    /// On a bastion, from which it reaches the server's host and the workers'.
    #[default]
    Bastion,
    /// On the server's host.
    Server,
    /// On a worker's host.
    Worker {
        /// The worker's name.
        worker: String,
    },
}

/// One forward, as its agent sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForwardReport {
    /// Unique among its agent's.
    pub id: String,
    /// What it is for.
    pub role: ForwardRole,
    /// At which end it listens.
    pub direction: ForwardDirection,
    /// The workers that depend on it, by name.
    pub workers: Vec<String>,
    /// Where it listens, as `host:port`; at the far end of `route` when it is remote.
    pub listen: String,
    /// Where its connections go, as `host:port`; seen from the far end of `route` when it is local.
    pub target: String,
    /// The SSH servers on the way, as `user@host:port`, the nearest first.
    pub route: Vec<String>,
    /// Whether it works.
    pub state: ForwardState,
    /// For how long it has been so, in milliseconds.
    pub state_age_ms: u64,
    /// Why it does not work, or why nobody knows; absent when it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<TunnelFault>,
    /// Of the last probe through it that was answered, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<f64>,
    /// Bytes to its target since the agent started.
    pub to_target_bytes: u64,
    /// Bytes from its target since the agent started.
    pub from_target_bytes: u64,
    /// Connections over it at the moment.
    pub open_connections: u64,
    /// How often it was made again since the agent started.
    pub reconnects: u64,
    /// How much of the time it worked.
    pub availability: Availability,
    /// When it did not work, newest first, at most [`CUTS_REPORTED`].
    pub cuts: Vec<ForwardCut>,
}

#[cfg(feature = "examples")]
impl ForwardReport {
    /// A remote forward that brings the server's port to worker `npu-1`, in this state for ten seconds. For tests.
    pub fn example(id: &str, state: ForwardState) -> Self {
        Self {
            id: id.to_owned(),
            role: ForwardRole::ServerAtWorker,
            direction: ForwardDirection::Remote,
            workers: vec!["npu-1".to_owned()],
            listen: "127.0.0.1:8090".to_owned(),
            target: "10.0.0.1:8090".to_owned(),
            route: vec!["root@10.20.0.20:22".to_owned()],
            state,
            state_age_ms: 10_000,
            fault: None,
            round_trip_ms: None,
            to_target_bytes: 0,
            from_target_bytes: 0,
            open_connections: 0,
            reconnects: 0,
            availability: Availability::default(),
            cuts: Vec::new(),
        }
    }
}

/// Of each forward.
pub const CUTS_REPORTED: usize = 50;

/// What a forward is for: one of the four that bring a worker and its server together, or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ForwardRole {
    /// The server's port, brought to the agent's host.
    ServerHere,
    /// The server's port, brought to a worker's host.
    ServerAtWorker,
    /// A worker's port, brought to the agent's host.
    WorkerHere,
    /// A worker's port, brought to the server's host, for health checks.
    WorkerAtServer,
    /// Something else.
    Other,
}

/// At which end a forward listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ForwardDirection {
    /// On the agent's host: `ssh -L`.
    Local,
    /// On the SSH server: `ssh -R`.
    Remote,
}

/// Whether a forward works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ForwardState {
    /// It is being made for the first time.
    Starting,
    /// The right one answered through it.
    Up,
    /// It stands, and nothing can be asked through it.
    Unproved,
    /// It stands, and what is asked through it is not answered as it should be.
    Degraded,
    /// It does not stand.
    Down,
}

impl ForwardState {
    /// Whether it counts as available.
    pub fn is_available(self) -> bool {
        matches!(self, Self::Up | Self::Unproved)
    }
}

/// How much of the time a forward worked, from 0 to 1, of the time in which its agent ran; absent when it did not run then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Availability {
    /// Of the last 24 hours.
    pub day: Option<f64>,
    /// Of the last 7 days.
    pub week: Option<f64>,
    /// Of the last 30 days.
    pub month: Option<f64>,
}

/// A time in which a forward did not work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForwardCut {
    /// How long ago it began, in milliseconds.
    pub began_ago_ms: u64,
    /// How long it lasted, in milliseconds; absent when it has not ended.
    pub lasted_ms: Option<u64>,
    /// What was wrong at first.
    pub fault: TunnelFault,
}

/// A certificate that an agent logs in with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CertificateReport {
    /// The file of the private key, on the agent's host.
    pub key_file: String,
    /// The public key, as in `authorized_keys`; for a new certificate.
    pub public_key: String,
    /// The certificate; absent when there is none that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateView>,
    /// Since when the server's certificate authority takes the key and its certificates for revoked, in milliseconds since
    /// 1970. The server knows it, and agents do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<i64>,
}

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CertificateView {
    /// How its authority calls it.
    pub key_id: String,
    /// Its number.
    pub serial: u64,
    /// The users as whom it lets somebody log in.
    pub principals: Vec<String>,
    /// The authority's key: `SHA256:` and 43 characters.
    pub authority: String,
    /// From when on it is valid, in milliseconds since 1970.
    pub valid_after_ms: i64,
    /// Until when, likewise; absent for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_before_ms: Option<i64>,
}

/// What the server sends to [`CERTIFICATE_PATH`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewCertificate {
    /// In OpenSSH's format.
    pub certificate: String,
}

/// Why a forward does not work, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TunnelFault {
    /// The SSH server on the route with which it went wrong, `user@host:port`; absent when it is none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<String>,
    /// What went wrong.
    #[serde(flatten)]
    pub cause: FaultCause,
}

/// What is wrong with a forward. `address` and `target` are `host:port`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "reason", content = "params", rename_all = "snake_case")]
pub enum FaultCause {
    /// The SSH server's name has no address.
    NameUnknown {
        /// The name.
        host: String,
    },
    /// Its host answers, and nobody listens at the port.
    SshRefused {
        /// The port.
        address: String,
    },
    /// Nothing comes back.
    SshNoAnswer {
        /// The port.
        address: String,
    },
    /// The network does not lead there.
    NoRoute {
        /// The port.
        address: String,
    },
    /// The connection to it fails otherwise.
    SshConnect {
        /// The port.
        address: String,
        /// The system's words.
        detail: String,
    },
    /// What answers there is no SSH server.
    NotSsh {
        /// What it said first.
        first_line: String,
    },
    /// The server closed the connection before it greeted: `MaxStartups`, `PerSourcePenalties`, TCP wrappers.
    ClosedBeforeGreeting {
        /// Its last words.
        said: Option<String>,
    },
    /// A step took too long.
    TooSlow {
        /// Which.
        step: SshStep,
        /// How long it had, in seconds.
        deadline_s: u64,
    },
    /// Both sides know nothing that the other one knows, or only an SSH of before 2006.
    NoCommonProtocol {
        /// What each side offers.
        detail: String,
    },

    /// Nobody has decided yet whether this server's key can be trusted.
    HostKeyUnknown {
        /// E.g. `ssh-ed25519`.
        algorithm: String,
        /// `SHA256:` and 43 characters.
        fingerprint: String,
    },
    /// The server shows another key than the one that is known.
    HostKeyChanged {
        /// Of the key that it shows.
        fingerprint: String,
        /// Where the known one stands, as `file:line`.
        known: Vec<String>,
    },
    /// The server shows a key that was revoked.
    HostKeyRevoked {
        /// Of the key.
        fingerprint: String,
        /// Where that stands, as `file:line`.
        place: String,
    },
    /// A trusted authority signed a host certificate that does not fit.
    HostCertificate {
        /// How the authority calls it.
        key_id: String,
        /// What does not fit.
        detail: String,
    },
    /// A file with known hosts cannot be used.
    KnownHosts {
        /// What is wrong with it.
        detail: String,
    },

    /// The file with the key is not there.
    KeyMissing {
        /// The file.
        path: String,
    },
    /// Others than its owner can read the key.
    KeyNotPrivate {
        /// The file.
        path: String,
        /// Its permission bits, in octal.
        mode: String,
    },
    /// The key, its certificate or the SSH agent cannot be used.
    KeyUnusable {
        /// What is wrong.
        detail: String,
    },
    /// The certificate is not valid yet, by this host's clock: a wrong clock.
    CertificateNotYetValid {
        /// How its authority calls it.
        key_id: String,
        /// From when on it is, in milliseconds since 1970.
        valid_after_ms: i64,
        /// What this host's clock says, likewise.
        clock_ms: i64,
    },
    /// The certificate is not valid any more, by this host's clock.
    CertificateExpired {
        /// How its authority calls it.
        key_id: String,
        /// Until when it was, in milliseconds since 1970.
        valid_before_ms: i64,
        /// What this host's clock says, likewise.
        clock_ms: i64,
    },
    /// The server takes none of the keys.
    LoginRefused {
        /// Who wants in.
        user: String,
        /// The keys and certificates that it was offered.
        tried: Vec<String>,
    },
    /// The server takes no keys, or more than a key.
    KeyNotEnough {
        /// Who wants in.
        user: String,
        /// The kinds of login that it takes.
        offered: Vec<String>,
    },
    /// The server was offered more keys than it wants to hear of: `MaxAuthTries`.
    TooManyKeys {
        /// How many.
        tried: u32,
    },

    /// Another program listens at the port on the agent's host.
    PortTakenHere {
        /// The port.
        address: String,
        /// The name of the tunnel agent that it is; absent when it is none, or nobody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// That one's process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
    },
    /// The agent cannot listen at the port on its host.
    ListenHere {
        /// The port.
        address: String,
        /// The system's words.
        detail: String,
    },
    /// Something listens at the port on the SSH server's host: another program, or a session that broke and that sshd
    /// has not missed yet.
    PortTakenThere {
        /// The port.
        address: String,
    },
    /// The listener of the forward's own former session is still there; sshd gives it up when it misses the session.
    StaleListener {
        /// The port.
        address: String,
        /// For how long it has been waited out, in seconds.
        waited_s: u64,
    },
    /// sshd listens at no port for this user: `AllowTcpForwarding`, `PermitListen`, `DisableForwarding`, the key's options.
    ListenForbidden {
        /// The port.
        address: String,
    },
    /// Ports below 1024 are for root.
    PrivilegedPort {
        /// The port.
        address: String,
    },
    /// sshd does not listen, and why cannot be found out.
    ListenDenied {
        /// The port.
        address: String,
    },
    /// sshd listens for programs on its own host only: `GatewayPorts`.
    LoopbackOnly {
        /// The port.
        address: String,
    },
    /// sshd may not connect to the target: `AllowTcpForwarding`, `PermitOpen`, `DisableForwarding`, the key's options.
    TargetForbidden {
        /// The target.
        target: String,
    },
    /// The target refuses connections, or cannot be reached from where it is connected to.
    TargetRefused {
        /// The target.
        target: String,
        /// The words of sshd or of the system.
        detail: Option<String>,
    },
    /// The target does not answer.
    TargetNoAnswer {
        /// The target.
        target: String,
        /// How long it had, in seconds.
        deadline_s: u64,
    },

    /// The SSH server gives no sign of life.
    KeepAliveLost {
        /// For how long it did not, in seconds.
        silent_s: u64,
    },
    /// The connection was closed from the other side without a word.
    SessionClosed {},
    /// The server ended the session.
    SessionEnded {
        /// Its words.
        message: String,
    },
    /// The connection broke.
    SessionBroken {
        /// What happened.
        detail: String,
    },

    /// The forward stands, and nobody answers through it.
    NothingAnswers {
        /// What was asked.
        url: String,
        /// What happened.
        detail: String,
        /// The SSH server on whose host that was asked, `user@host:port`; absent when it was the agent's host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_on: Option<String>,
        /// Where the forward leads to, `host:port`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// The SSH server on whose host that is connected to; absent when it is the agent's host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target_from: Option<String>,
    },
    /// Something else than a gpustack server or worker answers through it.
    WrongAnswer {
        /// What was asked.
        url: String,
        /// The HTTP status; absent when what came was no HTTP.
        status: Option<u16>,
    },
    /// Another server answers through it than the one that the agent has joined.
    WrongServer {
        /// What was asked.
        url: String,
        /// The fingerprint of the key of the one that the agent has joined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<String>,
        /// The fingerprint of the key of the one that answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered: Option<String>,
    },
    /// Another worker answers through it.
    WrongWorker {
        /// The right one's name.
        expected: String,
        /// The name of the one that answers.
        answered: String,
    },
    /// sshd does not let the agent ask through the forward; it stands as far as can be seen.
    ProbeForbidden {
        /// What was to be asked.
        address: String,
    },
    /// What it passes its connections on to is another forward of this agent, which does not work.
    DependsOn {
        /// The other one's id.
        forward: String,
    },
}

/// A step on the way to an SSH session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SshStep {
    /// Connecting.
    Connect,
    /// The server's greeting.
    Greet,
    /// The exchange of keys.
    AgreeOnKeys,
    /// The login.
    LetIn,
}

/// A forward that a worker depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerTunnel {
    /// The agent that keeps it.
    pub agent_id: TunnelAgentId,
    /// The agent's name.
    pub agent: String,
    /// Whether the agent is connected. If not, the forward is as it was last known.
    pub is_connected: bool,
    /// When the agent told of it, in milliseconds since 1970 by the server's clock.
    pub reported_ms: i64,
    /// What it told.
    pub forward: ForwardReport,
    /// Since when a certificate is revoked that the agent logs in with, likewise: what stands goes on, and what has to be
    /// made again may not be let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<i64>,
}

/// A tunnel agent, as the server knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TunnelAgent {
    /// Its row.
    pub id: TunnelAgentId,
    /// Unique.
    pub name: String,
    /// Its host's name.
    pub hostname: String,
    /// Its program's version.
    pub version: String,
    /// Whether its link stands. What it told last is shown even so.
    pub is_connected: bool,
    /// Since when its link stands, or does not, in milliseconds since 1970 by the server's clock; absent when it has not
    /// come since the server started.
    pub since_ms: Option<i64>,
    /// When it told what is in `report`, likewise; absent when it never did.
    pub reported_ms: Option<i64>,
    /// What it told last.
    pub report: TunnelReport,
    /// When it joined, likewise.
    pub created_ms: i64,
}

impl TunnelReport {
    /// Since when a certificate is revoked that the agent logs in with; the first of several.
    pub fn revoked_ms(&self) -> Option<i64> {
        self.certificates.iter().filter_map(|certificate| certificate.revoked_ms).min()
    }
}
