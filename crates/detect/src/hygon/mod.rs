//! Hygon, by its tool `hy-smi`, which is a relative of `rocm-smi`.

mod table;

use crate::amd::rocm_smi;
use crate::one_tool::{Description, Way};
use crate::vendor::Maker;
use api::DeviceType;

/// The tool's name.
const TOOL: &str = "hy-smi";

pub(crate) const HYGON: Description = Description {
    maker: Maker::Hygon,
    kind: DeviceType::Dcu,
    library: None,
    ways: &[
        Way { tool: TOOL, question: rocm_smi::QUESTION, parse: rocm_smi::of_hygon, more: &[] },
        Way { tool: TOOL, question: &[], parse: table::parse, more: &[] },
    ],
    directories: &["/opt/hyhal/bin", "/opt/dtk/bin", "/opt/rocm/bin", "/usr/local/hyhal/bin"],
    libraries: &["/opt/hyhal/lib", "/opt/dtk/lib", "/opt/dtk/lib64"],
    nodes: &["/dev/mkfd"],
    has_exporter: false,
    module: "hycu",
};
