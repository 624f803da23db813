//! The command line: a file for each sub-command.

mod dcmi_reader;
mod devices;
mod doctor;
mod exit;
mod language;
mod logging;
mod output;
mod reset_admin_password;
mod settings;
mod start;
mod stop;
mod token;
mod tunnel;
mod version;

use clap::{Parser, Subcommand};
use exit::CommandError;
use std::process::ExitCode;

/// Unifies GPUs and NPUs that sit in networks which cannot reach one another.
#[derive(Debug, Parser)]
#[command(name = "gpustack", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a server, or with --server-url a worker.
    Start(Box<start::StartArgs>),
    /// Print the version.
    Version(version::VersionArgs),
    /// Print the join token of the server on this host.
    Token(settings::ServerStateArgs),
    /// Give the admin a new password, whether the server runs or not.
    ResetAdminPassword(settings::ServerStateArgs),
    /// Show what a worker on this host would report.
    Devices(devices::DevicesArgs),
    /// Look what is wrong with this host, before or after it joins, and say what to do.
    Doctor(Box<doctor::DoctorArgs>),
    /// Bring workers and their server together through bastions, with SSH forwards.
    Tunnel(tunnel::TunnelArgs),
    /// Read the library of Ascend's driver, for a worker.
    #[command(hide = true)]
    DcmiReader(dcmi_reader::DcmiReaderArgs),
}

/// Reads the command line, does what it says, and tells the outcome.
pub fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Start(args) => start::run(*args),
        Command::Version(args) => version::run(args),
        Command::Token(args) => token::run(&args),
        Command::ResetAdminPassword(args) => reset_admin_password::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Doctor(args) => doctor::run(*args),
        Command::Tunnel(args) => tunnel::run(args),
        Command::DcmiReader(args) => dcmi_reader::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
