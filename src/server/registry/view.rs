//! Facts in the shapes that leave the server.

use super::assess::{self, Assessment, Policy};
use super::facts::{Facts, LinkStanding, ProbeOutcome};
use super::message::{rfc3339, state_message};
use super::time::Moment;
use api::{
    Condition, DeviceReadings, DeviceView, GpuDevice, GpuDeviceItem, HostView, LinkView, OsInfo, ReadingsUpdate,
    SystemReserved, Worker, WorkerBrief, WorkerState, WorkerStatus, WorkerView,
};
use app::fleet::Figures;

/// For browsers.
pub fn worker_view(facts: &Facts, moment: &Moment, policy: &Policy) -> WorkerView {
    assessed_view(facts, assess::assess(facts, moment, policy), moment)
}

/// For browsers, with what was found out about the worker at this moment.
pub fn assessed_view(facts: &Facts, assessment: Assessment, moment: &Moment) -> WorkerView {
    let row = &facts.row;
    let report = &facts.status.reported;
    WorkerView {
        id: row.id,
        uuid: row.uuid,
        name: row.name.clone(),
        hostname: row.hostname.clone(),
        ip: row.ip.clone(),
        port: row.port,
        labels: row.labels.clone(),
        os: os(facts),
        state: assessment.state,
        conditions: assessment.conditions,
        maintenance: row.maintenance.clone(),
        heartbeat_ms: assess::last_heartbeat_ms(facts, moment),
        joined_ms: row.created_ms,
        clock_offset_ms: clock_offset_ms(facts),
        direct_round_trip_ms: direct_round_trip_ms(facts),
        link: link_view(facts, moment),
        version: row.version.clone(),
        devices: report.gpu_devices.as_ref().map(|devices| devices.iter().map(device_view).collect()),
        devices_stale_s: report.devices_stale_s,
        host: host_view(report),
    }
}

/// For browsers that look at very many.
pub fn brief(facts: &Facts, assessment: Assessment) -> WorkerBrief {
    WorkerBrief { os: os(facts), search: search_text(facts), ..unsearched_brief(facts, assessment) }
}

/// The same without what is only there to be searched; of one with trouble with its system, of which advice speaks.
pub fn unsearched_brief(facts: &Facts, assessment: Assessment) -> WorkerBrief {
    let is_well = assessment.conditions.iter().all(Condition::is_fine);
    WorkerBrief {
        id: facts.row.id,
        name: facts.row.name.clone(),
        state: assessment.state,
        os: if is_well { String::new() } else { os(facts) },
        search: String::new(),
        conditions: if is_well { Vec::new() } else { assessment.conditions },
    }
}

fn os(facts: &Facts) -> String {
    facts.status.reported.os.as_ref().map(os_name).unwrap_or_default()
}

/// What people search for, besides name, system and state.
fn search_text(facts: &Facts) -> String {
    let row = &facts.row;
    let mut text = String::new();
    if row.hostname != row.name {
        text.extend([row.hostname.as_str(), " "]);
    }
    text.extend([row.ip.as_str(), ":", &row.port.to_string()]);
    for (key, value) in &row.labels {
        text.extend([" ", key, "=", value]);
    }
    let mut last_model = "";
    for device in facts.status.reported.gpu_devices.iter().flatten().filter(|device| !device.name.is_empty()) {
        if device.name != last_model {
            text.extend([" ", &device.vendor, " ", &device.name]);
            last_model = &device.name;
        }
    }
    text
}

/// What workers can be ordered by.
pub fn figures(facts: &Facts, state: WorkerState, moment: &Moment) -> Figures {
    let report = &facts.status.reported;
    let is_current = report.devices_stale_s.is_none() && state != WorkerState::NotReady;
    let devices = report.gpu_devices.iter().flatten().filter(|_| is_current);
    let devices =
        devices.map(|device| (device_readings(device), device.memory.as_ref().and_then(|memory| memory.total)));
    Figures::of(devices, assess::last_heartbeat_ms(facts, moment), clock_offset_ms(facts))
}

/// For browsers that have the rest already.
pub fn readings_update(facts: &Facts) -> ReadingsUpdate {
    let report = &facts.status.reported;
    ReadingsUpdate {
        id: facts.row.id,
        devices: report.gpu_devices.iter().flatten().map(device_readings).collect(),
        host: host_view(report),
        clock_offset_ms: clock_offset_ms(facts),
        direct_round_trip_ms: direct_round_trip_ms(facts),
        link: matches!(facts.link.standing, LinkStanding::Up { .. }).then_some(facts.link.readings),
    }
}

