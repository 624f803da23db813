//! Where this project lies, and how cargo is called on it.

use crate::process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How the code is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Quickly.
    Dev,
    /// For use.
    Release,
}

impl Profile {
    /// By the flag `--release`.
    pub fn from_release(release: bool) -> Self {
        if release { Self::Release } else { Self::Dev }
    }

    /// The folder below the target folder that cargo puts programs into.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }
}

/// The checked-out project and its target folder.
pub struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// Where cargo puts what it builds, wherever the user's settings say that is.
    pub target: PathBuf,
}

impl Workspace {
    /// The workspace that this program belongs to.
    ///
    /// The folder is read when the program runs: one compiled in would be wrong in a copied target folder.
    pub fn find() -> Result<Self> {
        let own = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let root = Path::new(&own).parent().context("xtask lies in no workspace")?.to_owned();
        let mut metadata = cargo();
        metadata.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
        metadata.arg(root.join("Cargo.toml"));
        let answer = process::answer(&mut metadata, Duration::from_mins(1))
            .context("`cargo metadata` does not work here; run it by hand to see why")?;
        let answer: serde_json::Value = serde_json::from_str(&answer).context("`cargo metadata` printed no JSON")?;
        let target = answer
            .get("target_directory")
            .and_then(serde_json::Value::as_str)
            .context("`cargo metadata` names no target folder")?;
        Ok(Self { root, target: target.into() })
    }

    /// A cargo command on this workspace.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command
    }
}

/// Cargo without what the outer `cargo run` put into the environment: some build scripts compare these variables with
/// those of the last build and would compile their crate anew at each change between `cargo xtask` and `cargo`.
fn cargo() -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        if matches!(text, "CARGO" | "CARGO_MANIFEST_DIR" | "CARGO_MANIFEST_PATH") || text.starts_with("CARGO_PKG_") {
            command.env_remove(name);
        }
    }
    command
}
