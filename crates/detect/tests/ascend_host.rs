//! A host with Ascend cards, made of files and stand-ins for the driver's programs: what is read, how often, and every
//! fault of its environment seen failing and passing.

#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on fails the test")]

use api::{AbsentWhy, Check, CheckProblem, DeviceHealth, GpuDevice, PowerScope, Reason, Seen, Severity, Trouble};
use detect::{Detector, DetectorConfig, Inventory};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const BIN: &str = "usr/local/bin";
const TOOLS: &str = "usr/local/Ascend/driver/tools";
const BOARD: &str = include_str!("fixtures/npu-info-t-board-card-910b.txt");
const CHIP_BOARD: &str = include_str!("fixtures/npu-info-t-board-chip-910b-vdie.txt");
const COMMON: &str = include_str!("fixtures/npu-info-t-common-910a.txt");
const A3: &str = include_str!("fixtures/npu-info-a3-910c-two-chips.txt");
const DRIVER_NOTE: &str = "Version=25.5.1\ncompatible_version_fw=[7.0.0,7.9.99]\n";
const RUNTIME_NOTE: &str = "toolkit_running_version=[8.5.0.1.1:8.5.RC1]\n";
/// For a tool that hangs at one question; long enough for a shell to answer the others.
const SHORT: Duration = Duration::from_secs(5);
/// No test that waits for an answer comes near it.
const AMPLE: Duration = Duration::from_mins(1);

struct Host {
    root: TempDir,
    variables: BTreeMap<String, String>,
}

impl Host {
    /// Eight 910B3 in good order, with all that belongs to them.
    fn with_eight_cards() -> Self {
        let host = Self { root: TempDir::new().unwrap(), variables: BTreeMap::new() };
        host.install(BIN, "npu-smi");
        host.install(TOOLS, "hccn_tool");
        host.write("usr/local/Ascend/driver/version.info", DRIVER_NOTE);
        host.write("usr/local/Ascend/ascend-toolkit/latest/version.cfg", RUNTIME_NOTE);
        host.answer("info", &table(0..8, "OK"));
        host.answer("info-m", &numbers(0..8, 0));
        host.nodes(&["davinci_manager", "hisi_hdc", "devmm_svm"]);
        for number in 0..8 {
            host.nodes(&[&format!("davinci{number}")]);
            host.answer(&format!("info-tboard-i{number}"), BOARD);
            host.answer(&format!("info-tboard-i{number}-c0"), CHIP_BOARD);
            host.answer(&format!("info-tcommon-i{number}"), COMMON);
            host.port(number, "-link", "link status: UP\n");
            host.port(number, "-ip", &format!("ipaddr:192.0.2.{}\nnetmask:255.255.255.0\n", number + 10));
            host.port(number, "-mac", &format!("mac addr: 02:00:00:00:00:0{number}\n"));
            host.port(number, "-gateway", "default gateway:192.0.2.1, Iface:eth0\n");
            host.port(number, "-mtu", "mtu:8192\n");
        }
        host
    }

    fn install(&self, directory: &str, name: &str) {
        let directory = self.path(directory);
        fs::create_dir_all(&directory).unwrap();
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand-in/tool"), directory.join(name)).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    fn answer(&self, question: &str, text: &str) {
        self.write(&format!("{BIN}/{question}.txt"), text);
    }

    fn port(&self, number: u32, question: &str, text: &str) {
        self.write(&format!("{TOOLS}/-i{number}{question}-g.txt"), text);
    }

    fn nodes(&self, names: &[&str]) {
        for name in names {
            self.write(&format!("dev/{name}"), "");
        }
    }

    /// What a program was asked since the last look at this.
    fn calls(&self, directory: &str) -> Vec<String> {
        let path = self.path(directory).join("calls");
        let calls = fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect();
        let _ = fs::remove_file(path);
        calls
    }

    fn detector(&self) -> Detector {
        Detector::new(&self.config())
    }

    fn config(&self) -> DetectorConfig {
        DetectorConfig {
            root: self.root.path().to_owned(),
            tool_deadline: AMPLE,
            slow_facts_budget: AMPLE,
            path: Some(OsString::new()),
            variables: self.variables.clone(),
            library_reader: None,
            dcgm_exporter: None,
        }
    }

    async fn detect(&self) -> Inventory {
        self.detector().detect().await
    }
}

