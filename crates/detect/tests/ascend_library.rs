//! Ascend chips read through a stand-in for the driver's library, built by the C compiler, in a process of its own: what
//! is read, and that nothing which the library does keeps a look from ending with the chips that are there.

#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on fails the test")]

use api::{AbsentReading, AbsentWhy, DeviceHealth, MemoryKind, PowerScope, ReadingKind, Reason, Seen};
use detect::{Detector, DetectorConfig, Inventory, LibraryReader};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;

const STAND_INS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand-in");
const LIBRARIES: &str = "usr/local/Ascend/driver/lib64/driver";
const LIBRARY: &str = "libdcmi.so";
const BIN: &str = "usr/local/bin";
/// For a library that hangs; long enough for a shell to answer afterwards.
const SHORT: Duration = Duration::from_secs(5);
/// No test that waits for an answer comes near it.
const AMPLE: Duration = Duration::from_mins(1);

struct Host {
    root: TempDir,
    /// Open for writing in each process that has loaded the library.
    alive: pipe::Receiver,
}

impl Host {
    /// With a library that does as the words say, and a tool that lists one chip.
    fn new(words: &str) -> Self {
        Self::built(&[], words)
    }

    /// With some of the library's functions left out.
    fn built(left_out: &[&str], words: &str) -> Self {
        let root = TempDir::new().unwrap();
        let libraries = root.path().join(LIBRARIES);
        fs::create_dir_all(&libraries).unwrap();
        let alive = libraries.join("alive");
        mknodat(CWD, &alive, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let host = Self { root, alive: pipe::OpenOptions::new().open_receiver(&alive).unwrap() };
        host.build(left_out);
        host.tell(words);
        fs::create_dir_all(host.path(BIN)).unwrap();
        symlink(Path::new(STAND_INS).join("tool"), host.path(BIN).join("npu-smi")).unwrap();
        host.answer("info", BY_THE_TOOL);
        host.answer("info-m", "NPU ID  Chip ID  Chip Logic ID  Chip Phy-ID  Chip Name\n0  0  0  0  910\n");
        host
    }

    fn build(&self, left_out: &[&str]) {
        let library = self.path(LIBRARIES).join(LIBRARY);
        let new = library.with_extension("new");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(&new).arg(Path::new(STAND_INS).join("dcmi.c"));
        compiler.args(left_out.iter().map(|name| format!("-D{name}")));
        assert!(compiler.status().unwrap().success());
        fs::rename(new, library).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// What the library does from now on. Whole at once: a library that runs reads it at any time.
    fn tell(&self, words: &str) {
        let file = self.path(LIBRARIES).join("dcmi.txt");
        fs::write(file.with_extension("new"), words).unwrap();
        fs::rename(file.with_extension("new"), file).unwrap();
    }

    fn answer(&self, question: &str, text: &str) {
        fs::write(self.path(BIN).join(format!("{question}.txt")), text).unwrap();
    }

    fn nodes(&self, names: &[&str]) {
        fs::create_dir_all(self.path("dev")).unwrap();
        for name in names {
            fs::write(self.path("dev").join(name), "").unwrap();
        }
    }

    fn without_the_tool(self) -> Self {
        fs::remove_file(self.path(BIN).join("npu-smi")).unwrap();
        self
    }

    /// What the tool was asked so far.
    fn asked_of_the_tool(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path(BIN).join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    fn detector(&self, tool_deadline: Duration) -> Detector {
        Detector::new(&DetectorConfig {
            root: self.root.path().to_owned(),
            tool_deadline,
            slow_facts_budget: AMPLE,
            path: Some(OsString::new()),
            variables: BTreeMap::new(),
            library_reader: Some(LibraryReader {
                program: env!("CARGO_BIN_EXE_dcmi-reader").into(),
                arguments: Vec::new(),
            }),
            dcgm_exporter: None,
        })
    }

    async fn detect(&self) -> Inventory {
        self.detector(AMPLE).detect().await
    }

    /// Waits until no process has the library any more, and tells how many had it.
    async fn processes(mut self) -> usize {
        let mut ids = String::new();
        timeout(AMPLE, self.alive.read_to_string(&mut ids)).await.unwrap().unwrap();
        ids.lines().count()
    }
}

const BY_THE_TOOL: &str = "\
+----+
| npu-smi 25.5.1      Version: 25.5.1 |
+----+----+----+
| NPU   Name  | Health  | Power(W)  Temp(C)  Hugepages-Usage(page)|
| Chip        | Bus-Id  | AICore(%)  Memory-Usage(MB)  HBM-Usage(MB) |
+====+====+====+
| 0  by the tool | OK | 93.9  41  0 / 0 |
| 0 | 0000:C1:00.0 | 7  0 / 0  3410 / 65536 |
+====+====+====+
";

fn names(inventory: &Inventory) -> Vec<&str> {
    inventory.devices.iter().map(|device| device.name.as_str()).collect()
}

fn reasons(inventory: &Inventory) -> Vec<Reason> {
    inventory.problems.iter().map(|problem| problem.reason.clone()).collect()
}

/// Lets this time pass at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn everything_about_a_chip_is_read() {
    let host = Host::new("910b\nsick");
    let inventory = host.detect().await;
    assert_eq!((inventory.devices.len(), inventory.stale_s), (8, None));
    insta::assert_json_snapshot!("by_the_library", inventory.devices[1]);
    let library = host.path(LIBRARIES).join(LIBRARY).display().to_string();
    assert!(
        inventory
            .checks
            .iter()
            .any(|check| check.seen == Seen::Tool { tool: LIBRARY.into(), path: Some(library.clone()) })
    );
    assert_eq!(host.asked_of_the_tool(), [""; 0]);
    assert_eq!(host.processes().await, 1);
}

/// The price of a look: none, once the library's process runs.
#[tokio::test]
async fn a_steady_look_starts_no_process() {
    let host = Host::new("910b");
    let mut detector = host.detector(AMPLE);
    for _ in 0..4 {
        assert_eq!(names(&detector.detect().await), ["910B3"; 8]);
    }
    drop(detector);
    assert_eq!(host.asked_of_the_tool(), [""; 0]);
    assert_eq!(host.processes().await, 1);
}

#[tokio::test]
async fn two_chips_on_a_card_are_two_devices() {
    let inventory = Host::new("a3").detect().await;
    let numbers: Vec<_> = inventory
        .devices
        .iter()
        .map(|device| (device.index, device.device_index, device.device_chip_index, device.physical_index))
        .collect();
    assert_eq!(numbers.len(), 8);
    assert_eq!(
        numbers[..3],
        [(0, Some(0), Some(0), Some(8)), (1, Some(0), Some(1), Some(9)), (2, Some(1), Some(0), Some(10))]
    );
    let power: Vec<_> = inventory.devices[..2].iter().map(|device| (device.power_w, device.power_scope)).collect();
    assert_eq!(power, [(Some(93.9), Some(PowerScope::Card)), (None, None)]);
}

#[tokio::test]
async fn a_card_without_high_bandwidth_memory_works_in_ddr_and_its_controller_measures_the_power() {
    let inventory = Host::new("duo").detect().await;
    let first = &inventory.devices[0];
    let memory = first.memory.clone().unwrap();
    assert_eq!(
        (memory.kind, memory.total, memory.used),
        (Some(MemoryKind::Ddr), Some(44_280 << 20), Some(1_529 << 20))
    );
    assert_eq!((first.device_index, first.power_w, first.power_scope), (Some(2), Some(42.8), Some(PowerScope::Card)));
    assert_eq!(names(&inventory), ["310P3"; 2]);
}

#[tokio::test]
async fn newer_functions_are_taken_where_the_older_ones_are_not_there_or_not_supported() {
    for left_out in [["NO_CARDS"].as_slice(), &[]] {
        let host = Host::built(left_out, "950");
        let inventory = host.detect().await;
        let chips: Vec<_> =
            inventory.devices.iter().map(|device| (device.index, device.name.as_str(), device.power_w)).collect();
        let expected = [0, 1, 3].map(|index| (index, "Ascend950PR", Some(190.4)));
        assert_eq!((chips.as_slice(), reasons(&inventory)), (expected.as_slice(), vec![]), "{left_out:?}");
        assert_eq!(inventory.devices[0].uuid.as_deref(), Some("00000001 00000002 00000003 00000004 00000005"));
    }
}

#[tokio::test]
async fn a_reading_that_fails_is_absent_and_the_others_are_there() {
    for (code, why) in [(-8255, AbsentWhy::NotSupported), (-8002, AbsentWhy::Forbidden), (-8006, AbsentWhy::Failed)] {
        let inventory = Host::new(&format!("910b\ncode temperature {code}")).detect().await;
        let device = &inventory.devices[0];
        assert_eq!(device.absent, [AbsentReading { reading: ReadingKind::Temperature, why }]);
        assert_eq!((device.health, device.temperature, device.power_w), (Some(DeviceHealth::Ok), None, Some(93.9)));
    }
}

/// The other memory of a chip that has both is not what models are loaded into.
#[tokio::test]
async fn memory_that_could_not_be_told_this_time_is_absent() {
    let inventory = Host::new("910b\ncode hbm -8006").detect().await;
    let absent = [AbsentReading { reading: ReadingKind::Memory, why: AbsentWhy::Failed }];
    assert_eq!(
        (inventory.devices[0].memory.clone(), inventory.devices[0].absent.as_slice()),
        (None, absent.as_slice())
    );
}

#[tokio::test]
async fn functions_that_are_missing_leave_the_chips_with_absent_readings() {
    let host = Host::built(&["FEW"], "910b");
    let inventory = host.detect().await;
    let device = &inventory.devices[7];
    assert_eq!((inventory.devices.len(), device.index, device.temperature), (8, 7, None));
    assert!(device.absent.iter().all(|absent| absent.why == AbsentWhy::NotTold));
    assert_eq!(reasons(&inventory), []);
}

#[tokio::test]
async fn strings_without_an_end_are_none() {
    let inventory = Host::new("910b\ngarbage").detect().await;
    let device = &inventory.devices[3];
    assert_eq!((inventory.devices.len(), device.name.as_str(), device.temperature), (8, "Ascend", Some(43.0)));
    assert_eq!((device.driver_version.clone(), device.firmware_version.clone()), (None, None));
}

#[tokio::test]
async fn what_the_library_prints_is_no_answer() {
    assert_eq!(names(&Host::new("910b\nnoise").detect().await), ["910B3"; 8]);
}

#[tokio::test]
async fn a_library_that_cannot_be_used_leaves_it_to_the_tool_in_the_same_look() {
    let cases: [(&[&str], &str); 9] = [
        (&[], "910b\ncode init -8005\ncode init_2 -8005"),
        (&[], "910b\ncrash init"),
        (&[], "910b\ncrash temperature"),
        (&[], "910b\ncode list -8012"),
        (&[], "910b\ncode count -8009"),
        (&[], "910b\nclaim 1000"),
        (&[], "910b\nclaim -1"),
        (&[], "no chips"),
        (&["NO_CARDS", "NO_DEVICES"], "910b"),
    ];
    for (left_out, words) in cases {
        let host = Host::built(left_out, words);
        let inventory = host.detect().await;
        assert_eq!((names(&inventory), reasons(&inventory)), (vec!["by the tool"], vec![]), "{words}");
        assert_eq!(host.processes().await, 1, "{words}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_library_leaves_it_to_the_tool() {
    let host = Host::new("910b");
    fs::write(host.path(LIBRARIES).join(LIBRARY), "no library").unwrap();
    let inventory = host.detect().await;
    assert_eq!((names(&inventory), reasons(&inventory)), (vec!["by the tool"], vec![]));
}

#[tokio::test]
async fn a_library_that_hangs_at_its_start_is_killed_by_the_deadline() {
    let host = Host::new("910b\nhang init");
    let inventory = host.detector(SHORT).detect().await;
    assert_eq!((names(&inventory), reasons(&inventory)), (vec!["by the tool"], vec![]));
    assert_eq!(host.processes().await, 1);
}

#[tokio::test]
async fn a_library_that_hangs_later_is_killed_by_the_deadline() {
    let host = Host::new("910b");
    let mut detector = host.detector(SHORT);
    assert_eq!(names(&detector.detect().await), ["910B3"; 8]);
    host.tell("910b\nhang hbm");
    assert_eq!(names(&detector.detect().await), ["by the tool"]);
    drop(detector);
    assert_eq!(host.processes().await, 1);
}

#[tokio::test]
async fn a_library_that_failed_is_tried_again_after_a_pause_that_grows() {
    let host = Host::new("910b");
    let mut detector = host.detector(AMPLE);
    assert_eq!(names(&detector.detect().await), ["910B3"; 8]);
    host.tell("910b\ncrash health");
    assert_eq!(names(&detector.detect().await), ["by the tool"]);
    // not again so soon, though it would work
    host.tell("910b");
    pass(Duration::from_secs(50)).await;
    assert_eq!(names(&detector.detect().await), ["by the tool"]);
    host.tell("910b\ncrash health");
    pass(Duration::from_secs(20)).await;
    assert_eq!(names(&detector.detect().await), ["by the tool"]);
    // a minute is not enough the second time
    host.tell("910b");
    pass(Duration::from_secs(70)).await;
    assert_eq!(names(&detector.detect().await), ["by the tool"]);
    pass(Duration::from_mins(1)).await;
    assert_eq!(names(&detector.detect().await), ["910B3"; 8]);
    drop(detector);
    assert_eq!(host.processes().await, 3);
}

/// An upgrade of the driver, with the process of the old one still there.
#[tokio::test]
async fn a_library_that_was_replaced_is_loaded_anew() {
    let host = Host::new("910b");
    let mut detector = host.detector(AMPLE);
    assert_eq!(names(&detector.detect().await), ["910B3"; 8]);
    host.build(&[]);
    assert_eq!(names(&detector.detect().await), ["910B3"; 8]);
    drop(detector);
    assert_eq!(host.processes().await, 2);
}

#[tokio::test]
async fn a_look_that_nobody_waits_for_leaves_no_process() {
    let host = Host::new("910b\nhang health");
    let mut detector = host.detector(AMPLE);
    // the library's process writes its id when it is loaded, and hangs thereafter
    tokio::select! {
        _ = detector.detect() => panic!("the library hangs"),
        ready = host.alive.readable() => ready.unwrap(),
    }
    host.tell("910b");
    assert_eq!(names(&detector.detect().await), ["910B3"; 8]);
    drop(detector);
    assert_eq!(host.processes().await, 2);
}

#[tokio::test]
async fn a_chip_keeps_its_number_while_the_tool_stands_in() {
    let host = Host::new("a3");
    let mut table = "+----+\n| NPU   Name  | Health |\n| Chip | Bus-Id |\n+====+====+\n".to_owned();
    for (card, chip) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)] {
        let _ = write!(table, "| {card} by the tool | OK |\n| {chip} | 0000:C1:00.0 |\n+====+====+\n");
    }
    host.answer("info", &table);
    let mut detector = host.detector(AMPLE);
    let before = detector.detect().await;
    host.tell("a3\ncrash health");
    let after = detector.detect().await;
    let numbers = |inventory: &Inventory| -> Vec<_> {
        inventory.devices.iter().map(|device| (device.index, device.physical_index, device.uuid.clone())).collect()
    };
    assert_eq!((names(&after), numbers(&after)), (vec!["by the tool"; 8], numbers(&before)));
}

#[tokio::test]
async fn one_cause_is_told_once_and_by_the_tool_where_that_fails_too() {
    let host = Host::new("910b\ncode init -8005");
    host.nodes(&["davinci0", "davinci_manager", "hisi_hdc", "devmm_svm"]);
    host.answer("info", "dcmi module initialize failed. ret is -8005\n");
    let told =
        |tool: &str| vec![Reason::DriverInitFailed { tool: tool.into(), code: -8005, nodes: Vec::new(), cause: None }];
    assert_eq!(reasons(&host.detect().await), told("npu-smi"));
    let host = host.without_the_tool();
    let mut detector = host.detector(AMPLE);
    for _ in 0..2 {
        assert_eq!(reasons(&detector.detect().await), told(LIBRARY));
    }
}

#[tokio::test]
async fn a_host_without_a_chip_has_no_problem_with_a_library_that_does_not_start() {
    let host = Host::new("910b\ncode init -8005").without_the_tool();
    let inventory = host.detect().await;
    assert_eq!((inventory.devices.len(), reasons(&inventory)), (0, vec![]));
}

#[tokio::test]
async fn the_library_is_enough_where_the_tool_is_not_there() {
    let host = Host::new("910b").without_the_tool();
    let inventory = host.detect().await;
    assert_eq!((inventory.devices.len(), reasons(&inventory)), (8, vec![]));
}
