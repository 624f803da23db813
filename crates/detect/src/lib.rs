//! Host facts and accelerators of the machine this runs on.
//!
//! Parsers take text and spawn nothing; [`Detector`] runs the vendors' tools and ties their answers together;
//! [`HostSampler`] reads what the kernel says of processors, memory and disks; [`Environment`] goes through what a worker
//! needs besides. None of them ever fails as a whole: what cannot be known is absent, and why is a [`api::Problem`] or a
//! [`api::CheckProblem`] beside what is known.

mod amd;
mod ascend;
mod bar_table;
mod cambricon;
mod card;
mod checks;
mod detector;
mod environment;
mod figures;
mod files;
mod history;
mod host;
mod hygon;
mod iluvatar;
mod json;
mod metax;
mod moore_threads;
#[cfg(test)]
mod mutations;
mod nvidia;
mod one_tool;
mod pci;
mod problem_ages;
mod sections;
mod text;
mod tool;
mod vendor;

pub use detector::{Detector, DetectorConfig, Inventory, LibraryReader, Printed};
pub use environment::{Environment, Surroundings, blame_filter};
pub use host::{HostFacts, HostSampler};
