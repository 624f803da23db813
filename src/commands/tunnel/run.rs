//! `gpustack tunnel run`: keeps the forwards of a file.

use super::FileArgs;
use crate::commands::exit::CommandError;
use crate::commands::{logging, stop};
use crate::config::JoinToken;
use crate::tunnel::agent::{self, AgentError, NewPlan, Refusal};
use crate::tunnel::file::{self, FileError, Surroundings};
use crate::tunnel::plan::{Plan, check_names, label};
use clap::Args;
use std::fmt::Display;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// What to keep.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Log more
    #[arg(short, long)]
    debug: bool,
    /// What stands in the process list, so that `ps aux | grep GPUStack-Tunnel` finds the agent; set by itself
    #[arg(long, value_name = "LABEL", hide = true)]
    label: Option<String>,
}

/// Files that were changed and are not looked at yet; of more, the last one counts.
const WAITING_PLANS: usize = 4;

/// Runs until it is told to stop.
pub fn run(args: &RunArgs) -> Result<(), CommandError> {
    let config = &args.file.config;
    let plan = load(config)?;
    if args.label.is_none() {
        return Err(start_again_labelled(&plan));
    }
    logging::start(args.debug);
    let token = token(&plan)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let stopping = stop::on_signal()?;
        check(&plan).await.map_err(|refusal| CommandError::failed(refusal.english))?;
        let (sender, plans) = mpsc::channel(WAITING_PLANS);
        let reloading = tokio::spawn(reload(signal(SignalKind::hangup())?, config.clone(), sender));
        let ended = agent::run(plan, token, plans, stopping).await;
        reloading.abort();
        Ok(ended?)
    })
}

/// Reads and checks the file, and keeps the ports that were chosen.
fn load(config: &Path) -> Result<Plan, FileError> {
    let planned = file::load_to_run(config, &Surroundings::of_process())?;
    planned.ports.remember()?;
    Ok(planned.plan)
}

/// Whether the names resolve that this host resolves by itself.
async fn check(plan: &Plan) -> Result<(), Refusal> {
    let problems = check_names(plan).await;
    if problems.is_empty() {
        return Ok(());
    }
    let lines = |language| problems.iter().map(|problem| problem.text(language)).collect::<Vec<_>>().join("\n");
    Err(Refusal::new(lines))
}

/// The join token in the file that the plan names.
fn token(plan: &Plan) -> Result<Option<JoinToken>, CommandError> {
    let Some(path) = plan.reporting.as_ref().and_then(|reporting| reporting.token_file.as_ref()) else {
        return Ok(None);
    };
    let failed =
        |problem: &dyn Display| CommandError::usage(format!("the join token in {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    JoinToken::parse(&text).map(Some).map_err(|error| failed(&error))
}

/// Becomes the same program with the agent's label among its arguments: that is what `ps` shows.
fn start_again_labelled(plan: &Plan) -> CommandError {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return CommandError::failed(error),
    };
    let mut command = std::process::Command::new(program);
    command.args(std::env::args_os().skip(1)).arg("--label").arg(label(&plan.id));
    // comes back only when it did not work
    CommandError::failed(command.exec())
}

/// Reads the file again at each SIGHUP.
async fn reload(mut hangup: Signal, config: PathBuf, plans: mpsc::Sender<NewPlan>) {
    while hangup.recv().await.is_some() {
        let path = config.clone();
        let read = tokio::task::spawn_blocking(move || {
            load(&path).map_err(|error| Refusal::new(|language| error.text(language)))
        });
        let new = match read.await {
            Ok(Ok(plan)) => check(&plan).await.map(|()| plan),
            Ok(Err(why)) => Err(why),
            Err(panic) => Err(Refusal::new(|_| panic.to_string())),
        };
        if plans.send(new).await.is_err() {
            return;
        }
    }
}

impl From<AgentError> for CommandError {
    fn from(error: AgentError) -> Self {
        match error {
            error @ (AgentError::StateNotPrivate { .. } | AgentError::Route { .. }) => Self::usage(error),
            error => Self::failed(error),
        }
    }
}
