//! What the worker's page asks of the server.

use crate::session::UiError;
#[cfg(feature = "ssr")]
use api::{KernelInfo, WorkerStatus};
use api::{WorkerEvent, WorkerId, WorkerView};
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
    /// What it reported last, as far as the page shows it.
    pub host: HostDetail,
    /// What changed, newest first.
    pub events: Vec<WorkerEvent>,
}

/// What a worker reported of its host, as far as the page shows it and the stream does not carry it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostDetail {
    /// Name and version of the operating system; empty when unknown.
    pub os: String,
    /// Release and architecture of the kernel; empty when unknown.
    pub kernel: String,
    /// Since the host was started.
    pub uptime_s: Option<u64>,
    /// Swap space.
    pub swap: Option<SpaceUsed>,
    /// Where file systems are mounted, and how full they are.
    pub file_systems: Vec<(String, SpaceUsed)>,
    /// Network ports of devices: index, state and address.
    pub networks: Vec<(u32, String)>,
}

/// How full something is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceUsed {
    /// In use.
    pub used: u64,
    /// All of it.
    pub total: u64,
}

#[cfg(feature = "ssr")]
impl SpaceUsed {
    fn of(used: Option<u64>, total: Option<u64>) -> Option<Self> {
        let (used, total) = used.zip(total)?;
        (total > 0).then_some(Self { used, total })
    }
}

#[cfg(feature = "ssr")]
impl HostDetail {
    fn of(status: &WorkerStatus) -> Self {
        let file_systems = status.filesystem.iter().flatten().filter_map(|file_system| {
            let space = SpaceUsed::of(file_system.used, file_system.total)?;
            Some((file_system.mount_point.clone(), space))
        });
        let networks = status.gpu_devices.iter().flatten().filter_map(|device| {
            let network = device.network.as_ref()?;
            let text = join(&[&network.status, &network.inet]);
            (!text.is_empty()).then_some((device.index, text))
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a negative time becomes zero")]
        let uptime_s =
            status.uptime.as_ref().and_then(|uptime| uptime.uptime).map(|uptime_ms| (uptime_ms / 1000.0) as u64);
        Self {
            os: status.os.as_ref().map(|os| join(&[&os.name, &os.version])).unwrap_or_default(),
            kernel: status.kernel.as_ref().map(kernel_name).unwrap_or_default(),
            uptime_s,
            swap: status.swap.as_ref().and_then(|swap| SpaceUsed::of(swap.used, swap.total)),
            file_systems: file_systems.collect(),
            networks: networks.collect(),
        }
    }
}

/// The release, which names the architecture on some systems and not on others.
#[cfg(feature = "ssr")]
fn kernel_name(kernel: &KernelInfo) -> String {
    if kernel.release.ends_with(&kernel.architecture) {
        return kernel.release.clone();
    }
    join(&[&kernel.release, &kernel.architecture])
}

#[cfg(feature = "ssr")]
fn join(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

/// Everything about one worker.
#[server(input = Json, endpoint = "ask_worker")]
pub async fn ask_worker(
    /// Which.
    id: WorkerId,
) -> Result<WorkerDetail, UiError> {
    let caller = crate::session::authorised().await?;
    let (worker, status, events) = caller.backend.worker(id).await.ok_or_else(crate::session::not_found)?;
    Ok(WorkerDetail { server_time_ms: server_time_ms(), worker, host: HostDetail::of(&status), events })
}

#[cfg(feature = "ssr")]
fn server_time_ms() -> i64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}