/// The table of 910B3 cards with these numbers.
fn table(npus: impl Iterator<Item = u32>, health: &str) -> String {
    let border = "+====+====+====+\n";
    let mut text = format!(
        "+----+\n| npu-smi 25.5.1      Version: 25.5.1 |\n+----+----+----+\n\
         | NPU   Name  | Health  | Power(W)  Temp(C)  Hugepages-Usage(page)|\n\
         | Chip        | Bus-Id  | AICore(%)  Memory-Usage(MB)  HBM-Usage(MB) |\n{border}"
    );
    for npu in npus {
        let _ = write!(
            text,
            "| {npu}  910B3 | {health} | 93.9  41  0 / 0 |\n\
             | 0 | 0000:{:02X}:00.0 | 7  0 / 0  3410 / 65536 |\n{border}",
            npu + 0xc0
        );
    }
    text
}

/// The list of numbers: the logic ids from 0 on, the physical ids from `first_physical` on.
fn numbers(npus: impl Iterator<Item = u32>, first_physical: u32) -> String {
    let mut text = "NPU ID    Chip ID    Chip Logic ID    Chip Phy-ID    Chip Name\n".to_owned();
    for (logic, npu) in (0..).zip(npus) {
        let _ = writeln!(text, "{npu}    0    {logic}    {}    Ascend910", first_physical + logic);
    }
    text
}

/// Lets this time pass at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn reasons(inventory: &Inventory) -> Vec<Reason> {
    inventory.problems.iter().map(|problem| problem.reason.clone()).collect()
}

fn device(inventory: &Inventory, index: u32) -> &GpuDevice {
    inventory.devices.iter().find(|device| device.index == index).unwrap()
}

#[tokio::test]
async fn everything_about_a_device_is_read() {
    let inventory = Host::with_eight_cards().detect().await;
    assert_eq!((inventory.devices.len(), reasons(&inventory)), (8, vec![]));
    insta::assert_json_snapshot!("a_910b3", device(&inventory, 5));
}

/// The price of a look: one process as long as nothing changes.
#[tokio::test]
async fn eight_devices_cost_one_process_a_look_once_the_slow_facts_are_known() {
    let host = Host::with_eight_cards();
    let mut detector = host.detector();
    detector.detect().await;
    // the table, the numbers; of each card the board, its chip, its cores; of each port five answers
    assert_eq!((host.calls(BIN).len(), host.calls(TOOLS).len()), (2 + 8 * 3, 8 * 5));
    for _ in 0..3 {
        assert_eq!(detector.detect().await.devices.len(), 8);
        assert_eq!((host.calls(BIN), host.calls(TOOLS)), (vec!["info".to_owned()], vec![]));
    }
}

#[tokio::test]
async fn without_time_for_slow_facts_the_readings_come_all_the_same() {
    let host = Host::with_eight_cards();
    let mut detector = Detector::new(&DetectorConfig { slow_facts_budget: Duration::ZERO, ..host.config() });
    let inventory = detector.detect().await;
    assert_eq!(inventory.devices.len(), 8);
    assert_eq!(host.calls(BIN), ["info", "info-m"]);
    assert_eq!(device(&inventory, 0).temperature, Some(41.0));
}

#[tokio::test]
async fn slow_facts_are_asked_again_when_chips_come_or_go() {
    let host = Host::with_eight_cards();
    let mut detector = host.detector();
    detector.detect().await;
    host.calls(BIN);
    host.answer("info", &table(0..7, "OK"));
    detector.detect().await;
    assert_eq!(host.calls(BIN).len(), 2 + 7 * 3);
}

#[tokio::test]
async fn ports_are_asked_again_after_some_minutes_and_boards_are_not() {
    let host = Host::with_eight_cards();
    let mut detector = host.detector();
    let before = detector.detect().await;
    assert_eq!(device(&before, 3).network.as_ref().unwrap().status, "up");
    host.calls(BIN);
    host.calls(TOOLS);

    host.port(3, "-link", "link status: DOWN\n");
    pass(Duration::from_mins(9)).await;
    detector.detect().await;
    assert_eq!((host.calls(BIN).len(), host.calls(TOOLS).len()), (1, 0));
    pass(Duration::from_mins(2)).await;
    let after = detector.detect().await;
    assert_eq!((host.calls(BIN).len(), host.calls(TOOLS).len()), (1, 40));
    let network = device(&after, 3).network.clone().unwrap();
    assert_eq!((network.status.as_str(), network.inet.as_str()), ("down", "192.0.2.13"));
}

