//! The doctor on a host made of files and stand-ins for programs, in front of a real server: every check seen passing
//! and failing.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod common;
mod support;

use api::{Check, CredentialKind, Examination, PortHolder, Seen, Verdict};
use common::{TestServer, answered, until};
use gpustack::config::{Config, JoinToken, Role, WorkerConfig};
use gpustack::doctor;
use http::{Method, StatusCode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output};
use support::Host;
use tokio::net::TcpListener;

const IN_STEP: &str = "Reference ID    : CB00710F (203.0.113.15)\nStratum         : 3\nLeap status     : Normal\n";
const NOT_IN_STEP: &str = "Reference ID    : 00000000 ()\nStratum         : 0\nLeap status     : Not synchronised\n";
const STATUS: &str = "Name:\tgpustack\nCapEff:\t00000000a80425fb\nSeccomp:\t0\n";
const LIMITS: &str = "Max open files            1048576              1048576              files\n";

/// A host in good order.
struct Scene {
    host: Host,
    variables: BTreeMap<String, String>,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { host: Host::new(), variables: BTreeMap::new() };
        scene.write("etc/os-release", "NAME=\"openEuler\"\nVERSION=\"22.03 (LTS-SP4)\"\n");
        scene.write("proc/self/status", STATUS);
        scene.write("proc/self/limits", LIMITS);
        scene.write("proc/77/comm", "chronyd\n");
        scene.write("etc/adjtime", "0.0 0 0.0\n0\nUTC\n");
        symlink("/usr/share/zoneinfo/Asia/Shanghai", scene.path("etc/localtime")).unwrap();
        scene.write("bin/chronyc", "#!/bin/sh\ncat \"$(dirname \"$0\")/chronyc.txt\"\n");
        std::fs::set_permissions(scene.path("bin/chronyc"), PermissionsExt::from_mode(0o755)).unwrap();
        scene.write("bin/chronyc.txt", IN_STEP);
        scene
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.host.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), text).unwrap();
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.path(path)).unwrap();
    }

    async fn examine(&self, worker: WorkerConfig) -> Examination {
        let data_dir = worker.data_dir.clone();
        let config = Config { debug: false, data_dir, role: Role::Worker(worker), warnings: Vec::new() };
        doctor::examine(&config, &self.variables, &self.host.detector()).await.examination
    }
}

/// A port that was free a moment ago.
async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

async fn config(scene: &Scene, server: SocketAddr) -> WorkerConfig {
    let mut config = scene.host.config(server);
    config.identity.port = free_port().await;
    config
}

fn check(examination: &Examination, is_meant: impl Fn(&Seen) -> bool) -> &Check {
    let mut checks = examination.checks.iter();
    checks.find(|check| is_meant(&check.seen)).unwrap()
}

/// The code of what is wrong with the first check that is not in order.
fn troubles(examination: &Examination) -> Vec<String> {
    let wrong = examination.checks.iter().filter(|check| check.verdict() > Verdict::NotChecked);
    let code = |check: &Check| serde_json::to_value(&check.problem).unwrap()["reason"].as_str().unwrap().to_owned();
    wrong.map(code).collect()
}

#[tokio::test]
async fn a_host_in_good_order_passes_every_check() {
    let (scene, server) = (Scene::new(), TestServer::start().await);
    let examination = scene.examine(config(&scene, server.address).await).await;
    assert!(examination.checks.iter().all(|check| check.verdict() == Verdict::Ok), "{examination:#?}");
    assert_eq!(examination.os, "openEuler 22.03 (LTS-SP4)");
    let names: Vec<String> = examination
        .checks
        .iter()
        .map(|check| serde_json::to_value(check).unwrap()["check"].as_str().unwrap().to_owned())
        .collect();
    for name in [
        "system",
        "container",
        "data_dir",
        "open_files",
        "accelerators",
        "devices",
        "tool",
        "node",
        "time_service",
        "hardware_clock",
        "time_zone",
        "proxies",
        "server",
        "credential",
        "server_clock",
        "worker_port",
        "way_back",
    ] {
        assert!(names.iter().any(|found| found == name), "{name} is not among {names:?}");
    }
}

