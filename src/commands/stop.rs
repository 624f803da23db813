//! How a running process is told to stop.

use std::io;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Longer than every part's own deadline for stopping.
const DEADLINE: Duration = Duration::from_secs(20);
/// What a shell reports for a process that SIGINT ended.
const STOPPED_AT_ONCE: i32 = 130;
const STUCK: i32 = 1;

/// Cancelled by the first SIGTERM or SIGINT. The second one, or the deadline, ends the process at once.
pub fn on_signal() -> io::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stopping = CancellationToken::new();
    let token = stopping.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        token.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = tokio::time::sleep(DEADLINE) => {
                tracing::error!("not everything ended in {} s; leaving it", DEADLINE.as_secs());
                std::process::exit(STUCK);
            }
        }
        std::process::exit(STOPPED_AT_ONCE);
    });
    Ok(stopping)
}
