//! The detector against a stand-in for `npu-smi` that answers, fails and hangs as real ones were seen to.

#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on fails the test")]

use api::{DriverInitCause, Problem, Reason, Severity};
use detect::{Detector, DetectorConfig, Inventory};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const CARDS_910B: &str = include_str!("fixtures/npu-info-910b2c-25.5.2-noproc-footer.txt");
const CARDS_910A: &str = include_str!("fixtures/npu-info-910a-22.0.3.1.txt");
const CARDS_950: &str = include_str!("fixtures/npu-info-950pr-25.7.rc1.txt");
const LIST_910A: &str = include_str!("fixtures/npu-info-m-910a.txt");
const DRIVER_FAILED: &str = include_str!("fixtures/npu-info-error-8005.txt");
const LIBRARY_MISSING: &str = include_str!("fixtures/npu-info-error-libc_sec.txt");

/// No test that waits for an answer comes near it.
const AMPLE: Duration = Duration::from_mins(1);
/// For tests in which the tool never answers; long enough for a shell to get to the point where it hangs.
const SHORT: Duration = Duration::from_secs(5);

/// A host in a temporary directory.
struct Host {
    root: TempDir,
}

impl Host {
    fn bare() -> Self {
        Self { root: TempDir::new().unwrap() }
    }

    fn with_tool_in(directory: &str) -> Self {
        let host = Self::bare();
        host.install(directory);
        host
    }

    fn with_tool() -> Self {
        Self::with_tool_in("usr/local/bin")
    }

    /// One whose tool prints `info`.
    fn printing(info: &str) -> Self {
        let host = Self::with_tool();
        host.answer("info.txt", info);
        host
    }

    fn install(&self, directory: &str) {
        let directory = self.path(directory);
        fs::create_dir_all(&directory).unwrap();
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand-in/tool"), directory.join("npu-smi")).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn answer(&self, file: &str, text: impl AsRef<[u8]>) {
        self.write(&format!("usr/local/bin/{file}"), text);
    }

    fn withdraw(&self, file: &str) {
        fs::remove_file(self.path(&format!("usr/local/bin/{file}"))).unwrap();
    }

    fn nodes(&self, names: &[&str]) {
        for name in names {
            self.write(&format!("dev/{name}"), "");
        }
    }

