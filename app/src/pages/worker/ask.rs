//! What the worker's page asks of the server.

use crate::session::UiError;
#[cfg(feature = "ssr")]
use api::WorkerStatus;
use api::{WorkerId, WorkerView};
use leptos::prelude::*;
use leptos::server_fn::codec::Json;
use serde::{Deserialize, Serialize};

/// Everything about one worker at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerDetail {
    /// The server's clock, in milliseconds since 1970.
    pub server_time_ms: i64,
    /// As cards and tables show it.
    pub worker: WorkerView,
    /// Network ports of devices, which the stream does not carry: index, state and address.
    pub networks: Networks,
}

/// Of each device that has one: its index, its network port's state and address.
pub type Networks = Vec<(u32, String)>;

#[cfg(feature = "ssr")]
fn networks(status: &WorkerStatus) -> Networks {
    let port = |device: &api::GpuDevice| {
        let network = device.network.as_ref()?;
        let text = format!("{} {}", network.status, network.inet);
        let text = text.trim();
        (!text.is_empty()).then(|| (device.index, text.to_owned()))
    };
    status.gpu_devices.iter().flatten().filter_map(port).collect()
}

/// Everything about one worker.
#[server(input = Json, endpoint = "ask_worker")]
pub async fn ask_worker(
    /// Which.
    id: WorkerId,
) -> Result<WorkerDetail, UiError> {
    let caller = crate::session::authorised().await?;
    let (worker, status, _) = caller.backend.worker(id).await.ok_or_else(crate::session::not_found)?;
    Ok(WorkerDetail { server_time_ms: server_time_ms(), worker, networks: networks(&status) })
}

#[cfg(feature = "ssr")]
fn server_time_ms() -> i64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}
