//! `gpustack version`.

use super::exit::CommandError;
use super::output;
use clap::Args;

#[derive(Clone, Copy, Debug, Args)]
pub struct VersionArgs {
    /// Print the number only.
    #[arg(long)]
    short: bool,
}

pub fn run(args: VersionArgs) -> Result<(), CommandError> {
    let version = env!("CARGO_PKG_VERSION");
    let text = if args.short { format!("{version}\n") } else { format!("gpustack {version}\n") };
    Ok(output::print(&text)?)
}
