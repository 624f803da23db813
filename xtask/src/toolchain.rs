//! Which compiler builds the browser part.
//!
//! rustup brings the browser target by `rust-toolchain.toml`. Where rustup cannot download, a second toolchain made
//! from Debian's packages does this one job, and everything else stays with the pinned one.

use crate::process;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The compiler's word for the browser.
pub const BROWSER_TARGET: &str = "wasm32-unknown-unknown";

/// The name under which `scripts/wasm-target.sh` makes its toolchain known to rustup.
const FALLBACK: &str = "wasm32-debian";

/// Set to leave rustup's servers alone, where they are known to be out of reach.
const NO_RUSTUP: &str = "WASM_TARGET_NO_RUSTUP";

const ASK: Duration = Duration::from_mins(1);
const DOWNLOAD: Duration = Duration::from_mins(5);
/// 30 s on two idle cores; slow networks and busy machines take longer.
const MAKE_FALLBACK: Duration = Duration::from_mins(30);

/// A toolchain that can compile for the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrowserToolchain {
    /// The one that everything is built with.
    Active,
    /// The one made from Debian's packages.
    Fallback,
}

impl BrowserToolchain {
    /// The first that works; the fallback is made when there is no other.
    pub fn find_or_make(workspace: &Workspace) -> Result<Self> {
        if let Some(found) = Self::find() {
            return Ok(found);
        }
        if std::env::var_os(NO_RUSTUP).is_none() && rustup_brings_target(workspace) {
            return Ok(Self::Active);
        }
        eprintln!(
            "rustup does not bring {BROWSER_TARGET}: making it from Debian's packages, about half a minute, once"
        );
        let script = workspace.root.join("scripts/wasm-target.sh");
        let made = process::run(Command::new("bash").arg(script), MAKE_FALLBACK);
        match (made, Self::find()) {
            (_, Some(found)) => Ok(found),
            (Err(error), None) => Err(error.context(format!(
                "the browser part needs the target {BROWSER_TARGET}: run `rustup target add {BROWSER_TARGET}` where rustup has a network"
            ))),
            (Ok(()), None) => bail!("scripts/wasm-target.sh made a toolchain without {BROWSER_TARGET}"),
        }
    }

    fn find() -> Option<Self> {
        [Self::Active, Self::Fallback].into_iter().find(|toolchain| toolchain.has_browser_target())
    }

    /// Lets a cargo or rustc command use it.
    pub fn apply(self, command: &mut Command) {
        if self == Self::Fallback {
            command.env("RUSTUP_TOOLCHAIN", FALLBACK);
        }
    }

    fn has_browser_target(self) -> bool {
        // the fallback borrows its cargo from another toolchain, which may have been removed since
        let mut cargo = Command::new("cargo");
        self.apply(cargo.arg("--version"));
        if process::answer(&mut cargo, ASK).is_none() {
            return false;
        }
        let mut rustc = Command::new("rustc");
        rustc.args(["--print", "target-libdir", "--target", BROWSER_TARGET]);
        self.apply(&mut rustc);
        process::answer(&mut rustc, ASK).is_some_and(|folder| has_standard_library(Path::new(folder.trim())))
    }
}

fn has_standard_library(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
}

fn rustup_brings_target(workspace: &Workspace) -> bool {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", BROWSER_TARGET]).current_dir(&workspace.root);
    process::answer(&mut rustup, DOWNLOAD).is_some() && BrowserToolchain::Active.has_browser_target()
}
