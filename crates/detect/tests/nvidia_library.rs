//! NVIDIA's cards read through a stand-in for the driver's management library, built by the C compiler.

#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on fails the test")]

use api::{AbsentWhy, Check, DeviceHealth, HostReason, Reason, Seen, Severity};
use detect::{Detector, DetectorConfig, Inventory};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const STAND_INS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand-in");
const AMPLE: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_secs(5);
const QUERY: &str = "--query-gpu=index,name,uuid,pci.bus_id,driver_version,vbios_version,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,mig.mode.current--format=csv,nounits";

struct Host(TempDir);

impl Host {
    /// With a library that answers as `kind` says, and a tool that lists one card.
    fn with_library(kind: Option<&str>) -> Self {
        let host = Self(TempDir::new().unwrap());
        fs::create_dir_all(host.path("usr/lib64")).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(host.path("usr/lib64/libnvidia-ml.so.1"));
        compiler.args(kind.map(|kind| format!("-D{kind}"))).arg(Path::new(STAND_INS).join("nvml.c"));
        assert!(compiler.status().unwrap().success());
        fs::create_dir_all(host.path("usr/bin")).unwrap();
        symlink(Path::new(STAND_INS).join("tool"), host.path("usr/bin/nvidia-smi")).unwrap();
        fs::write(host.path(&format!("usr/bin/{QUERY}.txt")), "index, name\n7, by the tool\n").unwrap();
        host
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn asked_the_tool(&self) -> bool {
        self.path("usr/bin/calls").exists()
    }

    fn detector(&self, tool_deadline: Duration) -> Detector {
        Detector::new(&self.config(tool_deadline))
    }

    /// With an exporter that may listen there.
    fn detector_with_exporter(&self, listener: &TcpListener) -> Detector {
        let dcgm_exporter = Some(listener.local_addr().unwrap());
        Detector::new(&DetectorConfig { dcgm_exporter, ..self.config(AMPLE) })
    }

    fn config(&self, tool_deadline: Duration) -> DetectorConfig {
        DetectorConfig {
            root: self.0.path().to_owned(),
            tool_deadline,
            slow_facts_budget: AMPLE,
            path: Some(OsString::new()),
            variables: BTreeMap::new(),
            library_reader: None,
            dcgm_exporter: None,
        }
    }

    async fn detect(&self) -> Inventory {
        self.detector(AMPLE).detect().await
    }
}

fn reasons(inventory: &Inventory) -> Vec<Reason> {
    inventory.problems.iter().map(|problem| problem.reason.clone()).collect()
}

#[tokio::test]
async fn the_library_tells_everything_without_a_process() {
    let host = Host::with_library(None);
    let mut detector = host.detector(AMPLE);
    let inventory = detector.detect().await;
    assert_eq!((reasons(&inventory), host.asked_the_tool()), (vec![], false));
    insta::assert_json_snapshot!("by_the_library", inventory.devices);
    assert_eq!(detector.detect().await.devices, inventory.devices);
}

#[tokio::test]
async fn a_lost_card_is_listed_as_broken_beside_the_others() {
    let inventory = Host::with_library(Some("LOST")).detect().await;
    let health: Vec<_> = inventory.devices.iter().map(|device| (device.index, device.health)).collect();
    assert_eq!(health, [(0, None), (1, Some(DeviceHealth::Critical))]);
    assert_eq!(reasons(&inventory), [Reason::DeviceLost { tool: "libnvidia-ml.so".into(), device: "GPU1".into() }]);
}

#[tokio::test]
async fn a_card_that_is_cut_into_parts_names_them() {
    let inventory = Host::with_library(Some("PARTS")).detect().await;
    let parts: Vec<_> = inventory.devices.iter().map(|device| device.partitions.clone()).collect();
    assert_eq!((parts[0].len(), parts[1][0].name.as_str(), parts[1][0].uuid.as_str()), (0, "1g.10gb", "MIG-1"));
}

#[tokio::test]
async fn figures_that_may_not_be_read_are_absent_and_told_once() {
    let inventory = Host::with_library(Some("FORBIDDEN")).detect().await;
    assert_eq!(inventory.devices[0].absent[0].why, AbsentWhy::Forbidden);
    assert_eq!(reasons(&inventory), [Reason::ReadingsForbidden { tool: "libnvidia-ml.so".into() }]);
}

#[tokio::test]
async fn a_library_that_cannot_be_used_leaves_it_to_the_tool() {
    for kind in ["NOT_LOADED", "OLD"] {
        let host = Host::with_library(Some(kind));
        let inventory = host.detect().await;
        assert_eq!((inventory.devices[0].name.as_str(), reasons(&inventory)), ("by the tool", vec![]), "{kind}");
    }
    let host = Host::with_library(None);
    fs::write(host.path("usr/lib64/libnvidia-ml.so.1"), "no library").unwrap();
    assert_eq!(host.detect().await.devices[0].name, "by the tool");
}

#[tokio::test]
async fn a_library_that_hangs_is_left_alone_and_the_tool_is_asked() {
    let host = Host::with_library(Some("HANGING"));
    let mut detector = host.detector(SHORT);
    for _ in 0..2 {
        assert_eq!(detector.detect().await.devices[0].name, "by the tool");
    }
}

/// Answers one question, and gives what was asked.
async fn answer(listener: &TcpListener, answer: &str) -> String {
    let (mut connection, _) = listener.accept().await.unwrap();
    let mut question = Vec::new();
    connection.read_buf(&mut question).await.unwrap();
    connection.write_all(answer.as_bytes()).await.unwrap();
    String::from_utf8_lossy(&question).into_owned()
}

/// Lets this time pass at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn an_exporter_tells_what_the_library_does_not() {
    let host = Host::with_library(None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut detector = host.detector_with_exporter(&listener);
    let told = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n\
        DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-1\"} 99\n\
        DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",UUID=\"GPU-1\"} 61.5\n\
        DCGM_FI_DEV_XID_ERRORS{gpu=\"1\",UUID=\"GPU-1\"} 48\n";
    let (inventory, question) = tokio::join!(detector.detect(), answer(&listener, told));
    assert!(question.starts_with("GET /metrics HTTP/1.0\r\n"), "{question}");
    let readings: Vec<_> =
        inventory.devices.iter().map(|device| (device.temperature, device.power_w, device.health)).collect();
    let expected = [(Some(50.0), Some(70.5), None), (Some(51.0), Some(61.5), Some(DeviceHealth::Warning))];
    assert_eq!(
        (readings.as_slice(), inventory.devices[1].error_codes.join(" ")),
        (expected.as_slice(), "XID 48".to_owned())
    );
    let sick = Reason::DeviceUnhealthy { index: 1, name: inventory.devices[1].name.clone(), health: "XID 48".into() };
    assert_eq!(reasons(&inventory), [sick]);
}

#[tokio::test]
async fn an_exporter_that_is_not_there_is_asked_again_after_minutes() {
    let host = Host::with_library(None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (mut detector, address) = (host.detector_with_exporter(&listener), listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(reasons(&detector.detect().await), []);
    let listener = TcpListener::bind(address).await.unwrap();
    pass(Duration::from_mins(9)).await;
    // answered by nobody: had it asked, it would wait for its deadline and rest again
    assert_eq!(detector.detect().await.devices[1].power_w, None);
    pass(Duration::from_mins(2)).await;
    let told = "HTTP/1.0 200 OK\r\n\r\nDCGM_FI_DEV_POWER_USAGE{UUID=\"GPU-1\"} 61.5\n";
    let (inventory, _) = tokio::join!(detector.detect(), answer(&listener, told));
    assert_eq!(inventory.devices[1].power_w, Some(61.5));
}

#[tokio::test]
async fn an_exporter_that_does_not_answer_holds_up_nothing() {
    let host = Host::with_library(None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let inventory = host.detector_with_exporter(&listener).detect().await;
    assert_eq!((inventory.devices.len(), reasons(&inventory)), (2, vec![]));
}

#[tokio::test]
async fn a_card_that_is_not_kept_ready_is_a_point_for_the_doctor_alone() {
    let inventory = Host::with_library(None).detect().await;
    let seen: Vec<_> =
        inventory.checks.iter().filter(|check| matches!(check.seen, Seen::PersistenceMode { .. })).collect();
    let expected =
        Check::bad(Seen::PersistenceMode { off: vec![1] }, Severity::Warning, HostReason::PersistenceModeOff {});
    assert_eq!((seen, reasons(&inventory)), (vec![&expected], vec![]));
}
