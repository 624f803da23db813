use crate::tagged::{Parameters, Unreadable, read_by_name};
use crate::{LinkCarrier, LinkLoss};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

read_by_name! {
    /// Every cause a user can be shown, with its parameters. The UI turns each into a sentence in the user's language;
    /// nothing here holds markup or a sentence.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    #[serde(tag = "reason", content = "params", rename_all = "snake_case")]
    pub enum Reason {
        /// Heartbeats arrive.
        HeartbeatReceived {},
        /// None for longer than the offline timeout.
        HeartbeatLost {
            /// The last one, in milliseconds since 1970 by the server's clock; absent when there never was one.
            last_ms: Option<i64>,
            /// `--worker-offline-timeout`, in seconds.
            timeout_s: u64,
        },
        /// The worker said good-bye: somebody stopped it.
        WorkerStopped {
            /// When, in milliseconds since 1970 by the server's clock.
            at_ms: i64,
        },
        /// None since the server started or woke; nobody is judged before the time given.
        HeartbeatAwaited {
            /// When judging begins, in milliseconds since 1970 by the server's clock.
            until_ms: i64,
        },

        /// The link stands.
        LinkUp {
            /// What carries it.
            carrier: LinkCarrier,
            /// Of the last sign of life, in milliseconds; absent before the first.
            round_trip_ms: Option<f64>,
        },
        /// There is none at this moment; the worker is expected to dial one by itself.
        LinkAwaited {},
        /// There is none, though there was.
        LinkDown {
            /// How it ended.
            loss: LinkLoss,
        },
        /// It stands, but the worker does not answer a health check over it as it should.
        LinkUnanswered {
            /// The health check's deadline, in seconds.
            timeout_s: u64,
            /// The HTTP status of a wrong answer; absent when none came.
            status: Option<u16>,
        },
        /// There is no way between the two, since a tunnel on it does not work.
        TunnelDown {
            /// The tunnel's id; absent when all worked as far as is known, and their agent itself is not connected.
            forward: Option<String>,
            /// The name of the agent that keeps it.
            agent: String,
            /// Since when it does not work, or its agent is not connected, in milliseconds since 1970 by the server's clock.
            since_ms: i64,
        },

        /// The direct probe was answered by this worker.
        DirectAnswered {
            /// The probed URL.
            url: String,
            /// Request to answer, in milliseconds.
            round_trip_ms: f64,
        },
        /// No probe has been made yet.
        DirectNotProbed {
            /// The URL that will be probed.
            url: String,
        },
        /// Nothing listens at that address.
        DirectRefused {
            /// The probed URL.
            url: String,
        },
        /// No answer in time: a firewall drops packets, or the host is gone.
        DirectTimedOut {
            /// The probed URL.
            url: String,
            /// The probe's deadline, in seconds.
            timeout_s: u64,
        },
        /// The host name has no address.
        DirectNotResolved {
            /// The probed URL.
            url: String,
            /// The name.
            host: String,
        },
        /// The server's host has no route to that network.
        DirectNoRoute {
            /// The probed URL.
            url: String,
        },
        /// The connection was made and closed without an answer, as a tunnel does whose far end is down.
        DirectClosed {
            /// The probed URL.
            url: String,
        },
        /// Something else than a worker answered.
        DirectWrongAnswer {
            /// The probed URL.
            url: String,
            /// Its HTTP status, when it was HTTP.
            status: Option<u16>,
        },
        /// Another worker answered: two tunnels end on one port.
        DirectWrongWorker {
            /// The probed URL.
            url: String,
            /// The name of the worker that answered, when the server knows it, else its id.
            name: String,
        },

        /// The offset is within a second, give or take the error.
        ClockInSync {
            /// Worker minus server, in milliseconds.
            offset_ms: i64,
            /// Error bar, in milliseconds.
            error_ms: i64,
        },
        /// The clocks differ.
        ClockOffset {
            /// Worker minus server, in milliseconds.
            offset_ms: i64,
            /// Error bar, in milliseconds.
            error_ms: i64,
        },
        /// The clocks differ by about a whole number of half hours, as a wrong time zone makes them.
        ClockOffsetZone {
            /// Worker minus server, in milliseconds.
            offset_ms: i64,
            /// Error bar, in milliseconds.
            error_ms: i64,
            /// The nearest number of half hours, negative when the worker is behind.
            half_hours: i32,
        },
        /// No exchange has measured it yet.
        ClockNotMeasured {},

        /// A time service runs on the host and follows nobody.
        ClockNotSynchronised {
            /// The service, e.g. `chronyd`.
            service: String,
        },
        /// The hardware clock is kept in local time, not in UTC.
        HardwareClockLocal {},

        /// The disk with the worker's state is nearly full.
        DiskFull {
            /// The directory with the state.
            path: String,
            /// What may still be written, in bytes.
            free_bytes: u64,
        },

        /// All devices work.
        DevicesWorking {
            /// How many there are.
            count: u32,
        },
        /// The host has none; a worker without accelerators is a valid worker.
        DevicesNone {},
        /// The first detection has not finished yet.
        DevicesAwaited {},
        /// A vendor's tool does not answer; there are no new readings.
        ToolTimedOut {
            /// The tool.
            tool: String,
            /// Its deadline, in seconds.
            timeout_s: u64,
        },
        /// A vendor's tool failed.
        ToolFailed {
            /// The tool.
            tool: String,
            /// Its exit status; absent when a signal ended it.
            exit_code: Option<i32>,
            /// The first lines that it printed.
            output: String,
        },
        /// A vendor's tool is there but cannot be started.
        ToolNotStarted {
            /// The tool.
            tool: String,
            /// The operating system's error.
            error: String,
        },
        /// Accelerator device nodes exist, but their tool is not to be found.
        ToolMissing {
            /// The tool.
            tool: String,
        },
        /// A vendor's tool printed something that this version cannot read.
        ToolOutputUnknown {
            /// The tool.
            tool: String,
            /// The first lines that it printed.
            output: String,
        },
        /// The driver's management library did not initialise.
        DriverInitFailed {
            /// The tool that reported it.
            tool: String,
            /// The vendor's error code, e.g. -8005.
            code: i32,
            /// Device nodes that are missing or closed to the worker; none when all are there.
            nodes: Vec<String>,
            /// Why, as far as the host shows it.
            cause: Option<DriverInitCause>,
        },
        /// The PCI bus shows devices of a vendor whose driver is not loaded.
        DriverNotLoaded {
            /// The vendor, e.g. `NVIDIA`.
            vendor: String,
            /// How many devices; absent when only the tool says that its driver does not answer.
            count: Option<u32>,
        },
        /// Parts of a vendor's driver are of versions that do not go together, as after an upgrade without a restart.
        DriverMismatch {
            /// The vendor, e.g. `Huawei`.
            vendor: String,
            /// The driver that runs.
            running: Option<String>,
            /// The driver whose files are installed.
            installed: Option<String>,
            /// The firmware, where that is what does not fit.
            firmware: Option<String>,
        },
        /// A library of the driver is missing: its directory is not mounted.
        DriverLibraryMissing {
            /// The tool that needs it.
            tool: String,
            /// The library's file name.
            library: String,
        },
        /// The devices are in use by another container and cannot be queried from here.
        DeviceInUseElsewhere {
            /// The tool that reported it.
            tool: String,
            /// The vendor's error code, e.g. -8020.
            code: i32,
        },
        /// A device node is missing on this host or in this container.
        DeviceNodeMissing {
            /// Its path.
            node: String,
        },
        /// A device node cannot be opened by the worker's user.
        DeviceNodeUnreadable {
            /// Its path.
            node: String,
        },
        /// A device's health is not OK.
        DeviceUnhealthy {
            /// The device's index.
            index: u32,
            /// Its model.
            name: String,
            /// The vendor's word for its health.
            health: String,
        },
        /// Devices that were there have gone.
        DevicesMissing {
            /// How many the worker has had.
            expected: u32,
            /// How many it sees now.
            found: u32,
        },
        /// A device does not answer its driver any more.
        DeviceLost {
            /// The tool that reported it.
            tool: String,
            /// Which, as the tool names it, e.g. `GPU1: 0000:0a:00.0`.
            device: String,
        },
        /// A variable that chooses devices names some that are not there, or cannot be read.
        VisibleDevicesWrong {
            /// The variable, e.g. `ASCEND_VISIBLE_DEVICES`.
            variable: String,
            /// Its value.
            value: String,
            /// How many devices are there.
            available: u32,
        },
        /// The worker may not read some of a device's figures.
        ReadingsForbidden {
            /// The tool that said so.
            tool: String,
        },

        /// Another host that is alive uses the same identity: its data directory is a copy.
        IdentityDuplicated {
            /// The other host's name.
            hostname: String,
            /// The other host's address.
            address: String,
        },
        /// Another host asks to join under this worker's name, while this worker is gone.
        ReplacementAsked {
            /// The other host's name.
            hostname: String,
            /// The other host's address.
            address: String,
        },
    }
}

