//! What every vendor's part of the crate gives to the detector.

use crate::DetectorConfig;
use crate::ascend::Ascend;
use api::{GpuDevice, Reason, Severity};

/// A family of accelerators. Each looks for its own devices with its own tool, so that one that hangs or fails hides
/// nothing of the others.
pub(crate) enum Vendor {
    Ascend(Ascend),
}

impl Vendor {
    /// Every vendor this version knows.
    pub(crate) fn all(config: &DetectorConfig) -> Vec<Self> {
        vec![Self::Ascend(Ascend::new(config))]
    }

    /// Looks at the host once. Bounded in time by the tool's deadline.
    pub(crate) async fn survey(&mut self) -> Survey {
        match self {
            Self::Ascend(ascend) => ascend.survey().await,
        }
    }
}

/// What one look at the host gave for one vendor.
pub(crate) struct Survey {
    pub outcome: Outcome,
    /// What is wrong with the tool, the driver or the nodes.
    pub findings: Vec<Finding>,
}

/// Whether the devices could be read.
pub(crate) enum Outcome {
    /// Neither device nodes nor a tool: this vendor has nothing on this host.
    Nothing,
    /// The tool's list, complete as far as it can be told.
    Read(Reading),
    /// The list could not be read, or only this much of it.
    Failed { partial: Reading },
}

/// The devices and what is wrong with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub devices: Vec<GpuDevice>,
    pub unhealthy: Vec<Finding>,
}

/// Something that is wrong, before it is known for how long.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub severity: Severity,
    pub reason: Reason,
}

impl Finding {
    /// It keeps the devices from being used or even seen.
    pub(crate) fn error(reason: Reason) -> Self {
        Self { severity: Severity::Error, reason }
    }

    /// Somebody should look at it; the devices work.
    pub(crate) fn warning(reason: Reason) -> Self {
        Self { severity: Severity::Warning, reason }
    }
}
