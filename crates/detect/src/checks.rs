//! What was looked at, good or bad, for a person who goes through a host point by point.

use crate::vendor::Finding;
use api::{Check, CheckProblem, HostReason, Reason, Seen, Severity};

/// Gives each point its problem, if there is one.
pub(crate) fn judged(seen: Vec<Seen>, findings: &[Finding]) -> Vec<Check> {
    let judge = |seen: Seen| {
        let finding = findings.iter().find(|finding| is_meant(&seen, &finding.reason));
        let found =
            finding.map(|finding| CheckProblem { severity: finding.severity, trouble: finding.reason.clone().into() });
        Check { problem: found.or_else(|| of_point_alone(&seen)), seen }
    };
    seen.into_iter().map(judge).collect()
}

/// What only a person who goes through the host wants to know.
fn of_point_alone(seen: &Seen) -> Option<CheckProblem> {
    let is_wrong = matches!(seen, Seen::PersistenceMode { off } if !off.is_empty());
    is_wrong.then(|| CheckProblem { severity: Severity::Warning, trouble: HostReason::PersistenceModeOff {}.into() })
}

/// Whether a reason says something of this point.
fn is_meant(seen: &Seen, reason: &Reason) -> bool {
    match (seen, reason) {
        (
            Seen::Tool { tool, .. },
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
        (Seen::Node { path, .. }, Reason::DeviceNodeMissing { node } | Reason::DeviceNodeUnreadable { node }) => {
            path == node
        }
        (Seen::Node { path, .. }, Reason::DriverInitFailed { nodes, .. }) => nodes.contains(path),
        (Seen::Devices { vendor, .. }, Reason::DriverNotLoaded { vendor: meant, .. }) => vendor == meant,
        (Seen::Devices { listed: 0, .. }, Reason::DevicesMissing { .. }) => true,
        (Seen::Driver { vendor, .. }, Reason::DriverMismatch { vendor: meant, firmware: None, .. })
        | (Seen::Firmware { vendor, .. }, Reason::DriverMismatch { vendor: meant, firmware: Some(_), .. }) => {
            vendor == meant
        }
        (Seen::Variable { name, .. }, Reason::VisibleDevicesWrong { variable, .. }) => name == variable,
        _ => false,
    }
}
