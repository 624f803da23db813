//! What the kernel says of this host: processors, memory, file systems, uptime.

mod filesystems;
pub(crate) mod os_release;

use api::{CpuInfo, FileSystem, KernelInfo, MemoryInfo, OsInfo, SwapInfo, UptimeInfo, WorkerStatus};
use chrono::{DateTime, Local};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::Duration;
use sysinfo::{MINIMUM_CPU_UPDATE_INTERVAL, System};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout};

/// Local disks answer in microseconds; one that takes longer is in trouble, and the other facts do not wait for it.
const FILE_SYSTEMS_DEADLINE: Duration = Duration::from_secs(2);

/// The facts of one moment. What the kernel does not tell is None.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFacts {
    /// Processors.
    pub cpu: Option<CpuInfo>,
    /// Main memory.
    pub memory: Option<MemoryInfo>,
    /// Swap space.
    pub swap: Option<SwapInfo>,
    /// Disks, each once; None when they did not answer in time.
    pub filesystem: Option<Vec<FileSystem>>,
    /// Distribution.
    pub os: Option<OsInfo>,
    /// Kernel.
    pub kernel: Option<KernelInfo>,
    /// Time since boot.
    pub uptime: Option<UptimeInfo>,
}

impl HostFacts {
    /// Puts the facts into a worker's report, in place of those that are there.
    pub fn fill(self, status: &mut WorkerStatus) {
        status.cpu = self.cpu;
        status.memory = self.memory;
        status.swap = self.swap;
        status.filesystem = self.filesystem;
        status.os = self.os;
        status.kernel = self.kernel;
        status.uptime = self.uptime;
    }
}

/// Takes samples of the host. Keep one for the life of the process: how busy processors are shows only between two
/// samples.
pub struct HostSampler {
    system: Option<System>,
    /// The first processor times; a utilisation needs two.
    first_cpu_sample: Option<Instant>,
    os: Option<OsInfo>,
    kernel: KernelInfo,
    file_systems: FileSystems,
}

impl Default for HostSampler {
    fn default() -> Self {
        Self::new()
    }
}

impl HostSampler {
    /// Reads what does not change while the host is up.
    pub fn new() -> Self {
        let system = System::new().inspect_err(|error| tracing::warn!(?error, "host facts are not available")).ok();
        Self {
            system,
            first_cpu_sample: None,
            os: std::fs::read_to_string("/etc/os-release").ok().as_deref().and_then(os_release::parse),
            kernel: kernel(),
            file_systems: FileSystems::default(),
        }
    }

    /// The facts now. Ends within two seconds even when a disk does not answer.
    pub async fn sample(&mut self) -> HostFacts {
        let filesystem = self.file_systems.measure().await;
        HostFacts {
            cpu: self.cpu(),
            memory: self.memory(),
            swap: self.swap(),
            filesystem,
            os: self.os.clone(),
            kernel: Some(self.kernel.clone()),
            uptime: Some(uptime()),
        }
    }

    fn cpu(&mut self) -> Option<CpuInfo> {
        let system = self.system.as_mut()?;
        system.refresh_cpu_usage();
        let count = u32::try_from(system.cpus().len()).ok().filter(|&count| count > 0)?;
        let first = *self.first_cpu_sample.get_or_insert_with(Instant::now);
        let is_measured = first.elapsed() >= MINIMUM_CPU_UPDATE_INTERVAL;
        let percent = f64::from(system.global_cpu_usage());
        let is_percent = (0.0..=100.0).contains(&percent);
        Some(CpuInfo {
            total: Some(f64::from(count)),
            utilization_rate: (is_measured && is_percent).then_some(percent),
        })
    }

    fn memory(&mut self) -> Option<MemoryInfo> {
        let system = self.system.as_mut()?;
        system.refresh_memory();
        let (total, used) = (system.total_memory(), system.used_memory());
        (total > 0).then(|| MemoryInfo {
            total: Some(total),
            used: Some(used),
            utilization_rate: Some(percent(used, total)),
            is_unified_memory: None,
            allocated: None,
        })
    }

