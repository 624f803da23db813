//! Hosts with the cards of several makers, made of files and stand-ins for their tools.

#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on fails the test")]

use api::{DeviceHealth, DeviceType, GpuDevice, Reason, Severity};
use detect::{Detector, DetectorConfig, Inventory};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const QUERY: &str = "--query-gpu=index,name,uuid,pci.bus_id,driver_version,vbios_version,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,mig.mode.current--format=csv,nounits";
const OLD_QUERY: &str = "--query-gpu=index,name,uuid,pci.bus_id,driver_version,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw--format=csv,nounits";
const PROCESSES: &str = "--query-compute-apps=gpu_uuid,pid,used_memory,process_name--format=csv,noheader,nounits";
const HEADING: &str = "index, name, uuid, pci.bus_id, driver_version, vbios_version, memory.total [MiB], memory.used [MiB], utilization.gpu [%], temperature.gpu, power.draw [W], mig.mode.current\n";
const ASCEND: &str = include_str!("fixtures/npu-info-910b4-1-25.2.0.txt");
/// No test that waits for an answer comes near it.
const AMPLE: Duration = Duration::from_mins(1);
/// For a tool that never answers.
const SHORT: Duration = Duration::from_secs(5);

struct Host(TempDir);

impl Host {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// With two A100, the second cut into parts if so told.
    fn with_nvidia(second_mode: &str) -> Self {
        let host = Self::new();
        host.answer("nvidia-smi", QUERY, &format!("{HEADING}{}{}", a100(0, "Disabled"), a100(3, second_mode)));
        host
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    /// Each tool has a directory of its own on the search path.
    fn answer(&self, tool: &str, question: &str, text: &str) {
        self.write(&format!("tools/{tool}/{question}.txt"), text);
        self.install(tool);
    }

    fn script(&self, tool: &str, question: &str, script: &str) {
        self.write(&format!("tools/{tool}/{question}.sh"), script);
        self.install(tool);
    }

    fn install(&self, tool: &str) {
        let link = self.path(&format!("tools/{tool}/{tool}"));
        if !link.exists() {
            symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand-in/tool"), link).unwrap();
        }
    }

    fn pci(&self, address: &str, ids: [&str; 3], driver: Option<&str>) {
        let place = format!("sys/bus/pci/devices/{address}");
        for (file, value) in ["vendor", "device", "class"].into_iter().zip(ids) {
            self.write(&format!("{place}/{file}"), value);
        }
        if let Some(driver) = driver {
            symlink(format!("../../../bus/pci/drivers/{driver}"), self.path(&format!("{place}/driver"))).unwrap();
        }
    }

    /// What a tool was asked since the last look at this.
    fn calls(&self, tool: &str) -> Vec<String> {
        let path = self.path(&format!("tools/{tool}/calls"));
        let calls = fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect();
        let _ = fs::remove_file(path);
        calls
    }

    fn detector(&self, tool_deadline: Duration) -> Detector {
        let directories = fs::read_dir(self.path("tools")).into_iter().flatten().map(|entry| entry.unwrap().path());
        Detector::new(&DetectorConfig {
            root: self.0.path().to_owned(),
            tool_deadline,
            slow_facts_budget: AMPLE,
            path: Some(std::env::join_paths(directories).unwrap_or_else(|_| OsString::new())),
            variables: BTreeMap::new(),
            library_reader: None,
            dcgm_exporter: None,
        })
    }

    async fn detect(&self) -> Inventory {
        self.detector(AMPLE).detect().await
    }
}

fn a100(number: u32, mode: &str) -> String {
    format!(
        "{number}, NVIDIA A100-SXM4-80GB, GPU-00000000-0000-0000-0000-00000000000{number}, 00000000:0{number}:00.0, \
         535.129.03, 92.00.45.00.03, 81920, 1234, 7, 35, 70.5, {mode}\n"
    )
}

fn reasons(inventory: &Inventory) -> Vec<Reason> {
    inventory.problems.iter().map(|problem| problem.reason.clone()).collect()
}

fn device(inventory: &Inventory, index: u32) -> &GpuDevice {
    inventory.devices.iter().find(|device| device.index == index).unwrap()
}

#[tokio::test]
async fn every_makers_tool_is_asked() {
    let host = Host::new();
    host.answer("npu-smi", "info", ASCEND);
    host.answer("nvidia-smi", QUERY, &format!("{HEADING}{}", a100(0, "Disabled")));
    host.answer("amd-smi", "metric--json", include_str!("fixtures/amd-smi-metric-json-mi355x-gpu_data.txt"));
    let of_rocm = "--showproductname--showuniqueid--showbus--showuse--showmeminfovram--showtemp--showpower--json";
    host.answer("hy-smi", of_rocm, include_str!("fixtures/hy-smi-json-dcu-24.04.3.txt"));
    host.answer("mx-smi", "", include_str!("fixtures/mx-smi-c500-2.2.4.txt"));
    host.answer("cnmon", "", include_str!("fixtures/cnmon-mlu370-x8-5.10.13.txt"));
    host.answer("ixsmi", "", include_str!("fixtures/ixsmi-bi-v150s-4.0.0.txt"));
    host.answer("mthreads-gmi", "--query--json", include_str!("fixtures/mthreads-gmi-query-json-s5000.txt"));
    let inventory = host.detect().await;
    let kinds: Vec<DeviceType> = inventory.devices.iter().map(|device| device.kind).collect();
    let (npu, mlu) = (DeviceType::Npu, DeviceType::Mlu);
    let (cuda, rocm, dcu) = (DeviceType::Cuda, DeviceType::Rocm, DeviceType::Dcu);
    let (maca, corex, musa) = (DeviceType::Maca, DeviceType::Corex, DeviceType::Musa);
    assert_eq!(kinds, [npu, npu, cuda, rocm, dcu, maca, mlu, mlu, corex, musa]);
    assert_eq!(reasons(&inventory), []);
}

#[tokio::test]
async fn a_makers_tool_that_hangs_costs_no_other_makers_devices() {
    let host = Host::with_nvidia("Disabled");
    host.script("npu-smi", "info", "exec sleep 60");
    let inventory = host.detector(SHORT).detect().await;
    assert_eq!((inventory.devices.len(), inventory.stale_s), (2, None));
    let timed_out = Reason::ToolTimedOut { tool: "npu-smi".into(), timeout_s: SHORT.as_secs() };
    assert_eq!(reasons(&inventory), [timed_out]);
}

#[tokio::test]
async fn a_look_at_nvidia_costs_two_processes_once_the_slow_facts_are_known() {
    let host = Host::with_nvidia("Disabled");
    let mut detector = host.detector(AMPLE);
    detector.detect().await;
    assert_eq!(host.calls("nvidia-smi"), [QUERY, "", PROCESSES]);
    detector.detect().await;
    assert_eq!(host.calls("nvidia-smi"), [QUERY, PROCESSES]);
}

#[tokio::test]
async fn a_card_that_is_cut_into_parts_names_them() {
    let host = Host::with_nvidia("Enabled");
    host.answer("nvidia-smi", "-L", include_str!("fixtures/nvidia-smi-L-mig-a100.txt"));
    let inventory = host.detect().await;
    let parts = |index| device(&inventory, index).partitions.iter().map(|part| part.name.clone()).collect::<Vec<_>>();
    assert_eq!((parts(0), parts(3)), (vec![], vec!["1g.10gb".to_owned(), "1g.10gb".to_owned()]));
}

#[tokio::test]
async fn a_lost_card_keeps_its_name_and_is_told_until_it_returns() {
    let host = Host::with_nvidia("Disabled");
    let mut detector = host.detector(AMPLE);
    detector.detect().await;
    let sentence = "Unable to determine the device handle for GPU3: 0000:03:00.0: GPU is lost.  Reboot the system to recover this GPU\n";
    host.answer("nvidia-smi", QUERY, &format!("{HEADING}{}{sentence}", a100(0, "Disabled")));
    host.script("nvidia-smi", QUERY, "trap 'exit 15' EXIT");
    let inventory = detector.detect().await;
    let lost = device(&inventory, 3);
    assert_eq!((lost.name.as_str(), lost.health), ("NVIDIA A100-SXM4-80GB", Some(DeviceHealth::Critical)));
    assert_eq!((lost.temperature, lost.memory.as_ref().unwrap().total), (None, Some(80 << 30)));
    assert_eq!(
        reasons(&inventory),
        [Reason::DeviceLost { tool: "nvidia-smi".into(), device: "GPU3 0000:03:00.0".into() }]
    );

    fs::remove_file(host.path(&format!("tools/nvidia-smi/{QUERY}.sh"))).unwrap();
    host.answer("nvidia-smi", QUERY, &format!("{HEADING}{}{}", a100(0, "Disabled"), a100(3, "Disabled")));
    let inventory = detector.detect().await;
    assert_eq!((reasons(&inventory), device(&inventory, 3).temperature), (vec![], Some(35.0)));
}

#[tokio::test]
async fn an_old_driver_is_asked_in_its_own_words_and_from_then_on_in_no_others() {
    let host = Host::new();
    host.answer("nvidia-smi", QUERY, "Field \"mig.mode.current\" is not a valid field to query.\n");
    host.script("nvidia-smi", QUERY, "trap 'exit 2' EXIT");
    let old = HEADING.replace("vbios_version, ", "").replace(", mig.mode.current", "");
    let row = "0, Tesla K80, GPU-1, 00000000:05:00.0, 418.87, 11441, 0, [Not Supported], 40, 60.1\n";
    host.answer("nvidia-smi", OLD_QUERY, &format!("{old}{row}"));
    let mut detector = host.detector(AMPLE);
    let inventory = detector.detect().await;
    assert_eq!((inventory.devices[0].name.as_str(), reasons(&inventory)), ("Tesla K80", vec![]));
    host.calls("nvidia-smi");
    detector.detect().await;
    assert_eq!(host.calls("nvidia-smi"), [OLD_QUERY, PROCESSES]);
}

#[tokio::test]
async fn failures_of_nvidias_tool_are_told_by_cause() {
    for (text, exit_code, reason) in [
        (
            include_str!("fixtures/nvidia-smi-error-driver-comm.txt"),
            9,
            Reason::DriverNotLoaded { vendor: "NVIDIA".into(), count: None },
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126\n",
            18,
            Reason::DriverMismatch {
                vendor: "NVIDIA".into(),
                running: Some("580.119.02".into()),
                installed: Some("580.126".into()),
                firmware: None,
            },
        ),
        (
            include_str!("fixtures/nvidia-smi-error-nvml-unknown.txt"),
            255,
            Reason::ToolFailed {
                tool: "nvidia-smi".into(),
                exit_code: Some(255),
                output: "Failed to initialize NVML: Unknown Error".into(),
            },
        ),
    ] {
        let host = Host::new();
        host.write("sys/module/nvidia/version", "580.119.02\n");
        for question in [QUERY, OLD_QUERY] {
            host.answer("nvidia-smi", question, text);
            host.script("nvidia-smi", question, &format!("trap 'exit {exit_code}' EXIT"));
        }
        let inventory = host.detect().await;
        assert_eq!((reasons(&inventory), inventory.devices.len()), (vec![reason], 0), "{text}");
        assert_eq!(inventory.problems[0].severity, Severity::Error);
    }
}

#[tokio::test]
async fn a_tool_that_finds_nothing_is_a_problem_only_where_the_bus_has_something() {
    let host = Host::new();
    host.answer("nvidia-smi", QUERY, include_str!("fixtures/nvidia-smi-error-no-devices.txt"));
    assert_eq!(reasons(&host.detect().await), []);
    host.pci("0000:5e:00.0", ["0x10de", "0x20b2", "0x030200"], Some("nvidia"));
    assert_eq!(reasons(&host.detect().await), [Reason::DevicesMissing { expected: 1, found: 0 }]);
}

#[tokio::test]
async fn cards_on_the_bus_without_a_driver_are_listed_and_told() {
    let host = Host::new();
    host.pci("0000:02:00.0", ["0x1a03", "0x2000", "0x030000"], Some("ast"));
    host.pci("0000:5e:00.0", ["0x10de", "0x20b2", "0x030200"], Some("nouveau"));
    host.pci("0000:5e:00.1", ["0x10de", "0x1aef", "0x040300"], None);
    host.pci("0000:af:00.0", ["0xcabc", "0x0370", "0x120000"], None);
    host.pci("0000:d8:00.0", ["0x10de", "0x20b2", "0x030200"], Some("vfio-pci"));
    let inventory = host.detect().await;
    let not_loaded = |vendor: &str| Reason::DriverNotLoaded { vendor: vendor.into(), count: Some(1) };
    assert_eq!(reasons(&inventory), [not_loaded("NVIDIA"), not_loaded("Cambricon")]);
    assert!(inventory.problems.iter().all(|problem| problem.severity == Severity::Warning));
    let listed: Vec<_> =
        inventory.undriven.iter().map(|found| (found.vendor.as_str(), found.pci_id.as_str())).collect();
    assert_eq!(listed, [("NVIDIA", "10de:20b2"), ("Cambricon", "cabc:0370")]);
    assert_eq!(inventory.devices, []);
}

#[tokio::test]
async fn nodes_and_a_driver_without_a_tool_tell_that_the_tool_is_missing() {
    let host = Host::new();
    host.pci("0000:5e:00.0", ["0x10de", "0x20b2", "0x030200"], Some("nvidia"));
    assert_eq!(reasons(&host.detect().await), []);
    host.write("dev/nvidiactl", "");
    assert_eq!(reasons(&host.detect().await), [Reason::ToolMissing { tool: "nvidia-smi".into() }]);
}

#[tokio::test]
async fn a_tool_that_prints_nonsense_leaves_the_devices_as_stale() {
    let binary: String = "\u{1}\u{2}\u{fffd}binary".repeat(1_000);
    let half = &include_str!("fixtures/cnmon-mlu370-x8-5.10.13.txt")[..720];
    for nonsense in [binary.as_str(), half, "用法: cnmon [选项]", "{\"error\": \"no\"}", ""] {
        let host = Host::new();
        host.answer("cnmon", "", include_str!("fixtures/cnmon-mlu370-x8-5.10.13.txt"));
        let mut detector = host.detector(AMPLE);
        assert_eq!(detector.detect().await.devices.len(), 2);
        host.answer("cnmon", "", nonsense);
        let inventory = detector.detect().await;
        assert_eq!((inventory.devices.len(), inventory.stale_s), (2, Some(0)), "{nonsense}");
        assert!(matches!(reasons(&inventory)[..], [Reason::ToolOutputUnknown { .. }]), "{:?}", inventory.problems);
    }
}
