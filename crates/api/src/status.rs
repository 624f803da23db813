use crate::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a worker reports of its host. GPUStack 0.7's shape; a reading that is not there is null, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct WorkerStatus {
    /// Processors.
    pub cpu: Option<CpuInfo>,
    /// Main memory.
    pub memory: Option<MemoryInfo>,
    /// Swap space.
    pub swap: Option<SwapInfo>,
    /// File systems that matter: real disks, each once.
    pub filesystem: Option<Vec<FileSystem>>,
    /// Operating system.
    pub os: Option<OsInfo>,
    /// Kernel.
    pub kernel: Option<KernelInfo>,
    /// Time since boot.
    pub uptime: Option<UptimeInfo>,
    /// Accelerators; null until the first detection has finished.
    pub gpu_devices: Option<Vec<GpuDevice>>,
    /// GPUStack 0.7's llama-box servers, passed through.
    pub rpc_servers: Option<serde_json::Value>,
    /// What detectors found wrong. Not in GPUStack 0.7.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// The devices' readings are this old, in seconds, because a tool does not answer; null when they are current.
    /// Not in GPUStack 0.7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices_stale_s: Option<u64>,
}

/// Processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct CpuInfo {
    /// Logical processors.
    pub total: Option<f64>,
    /// Percent, 0 to 100.
    pub utilization_rate: Option<f64>,
}

/// Main memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct MemoryInfo {
    /// All of it.
    pub total: Option<u64>,
    /// Percent, 0 to 100.
    pub utilization_rate: Option<f64>,
    /// Shared with the accelerator.
    pub is_unified_memory: Option<bool>,
    /// In use.
    pub used: Option<u64>,
    /// Promised to model instances.
    pub allocated: Option<u64>,
}

/// Swap space, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SwapInfo {
    /// All of it.
    pub total: Option<u64>,
    /// Percent, 0 to 100.
    pub utilization_rate: Option<f64>,
    /// In use.
    pub used: Option<u64>,
}

/// One file system, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct FileSystem {
    /// Empty in GPUStack 0.7.
    pub name: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// What is mounted, e.g. `/dev/sda1`.
    pub mount_from: String,
    /// All of it.
    pub total: Option<u64>,
    /// In use.
    pub used: Option<u64>,
    /// Not in use.
    pub free: Option<u64>,
    /// Not in use and not reserved for root.
    pub available: Option<u64>,
}

/// Operating system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct OsInfo {
    /// `NAME` of `/etc/os-release`.
    pub name: String,
    /// `VERSION` of `/etc/os-release`.
    pub version: String,
}

/// Kernel, as `uname` gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct KernelInfo {
    /// e.g. `Linux`.
    pub name: String,
    /// e.g. `5.10.0-216.0.0.115.oe2203sp4.aarch64`.
    pub release: String,
    /// e.g. `#1 SMP …`.
    pub version: String,
    /// e.g. `aarch64`.
    pub architecture: String,
}

/// Time since boot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct UptimeInfo {
    /// Milliseconds.
    pub uptime: Option<f64>,
    /// By the worker's clock, e.g. `2025-02-24T09:17:51.337+0800`.
    pub boot_time: Option<String>,
}

/// One accelerator chip a scheduler can use. GPUStack 0.7's shape with `health`, `power_w`, `bus_id`,
/// `driver_version` and `memory.kind` added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct GpuDevice {
    /// The number a scheduler uses; for Ascend the chip's logic id, which names `/dev/davinciN`.
    pub index: u32,
    /// The card, as the vendor's tool numbers it; numbers can have holes.
    pub device_index: Option<u32>,
    /// The chip on its card.
    pub device_chip_index: Option<u32>,
    /// Model, e.g. `910B3`.
    pub name: String,
    /// The vendor's id of the chip.
    pub uuid: Option<String>,
    /// e.g. `Huawei`.
    pub vendor: String,
    /// Computing cores.
    pub core: Option<DeviceCore>,
    /// Device memory.
    pub memory: Option<DeviceMemory>,
    /// The device's own network port.
    pub network: Option<DeviceNetwork>,
    /// Degrees Celsius.
    pub temperature: Option<f64>,
    /// Free text pairs.
    pub labels: BTreeMap<String, String>,
    /// Which family of tools drives it.
    #[serde(rename = "type")]
    pub kind: DeviceType,
    /// Whether the vendor's tool calls it healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<DeviceHealth>,
    /// Watts now; of the whole card where the tool gives no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// PCI address, lower case, e.g. `0000:c1:00.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus_id: Option<String>,
    /// Of the vendor's driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
}

/// Which family of tools drives a device; GPUStack 0.7's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeviceType {
    /// NVIDIA.
    Cuda,
    /// Huawei Ascend.
    Npu,
    /// AMD.
    Rocm,
    /// Moore Threads.
    Musa,
    /// Apple.
    Mps,
    /// Hygon.
    Dcu,
    /// Iluvatar.
    Corex,
    /// Cambricon.
    Mlu,
    /// Anything else.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Computing cores of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct DeviceCore {
    /// How many.
    pub total: Option<u32>,
    /// Percent, 0 to 100.
    pub utilization_rate: Option<f64>,
}

/// Device memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct DeviceMemory {
    /// All of it.
    pub total: Option<u64>,
    /// Percent, 0 to 100.
    pub utilization_rate: Option<f64>,
    /// Shared with the host.
    pub is_unified_memory: Option<bool>,
    /// In use.
    pub used: Option<u64>,
    /// Promised to model instances.
    pub allocated: Option<u64>,
    /// Which memory the figures are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<MemoryKind>,
}

/// Which memory of a device is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemoryKind {
    /// High-bandwidth memory, on the chip's package.
    Hbm,
    /// DDR on the card.
    Ddr,
}

/// The device's own network port, for Ascend RoCE.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct DeviceNetwork {
    /// `up` or `down`.
    pub status: String,
    /// Address.
    pub inet: String,
    /// Netmask.
    pub netmask: String,
    /// MAC address.
    pub mac: String,
    /// Gateway.
    pub gateway: String,
    /// Interface.
    pub iface: Option<String>,
    /// Bytes.
    pub mtu: Option<u32>,
}

/// A device's health, by its vendor's tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeviceHealth {
    /// `OK`.
    Ok,
    /// `Warning`.
    Warning,
    /// `Alarm`, `Critical` and the like.
    Critical,
    /// The tool says `UNKNOWN`.
    Unknown,
}

/// One row of `/v1/gpu-devices`: a device and where it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GpuDeviceItem {
    /// The device.
    #[serde(flatten)]
    pub device: GpuDevice,
    /// `<worker name>:<type>:<index>`.
    pub id: String,
    /// The worker's row.
    pub worker_id: Option<i64>,
    /// The worker's name.
    pub worker_name: String,
    /// The worker's address.
    pub worker_ip: String,
}
