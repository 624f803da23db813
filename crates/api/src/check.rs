//! What the doctor looks at on a host, and what it says of each point.

use crate::{ClockMeasurement, Reason, Severity, WorkerUuid};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Where a worker answers, on its link, with an [`Examination`] of its host.
pub const EXAMINATION_PATH: &str = "/v1/examination";

/// Everything that was looked at on a host, at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Examination {
    /// The version of the program that looked.
    pub version: String,
    /// The host's name.
    pub hostname: String,
    /// Name and version of its operating system; empty when unknown.
    pub os: String,
    /// When, in milliseconds since 1970 by the host's own clock, which may be wrong.
    pub at_ms: i64,
    /// Each point, in the order in which one would look.
    pub checks: Vec<Check>,
}

/// One point of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Check {
    /// What was seen.
    #[serde(flatten)]
    pub seen: Seen,
    /// What is wrong with it, or why it was not looked at; absent when it is as it ought to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<CheckProblem>,
}

/// What is wrong with a point, or why it was not looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckProblem {
    /// How much it matters; [`Severity::Ok`] when the point was not looked at.
    pub severity: Severity,
    /// What it is.
    #[serde(flatten)]
    pub trouble: Trouble,
}

/// What a point of a host comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it ought to be.
    Ok,
    /// It could not be looked at, or need not be.
    NotChecked,
    /// Somebody should look at it; the worker works.
    Warning,
    /// It keeps the worker from its job.
    Failed,
}

impl Check {
    /// A point that is as it ought to be.
    pub fn good(seen: Seen) -> Self {
        Self { seen, problem: None }
    }

    /// A point with something wrong.
    pub fn bad(seen: Seen, severity: Severity, trouble: impl Into<Trouble>) -> Self {
        Self { seen, problem: Some(CheckProblem { severity, trouble: trouble.into() }) }
    }

    /// What it comes to.
    pub fn verdict(&self) -> Verdict {
        match self.problem.as_ref().map(|problem| problem.severity) {
            None => Verdict::Ok,
            Some(Severity::Ok) => Verdict::NotChecked,
            Some(Severity::Warning) => Verdict::Warning,
            Some(Severity::Error) => Verdict::Failed,
        }
    }
}

impl Examination {
    /// How many points came to this.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict() == verdict).count()
    }
}

/// What was seen. The first group is the host, the second its accelerators, the third its clock, the last its way to the
/// server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "check", content = "seen", rename_all = "snake_case")]
pub enum Seen {
    /// The operating system.
    System {
        /// Name and version; empty when unknown.
        os: String,
        /// The kernel's release, e.g. `5.10.0-60.18.0.50.oe2203.aarch64`.
        kernel: String,
        /// The processor's architecture, e.g. `aarch64`.
        architecture: String,
    },
    /// Whether this is the host itself or a container on it.
    Container {
        /// What the container runs in; None on the host itself.
        engine: Option<String>,
        /// Whether the container has all capabilities (`capabilities(7)`), as `--privileged` gives it.
        is_privileged: bool,
        /// Whether a seccomp filter is in force (`Seccomp: 2` in `proc_pid_status(5)`).
        is_filtered: bool,
    },
    /// The directory with the state, and its disk.
    DataDir {
        /// Where it is, or will be.
        path: String,
        /// What the worker may still write, in bytes; None when unknown.
        available_bytes: Option<u64>,
        /// The disk's size, in bytes; None when unknown.
        total_bytes: Option<u64>,
    },
    /// How many files the process may have open at a time; a connection is one of them.
    OpenFiles {
        /// What the process may raise its limit to, as workers do; None when there is no limit.
        limit: Option<u64>,
    },

