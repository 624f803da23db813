//! Every test there is.

use crate::machine::{self, BROWSER_TEST_NEEDS, RUST_TEST_NEEDS};
use crate::steps::Steps;
use crate::workspace::{Profile, Workspace};
use crate::{browser, process, site};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const COMPILE_LIMIT: Duration = Duration::from_hours(1);
const TEST_LIMIT: Duration = Duration::from_mins(30);
const INSTALL_LIMIT: Duration = Duration::from_mins(10);

/// Rust's tests, then the browser's.
pub fn run_all(workspace: &Workspace, with_browser: bool) -> Result<()> {
    machine::require_c_compiler()?;
    if with_browser {
        machine::require_node()?;
    }
    let mut steps = Steps::new(if with_browser { 7 } else { 4 });
    steps.run("programs for the Rust tests", || machine::install_missing(&RUST_TEST_NEEDS))?;
    if with_browser {
        steps.run("programs and packages for the browser tests", || install(workspace))?;
    }
    // The compiler treats a release otherwise (docs/adr/0008-functions-that-nobody-calls-are-emptied.md): what is tested is
    // what is shipped.
    steps.run("browser part, as in a release", || {
        browser::build(workspace, Profile::Release)?;
        site::require_within_budget(workspace)?;
        site::lend_release_to_debug(workspace)
    })?;
    steps.run("compile server and tests", || compile(workspace))?;
    steps
        .run("Rust tests", || process::run(workspace.cargo().args(["test", "--locked", "--workspace"]), TEST_LIMIT))?;
    if with_browser {
        steps.run("types of the browser tests", || check_types(workspace))?;
        steps.run("browser tests", || playwright(workspace, &[]))?;
    }
    Ok(())
}

/// The browser's tests alone, with browser files as they are made while one works on them.
pub fn run_browser(workspace: &Workspace, playwright_args: &[String]) -> Result<()> {
    machine::require_c_compiler()?;
    machine::require_node()?;
    let mut steps = Steps::new(4);
    steps.run("programs and packages for the browser tests", || install(workspace))?;
    steps.run("browser part", || browser::build(workspace, Profile::Dev))?;
    steps.run("compile server and tests", || compile(workspace))?;
    steps.run("browser tests", || playwright(workspace, playwright_args))
}

/// With all targets, as `cargo test` has them, so that the program that the browser tests start is compiled with the
/// same features and nothing is compiled twice.
fn compile(workspace: &Workspace) -> Result<()> {
    process::run(workspace.cargo().args(["build", "--locked", "--workspace", "--all-targets"]), COMPILE_LIMIT)
}

fn install(workspace: &Workspace) -> Result<()> {
    machine::install_missing(&BROWSER_TEST_NEEDS)?;
    let folder = folder(workspace);
    if packages_are_current(&folder) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder);
    process::run(&mut npm, INSTALL_LIMIT).context("the browser tests need their packages from the npm registry")
}

/// npm writes a copy of the lock file when it has installed everything in it.
fn packages_are_current(folder: &Path) -> bool {
    let modified = |name: &str| fs::metadata(folder.join(name)).and_then(|data| data.modified()).ok();
    match (modified("package-lock.json"), modified("node_modules/.package-lock.json")) {
        (Some(wanted), Some(installed)) => installed >= wanted,
        _ => false,
    }
}

fn check_types(workspace: &Workspace) -> Result<()> {
    process::run(Command::new("npx").args(["--no-install", "tsc"]).current_dir(folder(workspace)), TEST_LIMIT)
}

fn playwright(workspace: &Workspace, args: &[String]) -> Result<()> {
    let programs = workspace.target.join(Profile::Dev.folder());
    let mut command = Command::new("npx");
    command.args(["--no-install", "playwright", "test"]).args(args).current_dir(folder(workspace));
    for (variable, name) in [("GPUSTACK_BIN", "gpustack"), ("FLEET_BIN", "fleet")] {
        let program = programs.join(name);
        ensure!(program.is_file(), "{} was not built", program.display());
        command.env(variable, program);
    }
    process::run(&mut command, TEST_LIMIT)
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.root.join("end2end")
}