#[tokio::test]
async fn a_host_without_the_ports_program_has_no_network_and_no_problem() {
    let host = Host::with_eight_cards();
    host.remove(&format!("{TOOLS}/hccn_tool"));
    let inventory = host.detect().await;
    assert_eq!((device(&inventory, 0).network.clone(), reasons(&inventory)), (None, vec![]));
}

#[tokio::test]
async fn cards_without_ports_are_asked_once_each() {
    let host = Host::with_eight_cards();
    for number in 0..8 {
        host.port(number, "-link", "This device does not support querying.\n");
    }
    let inventory = host.detect().await;
    assert_eq!((device(&inventory, 0).network.clone(), host.calls(TOOLS).len()), (None, 8));
}

#[tokio::test]
async fn an_unhealthy_chip_is_asked_for_its_codes_once_for_each_word() {
    let host = Host::with_eight_cards();
    let mut detector = host.detector();
    detector.detect().await;
    host.calls(BIN);
    host.answer("info", &table(0..8, "OK").replacen("| OK |", "| Warning |", 1));
    host.answer(
        "info-thealth-i0-c0",
        "Health Status : Warning\nError Code : 80E01801 80CD8008\nError Information : node type=SOC\n",
    );
    for calls in [vec!["info", "info-thealth-i0-c0"], vec!["info"]] {
        let inventory = detector.detect().await;
        assert_eq!(host.calls(BIN), calls);
        let sick = device(&inventory, 0);
        assert_eq!(
            (sick.health, sick.error_codes.join(" ")),
            (Some(DeviceHealth::Warning), "80E01801 80CD8008".into())
        );
    }
    host.answer("info", &table(0..8, "OK"));
    let inventory = detector.detect().await;
    assert_eq!((device(&inventory, 0).error_codes.len(), host.calls(BIN)), (0, vec!["info".to_owned()]));
}

#[tokio::test]
async fn a_container_with_four_of_eight_chips_keeps_the_hosts_numbers() {
    let mut host = Host::with_eight_cards();
    host.answer("info", &table(4..8, "OK"));
    for number in 0..4 {
        host.remove(&format!("dev/davinci{number}"));
    }
    host.variables.insert("ASCEND_VISIBLE_DEVICES".into(), "4-7".into());
    // the list names the numbers of the host, or they are told by the nodes
    for list in
        [numbers(4..8, 4), "NPU ID  Chip ID  Chip Logic ID  Chip Name\n4 0 0 A\n5 0 1 A\n6 0 2 A\n7 0 3 A\n".into()]
    {
        host.answer("info-m", &list);
        let inventory = host.detect().await;
        let numbers: Vec<_> = inventory
            .devices
            .iter()
            .map(|device| (device.index, device.physical_index.unwrap(), device.node.clone().unwrap()))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 3].map(|index| (index, index + 4, format!("/dev/davinci{}", index + 4))));
        assert_eq!(reasons(&inventory), []);
    }
}

#[tokio::test]
async fn a_choice_of_chips_that_are_not_there_is_told() {
    for (variable, value, is_wrong) in [
        ("ASCEND_VISIBLE_DEVICES", "0-7", false),
        ("ASCEND_VISIBLE_DEVICES", "0-8", true),
        ("ASCEND_VISIBLE_DEVICES", "all", false),
        ("ASCEND_VISIBLE_DEVICES", "void", false),
        ("ASCEND_VISIBLE_DEVICES", "first", true),
        ("ASCEND_RT_VISIBLE_DEVICES", "7", false),
        ("ASCEND_RT_VISIBLE_DEVICES", "8", true),
    ] {
        let mut host = Host::with_eight_cards();
        host.variables.insert(variable.into(), value.into());
        let inventory = host.detect().await;
        let reason = Reason::VisibleDevicesWrong { variable: variable.into(), value: value.into(), available: 8 };
        let expected = if is_wrong { vec![reason] } else { vec![] };
        assert_eq!((inventory.devices.len(), reasons(&inventory)), (8, expected), "{variable}={value}");
    }
}

