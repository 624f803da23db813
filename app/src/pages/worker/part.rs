//! What the server draws of the page.

use super::events::events;
use super::facts::{HostDetail, host, reach};
use super::tunnels::tunnels;
use crate::drawn::Asked;
use crate::paths;
use crate::session::{UiError, not_found};
use api::WorkerId;
use leptos::prelude::*;

/// Tunnels, host, reach and events of the worker that the address names.
pub async fn draw(asked: &Asked) -> Result<String, UiError> {
    let id = worker_of(&asked.path).ok_or_else(not_found)?;
    let (worker, status, changes) = asked.backend.worker(id).await.ok_or_else(not_found)?;
    let depends_on = asked.backend.worker_tunnels(id).await;
    let detail = HostDetail::of(&status);
    Ok(asked.render(|| {
        view! {
            {tunnels(&worker, &depends_on, asked)}
            {host(&worker, &detail, asked)}
            <div class="worker-side">
                {reach(&worker, asked)}
                {events(&changes, asked)}
            </div>
        }
        .into_any()
    }))
}

fn worker_of(path: &str) -> Option<WorkerId> {
    path.strip_prefix(paths::WORKERS)?.strip_prefix('/')?.trim_end_matches('/').parse().ok().map(WorkerId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_names_the_worker() {
        for path in ["/workers/31", "/workers/31/"] {
            assert_eq!(worker_of(path), Some(WorkerId(31)), "{path}");
        }
        for path in ["/workers", "/workers/", "/workers/31/host", "/devices", "/workers/add"] {
            assert_eq!(worker_of(path), None, "{path}");
        }
    }
}
