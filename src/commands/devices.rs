//! `gpustack devices`: what a worker on this host would report.

use super::exit::CommandError;
use super::{output, stop};
use crate::config::{Environment, Resources, Sources};
use crate::server::store::now_ms;
use crate::worker;
use api::{DeviceHealth, GpuDevice, GpuDeviceItem, Problem, Severity, WorkerStatus};
use app::format::Zone;
use app::i18n::{Language, ReasonContext, reason_text};
use clap::Args;
use detect::{Detector, DetectorConfig, HostSampler, Inventory};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct DevicesArgs {
    /// Print JSON: `items` as in /v1/gpu-devices, and `problems`
    #[arg(long)]
    json: bool,
    /// The worker's configuration file, whose `resources` are reported in place of what is found
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
}

const SLOW_FACTS_BUDGET: Duration = Duration::from_mins(1);

#[derive(Serialize)]
struct Report<'a> {
    items: Vec<GpuDeviceItem>,
    problems: &'a [Problem],
}

pub fn run(args: &DevicesArgs) -> Result<(), CommandError> {
    let environment = Environment::of_process();
    let sources = Sources::open(BTreeMap::new(), args.config_file.as_deref(), &environment)?;
    let resources = sources.resources().clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let looked = runtime.block_on(async {
        let stopping = stop::on_signal()?;
        tokio::select! {
            looked = look(&resources) => Ok(looked),
            () = stopping.cancelled() => Err(CommandError::failed("interrupted")),
        }
    });
    // what runs by then, as a tool that hangs, ends with the runtime
    drop(runtime);
    let (inventory, status) = looked?;
    let text = if args.json { json(&inventory, &worker::hostname())? } else { table(&inventory, &os_name(status)) };
    Ok(output::print(&text)?)
}

async fn look(resources: &Resources) -> (Inventory, WorkerStatus) {
    let mut status = WorkerStatus::default();
    HostSampler::new().sample().await.fill(&mut status);
    resources.fill(&mut status);
    if let Some(described) = &status.gpu_devices {
        return (Inventory { devices: described.clone(), ..Inventory::default() }, status);
    }
    // a person waits once and wants to see everything
    let config = DetectorConfig { slow_facts_budget: SLOW_FACTS_BUDGET, ..worker::detector_config() };
    (Detector::new(&config).detect().await, status)
}

fn os_name(status: WorkerStatus) -> String {
    status.os.map(|os| format!("{} {}", os.name, os.version)).unwrap_or_default()
}

fn json(inventory: &Inventory, hostname: &str) -> Result<String, CommandError> {
    let items = inventory.devices.iter().map(|device| item(device, hostname)).collect();
    let report = Report { items, problems: &inventory.problems };
    let mut text = serde_json::to_string_pretty(&report).map_err(CommandError::failed)?;
    text.push('\n');
    Ok(text)
}

fn item(device: &GpuDevice, hostname: &str) -> GpuDeviceItem {
    GpuDeviceItem {
        id: format!("{hostname}:{}:{}", word(&device.kind), device.index),
        device: device.clone(),
        worker_id: None,
        worker_name: hostname.to_owned(),
        worker_ip: String::new(),
    }
}

const HEADINGS: [&str; 8] = ["INDEX", "TYPE", "NAME", "MEMORY", "USED", "CORE", "TEMP", "HEALTH"];

fn table(inventory: &Inventory, os: &str) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(inventory.devices.iter().map(row));
    let mut text = String::new();
    if inventory.devices.is_empty() {
        text.push_str(nothing(inventory));
    } else {
        for row in &rows {
            text.push_str(aligned(row, &rows).trim_end());
            text.push('\n');
        }
    }
    for problem in &inventory.problems {
        text.push_str(&paragraph(problem, os));
    }
    text
}

/// A host without accelerators is told from one whose accelerators cannot be read.
fn nothing(inventory: &Inventory) -> &'static str {
    if inventory.problems.is_empty() {
        "No accelerators were found.\n"
    } else {
        "No accelerators could be read. What stands in the way:\n"
    }
}

