use crate::{ClockMeasurement, SessionId, SystemReserved, WorkerId, WorkerStatus, WorkerUuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What worker and server speak; both must agree on it.
pub const PROTOCOL_VERSION: u32 = 1;

/// `POST /v1/worker-sessions`: a worker begins a session, joining first if it must.
///
/// Authorised by `Authorization: Bearer <worker credential>` when the worker has one, else by
/// `Authorization: Bearer <join token>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisterResponse {
    /// The worker's row.
    pub worker_id: WorkerId,
    /// Its final name.
    pub name: String,
    /// Its own credential, from now on; absent when it holds a valid one.
    pub credential: Option<String>,
    /// Send a heartbeat this often, in seconds.
    pub heartbeat_interval_s: u64,
    /// The server's version.
    pub server_version: String,
}

/// `POST /v1/worker-heartbeats`: a sign of life. Authorised by the worker's credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeartbeatRequest {
    /// This run of it.
    pub session_id: SessionId,
    /// What the exchange before measured.
    pub clock: Option<ClockMeasurement>,
    /// The worker ends its session now, on purpose.
    #[serde(default)]
    pub leaving: bool,
}

/// The heartbeat is received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeartbeatResponse {
    /// The server's clock when it had received the request, in milliseconds since 1970.
    pub received_ms: i64,
    /// The server's clock when it answered.
    pub returned_ms: i64,
    /// The server has no status of this worker: send one now.
    pub status_wanted: bool,
}

/// `PUT /v1/worker-status`: what the worker sees of its host, when it has changed. Authorised by the credential.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatusReport {
    /// This run of it.
    pub session_id: SessionId,
    /// All of it.
    pub status: WorkerStatus,
}
