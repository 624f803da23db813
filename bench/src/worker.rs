//! One played worker.

use crate::client::Client;
use crate::host::Host;
use crate::latency::Latencies;
use crate::options::Options;
use crate::report::Failures;
use anyhow::Result;
use api::{
    ClockMeasurement, ClockSample, CpuInfo, DeviceCore, DeviceHealth, DeviceMemory, DeviceType, GpuDevice,
    HeartbeatRequest, HeartbeatResponse, KernelInfo, MemoryInfo, MemoryKind, OsInfo, PROTOCOL_VERSION, RegisterRequest,
    RegisterResponse, ServerUrl, SessionId, StatusReport, UptimeInfo, WorkerStatus,
};
use http::Method;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use uuid::Uuid;

const GIB: u64 = 1024 * 1024 * 1024;
const DEVICE_MEMORY_BYTES: u64 = 64 * GIB;
const HOST_MEMORY_BYTES: u64 = 1024 * GIB;
/// Until the server has told its own wish.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// The fractional part of the golden ratio: its multiples, taken modulo one, are spread evenly.
const SPREAD: f64 = 0.618_034;

/// A worker that exists only on the wire.
pub struct PlayedWorker {
    number: u32,
    name: String,
    host: Host,
    devices: u32,
    session: SessionId,
    client: Client,
    heartbeat_interval: Duration,
    status_interval: Duration,
    clock: Option<ClockMeasurement>,
}

/// How long a worker's arrival took.
pub struct Arrival {
    /// When it was registered.
    pub joined: Instant,
    /// Until it was registered.
    pub join: Duration,
    /// Until its first report was taken, after that.
    pub first_report: Duration,
}

/// What a worker did and how it went.
#[derive(Default)]
pub struct Work {
    /// Of each heartbeat.
    pub heartbeats: Latencies,
    /// Of each report.
    pub reports: Latencies,
    /// What went wrong.
    pub failures: Failures,
    /// Towards the server and back.
    pub bytes: u64,
}

impl PlayedWorker {
    /// The worker of this number, which connects when it joins.
    pub fn new(number: u32, host: Host, options: &Options, server: &ServerUrl) -> Self {
        Self {
            number,
            name: format!("{}-{number:05}", options.name_prefix),
            host,
            devices: options.devices,
            session: SessionId(Uuid::new_v4()),
            client: Client::new(server.clone(), options.timeout()),
            heartbeat_interval: HEARTBEAT_INTERVAL,
            status_interval: options.status_interval(),
            clock: None,
        }
    }

    /// Joins with the token, and sends the first report.
    pub async fn join(mut self, token: String) -> Result<(Self, Arrival)> {
        self.client.set_bearer(&token)?;
        let request = self.register_request();
        let begun = Instant::now();
        let answer: RegisterResponse = self.client.call(Method::POST, "/v1/worker-sessions", &request).await?;
        let joined = Instant::now();
        let join = joined.duration_since(begun);
        if let Some(credential) = &answer.credential {
            self.client.set_bearer(credential)?;
        }
        self.heartbeat_interval = Duration::from_secs(answer.heartbeat_interval_s.max(1));
        let first_report = self.report(0).await?;
        Ok((self, Arrival { joined, join, first_report }))
    }

    /// Sends heartbeats and reports until told to stop. Workers begin at different points of their intervals.
    pub async fn work(mut self, mut stopped: watch::Receiver<bool>) -> Work {
        let phase = (f64::from(self.number) * SPREAD).fract();
        let mut heartbeats = every(self.heartbeat_interval, phase);
        let mut reports = every(self.status_interval, (phase + 0.5).fract());
        let mut work = Work::default();
        let bytes_before = self.bytes();
        let mut round = 0;
        loop {
            tokio::select! {
                _ = stopped.changed() => break,
                _ = heartbeats.tick() => match self.heartbeat().await {
                    Ok(took) => work.heartbeats.push(took),
                    Err(error) => work.failures.add("heartbeat", &error),
                },
                _ = reports.tick() => {
                    round += 1;
                    match self.report(round).await {
                        Ok(took) => work.reports.push(took),
                        Err(error) => work.failures.add("report", &error),
                    }
                }
            }
        }
        work.bytes = self.bytes() - bytes_before;
        work
    }

    async fn heartbeat(&mut self) -> Result<Duration> {
        let request = HeartbeatRequest { session_id: self.session, clock: self.clock, leaving: false };
        let begun = Instant::now();
        let sent_ms = now_ms();
        let answer: HeartbeatResponse = self.client.call(Method::POST, "/v1/worker-heartbeats", &request).await?;
        let sample = ClockSample {
            sent_ms,
            received_ms: answer.received_ms,
            returned_ms: answer.returned_ms,
            answered_ms: now_ms(),
        };
        self.clock = sample.measure();
        Ok(begun.elapsed())
    }

    async fn report(&mut self, round: u32) -> Result<Duration> {
        let report = StatusReport { session_id: self.session, status: self.status(round) };
        let begun = Instant::now();
        self.client.call::<serde::de::IgnoredAny>(Method::PUT, "/v1/worker-status", &report).await?;
        Ok(begun.elapsed())
    }

    fn bytes(&self) -> u64 {
        self.client.traffic().sent_bytes() + self.client.traffic().received_bytes()
    }

    fn register_request(&self) -> RegisterRequest {
        let labels = [("os", "linux"), ("arch", "aarch64")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        RegisterRequest {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            worker_uuid: self.host.uuid,
            session_id: self.session,
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

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
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
