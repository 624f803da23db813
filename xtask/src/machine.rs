//! What this machine has, and how it gets what it lacks. Asked before long work begins.

use crate::process;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const ASK: Duration = Duration::from_mins(1);
const INSTALL: Duration = Duration::from_mins(15);

/// The oldest release of Node.js that the browser tests run on.
const NODE_MAJOR: u32 = 20;

/// The crates that hold C code (SQLite, the cryptography library) need one.
pub fn require_c_compiler() -> Result<()> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(compiler.split_whitespace().next().unwrap_or("cc"));
    if process::answer(command.arg("--version"), ASK).is_none() {
        bail!("no C compiler `{compiler}` works here: install one, on Debian with `apt-get install gcc libc6-dev`");
    }
    Ok(())
}

/// The browser tests are written for it.
pub fn require_node() -> Result<()> {
    const HOW: &str = "install it with its npm, or leave the browser tests out with `cargo xtask test --no-browser`";
    let Some(version) = process::answer(Command::new("node").arg("--version"), ASK) else {
        bail!("Node.js is missing: {HOW}");
    };
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|text| text.parse::<u32>().ok());
    if major.is_none_or(|major| major < NODE_MAJOR) {
        bail!("Node.js {} is too old, {NODE_MAJOR} is needed: {HOW}", version.trim());
    }
    if process::answer(Command::new("npm").arg("--version"), ASK).is_none() {
        bail!("npm, which belongs to Node.js, is missing: {HOW}");
    }
    Ok(())
}

/// This machine in the compiler's words, e.g. `aarch64-unknown-linux-gnu`.
pub fn host_triple() -> Result<String> {
    let answer = process::answer(Command::new("rustc").arg("-vV"), ASK).context("`rustc -vV` does not work here")?;
    let host = answer.lines().find_map(|line| line.strip_prefix("host: ")).context("`rustc -vV` names no host")?;
    Ok(host.to_owned())
}

/// A program that tests need, and the Debian package that brings it.
pub struct Need {
    package: &'static str,
    /// The same program goes by several names.
    programs: &'static [&'static str],
}

/// What Rust's tests start: hosts with networks and clocks of their own, a proxy, and a bastion's SSH.
pub const RUST_TEST_NEEDS: [Need; 5] = [
    Need { package: "iproute2", programs: &["ip"] },
    Need { package: "faketime", programs: &["faketime"] },
    Need { package: "openssh-client", programs: &["ssh"] },
    // Debian has these where only root's path looks
    Need { package: "openssh-server", programs: &["sshd", "/usr/sbin/sshd"] },
    Need { package: "nginx", programs: &["nginx", "/usr/sbin/nginx"] },
];

/// What the browser tests start besides Node.js.
pub const BROWSER_TEST_NEEDS: [Need; 2] = [
    Need { package: "chromium", programs: &["chromium", "chromium-browser", "google-chrome"] },
    Need { package: "faketime", programs: &["faketime"] },
];

/// Installs what is missing, where this user may.
pub fn install_missing(needs: &[Need]) -> Result<()> {
    let missing: Vec<&str> = needs.iter().filter(|need| !need.is_met()).map(|need| need.package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    let how = format!("install it by hand: `sudo apt-get install {list}`, or what your system calls it");
    let Some(apt_get) = apt_get_as_root() else {
        bail!("missing for the tests: {list}; {how}");
    };
    eprintln!("installing {list}");
    if apt_install(apt_get, &missing).is_ok() {
        return Ok(());
    }
    // the list of packages may be old, or never have been fetched
    process::run(apt_get().args(["-q", "update"]), INSTALL).context(how.clone())?;
    apt_install(apt_get, &missing).context(how)
}

impl Need {
    fn is_met(&self) -> bool {
        self.programs.iter().any(|program| find_program(program).is_some())
    }
}

fn apt_install(apt_get: fn() -> Command, packages: &[&str]) -> Result<()> {
    let mut command = apt_get();
    command.args(["-q", "install", "--yes", "--no-install-recommends"]).args(packages);
    process::run(&mut command, INSTALL)
}

/// How `apt-get` is called with the right to install; None where that is not to be had without asking.
fn apt_get_as_root() -> Option<fn() -> Command> {
    find_program("apt-get")?;
    let user = process::answer(Command::new("id").arg("-u"), ASK)?;
    if user.trim() == "0" {
        return Some(|| {
            let mut command = Command::new("apt-get");
            command.env("DEBIAN_FRONTEND", "noninteractive");
            command
        });
    }
    process::answer(Command::new("sudo").args(["-n", "true"]), ASK)?;
    Some(|| {
        let mut command = Command::new("sudo");
        command.args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        command
    })
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_on_the_path_is_found_and_another_is_not() {
        assert!(find_program("sh").is_some());
        assert!(find_program("no-such-program-anywhere").is_none());
    }

    #[test]
    fn the_host_is_named_as_the_compiler_names_it() {
        assert!(host_triple().unwrap().starts_with(std::env::consts::ARCH));
    }
}