    /// Accelerators of all makers.
    Accelerators {
        /// How many could be read.
        found: u32,
    },
    /// The devices of a maker that the PCI bus or a tool shows.
    Devices {
        /// The maker, e.g. `Huawei`.
        vendor: String,
        /// Cards on the PCI bus; none where the bus is hidden, as in some virtual machines.
        on_bus: u32,
        /// Of those, how many no driver has taken.
        without_driver: u32,
        /// Devices that the tool lists.
        listed: u32,
    },
    /// A vendor's tool.
    Tool {
        /// Its name.
        tool: String,
        /// Where it is; None when it is nowhere.
        path: Option<String>,
    },
    /// A device node that ought to be there.
    Node {
        /// Its path.
        path: String,
        /// What it is to this process.
        state: NodeState,
        /// Who may use it; None when it is missing.
        access: Option<NodeAccess>,
    },
    /// A driver.
    Driver {
        /// The maker.
        vendor: String,
        /// The version that runs.
        running: Option<String>,
        /// The version of the files that are installed.
        installed: Option<String>,
    },
    /// The cards' firmware.
    Firmware {
        /// The maker.
        vendor: String,
        /// Each version once.
        versions: Vec<String>,
    },
    /// The maker's computing software, as CANN.
    Runtime {
        /// The maker.
        vendor: String,
        /// None when it is not installed, which is no fault of a host whose programs bring their own.
        version: Option<String>,
    },
    /// A variable that chooses devices.
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },

    /// What keeps the clock right.
    TimeService {
        /// The service that runs; None when none was found.
        service: Option<TimeService>,
        /// Whether it says that the clock is synchronised; None when it does not say.
        is_synchronised: Option<bool>,
        /// Where it takes the time from.
        source: Option<String>,
    },
    /// In which time the hardware clock is kept (`/etc/adjtime`, `hwclock(8)`).
    HardwareClock {
        /// Local time rather than UTC.
        is_local_time: bool,
    },
    /// The time zone.
    TimeZone {
        /// Its name, e.g. `Asia/Shanghai`; None when the host does not tell.
        name: Option<String>,
        /// Seconds east of UTC, now.
        offset_s: i32,
    },

    /// Variables that send other programs' requests to the server through a proxy.
    Proxies {
        /// Name and value, without the password in it.
        variables: Vec<String>,
    },
    /// The server.
    Server {
        /// Its URL; empty when none is given.
        url: String,
        /// Its version, when it was reached.
        version: Option<String>,
        /// From the question to the answer with the encryption's beginning in it, in milliseconds.
        took_ms: Option<u64>,
    },
    /// What the worker joins with.
    Credential {
        /// Which.
        kind: CredentialKind,
        /// The name under which the server knows this worker, when it does.
        known_as: Option<String>,
    },
    /// The clock, held against the server's.
    ServerClock {
        /// None when the server was not reached.
        measured: Option<ClockMeasurement>,
    },
    /// The port on which the worker answers health checks.
    WorkerPort {
        /// Its number.
        port: u16,
        /// Who has it.
        holder: PortHolder,
    },
    /// The way from the server to the worker's port.
    WayBack {
        /// What the server asked.
        url: String,
        /// How long the answer took, in milliseconds.
        round_trip_ms: Option<f64>,
    },

    /// The NVIDIA driver stays loaded while nobody uses the cards (`nvidia-smi -pm`, `nvidia-persistenced(1)`).
    PersistenceMode {
        /// Devices for which it is off.
        off: Vec<u32>,
    },
}

/// What a device node is to this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It is not there.
    #[default]
    Missing,
    /// It is there and may not be read and written: by its mode or owner, or because the container's device list
    /// does not allow it.
    Forbidden,
    /// It can be opened.
    Usable,
}

/// Who may use a device node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeAccess {
    /// Permission bits, e.g. `0o660`.
    pub mode: u32,
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// A program that keeps the clock right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeService {
    /// `chronyd`.
    Chrony,
    /// `ntpd`, of whichever project.
    Ntpd,
    /// `systemd-timesyncd`.
    Timesyncd,
    /// `ptp4l` or `phc2sys`, from a clock in the network.
    Ptp,
}

impl TimeService {
    /// What it is called in commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chrony => "chronyd",
            Self::Ntpd => "ntpd",
            Self::Timesyncd => "systemd-timesyncd",
            Self::Ptp => "ptp4l",
        }
    }
}

/// What a worker joins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// The join token.
    Token,
    /// The key that it made at an earlier join.
    Key,
    /// Nothing.
    Nothing,
}

/// Who has the worker's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PortHolder {
    /// Nobody: a worker can have it.
    Nobody,
    /// The worker of this data directory, which runs.
    ThisWorker,
    /// Another worker.
    OtherWorker,
    /// Another program.
    OtherProgram,
    /// It cannot be had for another cause.
    Unknown,
}