#[tokio::test]
async fn a_container_that_was_started_without_the_chips_it_asks_for_is_told() {
    let mut host = Host { root: TempDir::new().unwrap(), variables: BTreeMap::new() };
    assert_eq!(reasons(&host.detect().await), []);
    host.variables.insert("ASCEND_VISIBLE_DEVICES".into(), "0-3".into());
    let reason =
        Reason::VisibleDevicesWrong { variable: "ASCEND_VISIBLE_DEVICES".into(), value: "0-3".into(), available: 0 };
    assert_eq!(reasons(&host.detect().await), [reason]);
}

#[tokio::test]
async fn a_driver_that_was_upgraded_without_a_restart_is_told() {
    let host = Host::with_eight_cards();
    host.write("usr/local/Ascend/driver/version.info", "Version=25.9.0\n");
    let inventory = host.detect().await;
    let [Reason::DriverMismatch { running, installed, firmware: None, .. }] = &reasons(&inventory)[..] else {
        panic!("{:?}", inventory.problems)
    };
    assert_eq!((running.as_deref(), installed.as_deref()), (Some("25.5.1"), Some("25.9.0")));
    assert_eq!(inventory.problems[0].severity, Severity::Warning);
}

#[tokio::test]
async fn firmware_that_does_not_go_with_the_driver_is_told() {
    let silent = BOARD.replace("Compatibility                  : OK\n", "");
    let note = "Version=25.5.1\ncompatible_version_fw=[6.0.0,6.9.99]\n";
    for (board, note, is_wrong) in [
        (BOARD.to_owned(), DRIVER_NOTE, false),
        (BOARD.replace("Compatibility                  : OK", "Compatibility : NOT OK"), DRIVER_NOTE, true),
        (silent.clone(), DRIVER_NOTE, false),
        (silent, note, true),
        // the running driver knows better than its package's note
        (BOARD.to_owned(), note, false),
    ] {
        let host = Host::with_eight_cards();
        host.write("usr/local/Ascend/driver/version.info", note);
        host.answer("info-tboard-i0", &board);
        let inventory = host.detect().await;
        let is_told = matches!(
            &reasons(&inventory)[..],
            [Reason::DriverMismatch { firmware: Some(firmware), .. }] if firmware == "7.8.0.6.201"
        );
        assert_eq!((is_told, inventory.problems.is_empty()), (is_wrong, !is_wrong), "{board} {note}");
    }
}

#[tokio::test]
async fn a_node_that_the_host_has_and_the_container_has_not_is_told() {
    let host = Host::with_eight_cards();
    fs::create_dir_all(host.path("sys/dev/char")).unwrap();
    for (minor, name) in ["davinci_manager", "hdc_host"].into_iter().enumerate() {
        symlink(format!("../../devices/virtual/{name}"), host.path(&format!("sys/dev/char/236:{minor}"))).unwrap();
    }
    assert_eq!(reasons(&host.detect().await), [Reason::DeviceNodeMissing { node: "/dev/hdc_host".into() }]);
    host.nodes(&["hdc_host"]);
    assert_eq!(reasons(&host.detect().await), []);
}

#[tokio::test]
async fn parts_of_chips_have_no_use_instead_of_none() {
    let host = Host::with_eight_cards();
    host.nodes(&["vdavinci100"]);
    host.answer("info", &table(0..8, "OK").replace("| 7  0 / 0", "| 0  0 / 0"));
    let inventory = host.detect().await;
    let part = device(&inventory, 0);
    assert_eq!(part.core.as_ref().unwrap().utilization_rate, None);
    assert_eq!(part.absent[0].why, AbsentWhy::NotSupported);
}

#[tokio::test]
async fn a_table_that_is_not_understood_is_replaced_by_lists() {
    let host = Host::with_eight_cards();
    host.answer("info", "+---+\n| a layout of next year |\n+---+\n");
    host.answer("info-l", "Total Count : 2\n\nNPU ID : 0\nChip Count : 1\n\nNPU ID : 1\nChip Count : 1\n");
    for npu in 0..2 {
        host.answer(
            &format!("info-tcommon-i{npu}"),
            "NPU ID : 0\nChip Count : 1\n\nChip ID : 0\nAicore Usage Rate(%) : 12\n",
        );
        host.answer(&format!("info-tusages-i{npu}"), include_str!("fixtures/npu-info-t-usages-910b-hbm.txt"));
        host.answer(&format!("info-thealth-i{npu}"), "NPU ID : 0\nHealth : OK\nError Code : NA\n");
        host.answer(&format!("info-ttemp-i{npu}"), "NPU Temperature (C) : 39\nChip ID : 0\n");
        host.answer(&format!("info-tpower-i{npu}"), include_str!("fixtures/npu-info-t-power-910b.txt"));
    }
    let inventory = host.detect().await;
    assert!(matches!(reasons(&inventory)[..], [Reason::ToolOutputUnknown { .. }]), "{:?}", inventory.problems);
    assert_eq!((inventory.devices.len(), inventory.stale_s), (2, None));
    insta::assert_json_snapshot!("by_lists", device(&inventory, 1));
}

