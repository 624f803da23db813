//! `gpustack tunnel`: a file for each of its sub-commands.

mod ca;
mod import;
mod plan;
mod run;
mod status;
mod trust;

use super::exit::CommandError;
use crate::tunnel::file::FileError;
use app::i18n::Language;
use app::i18n::tunnel_plan::messages;
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

/// A file that cannot be used, in a language.
fn file_error(error: &FileError, language: Language) -> CommandError {
    let text = error.text(language);
    match error {
        FileError::Problems(problems) if problems.problems.len() > 1 => {
            let heading = (messages(language).things_are_wrong)(problems.problems.len());
            CommandError::usage(format!("{heading}\n{text}"))
        }
        FileError::Problems(_) | FileError::Read { .. } => CommandError::usage(text),
        FileError::Ports(_) => CommandError::failed(text),
    }
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        file_error(&error, Language::En)
    }
}
