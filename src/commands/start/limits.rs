//! What the kernel allows this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than the connections that a server takes. Not all that is allowed: vendors' tools inherit it, and some close
/// every descriptor up to the limit, which is a billion in some containers.
const WANTED: u64 = 131_072;

/// Takes more file descriptors than the usual 1024, which are for programs that use `select`: each connection is one.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // None means no limit
    let allowed = limit.maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    if limit.current.is_none_or(|current| current >= allowed) {
        return;
    }
    let raised = Rlimit { current: Some(allowed), maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, current = ?limit.current, "cannot raise the limit of open files");
    }
}
