//! Tells the server what the worker sees of its host, when that has changed.

use super::backoff::Backoff;
use super::session::Session;
use super::transport::{JoinError, Transport};
use api::{StatusReport, WorkerStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

/// Reports are no closer than this; the detection's own pace makes them rarer.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// Ages and other things that change by themselves are brought up to date this often on an idle host.
const LONGEST_INTERVAL: Duration = Duration::from_mins(5);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// What the detection saw last; None before it has seen anything.
pub type LatestStatus = watch::Receiver<Option<Arc<WorkerStatus>>>;

/// Reports until the session is over, and tells why it is. The first report goes at once.
pub async fn run(
    transport: Arc<dyn Transport>,
    session: Arc<Session>,
    mut latest: LatestStatus,
    wanted: Arc<Notify>,
) -> JoinError {
    let mut retries = Backoff::new(FIRST_RETRY, LONGEST_RETRY);
    let mut sent: Option<(Arc<WorkerStatus>, Instant)> = None;
    loop {
        let status = next_status(&mut latest, sent.as_ref(), &wanted).await;
        let report = StatusReport { session_id: session.id, status: WorkerStatus::clone(&status) };
        match transport.report_status(&report, &session.credential).await {
            Ok(()) => {
                retries.reset();
                sent = Some((status, Instant::now()));
            }
            Err(error) if error.ends_session() => return error,
            Err(error) => {
                tracing::debug!(%error, "status report failed");
                sent = None;
                sleep(error.retry_after().unwrap_or_default() + retries.next_pause()).await;
            }
        }
    }
}

/// Waits for a status that is worth sending.
async fn next_status(
    latest: &mut LatestStatus,
    sent: Option<&(Arc<WorkerStatus>, Instant)>,
    wanted: &Notify,
) -> Arc<WorkerStatus> {
    let Some((sent, sent_at)) = sent else {
        return current(latest).await;
    };
    let changed = async {
        sleep_until(*sent_at + SHORTEST_INTERVAL).await;
        loop {
            let status = current(latest).await;
            if differs(sent, &status) {
                return status;
            }
            detected(latest).await;
        }
    };
    tokio::select! {
        status = changed => return status,
        () = wanted.notified() => {}
        () = sleep_until(*sent_at + LONGEST_INTERVAL) => {}
    }
    current(latest).await
}

async fn current(latest: &mut LatestStatus) -> Arc<WorkerStatus> {
    loop {
        if let Some(status) = latest.borrow_and_update().clone() {
            return status;
        }
        detected(latest).await;
    }
}

/// Waits for the next detection.
async fn detected(latest: &mut LatestStatus) {
    if latest.changed().await.is_err() {
        // the worker is stopping: nothing will come any more, and the session ends by itself
        std::future::pending::<()>().await;
    }
}

/// Whether a status says something new. Readings that wander within their tolerance do not count, nor does what only
/// grows older.
fn differs(sent: &WorkerStatus, now: &WorkerStatus) -> bool {
    let (sent_facts, sent_readings) = split(sent);
    let (facts, readings) = split(now);
    facts != sent_facts
        || sent_readings.len() != readings.len()
        || sent_readings.iter().zip(&readings).any(|(sent, now)| match (sent.value, now.value) {
            (Some(sent), Some(value)) => (sent - value).abs() >= now.tolerance,
            (None, None) => false,
            _ => true,
        })
}

/// A number that wanders.
struct Reading {
    value: Option<f64>,
    /// A change of this much is worth telling.
    tolerance: f64,
}

/// The numbers that wander, taken out of the rest.
fn split(status: &WorkerStatus) -> (WorkerStatus, Vec<Reading>) {
    const PERCENT: f64 = 1.0;
    const CPU_PERCENT: f64 = 5.0;
    const DEGREES: f64 = 2.0;
    const WATTS: f64 = 5.0;

    let mut facts = status.clone();
    let mut readings = Vec::new();
    let mut take = |value: Option<f64>, tolerance: f64| readings.push(Reading { value, tolerance });
    let share = |total: Option<u64>| total.map_or(1.0, |total| (total as f64 / 100.0).max(1.0));

    if let Some(cpu) = &mut facts.cpu {
        take(cpu.utilization_rate.take(), CPU_PERCENT);
    }
    if let Some(memory) = &mut facts.memory {
        take(memory.utilization_rate.take(), PERCENT);
        take(memory.used.take().map(|used| used as f64), share(memory.total));
    }
    if let Some(swap) = &mut facts.swap {
        take(swap.utilization_rate.take(), PERCENT);
        take(swap.used.take().map(|used| used as f64), share(swap.total));
    }
    for file_system in facts.filesystem.iter_mut().flatten() {
        for bytes in [&mut file_system.used, &mut file_system.free, &mut file_system.available] {
            take(bytes.take().map(|bytes| bytes as f64), share(file_system.total));
        }
    }
    for device in facts.gpu_devices.iter_mut().flatten() {
        take(device.temperature.take(), DEGREES);
        take(device.power_w.take(), WATTS);
        if let Some(core) = &mut device.core {
            take(core.utilization_rate.take(), PERCENT);
        }
        let total = device.memory.as_ref().and_then(|memory| memory.total);
        if let Some(memory) = &mut device.memory {
            take(memory.utilization_rate.take(), PERCENT);
            take(memory.used.take().map(|used| used as f64), share(total));
        }
        for process in device.processes.iter_mut().flatten() {
            take(process.memory_bytes.take().map(|used| used as f64), share(total));
        }
    }
    for problem in &mut facts.problems {
        problem.age_s = 0;
    }
    facts.devices_stale_s = facts.devices_stale_s.map(|_| 0);
    facts.uptime = None;
    (facts, readings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;
    use crate::worker::transport::fake::{Call, FakeTransport, Reply, Said};
    use api::{
        CpuInfo, DeviceCore, DeviceMemory, GpuDevice, MemoryInfo, Problem, Reason, SessionId, Severity, UptimeInfo,
    };
    use uuid::Uuid;

    fn status() -> WorkerStatus {
        WorkerStatus {
            cpu: Some(CpuInfo { total: Some(192.0), utilization_rate: Some(3.0) }),
            memory: Some(MemoryInfo { total: Some(1_000_000), used: Some(100_000), ..MemoryInfo::default() }),
            uptime: Some(UptimeInfo { uptime: Some(1.0), boot_time: None }),
            gpu_devices: Some(vec![GpuDevice {
                name: "910B3".to_owned(),
                temperature: Some(46.0),
                power_w: Some(91.0),
                core: Some(DeviceCore { total: Some(20), utilization_rate: Some(0.0) }),
                memory: Some(DeviceMemory { total: Some(65_536), used: Some(3_000), ..DeviceMemory::default() }),
                ..GpuDevice::default()
            }]),
            problems: vec![Problem {
                severity: Severity::Warning,
                reason: Reason::ToolMissing { tool: "npu-smi".to_owned() },
                age_s: 5,
            }],
            devices_stale_s: Some(10),
            ..WorkerStatus::default()
        }
    }

    fn device(status: &mut WorkerStatus) -> &mut GpuDevice {
        status.gpu_devices.as_mut().unwrap().first_mut().unwrap()
    }

    struct Reporting {
        server: Arc<FakeTransport>,
        latest: watch::Sender<Option<Arc<WorkerStatus>>>,
        wanted: Arc<Notify>,
        task: tokio::task::JoinHandle<JoinError>,
    }

    fn reporting(server: FakeTransport, first: Option<WorkerStatus>) -> Reporting {
        let session = Arc::new(Session {
            id: SessionId(Uuid::new_v4()),
            name: "npu-1".to_owned(),
            credential: Secret::new("credential"),
            heartbeat_interval: Duration::from_secs(10),
        });
        let (server, wanted) = (Arc::new(server), Arc::new(Notify::new()));
        let (latest, seen) = watch::channel(first.map(Arc::new));
        let transport: Arc<dyn Transport> = server.clone();
        let task = tokio::spawn(run(transport, session, seen, Arc::clone(&wanted)));
        Reporting { server, latest, wanted, task }
    }

    fn seconds(calls: &[Call]) -> Vec<u64> {
        calls.iter().map(|call| call.at.as_secs()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_host_is_reported_at_once_and_then_rarely() {
        let reporting = reporting(FakeTransport::default(), Some(status()));
        let calls = reporting.server.until(|calls| calls.len() == 3).await;
        assert_eq!(seconds(&calls), [0, 300, 600]);
        reporting.task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_reported_but_not_right_after_the_last_report() {
        let reporting = reporting(FakeTransport::default(), Some(status()));
        reporting.server.until(|calls| calls.len() == 1).await;
        reporting.latest.send_replace(Some(Arc::new(WorkerStatus::default())));
        let calls = reporting.server.until(|calls| calls.len() == 2).await;
        assert_eq!(seconds(&calls), [0, 1]);
        reporting.task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_the_server_wants_is_sent_at_once() {
        let reporting = reporting(FakeTransport::default(), Some(status()));
        reporting.server.until(|calls| calls.len() == 1).await;
        reporting.wanted.notify_one();
        let calls = reporting.server.until(|calls| calls.len() == 2).await;
        assert_eq!(seconds(&calls), [0, 0]);
        reporting.task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_reported_before_the_host_was_looked_at() {
        let reporting = reporting(FakeTransport::default(), None);
        tokio::time::sleep(LONGEST_INTERVAL).await;
        assert_eq!(reporting.server.calls().len(), 0);
        reporting.latest.send_replace(Some(Arc::new(status())));
        reporting.server.until(|calls| calls.len() == 1).await;
        reporting.task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_report_is_sent_again_as_the_host_is_then() {
        let mut server = FakeTransport::default();
        let timed_out = JoinError::TimedOut { address: "h:1".to_owned(), timeout_s: 15 };
        server.on_report = Box::new(move |number| match number {
            0 => Reply::Fail(timed_out.clone()),
            _ => Reply::Answer(()),
        });
        let reporting = reporting(server, Some(status()));
        reporting.server.until(|calls| calls.len() == 1).await;
        reporting.latest.send_replace(Some(Arc::new(WorkerStatus::default())));
        let calls = reporting.server.until(|calls| calls.len() == 2).await;
        assert!(matches!(&calls[1].said, Said::Report(reported) if **reported == WorkerStatus::default()));
        reporting.task.abort();
    }

    #[test]
    fn what_wanders_or_only_grows_older_is_not_worth_a_report() {
        let changes: [fn(&mut WorkerStatus); 6] = [
            |status| status.cpu.as_mut().unwrap().utilization_rate = Some(6.0),
            |status| status.memory.as_mut().unwrap().used = Some(105_000),
            |status| status.uptime.as_mut().unwrap().uptime = Some(10_001.0),
            |status| device(status).temperature = Some(47.0),
            |status| status.problems[0].age_s = 15,
            |status| status.devices_stale_s = Some(20),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut now = status();
            change(&mut now);
            assert!(!differs(&status(), &now), "change {number}");
        }
    }

    #[test]
    fn what_matters_is() {
        let changes: [fn(&mut WorkerStatus); 8] = [
            |status| device(status).core.as_mut().unwrap().utilization_rate = Some(1.0),
            |status| device(status).temperature = Some(48.0),
            |status| device(status).temperature = None,
            |status| device(status).memory.as_mut().unwrap().used = Some(4_000),
            |status| device(status).health = Some(api::DeviceHealth::Critical),
            |status| status.gpu_devices = Some(Vec::new()),
            |status| status.problems.clear(),
            |status| status.devices_stale_s = None,
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut now = status();
            change(&mut now);
            assert!(differs(&status(), &now), "change {number}");
        }
    }
}
