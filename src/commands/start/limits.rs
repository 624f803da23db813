//! What the kernel allows this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes as many file descriptors as allowed: each connection is one, and the usual 1024 are for programs that use
/// `select`.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, current = ?limit.current, "cannot raise the limit of open files");
    }
}
