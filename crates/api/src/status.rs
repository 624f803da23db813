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
    /// Accelerators that the PCI bus shows and no driver has taken: present, but nobody can use them. Not in GPUStack
    /// 0.7.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undriven_devices: Vec<PciDevice>,
}

/// An accelerator on the PCI bus without a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct PciDevice {
    /// PCI address, lower case, e.g. `0000:c1:00.0`.
    pub bus_id: String,
    /// e.g. `Huawei`.
    pub vendor: String,
    /// The vendor's id and the device's, in hexadecimal, e.g. `19e5:d802`.
    pub pci_id: String,
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

/// One accelerator chip a scheduler can use. GPUStack 0.7's shape with `memory.kind` and everything from `health` on
/// added.
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
    // in a box of its own: few devices have one, and a server holds very many devices
    pub network: Option<Box<DeviceNetwork>>,
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
    /// The vendor's codes for what ails it, e.g. `80E01801`; none for a healthy one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub error_codes: Vec<String>,
    /// Watts now; of what, says `power_scope`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// What `power_w` is measured of, where it is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_scope: Option<PowerScope>,
    /// PCI address, lower case, e.g. `0000:c1:00.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus_id: Option<String>,
    /// Of the vendor's driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Of the card's firmware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware_version: Option<String>,
    /// Of the vendor's computing software where it is installed: CANN, CUDA, MACA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_version: Option<String>,
    /// The chip's number on the host. Differs from `index` in a container that was given a part of the chips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_index: Option<u32>,
    /// Its device node, e.g. `/dev/davinci4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Parts that it is cut into, each used as a device of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<DevicePartition>,
    /// Processes that use it; absent where the tool does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<DeviceProcess>>,
    /// Why readings are absent, where it is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<AbsentReading>,
}

/// What a power reading is measured of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PowerScope {
    /// This device alone.
    Device,
    /// The card with all its chips; the reading stands with the first of them.
    Card,
}

/// A part of a device, as NVIDIA's multi-instance mode makes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct DevicePartition {
    /// Its profile, e.g. `1g.10gb`.
    pub name: String,
    /// The vendor's id of it.
    pub uuid: String,
}

/// A process that uses a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct DeviceProcess {
    /// On the host; a container's own numbers differ.
    pub pid: u32,
    /// As the tool prints it, often cut short.
    pub name: String,
    /// Device memory, in bytes.
    pub memory_bytes: Option<u64>,
}

/// A reading that is not there, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AbsentReading {
    /// Which.
    pub reading: ReadingKind,
    /// Why.
    pub why: AbsentWhy,
}

/// What can be read of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReadingKind {
    /// `memory`.
    Memory,
    /// `memory.used`.
    MemoryUsed,
    /// `core.utilization_rate`.
    Utilization,
    /// `temperature`.
    Temperature,
    /// `power_w`.
    Power,
    /// `health`.
    Health,
}

/// Why a reading is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AbsentWhy {
    /// The tool has a place for it and says that there is none now: `NA`, `-`.
    NotAvailable,
    /// The device or its driver cannot tell it.
    NotSupported,
    /// The worker may not read it.
    Forbidden,
    /// The tool failed at this reading alone.
    Failed,
    /// The tool has no place for it.
    NotTold,
    /// The tool printed something that is no such reading.
    Unreadable,
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
    /// MetaX.
    Maca,
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
