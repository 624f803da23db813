//! NVIDIA's cards read through a stand-in for the driver's management library, built by the C compiler.

#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on fails the test")]

use api::{AbsentWhy, DeviceHealth, Reason};
use detect::{Detector, DetectorConfig, Inventory};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

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
        Detector::new(&DetectorConfig {
            root: self.0.path().to_owned(),
            tool_deadline,
            slow_facts_budget: AMPLE,
            path: Some(OsString::new()),
            variables: BTreeMap::new(),
            library_reader: None,
        })
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
