//! The words that server, worker and browser share: wire types, typed reasons, typed ids.
//!
//! Shapes follow GPUStack 0.7's `/v1` where it has the resource, with fields added and none taken away. The crate
//! does no input or output and builds for the browser.

mod check;
mod clock;
mod condition;
mod error;
mod event;
mod fleet;
mod id;
mod join;
mod link;
mod page;
mod reason;
mod server_url;
mod status;
mod tagged;
mod tunnel;
mod worker;

pub use check::{
    Check, CheckProblem, CredentialKind, EXAMINATION_PATH, Examination, ExaminationAnswer, ExaminationRequest,
    ExaminedWorker, HostReason, NodeAccess, NodeState, PortHolder, Seen, TimeService, Trouble, Verdict, WayBackAddress,
};
pub use clock::{ClockMeasurement, ClockSample, ClockVerdict};
pub use condition::{Condition, ConditionKind, ConditionStatus, Problem, Severity, WorkerState};
pub use error::{ErrorBody, error_reason};
pub use event::{WorkerEvent, WorkerEventKind};
pub use fleet::{
    DeviceReadings, DeviceView, FleetHello, FleetSnapshot, FleetUpdate, HostView, ReadingsUpdate, WatchRequest,
    WatchedUpdate, WorkerBrief, WorkerView,
};
pub use id::{SessionId, WorkerId, WorkerUuid};
pub use join::{PROTOCOL_VERSION, RegisterDeclined, RegisterRequest, RegisterResponse, STATUS_PATH};
pub use link::{LinkCarrier, LinkLoss, LinkReadings, LinkView};
pub use page::{Page, Pagination, WatchEvent, WatchEventType};
pub use reason::{DriverInitCause, Reason};
pub use server_url::{ServerUrl, ServerUrlError};
pub use status::{
    AbsentReading, AbsentWhy, CpuInfo, DeviceCore, DeviceHealth, DeviceMemory, DeviceNetwork, DevicePartition,
    DeviceProcess, DeviceType, FileSystem, GpuDevice, GpuDeviceItem, KernelInfo, MemoryInfo, MemoryKind, OsInfo,
    PciDevice, PowerScope, ReadingKind, SwapInfo, UptimeInfo, WorkerStatus,
};
pub use tunnel::{
    AgentPlace, Availability, CERTIFICATE_PATH, CUTS_REPORTED, CertificateReport, CertificateView, FaultCause,
    ForwardCut, ForwardDirection, ForwardReport, ForwardRole, ForwardState, NewCertificate, SshStep, TUNNELS_PATH,
    TunnelAgent, TunnelAgentId, TunnelAgentRequest, TunnelAgentResponse, TunnelAgentUuid, TunnelFault, TunnelReport,
    WorkerTunnel,
};
pub use worker::{ApiKey, ApiKeyCreate, Maintenance, SystemReserved, User, Worker, WorkerChange, WorkerReport};
