//! `gpustack tunnel`: a file for each of its sub-commands.

mod import;
mod plan;

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
    /// Show what a tunnels.yaml asks for, in order, and change nothing.
    Plan(plan::PlanArgs),
    /// Make a tunnels.yaml of ssh commands.
    Import(import::ImportArgs),
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
