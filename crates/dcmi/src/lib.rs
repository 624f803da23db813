//! Reads Ascend chips through the management library of their driver, `libdcmi.so`, which is found while the program
//! runs.
//!
//! The library is somebody else's code: it can crash, hang and scribble over memory, and it prints on the standard
//! output when it likes. So nobody calls it in the process of a worker. [`serve()`] is the whole of a small process that
//! loads it and answers questions; whoever asks understands the answers by the types of [`report`], and loses nothing
//! but that process when it dies.
//!
//! What is said here of functions, layouts, numbers and units is from the vendor's header `dcmi_interface_api.h`, as it
//! stands in the public repositories Ascend/mind-cluster (`component/ascend-common/devmanager/dcmi`) and cann/driver,
//! and from the vendor's DCMI API reference.

mod native;
mod read;
pub mod report;
mod serve;

pub use serve::{READ, serve};
