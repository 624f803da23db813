//! A server and a worker on two hosts: each in a network namespace of its own, with a cable between them.
//!
//! A test starts itself again in a new network namespace, which is the server's host; the worker's is a second one. Both
//! go with the processes in them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod common;

use common::{TOKEN, TestServer, until};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Set in the process that runs inside the namespace.
const INSIDE: &str = "GPUSTACK_TEST_INSIDE_NAMESPACE";

const SERVER_ADDRESS: &str = "198.18.10.1";
/// The only one of the worker's addresses that leads to the server, which is neither its first nor its lowest.
const WORKER_ADDRESS: &str = "198.18.10.20";

/// Interfaces as container engines, hypervisors and VPNs make them, an address that nobody gave out, and a second real
/// network that does not lead to the server.
const OTHER_INTERFACES: [(&str, &str); 6] = [
    ("docker0", "172.17.0.1/16"),
    ("virbr0", "192.168.122.1/24"),
    ("cni0", "10.244.0.1/24"),
    ("tun0", "10.8.0.2/24"),
    ("bond0", "169.254.7.7/16"),
    ("eno1", "192.0.2.5/24"),
];

#[test]
fn a_worker_with_many_interfaces_reports_the_one_that_leads_to_the_server() {
    on_two_hosts("a_worker_with_many_interfaces_reports_the_one_that_leads_to_the_server", async |server, host| {
        let worker = host.start_worker(&server, &[]);
        let row = row(&server, |row| row["state"] == "ready").await;
        assert_eq!(row["ip"], WORKER_ADDRESS, "{row}");
        drop(worker);
    });
}

#[test]
fn a_worker_behind_a_firewall_is_ready_through_its_link_until_it_is_killed() {
    on_two_hosts("a_worker_behind_a_firewall_is_ready_through_its_link_until_it_is_killed", async |server, host| {
        // Packets to it go to a network card that nobody has, and so are lost as in a firewall that drops them.
        run("ip neigh replace 198.18.10.21 lladdr 02:00:00:00:00:99 dev server0 nud permanent");
        host.run("ip addr add 198.18.10.21/24 dev eth0");
        let worker = host.start_worker(&server, &["--worker-ip", "198.18.10.21"]);
        let is_walled = |row: &Value| has(row, "direct", "false") && has(row, "link", "true");
        let walled = row(&server, is_walled).await;
        assert_eq!(walled["state"], "ready", "{walled}");
        let direct = condition(&walled, "direct");
        assert_eq!(
            (&direct["reason"], &direct["severity"]),
            (&"direct_timed_out".into(), &"warning".into()),
            "{walled}"
        );
        // its kernel closes the connection
        drop(worker);
        let killed = row(&server, |row| has(row, "link", "false")).await;
        assert_eq!(condition(&killed, "link")["params"]["loss"], "closed", "{killed}");
        assert_eq!(
            condition(&killed, "heartbeat")["status"],
            "true",
            "heartbeats decide, and are not lost yet: {killed}"
        );
        assert_eq!(killed["state"], "unreachable", "{killed}");
    });
}

#[test]
fn a_worker_whose_link_is_cut_off_without_a_word_is_known_by_its_silence() {
    on_two_hosts("a_worker_whose_link_is_cut_off_without_a_word_is_known_by_its_silence", async |server, host| {
        let worker = host.start_worker(&server, &[]);
        row(&server, |row| has(row, "link", "true") && has(row, "direct", "true")).await;
        host.run("ip link set eth0 down");
        let cut = row(&server, |row| has(row, "link", "false")).await;
        assert_eq!(condition(&cut, "link")["params"]["loss"], "silent", "{cut}");
        host.run("ip link set eth0 up");
        row(&server, |row| row["state"] == "ready" && has(row, "link", "true")).await;
        drop(worker);
    });
}

