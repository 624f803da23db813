use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

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
    /// The server's own health check reaches `http://worker-ip:worker-port/healthz`.
    Direct,
    /// The worker's clock agrees with the server's.
    Clock,
    /// Accelerators are all there, and their tools and drivers work. One condition for each cause of trouble.
    Devices,
    /// Nobody else uses this worker's identity or asks for its name.
    Identity,
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Reads by way of a JSON value: the code for thirty variants is then there once, and not again for each shape that a
/// reason is read from. The browser has to load all of it.
impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::deserialize(value).map_err(de::Error::custom)
    }
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

/// Every cause a user can be shown, with its parameters. The UI turns each into a sentence in the user's language;
/// nothing here holds markup or a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
// `remote` gives the derived code a name of its own, for the implementations below to call.
#[serde(remote = "Self", tag = "reason", content = "params", rename_all = "snake_case")]
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