#[tokio::test]
async fn a_card_of_two_chips_has_one_power_reading() {
    let host = Host::with_eight_cards();
    host.answer("info", A3);
    host.answer("info-m", include_str!("fixtures/npu-info-m-a3-910c.txt"));
    let inventory = host.detect().await;
    let power: Vec<_> = inventory.devices.iter().map(|device| (device.power_w, device.power_scope)).collect();
    let card = |watts| (Some(watts), Some(PowerScope::Card));
    assert_eq!(power, [card(178.5), (None, None), card(186.3), (None, None)]);
    let physical: Vec<_> = inventory.devices.iter().map(|device| device.physical_index.unwrap()).collect();
    assert_eq!(physical, [8, 9, 10, 11]);
}

#[tokio::test]
async fn a_cards_power_that_is_in_no_table_is_asked_once_a_minute() {
    let host = Host::with_eight_cards();
    host.answer("info", include_str!("fixtures/npu-info-310p3-duo-25.2.0.txt"));
    host.answer("info-m", "");
    host.answer("info-tpower-i2", "NPU ID : 2\nChip Count : 2\n\nNPU Real-time Power(W) : 42.8\nChip Name : MCU\n");
    let mut detector = host.detector();
    let power = |inventory: &Inventory| -> Vec<_> {
        inventory.devices.iter().map(|device| (device.power_w, device.power_scope)).collect()
    };
    assert_eq!(power(&detector.detect().await), [(Some(42.8), Some(PowerScope::Card)), (None, None)]);
    host.calls(BIN);
    assert_eq!(power(&detector.detect().await)[0].0, Some(42.8));
    assert_eq!(host.calls(BIN), ["info"]);
    pass(Duration::from_secs(61)).await;
    host.answer("info-tpower-i2", "This device does not support querying.\n");
    assert_eq!(power(&detector.detect().await), [(None, None); 2]);
    assert_eq!(host.calls(BIN), ["info", "info-tpower-i2"]);
}

#[tokio::test]
async fn a_slow_question_that_hangs_does_not_hang_at_every_look() {
    let host = Host::with_eight_cards();
    host.answer("info", include_str!("fixtures/npu-info-310p3-duo-25.2.0.txt"));
    host.write(&format!("{BIN}/info-tpower-i2.sh"), "exec sleep 60");
    let mut detector = Detector::new(&DetectorConfig { tool_deadline: SHORT, ..host.config() });
    let inventory = detector.detect().await;
    assert_eq!(inventory.devices.len(), 2);
    assert!(matches!(reasons(&inventory)[..], [Reason::ToolTimedOut { .. }, ..]), "{:?}", inventory.problems);
    let mut looks = 0;
    while looks < 3 {
        // the killed process may take a moment to go away
        looks += u32::from(detector.detect().await.stale_s.is_none());
    }
    assert_eq!(host.calls(BIN).iter().filter(|call| call.starts_with("info-tpower")).count(), 1);
}

/// Each point with what is wrong with it, the host's own numbers of users aside.
fn told(problem: &CheckProblem) -> String {
    match &problem.trouble {
        Trouble::Reason(reason) => format!(" -> {:?} {reason:?}", problem.severity),
        Trouble::Host(reason) => format!(" -> {:?} {reason:?}", problem.severity),
    }
}

fn points(inventory: &Inventory) -> Vec<String> {
    let point = |check: &Check| {
        let seen = match &check.seen {
            Seen::Devices { vendor, on_bus, without_driver, listed } => {
                format!("{vendor}: {on_bus} on the bus, {without_driver} without a driver, {listed} listed")
            }
            Seen::Tool { tool, path } => format!("{tool}: {}", if path.is_some() { "found" } else { "nowhere" }),
            Seen::Node { path, state, .. } => format!("{path}: {state:?}"),
            Seen::Driver { running, installed, .. } => format!("driver: {running:?} runs, {installed:?} installed"),
            Seen::Firmware { versions, .. } => format!("firmware: {versions:?}"),
            Seen::Runtime { version, .. } => format!("runtime: {version:?}"),
            Seen::Variable { name, value } => format!("{name}={value}"),
            other => format!("{other:?}"),
        };
        let problem = check.problem.as_ref().map(told);
        format!("{seen}{}", problem.unwrap_or_default())
    };
    inventory.checks.iter().map(point).collect()
}

