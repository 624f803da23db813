use crate::{SessionId, SystemReserved, WorkerId, WorkerUuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What worker and server speak; both must agree on it.
pub const PROTOCOL_VERSION: u32 = 2;

/// What a worker says, inside its encrypted link, to be let in: it begins a session, joining first if it must. The link
/// has proved by then which key it owns, and whether it knows the join token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegisterRequest {
    /// [`PROTOCOL_VERSION`].
    pub protocol: u32,
    /// The worker program's version.
    pub version: String,
    /// Who it is.
    pub worker_uuid: WorkerUuid,
    /// This run of it.
    pub session_id: SessionId,
    /// The same for two runs exactly when they ran from one data directory on one boot of one host: a restart is
    /// told from a copied data directory by it. Hashed; opaque to the server.
    pub host_key: String,
    /// `--worker-name`; absent when the server may choose one like `hostname`.
    pub name: Option<String>,
    /// A name that the server gave earlier; kept when it is free.
    pub previous_name: Option<String>,
    /// The host's name.
    pub hostname: String,
    /// Where the server can probe it.
    pub ip: String,
    /// Where the server can probe it.
    pub port: u16,
    /// Free text pairs; `os` and `arch` at least.
    pub labels: BTreeMap<String, String>,
    /// Kept free for the system.
    pub system_reserved: Option<SystemReserved>,
}

/// The session has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterResponse {
    /// The worker's row.
    pub worker_id: WorkerId,
    /// Its final name.
    pub name: String,
    /// Send a heartbeat this often, in seconds.
    pub heartbeat_interval_s: u64,
    /// The server's version.
    pub server_version: String,
}

/// Why a server declines a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterDeclined {
    /// One of [`error_reason`](crate::error_reason).
    pub reason: String,
    /// A sentence for the worker's log.
    pub message: String,
}

/// Where a worker answers, on its link, with what it sees of itself; see the crate `report`.
pub const STATUS_PATH: &str = "/v1/status";