/// What is wrong with a point of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Trouble {
    /// Something that a worker's conditions can be too.
    Reason(Reason),
    /// Something that only the doctor says.
    Host(HostReason),
}

impl From<Reason> for Trouble {
    fn from(reason: Reason) -> Self {
        Self::Reason(reason)
    }
}

impl From<HostReason> for Trouble {
    fn from(reason: HostReason) -> Self {
        Self::Host(reason)
    }
}

/// What only the doctor says: of things that keep a worker from becoming one, or that are no worker's condition. Those
/// about the server mirror what a worker logs when it cannot join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "reason", content = "params", rename_all = "snake_case")]
pub enum HostReason {
    /// No server is named, so nothing about it was looked at.
    ServerNotGiven {},
    /// It depends on the server, which was not reached.
    ServerNotReached {},
    /// The server tells it only to those that can join.
    TokenNeeded {},
    /// No worker can answer at its port, so the server did not try it.
    WayBackNotTried {},
    /// The server is of an older version, which does not answer a doctor.
    ServerTooOld {},
    /// No time service was found, and nothing else says that the clock is kept right.
    TimeServiceMissing {},
    /// The clock is the host's, and so is what keeps it right.
    TimeServiceOfHost {},
    /// Something of the time service could not be found out.
    TimeServiceUnknown {},
    /// A seccomp filter may keep the devices' driver from working.
    SeccompFilter {},
    /// Other programs' requests to the server go through a proxy; this program's do not.
    ProxyInTheWay {
        /// The server's host.
        host: String,
    },
    /// The process may have few files open at a time.
    OpenFilesFew {
        /// How many.
        limit: u64,
    },
    /// The directory with the state cannot be used.
    DataDirUnusable {
        /// It, or the part of its path that is in the way.
        path: String,
        /// The operating system's words.
        error: String,
    },
    /// Another program has the worker's port.
    PortInUse {
        /// The port.
        port: u16,
    },
    /// Another worker has the worker's port.
    PortOfOtherWorker {
        /// The port.
        port: u16,
        /// Its id.
        worker_uuid: WorkerUuid,
    },
    /// The worker's port cannot be listened on.
    PortUnusable {
        /// The port.
        port: u16,
        /// The operating system's words.
        error: String,
    },
    /// NVIDIA's driver is unloaded when nobody uses the cards.
    PersistenceModeOff {},

    /// The server's name has no address.
    ServerNotResolved {
        /// The name.
        host: String,
    },
    /// Nothing listens at the server's address.
    ServerRefused {
        /// Host and port.
        address: String,
    },
    /// There is no route to the server.
    ServerNoRoute {
        /// Host and port.
        address: String,
    },
    /// The server did not answer in time.
    ServerTimedOut {
        /// Host and port.
        address: String,
        /// The deadline, in seconds.
        timeout_s: u64,
    },
    /// The connection was made and closed without an answer.
    ServerClosed {
        /// Host and port.
        address: String,
    },
    /// Another fault on the way to the server.
    ServerNetwork {
        /// Host and port.
        address: String,
        /// The operating system's or a library's words.
        detail: String,
    },
    /// No authority that this host knows vouches for the server's certificate.
    CertificateUnknown {
        /// Host and port.
        address: String,
    },
    /// It is not the certificate that was pinned.
    CertificateOther {
        /// Host and port.
        address: String,
        /// What was given.
        expected: String,
        /// What the server shows.
        presented: String,
    },
    /// The certificate is for other names.
    CertificateName {
        /// Host and port.
        address: String,
        /// The names in it.
        names: String,
    },
    /// `https` was asked and something else answered.
    TlsNotSpoken {
        /// Host and port.
        address: String,
    },
    /// TLS failed otherwise.
    TlsFailed {
        /// Host and port.
        address: String,
        /// The library's words.
        detail: String,
    },
    /// `http` was asked and something else answered.
    HttpNotSpoken {
        /// Host and port.
        address: String,
    },
    /// HTTP, but not from a server of this program.
    ServerIsAnother {
        /// What was asked.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server's URL is answered by a redirect.
    ServerRedirects {
        /// What was asked.
        url: String,
        /// Where it points.
        location: String,
    },
    /// A proxy answers for a server that it does not reach.
    GatewayFailed {
        /// Host and port.
        address: String,
        /// The HTTP status.
        status: u16,
    },
    /// A proxy lets no link through.
    UpgradeTakenAway {
        /// Host and port.
        address: String,
    },
    /// The server has no room for more at this moment.
    ServerBusy {},
    /// There is nothing to join with.
    TokenMissing {},
    /// The join token is not the server's.
    TokenWrong {
        /// Host and port.
        address: String,
    },
    /// The server does not know this worker, and no token was given.
    WorkerNotKnown {
        /// Host and port.
        address: String,
    },
    /// The server has another key than the one that this worker joined.
    ServerKeyChanged {
        /// Host and port.
        address: String,
        /// Where the key of before is kept.
        file: String,
    },
    /// The server did not prove that it knows the join token.
    ServerNotProven {
        /// Host and port.
        address: String,
    },
    /// The server refuses for another cause.
    ServerRefuses {
        /// Its sentence, or this program's.
        message: String,
    },
}

/// What a doctor asks the server, inside the encrypted handshake, in place of asking to be let in. Who may join may ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExaminationRequest {
    /// [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION).
    pub protocol: u32,
    /// Tells it from a worker that wants in.
    pub examine: ExaminedWorker,
}

