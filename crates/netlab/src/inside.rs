//! A program that starts itself again with a network of its own.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::process::Command;

/// Set in the process that runs inside, to who started it.
const INSIDE: &str = "NETLAB_INSIDE";
const BY_ROOT: &str = "root";
const BY_USER: &str = "user";

/// Programs keep files there that are called by process numbers, which begin anew inside.
const OWN_FOLDERS: &str = "mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /run && exec \"$0\" \"$@\"";

/// Whether this process has a network of its own.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Whether the root of this process's network is the system's root too. Programs that become other users on their own,
/// such as OpenSSH and nginx, cannot do with less.
pub fn is_inside_as_root() -> bool {
    std::env::var_os(INSIDE).is_some_and(|started| started == BY_ROOT)
}

/// How this program is started again with `arguments` in a network of its own, where it is root and has no other host's
/// processes around it. It and all that it starts end with the command, and with the thread that started that.
pub fn start_inside(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Command> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    // so that it ends with the thread that waits for it, however that one ends
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare"]);
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--uts", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "--"]);
    command
        .args(["sh", "-c", OWN_FOLDERS])
        .arg(program)
        .args(arguments)
        .env(INSIDE, if is_root { BY_ROOT } else { BY_USER });
    Ok(command)
}