/// Runs the body on the server's host.
fn on_two_hosts(test: &str, body: impl AsyncFnOnce(TestServer, WorkerHost)) {
    if std::env::var_os(INSIDE).is_none() {
        run_inside_namespace(test);
        return;
    }
    let host = WorkerHost::connect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = TestServer::start_at(SERVER_ADDRESS).await;
        body(server, host).await;
    });
}

fn run_inside_namespace(test: &str) {
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--mount"]).arg(std::env::current_exe().unwrap());
    let status = command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").status();
    let status = status.unwrap_or_else(|error| panic!("`unshare`, of util-linux, does not start: {error}"));
    assert!(status.success(), "the test failed in its namespace, or this system forbids namespaces to its users");
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0"))
}

/// The worker's host: lives as long as a process that sleeps in its namespace.
struct WorkerHost {
    sleeper: Child,
    dir: TempDir,
}

impl WorkerHost {
    /// Makes the host, with a cable to this one.
    fn connect() -> Self {
        // The shell says when the namespace is there, and ends with this process, whose end closes its input.
        let mut sleeper = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo ready; read -r _"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(sleeper.stdout.take().unwrap()), &mut line).unwrap();
        assert_eq!(line, "ready\n");
        let host = Self { sleeper, dir: tempfile::tempdir().unwrap() };
        run("ip link set lo up");
        run(&format!("ip link add server0 type veth peer name eth0 netns {}", host.sleeper.id()));
        run(&format!("ip addr add {SERVER_ADDRESS}/24 dev server0"));
        run("ip link set server0 up");
        host.run("ip link set lo up");
        for (name, address) in OTHER_INTERFACES {
            host.run(&format!("ip link add {name} type bridge"));
            host.run(&format!("ip addr add {address} dev {name}"));
            host.run(&format!("ip link set {name} up"));
        }
        host.run(&format!("ip addr add {WORKER_ADDRESS}/24 dev eth0"));
        host.run("ip link set eth0 up");
        host
    }

    fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.sleeper.id().to_string()).args(["--net", "--"]);
        command
    }

    fn run(&self, line: &str) {
        expect_success(self.command().args(line.split(' ')), line);
    }

    fn start_worker(&self, server: &TestServer, args: &[&str]) -> RunningWorker {
        let bin = self.dir.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/npu-smi"), bin.join("npu-smi")).unwrap();
        let mut command = self.command();
        command.arg(env!("CARGO_BIN_EXE_gpustack")).args([
            "start",
            "--server-url",
            &format!("http://{}", server.address),
        ]);
        command.args(["--token", TOKEN, "--worker-name", "npu-1"]).args(args);
        command.arg("--data-dir").arg(self.dir.path().join("data"));
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", bin.display());
        RunningWorker(command.env("PATH", path).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for WorkerHost {
    fn drop(&mut self) {
        // fails when it has ended, which is what is wished
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
    }
}

struct RunningWorker(Child);

impl Drop for RunningWorker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a line on this host.
fn run(line: &str) {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap());
    expect_success(command.args(words), line);
}

fn expect_success(command: &mut Command, line: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("`{line}` does not start: {error}"));
    assert!(output.status.success(), "`{line}`: {}", String::from_utf8_lossy(&output.stderr));
}

/// Waits until the server shows the worker as wished.
async fn row(server: &TestServer, is_wished: impl Fn(&Value) -> bool) -> Value {
    until("the worker's row", async || {
        let rows = server.admin_json("/v1/workers").await;
        let mut rows = rows["items"].as_array().unwrap().clone().into_iter();
        rows.find(|row| row["name"] == "npu-1" && is_wished(row))
    })
    .await
}

fn condition<'a>(row: &'a Value, kind: &str) -> &'a Value {
    let conditions = row["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {row}"))
}

/// Whether the worker shows this condition with this status.
fn has(row: &Value, kind: &str, status: &str) -> bool {
    let conditions = row["conditions"].as_array().unwrap();
    conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == status)
}
