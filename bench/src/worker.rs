//! One played worker: a real link, over which it tells what it sees of a host that is made up.

use crate::beats::{self, BeatTimes};
use crate::host::Host;
use crate::options::Options;
use crate::traffic::{CountedTransport, Traffic};
use anyhow::{Context, Result};
use api::{
    CpuInfo, DeviceCore, DeviceHealth, DeviceMemory, DeviceType, GpuDevice, KernelInfo, MemoryInfo, MemoryKind, OsInfo,
    PROTOCOL_VERSION, RegisterRequest, ServerUrl, SessionId, UptimeInfo, WorkerStatus,
};
use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use gpustack::worker::status::{StatusSource, routes};
use link::{
    AllowedTargets, DialConfig, DialError, Dialer, JoinToken, KeyPair, LinkEnd, LinkUser, Next, ServerAddress, Tuning,
    Welcome,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const GIB: u64 = 1024 * 1024 * 1024;
const DEVICE_MEMORY_BYTES: u64 = 64 * GIB;
const HOST_MEMORY_BYTES: u64 = 1024 * GIB;
/// As the server wishes it.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// The fractional part of the golden ratio: its multiples, taken modulo one, are spread evenly.
const SPREAD: f64 = 0.618_034;

/// A worker that exists only on the wire.
pub struct PlayedWorker {
    number: u32,
    name: String,
    host: Host,
    devices: u32,
    status_interval: Duration,
    dialing: DialConfig,
    shared: Arc<Shared>,
}

/// What all played workers tell of themselves.
pub struct Shared {
    /// Bytes of all connections.
    pub traffic: Arc<Traffic>,
    /// From each sign of life to its answer.
    pub beats: BeatTimes,
    happenings: mpsc::UnboundedSender<Happening>,
}

/// What became of one worker's link.
#[derive(Debug)]
pub enum Happening {
    /// It stands.
    Joined {
        /// From the dialling to the welcome.
        took: Duration,
        /// When.
        at: Instant,
        /// How long the worker was without one, when it had one before.
        without_for: Option<Duration>,
    },
    /// It is no more, and not because this program wants it.
    Ended,
    /// An attempt failed.
    Failed(String),
}

impl Shared {
    /// With where things that happen go.
    pub fn new(happenings: mpsc::UnboundedSender<Happening>) -> Arc<Self> {
        Arc::new(Self { traffic: Arc::default(), beats: BeatTimes::default(), happenings })
    }

    fn tell(&self, happening: Happening) {
        // nobody listens any more at the very end
        let _ = self.happenings.send(happening);
    }
}

impl PlayedWorker {
    /// The worker of this number, which connects when it plays.
    pub fn new(number: u32, host: Host, options: &Options, server: &ServerUrl, shared: &Arc<Shared>) -> Result<Self> {
        let address = ServerAddress::try_from(&server.to_string().parse()?)?;
        let dialing = DialConfig {
            transport: Arc::new(CountedTransport::new(server, Arc::clone(&shared.traffic))),
            address,
            keys: KeyPair::generate().context("no key")?,
            server_key: None,
            token: Some(JoinToken::new(options.token.as_str())),
            targets: AllowedTargets::none(),
            tuning: Tuning::default(),
        };
        Ok(Self {
            number,
            name: format!("{}-{number:05}", options.name_prefix),
            host,
            devices: options.devices,
            status_interval: options.status_interval(),
            dialing,
            shared: Arc::clone(shared),
        })
    }

    /// Joins, and tells changing readings until `stop`; then goes without a word. Workers begin at different points of
    /// their intervals. It can be played again, as the same worker.
    pub async fn play(self: Arc<Self>, stop: CancellationToken) {
        let (status, latest) = watch::channel(Some(Arc::new(self.status(0))));
        let (watched, _) = watch::channel(false);
        let source = StatusSource {
            latest,
            watched,
            heartbeat_interval: HEARTBEAT_INTERVAL,
            stop: stop.clone(),
            leaving: CancellationToken::new(),
        };
        let health = format!(r#"{{"status":"ok","worker_uuid":"{}"}}"#, self.host.uuid);
        let router = Router::new()
            .route("/healthz", get(move || std::future::ready(health)))
            .merge(beats::timed(routes(source), Arc::clone(&self.shared)));
        let user = Player { worker: &self, session: SessionId(Uuid::new_v4()), times: Mutex::default() };
        let dialer = Dialer::new(self.dialing.clone());
        tokio::select! {
            () = stop.cancelled() => {}
            () = dialer.run(&user, router, stop.clone()) => {}
            () = self.change_readings(&status) => {}
        }
    }

    async fn change_readings(&self, status: &watch::Sender<Option<Arc<WorkerStatus>>>) {
        let phase = (f64::from(self.number) * SPREAD).fract();
        let mut due = every(self.status_interval, phase);
        for round in 1_u32.. {
            due.tick().await;
            status.send_replace(Some(Arc::new(self.status(round))));
        }
    }

    fn register_request(&self, session_id: SessionId) -> RegisterRequest {
        let labels = [("os", "linux"), ("arch", "aarch64")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        RegisterRequest {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            worker_uuid: self.host.uuid,
            session_id,
            host_key: format!("{:064x}", self.host.uuid.0.as_u128()),
            name: Some(self.name.clone()),
            previous_name: None,
            hostname: self.name.clone(),
            ip: self.host.address.to_string(),
            port: self.host.port,
            labels: BTreeMap::from(labels),
            system_reserved: None,
        }
    }

    fn status(&self, round: u32) -> WorkerStatus {
        let reading = |device: u32, kind: u32| changing_reading(self.number, device, kind, round);
        WorkerStatus {
            cpu: Some(CpuInfo { total: Some(192.0), utilization_rate: Some(reading(0, 0)) }),
            memory: Some(MemoryInfo {
                total: Some(HOST_MEMORY_BYTES),
                utilization_rate: Some(reading(0, 1)),
                used: Some(part_of(HOST_MEMORY_BYTES, reading(0, 1))),
                ..MemoryInfo::default()
            }),
            os: Some(OsInfo { name: "openEuler".to_owned(), version: "22.03 (LTS-SP4)".to_owned() }),
            kernel: Some(KernelInfo {
                name: "Linux".to_owned(),
                release: "5.10.0-216.0.0.115.oe2203sp4.aarch64".to_owned(),
                version: "#1 SMP".to_owned(),
                architecture: "aarch64".to_owned(),
            }),
            uptime: Some(UptimeInfo { uptime: Some(f64::from(round) * 10_000.0), boot_time: None }),
            gpu_devices: Some((0..self.devices).map(|index| device(index, &reading)).collect()),
            ..WorkerStatus::default()
        }
    }
}

fn device(index: u32, reading: &impl Fn(u32, u32) -> f64) -> GpuDevice {
    GpuDevice {
        index,
        device_index: Some(index),
        device_chip_index: Some(0),
        name: "910B3".to_owned(),
        vendor: "Huawei".to_owned(),
        core: Some(DeviceCore { total: None, utilization_rate: Some(reading(index, 2)) }),
        memory: Some(DeviceMemory {
            total: Some(DEVICE_MEMORY_BYTES),
            utilization_rate: Some(reading(index, 3)),
            used: Some(part_of(DEVICE_MEMORY_BYTES, reading(index, 3))),
            kind: Some(MemoryKind::Hbm),
            ..DeviceMemory::default()
        }),
        temperature: Some(35.0 + reading(index, 4) / 2.0),
        kind: DeviceType::Npu,
        health: Some(DeviceHealth::Ok),
        power_w: Some(90.0 + reading(index, 5) * 2.0),
        bus_id: Some(format!("0000:{:02x}:00.0", 0xc1 + index)),
        driver_version: Some("25.2.0".to_owned()),
        ..GpuDevice::default()
    }
}

/// Percent; different for each worker, device and kind, and changing with the round.
fn changing_reading(worker: u32, device: u32, kind: u32, round: u32) -> f64 {
    let start = f64::from(worker) * SPREAD + f64::from(device) * 0.137 + f64::from(kind) * 0.311;
    ((start + f64::from(round) * 0.071).fract() * 1_000.0).round() / 10.0
}

/// The nearest whole number of bytes; both factors are far below the limits of the types.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a percentage of a u64 fits, and is not negative"
)]
fn part_of(total: u64, percent: f64) -> u64 {
    (total as f64 * percent / 100.0) as u64
}

fn every(period: Duration, phase: f64) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + period.mul_f64(phase), period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Notes what becomes of a worker's links.
struct Player<'a> {
    worker: &'a PlayedWorker,
    session: SessionId,
    times: Mutex<Times>,
}