/// A reading that is not there is a dash, never a zero.
fn row(device: &GpuDevice) -> [String; HEADINGS.len()] {
    let dash = || "-".to_owned();
    let memory = device.memory.as_ref();
    let percent = |rate: f64| format!("{rate:.0} %");
    [
        device.index.to_string(),
        word(&device.kind),
        device.name.clone(),
        memory.and_then(|memory| memory.total).map_or_else(dash, |bytes| format!("{:.1} GiB", gib(bytes))),
        memory.and_then(|memory| memory.used).map_or_else(dash, |bytes| format!("{:.1} GiB", gib(bytes))),
        device.core.as_ref().and_then(|core| core.utilization_rate).map_or_else(dash, percent),
        device.temperature.map_or_else(dash, |degrees| format!("{degrees:.0} °C")),
        device.health.map_or_else(dash, |health| match health {
            DeviceHealth::Ok => "OK".to_owned(),
            other => word(&other),
        }),
    ]
}

fn aligned(row: &[String], rows: &[[String; HEADINGS.len()]]) -> String {
    row.iter().enumerate().fold(String::new(), |mut line, (column, cell)| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let width = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        // writing to a String cannot fail
        let _ = write!(line, "{cell:width$}  ");
        line
    })
}

/// What is wrong, what to do, and the commands for it, in the words that the UI has.
fn paragraph(problem: &Problem, os: &str) -> String {
    let severity = match problem.severity {
        Severity::Ok => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let context = ReasonContext { now_ms: now_ms(), zone: Zone::Utc, os, also: None };
    let words = reason_text(&problem.reason, Language::En, &context);
    let sentences = format!("{} {}", words.what, words.next_step);
    let mut text = format!("\n{severity}: {}\n", sentences.trim_end());
    for command in &words.commands {
        // writing to a String cannot fail
        let _ = writeln!(text, "    {command}");
    }
    text
}

/// A word as the API spells it.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{DeviceCore, DeviceMemory, DeviceType, Reason};

    fn inventory() -> Inventory {
        let known = GpuDevice {
            index: 0,
            name: "910B3".into(),
            vendor: "Huawei".into(),
            kind: DeviceType::Npu,
            core: Some(DeviceCore { total: Some(20), utilization_rate: Some(12.4) }),
            memory: Some(DeviceMemory { total: Some(64 << 30), used: Some(3 << 30), ..DeviceMemory::default() }),
            temperature: Some(46.0),
            health: Some(DeviceHealth::Ok),
            ..GpuDevice::default()
        };
        let unknown = GpuDevice { index: 10, name: "910B3".into(), kind: DeviceType::Npu, ..GpuDevice::default() };
        let reason = Reason::ToolTimedOut { tool: "npu-smi".into(), timeout_s: 10 };
        let problems = vec![Problem { severity: Severity::Error, reason, age_s: 0 }];
        Inventory { devices: vec![known, unknown], problems, ..Inventory::default() }
    }

    #[test]
    fn people_get_a_table_with_dashes_for_what_is_unknown() {
        let expected = "\
INDEX  TYPE  NAME   MEMORY    USED     CORE  TEMP   HEALTH
0      npu   910B3  64.0 GiB  3.0 GiB  12 %  46 °C  OK
10     npu   910B3  -         -        -     -      -
";
        let table = table(&inventory(), "openEuler 22.03");
        let (devices, problems) = table.split_at(expected.len());
        assert_eq!(devices, expected);
        assert!(problems.starts_with("\nerror: ") && problems.contains("npu-smi"), "{problems}");
    }

    #[test]
    fn programs_get_the_items_of_the_api() {
        let text = json(&inventory(), "npu-1").unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let items: Vec<GpuDeviceItem> = serde_json::from_value(value["items"].clone()).unwrap();
        assert_eq!(items[0].id, "npu-1:npu:0");
        assert_eq!(value["problems"][0]["reason"], "tool_timed_out");
    }

    #[test]
    fn a_host_without_accelerators_says_so() {
        assert_eq!(table(&Inventory::default(), ""), "No accelerators were found.\n");
    }
}