/// For programs.
pub fn worker(facts: &Facts, moment: &Moment, policy: &Policy) -> Worker {
    let assessment = assess::assess(facts, moment, policy);
    let row = &facts.row;
    Worker {
        name: row.name.clone(),
        hostname: row.hostname.clone(),
        ip: row.ip.clone(),
        port: row.port,
        labels: row.labels.clone(),
        system_reserved: row.system_reserved,
        state: assessment.state,
        state_message: state_message(assessment.state, &assessment.conditions, &row.maintenance),
        status: WorkerStatus::clone(&facts.status.reported),
        unreachable: assess::is_unreachable(facts, moment),
        heartbeat_time: assess::last_heartbeat_ms(facts, moment).and_then(rfc3339),
        worker_uuid: row.uuid,
        id: row.id,
        created_at: rfc3339(row.created_ms).unwrap_or_default(),
        updated_at: rfc3339(row.updated_ms).unwrap_or_default(),
        conditions: assessment.conditions,
        clock_offset_ms: clock_offset_ms(facts),
        version: row.version.clone(),
        maintenance: Some(row.maintenance.clone()),
        link: link_view(facts, moment),
    }
}

/// For a GPUStack 0.7 worker, which knows three states only and takes nothing for null that it always sends.
pub fn legacy_worker(facts: &Facts, moment: &Moment, policy: &Policy) -> Worker {
    let mut worker = worker(facts, moment, policy);
    worker.state = match worker.state {
        WorkerState::Pending | WorkerState::Maintenance => WorkerState::NotReady,
        state => state,
    };
    worker.system_reserved.get_or_insert(SystemReserved::default());
    worker
}

/// A worker's devices, for programs.
pub fn device_items(facts: &Facts) -> Vec<GpuDeviceItem> {
    let devices = facts.status.reported.gpu_devices.iter().flatten();
    devices.map(|device| item(facts, device)).collect()
}

/// The device at a place among its worker's.
pub fn device_item(facts: &Facts, place: usize) -> Option<GpuDeviceItem> {
    let device = facts.status.reported.gpu_devices.as_ref()?.get(place)?;
    Some(item(facts, device))
}

fn item(facts: &Facts, device: &GpuDevice) -> GpuDeviceItem {
    let row = &facts.row;
    GpuDeviceItem {
        id: format!("{}:{}:{}", row.name, device_type_word(device), device.index),
        worker_id: Some(row.id.0),
        worker_name: row.name.clone(),
        worker_ip: row.ip.clone(),
        device: device.clone(),
    }
}