#[tokio::test]
async fn every_point_of_a_host_in_good_order_passes() {
    let mut host = Host::with_eight_cards();
    host.variables.insert("ASCEND_VISIBLE_DEVICES".into(), "0-7".into());
    pci(&host, "0000:c0:00.0", ["0x19e5", "0xd802", "0x120000"], Some("devdrv_device_driver"));
    let inventory = host.detect().await;
    assert!(inventory.checks.iter().all(|check| check.problem.is_none()));
    insta::assert_debug_snapshot!("points_in_good_order", points(&inventory));
}

#[tokio::test]
async fn every_point_of_a_host_with_everything_wrong_fails() {
    let mut host = Host::with_eight_cards();
    host.variables.insert("ASCEND_VISIBLE_DEVICES".into(), "8".into());
    host.variables.insert("ASCEND_RT_VISIBLE_DEVICES".into(), "all of them".into());
    host.answer("info", &table(0..8, "OK").replacen("| OK |", "| Alarm |", 1).replace("| 7  910B3", "| ?  910B3"));
    host.answer("info-tboard-i0", &BOARD.replace("Compatibility                  : OK", "Compatibility : NOT OK"));
    host.remove("dev/hisi_hdc");
    fs::remove_file(host.path("dev/devmm_svm")).unwrap();
    fs::create_dir(host.path("dev/devmm_svm")).unwrap();
    insta::assert_debug_snapshot!("points_with_everything_wrong", points(&host.detect().await));
}

#[tokio::test]
async fn a_host_without_anything_of_a_maker_has_no_points_of_it() {
    let host = Host { root: TempDir::new().unwrap(), variables: BTreeMap::new() };
    assert_eq!(host.detect().await.checks, []);
}

fn pci(host: &Host, address: &str, ids: [&str; 3], driver: Option<&str>) {
    let place = format!("sys/bus/pci/devices/{address}");
    for (file, value) in ["vendor", "device", "class"].into_iter().zip(ids) {
        host.write(&format!("{place}/{file}"), value);
    }
    if let Some(driver) = driver {
        symlink(format!("../../../bus/pci/drivers/{driver}"), host.path(&format!("{place}/driver"))).unwrap();
    }
}

#[tokio::test]
async fn cards_on_the_bus_without_a_driver_are_one_problem_whatever_the_tool_says() {
    let host = Host::with_eight_cards();
    host.answer("info", include_str!("fixtures/npu-info-error-8005.txt"));
    for card in 0..2 {
        pci(&host, &format!("0000:c{card}:00.0"), ["0x19e5", "0xd802", "0x120000"], None);
    }
    let inventory = host.detect().await;
    assert_eq!(reasons(&inventory), [Reason::DriverNotLoaded { vendor: "Huawei".into(), count: Some(2) }]);
    assert_eq!(inventory.undriven.len(), 2);
    assert_eq!(
        (inventory.undriven[0].bus_id.as_str(), inventory.undriven[0].pci_id.as_str()),
        ("0000:c0:00.0", "19e5:d802")
    );
}

#[tokio::test]
async fn a_card_with_its_driver_is_no_problem() {
    let host = Host::with_eight_cards();
    pci(&host, "0000:c0:00.0", ["0x19e5", "0xd802", "0x120000"], Some("devdrv_device_driver"));
    let inventory = host.detect().await;
    assert_eq!((reasons(&inventory), inventory.undriven), (vec![], vec![]));
}

#[tokio::test]
async fn what_the_tools_printed_is_kept_without_secrets() {
    let host = Host::with_eight_cards();
    host.answer("info", "strange --token abc\n");
    let mut detector = host.detector();
    detector.detect().await;
    let printed = detector.printed();
    let info = printed.iter().find(|printed| printed.question == "info").unwrap();
    assert_eq!((info.tool.as_str(), info.exit_code, info.output.as_str()), ("npu-smi", Some(0), "strange --token ***"));
}
