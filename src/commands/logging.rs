//! The log: standard error, quiet unless asked.

use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// A statement that took long would be told with its whole text, of thousands of rows.
const QUIET: &str = "warn,gpustack=info,sqlx::query=error";
/// The libraries' own debug output would bury ours.
const VERBOSE: &str = "info,gpustack=debug,detect=debug,link=debug,sqlx=warn,sqlx::query=error";

/// Sends the log to standard error from now on. `RUST_LOG` adds to what is logged, or takes from it.
pub fn start(debug: bool) {
    let own = if debug { VERBOSE } else { QUIET };
    let wished = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = EnvFilter::builder().parse_lossy(format!("{own},{wished}"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(debug)
        // a log whose reader is gone is no reason to fail: it would be told on standard error, and panic there
        .log_internal_errors(false)
        .init();
}