/// The worker that a doctor asks about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExaminedWorker {
    /// Who answers at the port.
    pub worker_uuid: WorkerUuid,
    /// Where it answers; absent when the server need not try.
    pub way_back: Option<WayBackAddress>,
}

/// Where the server tries to reach a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayBackAddress {
    /// Its address. No name: a server does not look up whatever somebody tells it.
    pub ip: IpAddr,
    /// Its port.
    pub port: u16,
}

/// The server's answer to a doctor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExaminationAnswer {
    /// The server's version.
    pub server_version: String,
    /// The server's clock when it had the question, in milliseconds since 1970.
    pub received_ms: i64,
    /// The server's clock when it answered.
    pub returned_ms: i64,
    /// The name under which the server knows this worker.
    pub known_as: Option<String>,
    /// What came of trying to reach the worker: one of the reasons of the condition `direct`.
    pub way_back: Option<Reason>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(problem: Option<CheckProblem>) -> Check {
        let access = Some(NodeAccess { mode: 0o660, uid: 0, gid: 1000 });
        Check { seen: Seen::Node { path: "/dev/davinci0".into(), state: NodeState::Usable, access }, problem }
    }

    #[test]
    fn a_check_is_written_as_what_was_seen_beside_what_is_wrong() {
        let reason = Reason::DeviceNodeMissing { node: "/dev/davinci0".into() };
        let problem = CheckProblem { severity: Severity::Error, trouble: reason.into() };
        let written = json!({
            "check": "node",
            "seen": {"path": "/dev/davinci0", "state": "usable", "access": {"mode": 0o660, "uid": 0, "gid": 1000}},
            "problem": {"severity": "error", "reason": "device_node_missing", "params": {"node": "/dev/davinci0"}},
        });
        assert_eq!(serde_json::to_value(node(Some(problem))).unwrap(), written);
    }

    #[test]
    fn both_kinds_of_trouble_are_read_as_they_were_written() {
        let troubles = [
            Trouble::from(Reason::DeviceNodeMissing { node: "/dev/davinci0".into() }),
            Trouble::from(HostReason::PortInUse { port: 10150 }),
            Trouble::from(HostReason::TokenMissing {}),
        ];
        for trouble in troubles {
            let check = node(Some(CheckProblem { severity: Severity::Warning, trouble }));
            let text = serde_json::to_string(&check).unwrap();
            assert_eq!(serde_json::from_str::<Check>(&text).unwrap(), check, "{text}");
        }
        assert_eq!(serde_json::from_value::<Check>(serde_json::to_value(node(None)).unwrap()).unwrap(), node(None));
    }

    #[test]
    fn a_point_that_was_not_looked_at_is_neither_good_nor_bad() {
        let with = |severity| node(Some(CheckProblem { severity, trouble: HostReason::ServerNotGiven {}.into() }));
        let verdicts = [node(None), with(Severity::Ok), with(Severity::Warning), with(Severity::Error)];
        let verdicts = verdicts.map(|check| check.verdict());
        assert_eq!(verdicts, [Verdict::Ok, Verdict::NotChecked, Verdict::Warning, Verdict::Failed]);
    }
}
