//! What the worker's page asks of the server.

use crate::session::UiError;
use api::{WorkerEvent, WorkerId, WorkerStatus, WorkerView};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// Everything about one worker at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerDetail {
    /// The server's clock, in milliseconds since 1970.
    pub server_time_ms: i64,
    /// As cards and tables show it.
    pub worker: WorkerView,
    /// What it reported last.
    pub status: WorkerStatus,
    /// What changed, newest first.
    pub events: Vec<WorkerEvent>,
}

/// Everything about one worker.
#[server]
pub async fn ask_worker(
    /// Which.
    id: WorkerId,
) -> Result<WorkerDetail, UiError> {
    let caller = crate::session::authorised().await?;
    let (worker, status, events) = caller.backend.worker(id).await.ok_or(UiError::NotFound)?;
    Ok(WorkerDetail { server_time_ms: server_time_ms(), worker, status, events })
}

#[cfg(feature = "ssr")]
fn server_time_ms() -> i64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}