#[derive(Clone, Copy, Default)]
struct Times {
    dialled: Option<Instant>,
    lost: Option<Instant>,
}

impl Player<'_> {
    fn times(&self, change: impl FnOnce(&mut Times)) -> Times {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut times);
        *times
    }
}

impl LinkUser for Player<'_> {
    fn join_request(&self) -> Bytes {
        self.times(|times| times.dialled = Some(Instant::now()));
        serde_json::to_vec(&self.worker.register_request(self.session)).unwrap_or_default().into()
    }

    fn joined(&self, _: &Welcome) {
        let times = self.times(|_| ());
        self.worker.shared.tell(Happening::Joined {
            took: times.dialled.map_or(Duration::ZERO, |at| at.elapsed()),
            at: Instant::now(),
            without_for: times.lost.map(|at| at.elapsed()),
        });
    }

    fn ended(&self, end: &LinkEnd, _: Duration) -> Next {
        self.times(|times| times.lost = Some(Instant::now()));
        if *end != LinkEnd::Shutdown {
            self.worker.shared.tell(Happening::Ended);
        }
        Next::Retry
    }

    fn failed(&self, error: &DialError, _: Duration) -> Next {
        self.worker.shared.tell(Happening::Failed(error.to_string()));
        Next::Retry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_percentages_and_change_with_the_round() {
        for round in 0..100 {
            assert!((0.0..=100.0).contains(&changing_reading(7, 3, 2, round)));
        }
        assert!((changing_reading(7, 3, 2, 1) - changing_reading(7, 3, 2, 2)).abs() > 1.0);
    }
}
