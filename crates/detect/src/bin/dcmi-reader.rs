//! Stands in for `gpustack dcmi-reader` in this package's tests.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let library = std::env::args_os().nth(1).map(PathBuf::from).unwrap_or_default();
    match dcmi::serve(&library) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
