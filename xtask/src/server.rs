//! The server: building it and starting it.

use crate::steps::Steps;
use crate::workspace::{Profile, Workspace};
use crate::{browser, machine, process};
use anyhow::{Context, Result};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const COMPILE_LIMIT: Duration = Duration::from_hours(1);

/// How the C library gets into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// The host's is loaded.
    Dynamic,
    /// It is part of the program, which then runs in an empty container.
    Static,
}

impl Linkage {
    /// By the flag `--static`.
    pub fn from_static(is_static: bool) -> Self {
        if is_static { Self::Static } else { Self::Dynamic }
    }
}

/// Builds the program and tells where it lies.
pub fn build(workspace: &Workspace, profile: Profile, linkage: Linkage) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--locked", "--package", "gpustack"]);
    if profile == Profile::Release {
        cargo.arg("--release");
    }
    let mut folder = workspace.target.clone();
    if linkage == Linkage::Static {
        let host = machine::host_triple()?;
        // With a target named, the flag reaches neither build scripts nor macros, which cannot be linked that way.
        cargo.args(["--target", &host]).env("RUSTFLAGS", "-C target-feature=+crt-static --cfg erase_components");
        folder.push(host);
    }
    process::run(&mut cargo, COMPILE_LIMIT)?;
    Ok(folder.join(profile.folder()).join("gpustack"))
}

/// Builds a release and becomes the server.
pub fn start(workspace: &Workspace, mut server_args: Vec<String>) -> Result<()> {
    machine::require_c_compiler()?;
    let mut steps = Steps::new(2);
    steps.run("browser part", || browser::build(workspace, Profile::Release))?;
    let binary = steps.run("server", || build(workspace, Profile::Release, Linkage::Dynamic))?;
    for (name, value) in [("--port", "8090"), ("--data-dir", "./gpustack-data")] {
        if !is_given(&server_args, name) {
            server_args.extend([name.to_owned(), value.to_owned()]);
        }
    }
    eprintln!("{} start {}", binary.display(), server_args.join(" "));
    let error = Command::new(&binary).arg("start").args(server_args).exec();
    Err(error).with_context(|| format!("cannot start {}", binary.display()))
}

fn is_given(args: &[String], name: &str) -> bool {
    args.iter().any(|arg| arg.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_found_in_both_spellings_and_not_by_its_beginning() {
        for (args, given) in [(vec!["--port", "1"], true), (vec!["--port=1"], true), (vec!["--portable"], false)] {
            let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
            assert_eq!(is_given(&args, "--port"), given, "{args:?}");
        }
    }
}