fn device_type_word(device: &GpuDevice) -> String {
    serde_json::to_value(device.kind).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn os_name(os: &OsInfo) -> String {
    format!("{} {}", os.name, os.version).trim().to_owned()
}

fn clock_offset_ms(facts: &Facts) -> Option<i64> {
    facts.clock.map(|clock| clock.measured.offset_ms)
}

fn direct_round_trip_ms(facts: &Facts) -> Option<f64> {
    match facts.probe.outcome {
        Some(ProbeOutcome::Answered { round_trip_ms }) => Some(round_trip_ms),
        Some(ProbeOutcome::Failed(_)) | None => None,
    }
}

fn link_view(facts: &Facts, moment: &Moment) -> Option<LinkView> {
    let LinkStanding::Up { since, peer, carrier } = facts.link.standing else { return None };
    Some(LinkView { since_ms: moment.wall_ms(since), carrier, peer: peer.to_string(), readings: facts.link.readings })
}

fn host_view(report: &WorkerStatus) -> HostView {
    let cpu = report.cpu.as_ref();
    let memory = report.memory.as_ref();
    HostView {
        cpu_percent: cpu.and_then(|cpu| cpu.utilization_rate),
        cpu_count: cpu.and_then(|cpu| cpu.total).and_then(whole),
        memory_used_bytes: memory.and_then(|memory| memory.used),
        memory_total_bytes: memory.and_then(|memory| memory.total),
    }
}

/// GPUStack writes the number of processors as a float.
fn whole(count: f64) -> Option<u32> {
    let in_range = count.is_finite() && (0.0..=f64::from(u32::MAX)).contains(&count);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked above")]
    in_range.then(|| count.round() as u32)
}

fn device_view(device: &GpuDevice) -> DeviceView {
    let memory = device.memory.as_ref();
    DeviceView {
        index: device.index,
        card: device.device_index,
        chip: device.device_chip_index,
        name: device.name.clone(),
        vendor: device.vendor.clone(),
        bus_id: device.bus_id.clone(),
        driver_version: device.driver_version.clone(),
        memory_total_bytes: memory.and_then(|memory| memory.total),
        memory_kind: memory.and_then(|memory| memory.kind),
        health: device.health,
        readings: device_readings(device),
    }
}

fn device_readings(device: &GpuDevice) -> DeviceReadings {
    DeviceReadings {
        use_percent: device.core.as_ref().and_then(|core| core.utilization_rate),
        memory_used_bytes: device.memory.as_ref().and_then(|memory| memory.used),
        temperature_c: device.temperature,
        power_w: device.power_w,
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{at, devices, facts};
    use super::super::time::{Grace, Monotonic};
    use super::*;
    use api::{ConditionKind, ConditionStatus, Reason, Severity};
    use std::time::Duration;

    const POLICY: Policy = Policy { offline_timeout: Duration::from_mins(1) };

    fn moment() -> Moment {
        let grace = Grace { began: Monotonic::from_ms(0), until: at(60) };
        Moment { now: at(10), wall_offset_ms: 1_700_000_000_000, grace }
    }

    #[test]
    fn times_are_whole_seconds_in_utc() {
        let mut facts = facts();
        facts.hear(Monotonic::from_ms(5_999), POLICY.offline_timeout);
        let worker = worker(&facts, &moment(), &POLICY);
        assert_eq!(worker.heartbeat_time.as_deref(), Some("2023-11-14T22:13:25Z"));
    }

    #[test]
    fn a_program_of_0_7_is_told_only_states_that_it_knows() {
        let mut facts = facts();
        for enabled in [false, true] {
            facts.row.maintenance.enabled = enabled;
            assert_eq!(legacy_worker(&facts, &moment(), &POLICY).state, WorkerState::NotReady);
        }
        assert_eq!(worker(&facts, &moment(), &POLICY).state, WorkerState::Maintenance);
    }

    #[test]
    fn a_device_is_named_by_its_worker_its_type_and_its_index() {
        let mut facts = facts();
        facts.report(devices(2), at(1));
        let ids: Vec<_> = device_items(&facts).into_iter().map(|item| item.id).collect();
        assert_eq!(ids, ["a:unknown:0", "a:unknown:1"]);
    }

    #[test]
    fn very_many_are_told_of_conditions_only_when_one_is_wrong() {
        let mut facts = facts();
        facts.report(devices(1), at(1));
        let ok = Condition {
            kind: ConditionKind::Devices,
            status: ConditionStatus::True,
            severity: Severity::Ok,
            reason: Reason::ClockNotMeasured {},
            since_ms: None,
        };
        let wrong = Condition { severity: Severity::Warning, ..ok.clone() };
        let conditions_told = |conditions| {
            let brief = brief(&facts, Assessment { state: WorkerState::Ready, conditions });
            brief.conditions.len()
        };
        assert_eq!(conditions_told(vec![ok.clone()]), 0);
        assert_eq!(conditions_told(vec![ok, wrong]), 2);
    }

    #[test]
    fn a_search_finds_address_labels_and_models() {
        let mut facts = facts();
        facts.row.labels.insert("rack".to_owned(), "b07".to_owned());
        facts.row.hostname = "host-a".to_owned();
        facts.report(devices(2), at(1));
        let text = search_text(&facts);
        let address = format!("{}:{}", facts.row.ip, facts.row.port);
        for word in ["host-a", &address, "rack=b07", "910B3"] {
            assert_eq!(text.matches(word).count(), 1, "{word} in {text}");
        }
    }

    #[test]
    fn a_reading_that_is_not_there_is_null_and_not_zero() {
        let mut facts = facts();
        facts.report(devices(1), at(1));
        let readings = serde_json::to_value(readings_update(&facts)).unwrap();
        assert_eq!(readings["devices"], serde_json::json!([[null, null, null, null]]));
        assert_eq!(readings["host"]["cpu_percent"], serde_json::Value::Null);
    }
}
