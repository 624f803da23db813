//! What the admin UI sees of the fleet: a few words about each of ten thousand workers, and everything about those that
//! it looks at.

use crate::{
    Condition, DeviceHealth, LinkReadings, LinkView, Maintenance, MemoryKind, WorkerId, WorkerState, WorkerUuid,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `GET /v1/fleet`: all workers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FleetSnapshot {
    /// Updates with a higher number come after this snapshot.
    pub sequence: u64,
    /// The server's clock, in milliseconds since 1970. Ages are counted from it, for a browser's clock may be wrong.
    pub server_time_ms: i64,
    /// In no order.
    pub workers: Vec<WorkerBrief>,
}

/// One worker among very many: what a search, a count and a banner need of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerBrief {
    /// The row.
    pub id: WorkerId,
    /// Unique.
    pub name: String,
    /// Derived when read.
    pub state: WorkerState,
    /// Name and version of the operating system; empty before the first report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os: String,
    /// What else people search for, with blanks between: the host's name, address and port, labels, vendors and models.
    pub search: String,
    /// The facts behind `state`, when one of them is wrong; empty when all is well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One event of `GET /v1/events` (server-sent events, named `update`), the same for all readers: what changed about
/// the fleet since the update before, readings and heartbeats aside.
///
/// The stream begins with an event `hello`, whose data is a [`FleetHello`]. An event `resync` says that updates were lost
/// and that a fresh snapshot is needed. An event `watched` is a [`WatchedUpdate`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FleetUpdate {
    /// One more than the update before.
    pub sequence: u64,
    /// The server's clock, in milliseconds since 1970.
    pub server_time_ms: i64,
    /// New workers, and those that changed in more than readings and heartbeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<WorkerBrief>,
    /// Deleted workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<WorkerId>,
}

/// One event of `GET /v1/events`, named `watched`: what changed about the workers at which this reader looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WatchedUpdate {
    /// The server's clock, in milliseconds since 1970.
    pub server_time_ms: i64,
    /// Those that changed in more than readings and heartbeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<WorkerView>,
    /// New readings of workers that did not change otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<ReadingsUpdate>,
    /// Workers whose heartbeat was received: row, and when, in milliseconds since 1970 by the server's clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeats: Vec<(WorkerId, i64)>,
}

/// The first event of `GET /v1/events`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FleetHello {
    /// Updates with a higher number follow.
    pub sequence: u64,
    /// Names the stream to `POST /v1/events/{stream}/watch`.
    pub stream: String,
}

/// `POST /v1/events/{stream}/watch`: at which workers the reader of the stream looks from now on. The answer is a
/// [`WatchedUpdate`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WatchRequest {
    /// All of them; no more than [`WatchRequest::MOST`].
    pub workers: Vec<WorkerId>,
    /// Those of which the answer tells everything at once, as far as they exist; the same number at most.
    #[serde(default)]
    pub show: Vec<WorkerId>,
}

impl WatchRequest {
    /// Nobody can look at more.
    pub const MOST: usize = 500;
}

/// A worker, as cards, tables and banners show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerView {
    /// The row.
    pub id: WorkerId,
    /// Who it is.
    pub uuid: WorkerUuid,
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
    /// Name and version of the operating system, e.g. `openEuler 22.03`; empty before the first report.
    pub os: String,
    /// Derived when read.
    pub state: WorkerState,
    /// The facts behind `state`.
    pub conditions: Vec<Condition>,
    /// Out of service by an operator's wish.
    pub maintenance: Maintenance,
    /// When the server received the last heartbeat, in milliseconds since 1970 by the server's clock.
    pub heartbeat_ms: Option<i64>,
    /// When it joined, likewise.
    pub joined_ms: i64,
    /// Worker's clock minus the server's, in milliseconds.
    pub clock_offset_ms: Option<i64>,
    /// The direct probe's round trip, in milliseconds; absent while it fails.
    pub direct_round_trip_ms: Option<f64>,
    /// Its link; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkView>,
    /// The worker program's version; absent for GPUStack 0.7 workers.
    pub version: Option<String>,
    /// Accelerators, by index; absent until the first detection has finished.
    pub devices: Option<Vec<DeviceView>>,
    /// The readings are this old, in seconds, because a tool does not answer; absent when current.
    pub devices_stale_s: Option<u64>,
    /// Processor and memory of the host.
    pub host: HostView,
}

/// Processor and memory of a worker's host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostView {
    /// Percent, 0 to 100.
    pub cpu_percent: Option<f64>,
    /// Logical processors.
    pub cpu_count: Option<u32>,
    /// In use.
    pub memory_used_bytes: Option<u64>,
    /// All of it.
    pub memory_total_bytes: Option<u64>,
}

/// One accelerator chip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeviceView {
    /// The number a scheduler uses.
    pub index: u32,
    /// The card.
    pub card: Option<u32>,
    /// The chip on its card.
    pub chip: Option<u32>,
    /// Model, e.g. `910B3`.
    pub name: String,
    /// e.g. `Huawei`.
    pub vendor: String,
    /// PCI address.
    pub bus_id: Option<String>,
    /// Of the vendor's driver.
    pub driver_version: Option<String>,
    /// Device memory, in bytes.
    pub memory_total_bytes: Option<u64>,
    /// Which memory.
    pub memory_kind: Option<MemoryKind>,
    /// Whether the vendor's tool calls it healthy.
    pub health: Option<DeviceHealth>,
    /// What changes all the time.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Option<f64>>))]
    pub readings: DeviceReadings,
}

/// What changes all the time on a device. On the wire an array of four, since it is sent often:
/// use, memory used, temperature, power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(from = "ReadingsWire", into = "ReadingsWire")]
pub struct DeviceReadings {
    /// Percent, 0 to 100.
    pub use_percent: Option<f64>,
    /// In use.
    pub memory_used_bytes: Option<u64>,
    /// Degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Watts.
    pub power_w: Option<f64>,
}

type ReadingsWire = (Option<f64>, Option<u64>, Option<f64>, Option<f64>);

impl From<ReadingsWire> for DeviceReadings {
    fn from((use_percent, memory_used_bytes, temperature_c, power_w): ReadingsWire) -> Self {
        Self { use_percent, memory_used_bytes, temperature_c, power_w }
    }
}

impl From<DeviceReadings> for ReadingsWire {
    fn from(readings: DeviceReadings) -> Self {
        (readings.use_percent, readings.memory_used_bytes, readings.temperature_c, readings.power_w)
    }
}

/// New readings of one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReadingsUpdate {
    /// The worker.
    pub id: WorkerId,
    /// In the order of [`WorkerView::devices`].
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Vec<Option<f64>>>))]
    pub devices: Vec<DeviceReadings>,
    /// Processor and memory of the host.
    pub host: HostView,
    /// Worker's clock minus the server's, in milliseconds.
    pub clock_offset_ms: Option<i64>,
    /// The direct probe's round trip, in milliseconds.
    pub direct_round_trip_ms: Option<f64>,
    /// Of its link; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Option<f64>>>))]
    pub link: Option<LinkReadings>,
}
