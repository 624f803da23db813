//! What was looked at, good or bad, for a person who goes through a host point by point.

use crate::vendor::Finding;
use api::{Reason, Severity};
use std::path::PathBuf;

/// One point of a host's environment.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What was seen.
    pub seen: Seen,
    /// What is wrong with it; None when it is as it ought to be.
    pub problem: Option<(Severity, Reason)>,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
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
        path: Option<PathBuf>,
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
}

/// What a device node is to this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAccess {
    /// Permission bits, e.g. `0o660`.
    pub mode: u32,
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// Gives each point its problem, if there is one.
pub(crate) fn judged(seen: Vec<Seen>, findings: &[Finding]) -> Vec<Check> {
    let judge = |seen: Seen| {
        let finding = findings.iter().find(|finding| seen.is_meant_by(&finding.reason));
        Check { problem: finding.map(|finding| (finding.severity, finding.reason.clone())), seen }
    };
    seen.into_iter().map(judge).collect()
}

impl Seen {
    fn is_meant_by(&self, reason: &Reason) -> bool {
        match (self, reason) {
            (
                Self::Tool { tool, .. },
                Reason::ToolTimedOut { tool: meant, .. }
                | Reason::ToolFailed { tool: meant, .. }
                | Reason::ToolNotStarted { tool: meant, .. }
                | Reason::ToolMissing { tool: meant }
                | Reason::ToolOutputUnknown { tool: meant, .. }
                | Reason::DriverInitFailed { tool: meant, .. }
                | Reason::DriverLibraryMissing { tool: meant, .. }
                | Reason::DeviceInUseElsewhere { tool: meant, .. }
                | Reason::ReadingsForbidden { tool: meant },
            ) => tool == meant,
            (Self::Node { path, .. }, Reason::DeviceNodeMissing { node } | Reason::DeviceNodeUnreadable { node }) => {
                path == node
            }
            (Self::Node { path, .. }, Reason::DriverInitFailed { nodes, .. }) => nodes.contains(path),
            (Self::Devices { vendor, .. }, Reason::DriverNotLoaded { vendor: meant, .. }) => vendor == meant,
            (Self::Devices { listed: 0, .. }, Reason::DevicesMissing { .. }) => true,
            (Self::Driver { vendor, .. }, Reason::DriverMismatch { vendor: meant, firmware: None, .. })
            | (Self::Firmware { vendor, .. }, Reason::DriverMismatch { vendor: meant, firmware: Some(_), .. }) => {
                vendor == meant
            }
            (Self::Variable { name, .. }, Reason::VisibleDevicesWrong { variable, .. }) => name == variable,
            _ => false,
        }
    }
}
