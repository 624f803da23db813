use crate::{Reason, Severity, WorkerState};
use serde::{Deserialize, Serialize};

/// One thing that changed about a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerEvent {
    /// When, in milliseconds since 1970 by the server's clock.
    pub at_ms: i64,
    /// What.
    pub change: WorkerEventKind,
}

/// What changed about a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum WorkerEventKind {
    /// It joined the fleet.
    Joined {},
    /// Another host took its place, by an administrator's leave.
    Replaced {
        /// The new host's name.
        hostname: String,
    },
    /// Its state changed.
    StateChanged {
        /// Before.
        from: WorkerState,
        /// After.
        to: WorkerState,
        /// The cause.
        reason: Option<Reason>,
    },
    /// A condition that is not about its state began or ended.
    ConditionChanged {
        /// How much it matters now.
        severity: Severity,
        /// What holds now.
        reason: Reason,
    },
    /// Its address changed.
    AddressChanged {
        /// Before, `ip:port`.
        from: String,
        /// After, `ip:port`.
        to: String,
    },
    /// The server did not run or stood still, so that nobody could be heard.
    ServerGap {
        /// For so many seconds.
        seconds: u64,
    },
}
