//! Whether the worker has a session with its server.

/// Whether the worker has a session with its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// It tries to get one.
    Joining {
        /// Why it has none, once an attempt has failed.
        cause: Option<String>,
    },
    /// It has one.
    Up,
}