    /// What the tool was asked, one question after the other.
    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("usr/local/bin/calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    /// Those that are not for facts that hardly ever change.
    fn frequent_calls(&self) -> Vec<String> {
        self.calls().into_iter().filter(|call| matches!(call.as_str(), "info" | "info-m")).collect()
    }

    fn pid_in(&self, file: &str) -> Option<Pid> {
        let text = fs::read_to_string(self.path(&format!("usr/local/bin/{file}"))).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    }

    fn detector(&self, tool_deadline: Duration) -> Detector {
        Detector::new(&self.config(tool_deadline))
    }

    fn config(&self, tool_deadline: Duration) -> DetectorConfig {
        DetectorConfig {
            root: self.root.path().to_owned(),
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

fn indexes(inventory: &Inventory) -> Vec<u32> {
    inventory.devices.iter().map(|device| device.index).collect()
}

fn tool() -> String {
    "npu-smi".to_owned()
}

fn timed_out() -> Reason {
    Reason::ToolTimedOut { tool: tool(), timeout_s: SHORT.as_secs() }
}

/// Tries until it is so.
async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(AMPLE, wait).await.is_ok(), "{what}");
}

#[tokio::test]
async fn a_host_without_accelerators_has_neither_devices_nor_problems() {
    assert_eq!(Host::bare().detect().await, Inventory::default());
}

#[tokio::test]
async fn a_stand_in_on_a_host_without_nodes_gives_devices_and_no_problem() {
    let inventory = Host::printing(CARDS_910B).detect().await;
    assert_eq!((inventory.devices.len(), inventory.problems, inventory.stale_s), (3, vec![], None));
}

#[tokio::test]
async fn the_tool_is_found_wherever_a_driver_puts_it() {
    for directory in ["usr/local/sbin", "usr/local/bin", "usr/local/Ascend/driver/tools"] {
        let host = Host::with_tool_in(directory);
        host.write(&format!("{directory}/info.txt"), CARDS_910B);
        assert_eq!(host.detect().await.devices.len(), 3, "{directory}");
    }
}

#[tokio::test]
async fn the_tool_is_found_where_the_drivers_installer_says() {
    let host = Host::with_tool_in("opt/huawei/driver/tools");
    host.write("opt/huawei/driver/tools/info.txt", CARDS_910B);
    host.write("etc/ascend_install.info", "UserName=HwHiAiUser\nDriver_Install_Path_Param=/opt/huawei\n");
    assert_eq!(host.detect().await.devices.len(), 3);
}

#[tokio::test]
async fn the_search_path_comes_first() {
    let host = Host::printing("not this one");
    host.install("opt/tools");
    host.write("opt/tools/info.txt", CARDS_910B);
    let path = Some(host.path("opt/tools").into_os_string());
    let config = DetectorConfig { path, ..host.config(AMPLE) };
    assert_eq!(Detector::new(&config).detect().await.devices.len(), 3);
}

#[tokio::test]
async fn a_directory_with_the_tools_name_is_not_the_tool() {
    let host = Host::bare();
    fs::create_dir_all(host.path("usr/local/sbin/npu-smi")).unwrap();
    assert_eq!(host.detect().await, Inventory::default());
    host.install("usr/local/bin");
    host.answer("info.txt", CARDS_910B);
    assert_eq!(host.detect().await.devices.len(), 3);
}

#[tokio::test]
async fn nodes_without_a_tool_tell_that_the_tool_is_missing() {
    let host = Host::bare();
    host.nodes(&["davinci0", "davinci_manager", "hisi_hdc", "devmm_svm"]);
    let inventory = host.detect().await;
    assert_eq!((inventory.devices.len(), reasons(&inventory)), (0, vec![Reason::ToolMissing { tool: tool() }]));
}

#[tokio::test]
async fn the_managers_node_alone_is_no_accelerator() {
    let host = Host::bare();
    host.nodes(&["davinci_manager"]);
    assert_eq!(host.detect().await, Inventory::default());
}

#[tokio::test]
async fn a_file_that_is_no_program_tells_why_it_was_not_started() {
    let host = Host::bare();
    host.write("usr/local/bin/npu-smi", "");
    fs::set_permissions(host.path("usr/local/bin/npu-smi"), fs::Permissions::from_mode(0o644)).unwrap();
    let reasons = reasons(&host.detect().await);
    assert!(
        matches!(&reasons[..], [Reason::ToolNotStarted { error, .. }] if error.contains("Permission denied")),
        "{reasons:?}"
    );
}

#[tokio::test]
async fn the_tool_gets_the_drivers_libraries_and_speaks_english() {
    let host = Host::with_tool();
    host.answer(
        "info.sh",
        r#"printf '%s\n%s\n' "$LD_LIBRARY_PATH" "$LANG $LC_ALL" >"$here/environment"; cat >"$here/input""#,
    );
    host.detect().await;
    let environment = fs::read_to_string(host.path("usr/local/bin/environment")).unwrap();
    let libraries = ["Ascend/driver/lib64", "Ascend/driver/lib64/driver", "Ascend/driver/lib64/common", "dcmi"]
        .map(|directory| host.path("usr/local").join(directory).display().to_string())
        .join(":");
    assert!(environment.starts_with(&libraries), "{environment}");
    assert!(environment.ends_with("\nC C\n"), "{environment}");
    assert_eq!(fs::read_to_string(host.path("usr/local/bin/input")).unwrap(), "");
}

#[tokio::test]
async fn error_texts_are_told_by_cause_whatever_the_exit_status_and_the_stream() {
    let cases = [
        (DRIVER_FAILED, Reason::DriverInitFailed { tool: tool(), code: -8005, nodes: vec![], cause: None }),
        (LIBRARY_MISSING, Reason::DriverLibraryMissing { tool: tool(), library: "libc_sec.so".into() }),
        (
            "dcmi model initialized failed, because the device is used. ret is -8020\n",
            Reason::DeviceInUseElsewhere { tool: tool(), code: -8020 },
        ),
    ];
    for (text, reason) in cases {
        for end in ["", ">&2", "; exit 1", ">&2; exit 255"] {
            let host = Host::with_tool();
            host.nodes(&["davinci0", "davinci_manager", "hisi_hdc", "devmm_svm"]);
            host.answer("error", text);
            host.answer("info.sh", format!("cat \"$here/error\" {end}"));
            let inventory = host.detect().await;
            assert_eq!(reasons(&inventory), std::slice::from_ref(&reason), "{end}");
            assert_eq!(inventory.problems[0].severity, Severity::Error);
        }
    }
}

#[tokio::test]
async fn a_driver_that_does_not_start_is_one_problem_with_the_nodes_that_are_missing() {
    let host = Host::printing(DRIVER_FAILED);
    host.nodes(&["hisi_hdc"]);
    let nodes = vec!["/dev/davinci_manager".to_owned(), "/dev/devmm_svm".to_owned()];
    let cause = Some(DriverInitCause::NodesMissing);
    assert_eq!(reasons(&host.detect().await), [Reason::DriverInitFailed { tool: tool(), code: -8005, nodes, cause }]);
}

#[tokio::test]
async fn a_driver_that_does_not_start_is_told_with_its_likely_cause() {
    let not_loaded = ("proc/modules", "xfs 2260992 1 - Live 0x0\n");
    let loaded = ("proc/modules", "drv_devmng 200704 3 - Live 0x0\nxfs 2260992 1 - Live 0x0\n");
    let running = ("sys/module/drv_devmng/version", "24.1.0.3\n");
    let installed = ("usr/local/Ascend/driver/version.info", "Version=25.5.1\n");
    for (files, expected) in [
        ([].as_slice(), None),
        (&[loaded, installed], None),
        (&[not_loaded, installed], Some(DriverInitCause::ModuleNotLoaded)),
        (&[loaded, running, installed], Some(DriverInitCause::UpgradedWithoutRestart)),
    ] {
        let host = Host::printing(DRIVER_FAILED);
        host.nodes(&["davinci0", "davinci_manager", "hisi_hdc", "devmm_svm"]);
        for (path, text) in files {
            host.write(path, text);
        }
        let [Reason::DriverInitFailed { cause, .. }] = &reasons(&host.detect().await)[..] else {
            panic!("another problem");
        };
        assert_eq!(*cause, expected, "{files:?}");
    }
}

/// An upgrade under a worker that runs.
#[tokio::test]
async fn a_driver_that_ran_before_an_upgrade_of_its_files_wants_a_restart() {
    let host = Host::printing(CARDS_910B);
    let mut detector = host.detector(AMPLE);
    detector.detect().await;
    host.answer("info.txt", DRIVER_FAILED);
    host.write("usr/local/Ascend/driver/version.info", "Version=99.1.0\n");
    host.nodes(&["davinci0", "davinci_manager", "hisi_hdc", "devmm_svm"]);
    let cause = Some(DriverInitCause::UpgradedWithoutRestart);
    let expected = Reason::DriverInitFailed { tool: tool(), code: -8005, nodes: vec![], cause };
    assert_eq!(reasons(&detector.detect().await), [expected]);
}

#[tokio::test]
async fn an_unknown_failure_tells_its_exit_status_and_first_lines() {
    let host = Host::printing("Device 3 does not exist\n");
    host.answer("info.sh", "trap 'exit 7' EXIT");
    let output = "Device 3 does not exist".to_owned();
    assert_eq!(reasons(&host.detect().await), [Reason::ToolFailed { tool: tool(), exit_code: Some(7), output }]);
}

#[tokio::test]
async fn a_tool_that_crashes_has_no_exit_status() {
    let host = Host::with_tool();
    host.answer("info.sh", "kill -SEGV $$");
    let reasons = reasons(&host.detect().await);
    assert!(matches!(&reasons[..], [Reason::ToolFailed { exit_code: None, .. }]), "{reasons:?}");
}

#[tokio::test]
async fn a_layout_that_is_not_known_is_shown_short_and_clean() {
    let host = Host::printing(&format!("\u{1b}[2Jnew layout\n\n{}", "x".repeat(5_000)));
    let reasons = reasons(&host.detect().await);
    let [Reason::ToolOutputUnknown { output, .. }] = &reasons[..] else { panic!("{reasons:?}") };
    assert!(output.starts_with("[2Jnew layout\nxxx"), "{output}");
    assert_eq!(output.chars().count(), 500);
}

#[tokio::test]
async fn binary_garbage_is_an_unknown_layout() {
    let host = Host::with_tool();
    host.answer("info.txt", (0..=255).cycle().take(9_000).collect::<Vec<u8>>());
    let reasons = reasons(&host.detect().await);
    assert!(matches!(&reasons[..], [Reason::ToolOutputUnknown { .. }]), "{reasons:?}");
}

#[tokio::test]
async fn a_tool_that_prints_without_end_is_stopped() {
    let host = Host::with_tool();
    host.answer("info.sh", "exec yes 'no end in sight'");
    let reasons = reasons(&host.detect().await);
    assert!(
        matches!(&reasons[..], [Reason::ToolOutputUnknown { output, .. }] if output.starts_with("no end")),
        "{reasons:?}"
    );
}

#[tokio::test]
async fn half_a_table_keeps_the_last_devices() {
    let host = Host::printing(CARDS_910B);
    let mut detector = host.detector(AMPLE);
    detector.detect().await;
    host.answer("info.txt", &CARDS_910B[..CARDS_910B.find("| 15").unwrap() + 9]);
    let inventory = detector.detect().await;
    assert_eq!((inventory.devices.len(), inventory.stale_s), (3, Some(0)));
    assert!(matches!(reasons(&inventory)[..], [Reason::ToolOutputUnknown { .. }]));
}

#[tokio::test]
async fn half_a_table_at_the_start_gives_half_the_devices_and_the_problem() {
    let inventory = Host::printing(&CARDS_910B[..CARDS_910B.find("| 15").unwrap() + 9]).detect().await;
    assert_eq!((indexes(&inventory), inventory.stale_s), (vec![0, 1], None));
    assert!(matches!(reasons(&inventory)[..], [Reason::ToolOutputUnknown { .. }]));
}

#[tokio::test]
async fn a_card_whose_rows_cannot_be_read_is_told_beside_the_others() {
    let host = Host::printing(&CARDS_910B.replace("| 1     910B2C", "| lost  910B2C"));
    let inventory = host.detect().await;
    assert_eq!((inventory.devices.len(), inventory.stale_s), (2, None));
    let [Problem { severity: Severity::Warning, reason: Reason::ToolOutputUnknown { output, .. }, .. }] =
        &inventory.problems[..]
    else {
        panic!("{:?}", inventory.problems)
    };
    assert!(output.starts_with("| lost  910B2C"), "{output}");
}

#[tokio::test]
async fn chip_numbers_are_asked_for_only_when_chips_come_or_go() {
    let host = Host::printing(CARDS_910A);
    host.answer("info-m.txt", LIST_910A);
    let mut detector = host.detector(AMPLE);
    for _ in 0..4 {
        assert_eq!(indexes(&detector.detect().await), [0, 3, 7]);
    }
    assert_eq!(host.frequent_calls(), ["info", "info-m", "info", "info", "info"]);

    host.answer("info.txt", CARDS_910A.replace("| 7     910A", "| 6     910A"));
    assert_eq!(indexes(&detector.detect().await), [0, 3, 6]);
    assert_eq!(indexes(&detector.detect().await), [0, 3, 6]);
    assert_eq!(host.frequent_calls()[5..], ["info", "info-m", "info"]);
}

#[tokio::test]
async fn a_tool_without_a_list_of_numbers_is_asked_once() {
    let host = Host::printing(CARDS_910A);
    host.answer("info-m.sh", "echo 'invalid option'; exit 1");
    let mut detector = host.detector(AMPLE);
    for _ in 0..3 {
        let inventory = detector.detect().await;
        assert_eq!((indexes(&inventory), inventory.problems), (vec![0, 1, 2], vec![]));
    }
    assert_eq!(host.frequent_calls(), ["info", "info-m", "info", "info"]);
}

#[tokio::test]
async fn a_list_of_numbers_that_hangs_costs_no_device_and_is_asked_for_again() {
    let host = Host::printing(CARDS_910A);
    host.answer("info-m.sh", "exec sleep 60");
    let mut detector = host.detector(SHORT);
    let inventory = detector.detect().await;
    assert_eq!((inventory.devices.len(), inventory.stale_s), (3, None));
    assert_eq!(reasons(&inventory), [timed_out()]);

    host.withdraw("info-m.sh");
    host.answer("info-m.txt", LIST_910A);
    let mut last = Inventory::default();
    eventually("the numbers are asked for again", async || {
        last = detector.detect().await;
        indexes(&last) == [0, 3, 7] && last.stale_s.is_none()
    })
    .await;
    assert_eq!(last.problems, []);
}

#[tokio::test]
async fn a_tool_that_fails_leaves_the_devices_as_stale_until_it_works_again() {
    let host = Host::printing(CARDS_910B);
    let mut detector = host.detector(AMPLE);
    let before = detector.detect().await.devices;
    host.answer("info.txt", DRIVER_FAILED);
    for _ in 0..2 {
        let inventory = detector.detect().await;
        assert_eq!((&inventory.devices, inventory.stale_s), (&before, Some(0)));
        assert!(matches!(&reasons(&inventory)[..], [Reason::DriverInitFailed { code: -8005, .. }]));
    }
    host.answer("info.txt", CARDS_910B);
    let inventory = detector.detect().await;
    assert_eq!((inventory.devices, inventory.problems, inventory.stale_s), (before, vec![], None));
}

#[tokio::test]
async fn a_tool_that_vanishes_leaves_the_devices_as_stale() {
    let host = Host::printing(CARDS_910B);
    let mut detector = host.detector(AMPLE);
    detector.detect().await;
    host.withdraw("npu-smi");
    let inventory = detector.detect().await;
    assert_eq!((inventory.devices.len(), inventory.stale_s), (3, Some(0)));
    assert_eq!(reasons(&inventory), [Reason::DevicesMissing { expected: 3, found: 0 }]);
}

#[tokio::test]
async fn a_chip_that_is_gone_is_told_missing() {
    let host = Host::printing(CARDS_910B);
    let mut detector = host.detector(AMPLE);
    detector.detect().await;
    let (start, end) = (CARDS_910B.find("| 15").unwrap(), CARDS_910B.find("+---------------------------+---------------+----------------------------------------------------+\n| NPU     Chip").unwrap());
    host.answer("info.txt", format!("{}{}", &CARDS_910B[..start], &CARDS_910B[end..]));
    let inventory = detector.detect().await;
    assert_eq!((inventory.devices.len(), inventory.stale_s), (2, None));
    assert_eq!(reasons(&inventory), [Reason::DevicesMissing { expected: 3, found: 2 }]);
}

#[tokio::test]
async fn an_empty_table_beside_nodes_of_chips_tells_how_many_are_missing() {
    let heading_end = CARDS_910B.find("| 0     910B2C").unwrap();
    let host = Host::printing(&CARDS_910B[..heading_end]);
    host.nodes(&["davinci0", "davinci1", "davinci_manager", "hisi_hdc", "devmm_svm"]);
    let inventory = host.detect().await;
    assert_eq!(reasons(&inventory), [Reason::DevicesMissing { expected: 2, found: 0 }]);
}

#[tokio::test]
async fn health_is_judged_anew_each_time() {
    let host = Host::printing(CARDS_910B);
    let mut detector = host.detector(AMPLE);
    let sick = CARDS_910B.replace("| 1     910B2C              | OK   ", "| 1     910B2C              | Alarm");
    let unhealthy = Reason::DeviceUnhealthy { index: 1, name: "910B2C".into(), health: "Alarm".into() };
    for (text, expected) in [(CARDS_910B, vec![]), (&sick, vec![unhealthy]), (CARDS_910B, vec![])] {
        host.answer("info.txt", text);
        assert_eq!(reasons(&detector.detect().await), expected);
    }
}

#[tokio::test]
async fn missing_nodes_beside_a_working_tool_are_a_warning() {
    let host = Host::printing(CARDS_910B);
    host.nodes(&["davinci0", "davinci_manager"]);
    let inventory = host.detect().await;
    let missing = |node: &str| Reason::DeviceNodeMissing { node: node.into() };
    assert_eq!(reasons(&inventory), [missing("/dev/devmm_svm"), missing("/dev/hisi_hdc")]);
    assert!(inventory.problems.iter().all(|problem| problem.severity == Severity::Warning));
}

#[tokio::test]
async fn ascend_950_needs_fewer_nodes() {
    let host = Host::printing(&CARDS_950.replace("Warning", "OK     "));
    host.nodes(&["davinci0", "davinci1", "davinci3", "davinci_manager"]);
    assert_eq!(reasons(&host.detect().await), []);
}

#[tokio::test]
async fn a_directory_in_a_nodes_place_is_a_missing_node() {
    let host = Host::printing(CARDS_910B);
    host.nodes(&["davinci0", "hisi_hdc", "devmm_svm"]);
    fs::create_dir_all(host.path("dev/davinci_manager")).unwrap();
    let node = "/dev/davinci_manager".to_owned();
    assert_eq!(reasons(&host.detect().await), [Reason::DeviceNodeMissing { node }]);
}

#[tokio::test]
async fn a_tool_that_hangs_leaves_the_devices_as_stale_and_no_process_behind() {
    let host = Host::printing(CARDS_910B);
    let before = host.detect().await.devices;

    // Prints half a table, ignores polite signals and has a child that does so as well.
    host.answer("half", &CARDS_910B[..700]);
    host.answer(
        "info.sh",
        r#"trap '' TERM INT HUP; echo $$ >"$here/leader"; sleep 60 & echo $! >"$here/child"; cat "$here/half"; wait"#,
    );
    let mut detector = host.detector(SHORT);
    let inventory = detector.detect().await;
    assert_eq!(reasons(&inventory), [timed_out()]);
    assert_eq!(inventory.devices, []);
    for file in ["leader", "child"] {
        eventually(file, async || {
            test_kill_process(host.pid_in(file).unwrap()).is_err() || is_zombie(host.pid_in(file).unwrap())
        })
        .await;
    }

    host.withdraw("info.sh");
    let mut last = Inventory::default();
    eventually("the tool answers again", async || {
        last = detector.detect().await;
        last.problems.is_empty()
    })
    .await;
    assert_eq!(last.devices, before);
}

/// Dead, and not yet waited for by whoever adopted it.
fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// A process in a group and session of its own outlives the kill, as one does that hangs in the kernel.
#[tokio::test]
async fn beside_a_process_that_cannot_be_killed_no_other_is_started() {
    let host = Host::printing(CARDS_910B);
    host.answer(
        "info.sh",
        r#"setsid sleep 300 & echo $! >"$here/survivor.new"; mv "$here/survivor.new" "$here/survivor"; wait"#,
    );
    let mut detector = host.detector(SHORT);
    detector.detect().await;
    let survivor = host.pid_in("survivor").unwrap();
    for _ in 0..5 {
        let inventory = detector.detect().await;
        assert_eq!(reasons(&inventory), [timed_out()]);
    }
    assert_eq!(host.calls(), ["info"]);

    host.withdraw("info.sh");
    kill_process(survivor, Signal::KILL).unwrap();
    eventually("the tool is started again", async || detector.detect().await.problems.is_empty()).await;
    assert_eq!(host.calls()[..2], ["info", "info"]);
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_one_process_that_ends_by_its_deadline() {
    let host = Host::printing(CARDS_910B);
    host.answer("info.sh", r#"echo $$ >"$here/leader.new"; mv "$here/leader.new" "$here/leader"; exec sleep 60"#);
    let mut detector = host.detector(SHORT);
    tokio::select! {
        inventory = detector.detect() => panic!("{inventory:?}"),
        () = eventually("the tool runs", async || host.pid_in("leader").is_some()) => {}
    }
    let leader = host.pid_in("leader").unwrap();
    eventually("the process ends", async || test_kill_process(leader).is_err()).await;
    assert_eq!(host.calls(), ["info"]);
}

#[tokio::test]
async fn a_runtime_that_ends_takes_the_tool_with_it() {
    let host = Host::printing(CARDS_910B);
    host.answer("info.sh", r#"echo $$ >"$here/leader.new"; mv "$here/leader.new" "$here/leader"; exec sleep 60"#);
    let mut detector = host.detector(AMPLE);
    let leader = host.path("usr/local/bin/leader");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move { detector.detect().await });
        while !leader.exists() {
            std::thread::yield_now();
        }
    })
    .join()
    .unwrap();
    let leader = host.pid_in("leader").unwrap();
    eventually("the process ends", async || test_kill_process(leader).is_err() || is_zombie(leader)).await;
}

#[tokio::test]
async fn an_inventory_replaces_what_a_report_had() {
    let host = Host::printing(CARDS_910B);
    let mut detector = host.detector(AMPLE);
    let mut status = api::WorkerStatus::default();
    detector.detect().await.fill(&mut status);
    assert_eq!((status.gpu_devices.as_ref().map(Vec::len), status.devices_stale_s), (Some(3), None));
    host.answer("info.txt", "nonsense");
    detector.detect().await.fill(&mut status);
    assert_eq!((status.problems.len(), status.devices_stale_s), (1, Some(0)));
    Inventory::default().fill(&mut status);
    assert_eq!((status.gpu_devices, status.problems, status.devices_stale_s), (Some(vec![]), vec![], None));
}