    /// A host without swap has swap of zero bytes: that is known, and its share in use is not a number.
    fn swap(&self) -> Option<SwapInfo> {
        let system = self.system.as_ref()?;
        let (total, used) = (system.total_swap(), system.used_swap());
        let utilization_rate = (total > 0).then(|| percent(used, total));
        Some(SwapInfo { total: Some(total), used: Some(used), utilization_rate })
    }
}

/// Measures file systems on a thread of its own, of which there is never more than one: it can wait for a broken disk
/// for ever, and neither the runtime nor the end of the process must wait for it.
struct FileSystems {
    slot: Arc<Semaphore>,
}

impl Default for FileSystems {
    fn default() -> Self {
        Self { slot: Arc::new(Semaphore::new(1)) }
    }
}

impl FileSystems {
    /// None when the disks did not answer, this time or an earlier one that still waits.
    async fn measure(&self) -> Option<Vec<FileSystem>> {
        let slot = Arc::clone(&self.slot).try_acquire_owned().ok()?;
        let (answer, answered) = oneshot::channel();
        let measure = move || {
            let file_systems = filesystems::measure();
            drop(slot);
            // Nobody listens after the deadline.
            let _ = answer.send(file_systems);
        };
        std::thread::Builder::new().name("file systems".to_owned()).spawn(measure).ok()?;
        timeout(FILE_SYSTEMS_DEADLINE, answered).await.ok()?.ok()?
    }
}

fn percent(used: u64, total: u64) -> f64 {
    (used as f64 * 100.0 / total as f64).min(100.0)
}

/// The kernel that runs.
pub(crate) fn kernel() -> KernelInfo {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    KernelInfo {
        name: text(uname.sysname()),
        release: text(uname.release()),
        version: text(uname.version()),
        architecture: text(uname.machine()),
    }
}

/// Suspended time counts, as it does for people who ask since when a host has been up.
fn uptime() -> UptimeInfo {
    let up = clock_gettime(ClockId::Boottime);
    let uptime_ms = up.tv_sec as f64 * 1_000.0 + (up.tv_nsec / 1_000_000) as f64;
    let boot = System::boot_time().ok().and_then(|seconds| i64::try_from(seconds).ok());
    let boot_time = boot.and_then(|seconds| DateTime::from_timestamp(seconds, 0)).map(boot_text);
    UptimeInfo { uptime: Some(uptime_ms), boot_time }
}

fn boot_text(boot: DateTime<chrono::Utc>) -> String {
    boot.with_timezone(&Local).format("%Y-%m-%dT%H:%M:%S%.3f%z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sample_has_this_hosts_facts() {
        let sampling = tokio::spawn(async { HostSampler::new().sample().await });
        let facts = sampling.await.unwrap();
        let memory = facts.memory.unwrap();
        assert!(memory.used <= memory.total);
        assert!(facts.cpu.unwrap().total >= Some(1.0));
        assert!(!facts.kernel.unwrap().architecture.is_empty());
        let uptime = facts.uptime.unwrap();
        assert!(uptime.uptime > Some(0.0));
        assert!(DateTime::parse_from_str(&uptime.boot_time.unwrap(), "%Y-%m-%dT%H:%M:%S%.3f%z").is_ok());
    }

    #[tokio::test]
    async fn processors_have_no_utilisation_before_there_are_two_samples() {
        let mut sampler = HostSampler::new();
        assert_eq!(sampler.cpu().and_then(|cpu| cpu.utilization_rate), None);
    }

    #[tokio::test]
    async fn a_measurement_that_still_waits_for_a_disk_is_not_started_twice() {
        let mut sampler = HostSampler::new();
        let waiting = Arc::clone(&sampler.file_systems.slot).try_acquire_owned().unwrap();
        assert_eq!(sampler.sample().await.filesystem, None);
        drop(waiting);
        assert!(sampler.sample().await.filesystem.is_some());
    }

    #[test]
    fn facts_replace_those_of_an_earlier_report() {
        let mut status = WorkerStatus { swap: Some(SwapInfo::default()), ..WorkerStatus::default() };
        let facts = HostFacts { os: Some(OsInfo::default()), ..HostFacts::default() };
        facts.fill(&mut status);
        assert_eq!((status.os, status.swap), (Some(OsInfo::default()), None));
    }
}