/// What is done to the host, and what the doctor must call it.
type Fault = (fn(&mut Scene), &'static [&'static str]);

const FAULTS: [Fault; 10] = [
    (|scene| scene.remove("dev/hisi_hdc"), &["device_node_missing"]),
    (|scene| scene.host.set_tool_mode("error"), &["driver_init_failed"]),
    (|scene| scene.host.set_tool_mode("hang"), &["tool_timed_out"]),
    (|scene| scene.remove("bin/npu-smi"), &["tool_missing"]),
    (|scene| scene.write("bin/chronyc.txt", NOT_IN_STEP), &["clock_not_synchronised"]),
    (|scene| scene.remove("proc/77/comm"), &["time_service_missing"]),
    (|scene| scene.write("etc/adjtime", "0.0 0 0.0\n0\nLOCAL\n"), &["hardware_clock_local"]),
    (|scene| scene.write("proc/self/limits", &LIMITS.replace("1048576", "256")), &["open_files_few"]),
    (
        |scene| {
            scene.write(".dockerenv", "");
            scene.write("proc/self/status", &STATUS.replace("Seccomp:\t0", "Seccomp:\t2"));
            scene.host.set_tool_mode("error");
        },
        &["seccomp_filter", "driver_init_failed"],
    ),
    (
        |scene| {
            scene.variables.insert("http_proxy".to_owned(), "http://proxy:3128".to_owned());
        },
        &["proxy_in_the_way"],
    ),
];

#[tokio::test]
async fn each_fault_of_a_host_is_told_and_nothing_else_is() {
    let server = TestServer::start().await;
    for (number, (break_it, expected)) in FAULTS.into_iter().enumerate() {
        let mut scene = Scene::new();
        break_it(&mut scene);
        let examination = scene.examine(config(&scene, server.address).await).await;
        let mut found = troubles(&examination);
        found.dedup();
        assert_eq!(found, expected, "fault {number}: {examination:#?}");
    }
}

#[tokio::test]
async fn a_file_where_the_data_directory_ought_to_be_is_told() {
    let (scene, server) = (Scene::new(), TestServer::start().await);
    scene.write("data", "in the way");
    let examination = scene.examine(config(&scene, server.address).await).await;
    assert!(troubles(&examination).contains(&"data_dir_unusable".to_owned()), "{examination:#?}");
}

#[tokio::test]
async fn a_wrong_token_is_told_at_the_credential_and_no_token_leaves_the_server_looked_at() {
    let (scene, server) = (Scene::new(), TestServer::start().await);
    let mut wrong = config(&scene, server.address).await;
    wrong.token = Some(JoinToken::parse("00000000000000000000000000000000").unwrap());
    let examination = scene.examine(wrong).await;
    assert_eq!(troubles(&examination), ["token_wrong"]);
    let mut without = config(&scene, server.address).await;
    without.token = None;
    let examination = scene.examine(without).await;
    assert_eq!(troubles(&examination), [""; 0]);
    let credential = check(&examination, |seen| matches!(seen, Seen::Credential { .. }));
    assert_eq!(credential.verdict(), Verdict::NotChecked);
    let server_check = check(&examination, |seen| matches!(seen, Seen::Server { .. }));
    assert_eq!(server_check.verdict(), Verdict::Ok);
    let clock = check(&examination, |seen| matches!(seen, Seen::ServerClock { .. }));
    assert_eq!(clock.verdict(), Verdict::NotChecked);
}

#[tokio::test]
async fn a_server_that_is_not_there_or_is_another_is_told() {
    let scene = Scene::new();
    let nowhere = SocketAddr::from(([127, 0, 0, 1], free_port().await));
    assert_eq!(troubles(&scene.examine(config(&scene, nowhere).await).await), ["server_refused"]);
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = other.local_addr().unwrap();
    let router = axum::Router::new().route("/", axum::routing::get(|| async { "hello" }));
    let serving = tokio::spawn(async move { axum::serve(other, router).await.unwrap() });
    assert_eq!(troubles(&scene.examine(config(&scene, address).await).await), ["server_is_another"]);
    serving.abort();
}

