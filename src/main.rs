//! The `gpustack` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpustack::commands::main()
}
