//! What this process takes of the machine.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than the connections that a server takes. Not all that is allowed: vendors' tools inherit it, and some close
/// every descriptor up to the limit, which is a billion in some containers.
const WANTED: u64 = 131_072;

/// A thousand workers keep a tenth of one busy, and each has memory of its own, which adds up on hosts of 192 processors.
const MOST_THREADS: usize = 8;

/// How many threads answer requests.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
}

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
        tracing::warn!(%error, current = limit.current, "cannot raise the limit of open files");
    }
}
