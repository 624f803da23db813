//! A program that starts itself again with a network of its own.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::process::Command;

/// Set in the process that runs inside.
const INSIDE: &str = "NETLAB_INSIDE";

/// Programs keep files there that are called by process numbers, which begin anew inside.
const OWN_FOLDERS: &str = "mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /run && exec \"$0\" \"$@\"";

/// Whether this process has a network of its own.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// How this program is started again with `arguments` in a network of its own, where it is root and has no other host's
/// processes around it. It and all that it starts end when the command is killed.
pub fn start_inside(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Command> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--uts", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "--"]);
    command.args(["sh", "-c", OWN_FOLDERS]).arg(program).args(arguments).env(INSIDE, "1");
    Ok(command)
}
