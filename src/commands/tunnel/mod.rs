//! `gpustack tunnel`: a file for each of its sub-commands.

mod ca;
mod import;
mod plan;
mod run;
mod status;
mod trust;

use super::exit::CommandError;
use crate::tunnel::file::FileError;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to do with tunnels.
#[derive(Debug, Args)]
pub struct TunnelArgs {
    #[command(subcommand)]
    command: TunnelCommand,
}

#[derive(Debug, Subcommand)]
enum TunnelCommand {
    /// Make the forwards of a tunnels.yaml, and keep them.
    Run(run::RunArgs),
    /// Show how the forwards of the agent on this host are.
    Status(status::StatusArgs),
    /// Decide about the keys of SSH servers that are not known yet.
    Trust(trust::TrustArgs),
    /// Show what a tunnels.yaml asks for, in order, and change nothing.
    Plan(plan::PlanArgs),
    /// Make a tunnels.yaml of ssh commands.
    Import(import::ImportArgs),
    /// Be an SSH certificate authority, on the server's host.
    #[command(subcommand)]
    Ca(ca::CaCommand),
}

/// Which `tunnels.yaml`.
#[derive(Debug, Args)]
struct FileArgs {
    /// The file with the tunnels
    #[arg(short, long, value_name = "FILE", default_value = "/etc/gpustack/tunnels.yaml")]
    config: PathBuf,
}

pub fn run(args: TunnelArgs) -> Result<(), CommandError> {
    match args.command {
        TunnelCommand::Plan(args) => plan::run(&args),
        TunnelCommand::Import(args) => import::run(&args),
        TunnelCommand::Run(args) => run::run(&args),
        TunnelCommand::Status(args) => status::run(&args),
        TunnelCommand::Trust(args) => trust::run(&args),
        TunnelCommand::Ca(command) => ca::run(command),
    }
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Problems(problems) if problems.problems.len() == 1 => Self::usage(problems),
            FileError::Problems(problems) => {
                Self::usage(format!("{} things are wrong:\n{problems}", problems.problems.len()))
            }
            error @ FileError::Read { .. } => Self::usage(error),
            error @ FileError::Ports(_) => Self::failed(error),
        }
    }
}
