use crate::Reason;
use crate::tagged::{Parameters, Unreadable};
use serde::{Deserialize, Serialize};

/// What a worker's conditions amount to. Derived when read, never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// Its heartbeat is lost.
    NotReady,
    /// It sends heartbeats, but no configured way from the server to it works.
    Unreachable,
    /// The server has started and not heard from it yet; its time to be heard is not over.
    Pending,
    /// An operator took it out of service.
    Maintenance,
    /// It is alive and can be reached.
    Ready,
}

/// Which fact about a worker a condition states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConditionKind {
    /// Heartbeats arrive, by the server's monotonic clock.
    Heartbeat,
    /// The connection that the worker dialled to the server stands, and the worker answers over it. Absent for workers
    /// that never had one.
    Link,
    /// The server's own health check reaches `http://worker-ip:worker-port/healthz`.
    Direct,
    /// The worker's clock agrees with the server's.
    Clock,
    /// Accelerators are all there, and their tools and drivers work. One condition for each cause of trouble.
    Devices,
    /// The host has what a worker needs: room on its disk. Absent while it has.
    Host,
    /// Nobody else uses this worker's identity or asks for its name.
    Identity,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can say yet.
    Unknown,
}

/// How much a condition matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// All is well.
    Ok,
    /// Somebody should look at it; work goes on.
    Warning,
    /// It keeps the worker from its job.
    Error,
}

/// One checked fact about a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "Written")]
pub struct Condition {
    /// Which fact.
    #[serde(rename = "type")]
    pub kind: ConditionKind,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// How much it matters.
    pub severity: Severity,
    /// Why, as a code with parameters.
    #[serde(flatten)]
    pub reason: Reason,
    /// Since when, in milliseconds since 1970 by the server's clock; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
}

impl Condition {
    /// Whether nobody has to do anything about it.
    pub fn is_fine(&self) -> bool {
        self.severity == Severity::Ok
    }
}

/// A condition with the fields of its reason among its own: read so, it takes half of the code.
#[derive(Deserialize)]
struct Written {
    #[serde(rename = "type")]
    kind: ConditionKind,
    status: ConditionStatus,
    severity: Severity,
    reason: String,
    params: Parameters,
    since_ms: Option<i64>,
}

impl TryFrom<Written> for Condition {
    type Error = Unreadable;

    fn try_from(written: Written) -> Result<Self, Unreadable> {
        let Written { kind, status, severity, reason, mut params, since_ms } = written;
        Ok(Self { kind, status, severity, reason: Reason::read(&reason, &mut params)?, since_ms })
    }
}

/// Something a detector found wrong. It never keeps the devices that were found from being reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// How much it matters.
    pub severity: Severity,
    /// What it is.
    #[serde(flatten)]
    pub reason: Reason,
    /// How long it has been so, in seconds by the worker's monotonic clock: its wall clock may be wrong.
    #[serde(default)]
    pub age_s: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_condition_carries_its_reason_among_its_own_fields_and_is_read_so() {
        let condition = Condition {
            kind: ConditionKind::Heartbeat,
            status: ConditionStatus::False,
            severity: Severity::Error,
            reason: Reason::HeartbeatLost { last_ms: None, timeout_s: 60 },
            since_ms: Some(5),
        };
        let written = json!({
            "type": "heartbeat", "status": "false", "severity": "error",
            "reason": "heartbeat_lost", "params": {"last_ms": null, "timeout_s": 60}, "since_ms": 5,
        });
        assert_eq!(serde_json::to_value(&condition).unwrap(), written);
        assert_eq!(serde_json::from_value::<Condition>(written).unwrap(), condition);
    }

    #[test]
    fn a_condition_says_which_parameter_of_its_reason_is_wrong() {
        let written = json!({
            "type": "clock", "status": "unknown", "severity": "ok", "reason": "clock_offset", "params": {"offset_ms": 1},
        });
        let error = serde_json::from_value::<Condition>(written).unwrap_err().to_string();
        assert!(error.contains("error_ms"), "{error}");
    }
}