#[derive(Deserialize)]
struct Written {
    reason: String,
    params: Parameters,
}

/// Why a driver does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DriverInitCause {
    /// Device nodes are not in this container, or its list of devices does not allow them.
    NodesMissing,
    /// The worker's user may not open the device nodes.
    NotAllowed,
    /// The kernel has none of the driver's modules.
    ModuleNotLoaded,
    /// Its files were upgraded, and the driver from before still runs.
    UpgradedWithoutRestart,
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { reason, mut params } = Written::deserialize(deserializer)?;
        Self::read(&reason, &mut params).map_err(de::Error::custom)
    }
}

/// Reads one that stands within something else.
pub fn read(mut written: Parameters) -> Result<Reason, Unreadable> {
    let (Some(Value::String(tag)), Some(Value::Object(mut parameters))) =
        (written.remove("reason"), written.remove("params"))
    else {
        return Err(Unreadable::Name);
    };
    Reason::read(&tag, &mut parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_reason_is_read_as_it_was_written() {
        for reason in Reason::examples() {
            let written = serde_json::to_string(&reason).unwrap();
            let read: Reason = serde_json::from_str(&written).unwrap();
            assert_eq!(read, reason, "{written}");
        }
    }

    #[test]
    fn the_written_form_of_every_reason_stays() {
        insta::assert_json_snapshot!(Reason::examples());
    }

    #[test]
    fn an_absent_parameter_is_none_where_it_may_be() {
        let read: Reason =
            serde_json::from_value(json!({"reason": "heartbeat_lost", "params": {"timeout_s": 60}})).unwrap();
        assert_eq!(read, Reason::HeartbeatLost { last_ms: None, timeout_s: 60 });
    }

    #[test]
    fn a_parameter_of_a_later_version_is_passed_over() {
        let read: Reason = serde_json::from_value(json!({"reason": "devices_none", "params": {"since": 1}})).unwrap();
        assert_eq!(read, Reason::DevicesNone {});
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            (json!({"reason": "heartbeat_lost", "params": {}}), "parameter `timeout_s`"),
            (json!({"reason": "tool_missing", "params": {"tool": 1}}), "parameter `tool`"),
            (json!({"reason": "no_such_reason", "params": {}}), "name"),
            (json!({"reason": "tool_missing"}), "params"),
            (json!({"params": {}}), "reason"),
        ];
        for (written, named) in table {
            let error = serde_json::from_value::<Reason>(written.clone()).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| error.contains(named)), "{written}: {error:?}");
        }
    }
}
