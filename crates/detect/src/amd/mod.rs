//! AMD, by its tools `amd-smi` and, where that is not installed, `rocm-smi`.

mod amd_smi;
pub(crate) mod rocm_smi;

use crate::one_tool::{Description, More, Way};
use crate::vendor::Maker;
use api::DeviceType;

pub(crate) const AMD: Description = Description {
    maker: Maker::Amd,
    kind: DeviceType::Rocm,
    library: None,
    ways: &[
        Way {
            tool: "amd-smi",
            question: &["metric", "--json"],
            parse: amd_smi::parse,
            more: &[More {
                question: &["static", "--json"],
                is_wanted: |cards| !cards.is_empty(),
                is_lasting: true,
                add: amd_smi::add_names,
            }],
        },
        Way { tool: "rocm-smi", question: rocm_smi::QUESTION, parse: rocm_smi::of_amd, more: &[] },
    ],
    directories: &["/opt/rocm/bin", "/usr/bin"],
    libraries: &["/opt/rocm/lib"],
    // The driver makes its node for every graphics card of a desktop.
    nodes: &[],
    has_exporter: false,
    module: "amdgpu",
};