#[tokio::test]
async fn a_port_of_another_program_is_told_and_the_server_does_not_try_it() {
    let (scene, server) = (Scene::new(), TestServer::start().await);
    let mut config = config(&scene, server.address).await;
    let other = gpustack::worker::bind(0).await.unwrap();
    config.identity.port = other.local_addr().unwrap().port();
    let serving = tokio::spawn(async move { while other.accept().await.is_ok() {} });
    let examination = scene.examine(config).await;
    serving.abort();
    assert_eq!(troubles(&examination), ["port_in_use"]);
    let way_back = check(&examination, |seen| matches!(seen, Seen::WayBack { .. }));
    assert_eq!(way_back.verdict(), Verdict::NotChecked);
}

#[tokio::test]
async fn a_doctor_leaves_nothing_behind_and_the_server_knows_no_more_than_before() {
    let (scene, server) = (Scene::new(), TestServer::start().await);
    let config = config(&scene, server.address).await;
    let data_dir = config.data_dir.clone();
    scene.examine(config).await;
    assert!(!data_dir.exists());
    assert_eq!(server.admin_json("/v1/workers").await["items"], Value::Array(Vec::new()));
}

async fn ready_row(server: &TestServer) -> Value {
    until("a worker that is ready", async || {
        let row = server.admin_json("/v1/workers").await["items"][0].clone();
        (row["state"] == "ready" && row["status"]["gpu_devices"].is_array()).then_some(row)
    })
    .await
}

#[tokio::test]
async fn beside_a_running_worker_the_doctor_knows_it_and_leaves_its_link_alone() {
    let (scene, server) = (Scene::new(), TestServer::start().await);
    let listener = gpustack::worker::bind(0).await.unwrap();
    let mut config = scene.host.config(server.address);
    config.identity.port = listener.local_addr().unwrap().port();
    config.identity.name = Some("npu-198-97".to_owned());
    let worker = scene.host.start_worker_on(listener, config.clone());
    let before = ready_row(&server).await;
    // it has joined, so it needs no token
    config.token = None;
    let examination = scene.examine(config).await;
    assert_eq!(troubles(&examination), [""; 0]);
    let credential = check(&examination, |seen| matches!(seen, Seen::Credential { .. }));
    let known = Seen::Credential { kind: CredentialKind::Key, known_as: Some("npu-198-97".to_owned()) };
    assert_eq!(credential.seen, known);
    let port = check(&examination, |seen| matches!(seen, Seen::WorkerPort { .. }));
    assert!(matches!(port.seen, Seen::WorkerPort { holder: PortHolder::ThisWorker, .. }), "{port:?}");
    let since = |row: &Value| {
        let conditions = row["conditions"].as_array().unwrap();
        conditions.iter().find(|condition| condition["type"] == "link").map(|link| link["since_ms"].clone())
    };
    assert_eq!(since(&ready_row(&server).await), since(&before));
    worker.stop().await;
}

#[tokio::test]
async fn the_server_has_a_worker_look_at_its_host_over_the_link_alone() {
    let (scene, server) = (Scene::new(), TestServer::start().await);
    scene.remove("dev/hisi_hdc");
    scene.write("etc/adjtime", "0.0 0 0.0\n0\nLOCAL\n");
    let worker = scene.host.start_worker(scene.host.config(server.address)).await;
    let row = ready_row(&server).await;
    let path = format!("/v1/workers/{}/examination", row["id"]);
    let examination: Examination = serde_json::from_value(server.admin_json(&path).await).unwrap();
    assert_eq!(troubles(&examination), ["device_node_missing", "hardware_clock_local"]);
    // the same is among its conditions, with the same code
    let reasons: Vec<&Value> =
        row["conditions"].as_array().unwrap().iter().map(|condition| &condition["reason"]).collect();
    assert!(reasons.contains(&&Value::from("hardware_clock_local")), "{reasons:?}");
    assert_eq!(worker.get(api::EXAMINATION_PATH).await.0, StatusCode::NOT_FOUND, "its port tells nobody");
    worker.stop().await;
    let (status, body) = answered(server.as_admin(Method::GET, &path)).await;
    assert_eq!((status, &body["reason"]), (StatusCode::SERVICE_UNAVAILABLE, &"ServiceUnavailable".into()));
}

