use crate::{Condition, LinkView, WorkerId, WorkerState, WorkerStatus, WorkerUuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One row of `/v1/workers`. GPUStack 0.7's fields, then ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Worker {
    /// Unique.
    pub name: String,
    /// The host's name.
    pub hostname: String,
    /// Where the server probes it.
    pub ip: String,
    /// Where the server probes it.
    pub port: u16,
    /// Free text pairs.
    pub labels: BTreeMap<String, String>,
    /// Kept free for the system, in bytes.
    pub system_reserved: Option<SystemReserved>,
    /// Derived when read.
    pub state: WorkerState,
    /// One English sentence of plain text for programs of GPUStack 0.7; null when ready. People read `conditions`.
    pub state_message: Option<String>,
    /// What it reported last.
    pub status: WorkerStatus,
    /// No way from the server to it works.
    pub unreachable: bool,
    /// When the server received the last heartbeat, RFC 3339, by the server's clock.
    pub heartbeat_time: Option<String>,
    /// Who it is.
    pub worker_uuid: WorkerUuid,
    /// The row.
    pub id: WorkerId,
    /// RFC 3339, whole seconds.
    pub created_at: String,
    /// RFC 3339, whole seconds.
    pub updated_at: String,
    /// The facts behind `state`.
    pub conditions: Vec<Condition>,
    /// Worker's clock minus the server's, in milliseconds; null before the first measurement.
    pub clock_offset_ms: Option<i64>,
    /// The worker program's version; null for GPUStack 0.7 workers, which do not tell.
    pub version: Option<String>,
    /// Out of service by an operator's wish.
    pub maintenance: Option<Maintenance>,
    /// Its link; null while there is none.
    pub link: Option<LinkView>,
}

/// Kept free for the system, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SystemReserved {
    /// Of main memory.
    #[serde(alias = "memory")]
    pub ram: u64,
    /// Of each device's memory.
    #[serde(alias = "gpu_memory")]
    pub vram: u64,
}

/// Out of service by an operator's wish.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Maintenance {
    /// Whether it is.
    pub enabled: bool,
    /// Why, in the operator's words.
    pub message: Option<String>,
}

/// What a GPUStack 0.7 worker posts and puts to `/v1/workers`. Unknown fields are ignored, and only those are
/// required that every 0.7 release sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerReport {
    /// Wished name.
    pub name: String,
    /// The host's name.
    pub hostname: String,
    /// Where the server can probe it.
    pub ip: String,
    /// Where the server can probe it.
    pub port: u16,
    /// What it sees of its host.
    #[serde(default)]
    pub status: WorkerStatus,
    /// Who it is.
    pub worker_uuid: WorkerUuid,
    /// Free text pairs.
    #[serde(default)]
    pub labels: Option<BTreeMap<String, String>>,
    /// By the worker's clock; it measures that clock and decides nothing. Null at registration.
    #[serde(default)]
    pub heartbeat_time: Option<String>,
    /// Kept free for the system.
    #[serde(default)]
    pub system_reserved: Option<SystemReserved>,
}

/// What an administrator may change of a worker. Only the fields that are there change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct WorkerChange {
    /// All labels, replacing the old ones.
    pub labels: Option<BTreeMap<String, String>>,
    /// Into or out of service.
    pub maintenance: Option<Maintenance>,
}

/// A user of the UI and the API; GPUStack 0.7's shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct User {
    /// Login name.
    pub username: String,
    /// May do everything.
    pub is_admin: bool,
    /// For people.
    pub full_name: Option<String>,
    /// Nothing else is allowed before the password is changed.
    pub require_password_change: bool,
    /// The row.
    pub id: i64,
    /// RFC 3339, whole seconds.
    pub created_at: String,
    /// RFC 3339, whole seconds.
    pub updated_at: String,
}

/// A key for programs; GPUStack 0.7's shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKey {
    /// Unique for its user.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// The row.
    pub id: i64,
    /// `gpustack_<16 hex>_<32 hex>`: only in the answer that creates it.
    pub value: Option<String>,
    /// RFC 3339, whole seconds.
    pub created_at: String,
    /// RFC 3339, whole seconds.
    pub updated_at: String,
    /// RFC 3339; null for never.
    pub expires_at: Option<String>,
}

/// Asks for a new API key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKeyCreate {
    /// Unique for its user.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: Option<String>,
    /// Seconds from now; null or 0 for never.
    #[serde(default)]
    pub expires_in: Option<u64>,
}
