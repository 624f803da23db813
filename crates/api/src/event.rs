use crate::tagged::{Parameters, Unreadable, read_by_name};
use crate::{Reason, Severity, WorkerState};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

/// One thing that changed about a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerEvent {
    /// When, in milliseconds since 1970 by the server's clock.
    pub at_ms: i64,
    /// What.
    pub change: WorkerEventKind,
}

read_by_name! {
    /// What changed about a worker.
    #[derive(Clone, Debug, PartialEq, Serialize)]
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
}

impl<'de> Deserialize<'de> for WorkerEventKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut written = Parameters::deserialize(deserializer)?;
        let Some(Value::String(event)) = written.remove("event") else {
            return Err(de::Error::custom(Unreadable::Name));
        };
        Self::read(&event, &mut written).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_event_is_read_as_it_was_written() {
        for event in WorkerEventKind::examples() {
            let written = serde_json::to_string(&event).unwrap();
            let read: WorkerEventKind = serde_json::from_str(&written).unwrap();
            assert_eq!(read, event, "{written}");
        }
    }

    #[test]
    fn the_written_form_of_every_event_stays() {
        insta::assert_json_snapshot!(WorkerEventKind::examples());
    }

    #[test]
    fn an_event_without_its_reason_is_none_where_it_may_be() {
        let written = json!({"event": "state_changed", "from": "pending", "to": "ready"});
        let read: WorkerEventKind = serde_json::from_value(written).unwrap();
        let expected =
            WorkerEventKind::StateChanged { from: WorkerState::Pending, to: WorkerState::Ready, reason: None };
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (written, named) in [
            (json!({"event": "server_gap"}), "`seconds`"),
            (json!({"event": "condition_changed", "severity": "dire", "reason": null}), "`severity`"),
            (json!({"event": "no_such_event"}), "name"),
            (json!({}), "name"),
        ] {
            let error = serde_json::from_value::<WorkerEventKind>(written.clone()).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| error.contains(named)), "{written}: {error:?}");
        }
    }
}
