//! What every vendor's part of the crate gives to the detector.

use crate::Printed;
use crate::pci::Accelerator;
use api::{GpuDevice, Reason, Seen, Severity};
use async_trait::async_trait;

/// A family of accelerators. Each looks for its own devices with its own tool, so that one that hangs or fails hides
/// nothing of the others.
#[async_trait]
pub(crate) trait Vendor: Send {
    /// Whose devices they are.
    fn maker(&self) -> Maker;

    /// Looks at the host once. `on_bus` are this maker's devices on the PCI bus. Bounded in time by the tools'
    /// deadlines; dropping the future is safe.
    async fn survey(&mut self, on_bus: &[&Accelerator]) -> Survey;

    /// What the tools printed at their last runs.
    fn printed(&self) -> Vec<Printed>;
}

/// Who makes accelerators that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    Huawei,
    Nvidia,
    Amd,
    Hygon,
    MetaX,
    Cambricon,
    Iluvatar,
    MooreThreads,
}

impl Maker {
    /// By the vendor's id on the PCI bus (the PCI SIG's list; Hygon, MetaX and Cambricon use the ids that their
    /// drivers register).
    pub(crate) fn of_pci(vendor_id: u16) -> Option<Self> {
        Some(match vendor_id {
            0x19e5 => Self::Huawei,
            0x10de => Self::Nvidia,
            0x1002 => Self::Amd,
            0x1d94 => Self::Hygon,
            0x9999 => Self::MetaX,
            0xcabc => Self::Cambricon,
            0x1e3e => Self::Iluvatar,
            0x1ed5 => Self::MooreThreads,
            _ => return None,
        })
    }

    /// As devices and problems name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Huawei => "Huawei",
            Self::Nvidia => "NVIDIA",
            Self::Amd => "AMD",
            Self::Hygon => "Hygon",
            Self::MetaX => "MetaX",
            Self::Cambricon => "Cambricon",
            Self::Iluvatar => "Iluvatar",
            Self::MooreThreads => "Moore Threads",
        }
    }
}

/// What one look at the host gave for one vendor.
pub(crate) struct Survey {
    pub outcome: Outcome,
    /// What is wrong with the tool, the driver or the nodes.
    pub findings: Vec<Finding>,
    /// What was looked at, whether it is wrong or not; nothing where the maker has nothing on this host.
    pub seen: Vec<Seen>,
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
