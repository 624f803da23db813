//! `gpustack dcmi-reader`: the process that a worker has for the library of Ascend's driver. Nobody starts it by hand,
//! though it does no harm: a line `read` is answered with all that the library tells.

use super::exit::CommandError;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct DcmiReaderArgs {
    /// The library's file
    library: PathBuf,
}

pub fn run(args: &DcmiReaderArgs) -> Result<(), CommandError> {
    Ok(dcmi::serve(&args.library)?)
}