fn gpustack(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpustack"));
    for name in ["GPUSTACK_SERVER_URL", "GPUSTACK_TOKEN", "LC_ALL", "LC_MESSAGES", "LANG"] {
        command.env_remove(name);
    }
    command.args(arguments).output().unwrap()
}

#[test]
fn the_command_tells_people_and_programs_and_its_exit_status_says_whether_something_failed() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let data_dir = data_dir.to_str().unwrap();
    let output = gpustack(&["doctor", "--data-dir", data_dir, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(report["verdict"] == "failed")), "{report}");
    let server = report["checks"].as_array().unwrap().iter().find(|check| check["check"] == "server").unwrap();
    assert_eq!((&server["verdict"], &server["problem"]["reason"]), (&"not_checked".into(), &"server_not_given".into()));

    let nowhere = "http://127.0.0.1:9";
    let output = gpustack(&["doctor", "--data-dir", data_dir, "--server-url", nowhere, "--language", "zh"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("127.0.0.1:9 没有服务监听"), "{text}");

    assert_eq!(gpustack(&["doctor", "--language", "fr"]).status.code(), Some(2));
    assert!(!dir.path().join("data").exists(), "a doctor makes nothing");
}

#[test]
fn a_bundle_is_written_without_the_token() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle.tar.gz");
    let token = "8fb74878a2e813ed19c54bfe8810ad3e";
    let arguments =
        ["doctor", "--data-dir", "/nonexistent/data", "--server-url", "http://127.0.0.1:9", "--token", token];
    let output = gpustack(&[&arguments[..], &["--bundle", bundle.to_str().unwrap()]].concat());
    assert!(String::from_utf8_lossy(&output.stderr).contains("bundle.tar.gz"), "{output:?}");
    let mut unpacked = String::new();
    let reader = flate2::read::GzDecoder::new(std::fs::File::open(&bundle).unwrap());
    std::io::Read::read_to_string(&mut std::io::BufReader::new(reader), &mut unpacked).unwrap();
    assert!(unpacked.contains("examination.json") && !unpacked.contains(token));
}

#[test]
fn a_bundle_without_a_name_gets_one_and_a_workers_flags_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpustack"));
    let flags = ["--debug", "--system-reserved", r#"{"ram": 2, "vram": 1}"#, "--worker-name", "npu-1"];
    command.current_dir(&dir).args(["doctor", "--data-dir", "data", "--bundle"]).args(flags);
    assert!(command.output().unwrap().status.code() < Some(2));
    let names = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let bundles: Vec<String> = names.filter(|name| name.ends_with(".tar.gz")).collect();
    assert!(matches!(&bundles[..], [name] if name.starts_with("gpustack-doctor-")), "{bundles:?}");
}

/// The process called `sleep` that this one has started.
fn sleeping_child_of(pid: u32) -> Option<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // `proc_pid_stat(5)`: pid (comm) state ppid …
    let is_child = |number: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.split_once(" (sleep) ").is_some_and(|(_, rest)| rest.split(' ').nth(1) == Some(&pid.to_string()))
    };
    processes.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).find(is_child)
}

#[tokio::test]
async fn a_doctor_that_is_interrupted_takes_a_hanging_tool_with_it() {
    let host = Host::new();
    host.set_tool_mode("hang");
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_gpustack"))
        .env("PATH", format!("{}:/usr/bin:/bin", host.dir.path().join("bin").display()))
        .args(["doctor", "--data-dir", "/nonexistent/data"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid = doctor.id();
    let tool = until("the tool runs", async || sleeping_child_of(pid)).await;
    rustix::process::kill_process(rustix::process::Pid::from_child(&doctor), rustix::process::Signal::INT).unwrap();
    assert_eq!(doctor.wait().unwrap().code(), Some(1));
    let name = format!("/proc/{tool}/comm");
    until("the tool is gone", async || {
        let is_there = std::fs::read_to_string(&name).is_ok_and(|comm| comm == "sleep\n");
        (!is_there).then_some(())
    })
    .await;
}
