//! The field reports' networks: a server on VLAN 10, an NPU worker on VLAN 20, a GPU worker on VLAN 30, which have no route
//! to one another, and a bastion with a leg in each. SSH is the real one.

use crate::field::{Field, gpustack, has_link, is_ready_both_ways, is_ready_by_link, new_worker_folder};
use netlab::{
    Cable, End, Host, PacketSize, Process, Quality, Ssh, SshServer, TunnelAgent, TunnelFolder, Worker, WorkerFolder,
    until,
};
use serde_json::Value;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::Duration;

pub const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 10);
pub const NPU: Ipv4Addr = Ipv4Addr::new(198, 18, 20, 20);
const GPU: Ipv4Addr = Ipv4Addr::new(198, 18, 30, 30);
const BASTION: [Ipv4Addr; 3] =
    [Ipv4Addr::new(198, 18, 10, 1), Ipv4Addr::new(198, 18, 20, 1), Ipv4Addr::new(198, 18, 30, 1)];
const HEALTH_PORT: u16 = 10150;

pub struct Lab {
    pub field: Field,
    pub bastion: Host,
    pub npu: Host,
    gpu: Host,
    /// To the server, to the NPU worker, to the GPU worker.
    cables: [Cable; 3],
    pub ssh: Ssh,
    servers: [Option<SshServer>; 3],
    folders: [WorkerFolder; 2],
}

impl Lab {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// With these lines in the `sshd_config` of the NPU worker's host.
    pub fn with(npu_settings: &[&str]) -> Self {
        assert!(netlab::is_inside_as_root(), "OpenSSH becomes other users, which takes root: run this test as root");
        let field = Field::new();
        let [bastion, npu, gpu] = ["bastion", "npu", "gpu"].map(|name| Host::new(name).unwrap());
        let lay = |leg: usize, host: &Host, address: Ipv4Addr| {
            let interface = format!("leg{leg}");
            let near = End { host: &bastion, interface: &interface, address: BASTION[leg] };
            Cable::lay(near, End { host, interface: "eth0", address }, PacketSize::Ethernet).unwrap()
        };
        let cables = [lay(0, &field.here, SERVER), lay(1, &npu, NPU), lay(2, &gpu, GPU)];
        let ssh = Ssh::new().unwrap();
        let servers = [
            Some(ssh.serve(&field.here).unwrap()),
            Some(ssh.serve_with(&npu, npu_settings).unwrap()),
            Some(ssh.serve(&gpu).unwrap()),
        ];
        Self { field, bastion, npu, gpu, cables, ssh, servers, folders: [new_worker_folder(), new_worker_folder()] }
    }

    /// A worker as the reports start it: it finds its server at its own loopback address.
    fn start_npu_worker(&self) -> Worker {
        self.start_worker(&self.npu, "npu", &["--worker-ip", "127.0.0.1", "--worker-port", "10150"])
    }

    pub fn start_worker(&self, host: &Host, name: &str, arguments: &[&str]) -> Worker {
        let folder = if name == "npu" { &self.folders[0] } else { &self.folders[1] };
        let arguments = [&["--worker-name", name], arguments].concat();
        Worker::start(host, gpustack(), folder, "http://127.0.0.1:8090", &arguments, &[]).unwrap()
    }

    /// The beginning of a `tunnels.yaml` for the bastion.
    fn config(&self, rest: &str) -> String {
        format!(
            "id: bastion-01\nssh: {{user: root, identity: {}, known_hosts: [{}], keep_alive: 2s}}\n{rest}",
            self.ssh.key().display(),
            self.ssh.known_hosts().unwrap().display()
        )
    }

    /// With one forward to the NPU worker, which is all that a worker with a link needs.
    fn npu_config(&self) -> String {
        self.config(&format!("server: {{address: \"{SERVER}:8090\"}}\nworkers:\n  npu: {{ssh: \"{NPU}\"}}\n"))
    }

    fn start_agent(&self, config: &str) -> (TunnelAgent, TunnelFolder) {
        let folder = TunnelFolder::new().unwrap();
        folder.write_config(config).unwrap();
        (TunnelAgent::start(&self.bastion, gpustack(), &folder, &[]).unwrap(), folder)
    }

    /// Ends the sshd of the NPU worker's host with all its sessions.
    pub fn end_npu_sshd(&mut self) {
        self.servers[1] = None;
        self.npu.kill_all("sshd").unwrap();
    }

    pub fn start_npu_sshd(&mut self, settings: &[&str]) {
        self.start_npu_sshd_under(&[], settings);
    }

    /// Under a program that changes what it sees.
    pub fn start_npu_sshd_under(&mut self, wrapper: &[&str], settings: &[&str]) {
        self.servers[1] = Some(self.ssh.serve_under(&self.npu, wrapper, settings).unwrap());
    }
}

pub fn is_up(forward: &Value) -> bool {
    forward["state"] == "up"
}

/// Whether the forward does not work, for this reason.
pub fn has_reason(forward: &Value, state: &str, reason: &str) -> bool {
    forward["state"] == state && forward["fault"]["reason"] == reason
}

fn listens(host: &Host, port: u16) {
    until("a forward's port", || if host.listens(port).unwrap() { Ok(()) } else { Err("nobody listens") });
}

/// All four forwards of the first report, by its own commands.
pub fn the_reports_own_ssh_commands_bring_a_worker_in() {
    let lab = Lab::new();
    let forward = |words: &[&str]| {
        let options =
            ["-C", "-g", "-o", "ServerAliveInterval=60", "-o", "ServerAliveCountMax=3", "-o", "SetEnv=Notes=GPUStack"];
        lab.ssh.forward(&lab.bastion, &[&options, words].concat()).unwrap()
    };
    let [server, npu] = [format!("root@{SERVER}"), format!("root@{NPU}")];
    let mut forwards: Vec<Process> = vec![forward(&["-L", &format!("8090:{SERVER}:8090"), &server])];
    listens(&lab.bastion, 8090);
    forwards.push(forward(&["-R", "8090:127.0.0.1:8090", &npu]));
    listens(&lab.npu, 8090);
    forwards.push(forward(&["-L", &format!("{HEALTH_PORT}:{NPU}:{HEALTH_PORT}"), &npu]));
    listens(&lab.bastion, HEALTH_PORT);
    forwards.push(forward(&["-R", "10150:127.0.0.1:10150", &server]));
    listens(&lab.field.here, HEALTH_PORT);
    let _worker = lab.start_npu_worker();
    lab.field.settled_when("npu", is_ready_both_ways);
    assert!(forwards.iter_mut().all(Process::is_running));
}

/// The same by one file, for two workers, and the server knows of it.
pub fn a_tunnel_agent_alone_brings_two_workers_in_both_ways() {
    let lab = Lab::new();
    let config = lab.config(&format!(
        "server: {{address: \"{SERVER}:8090\", ssh: \"{SERVER}\"}}\nworkers:\n  npu: {{ssh: \"{NPU}\", health_check: true}}\n  \
         gpu: {{ssh: \"{GPU}\", health_check: true}}\n"
    ));
    let (agent, _folder) = lab.start_agent(&config);
    let _npu = lab.start_npu_worker();
    let _gpu = lab.start_worker(&lab.gpu, "gpu", &["--worker-ip", "127.0.0.1", "--worker-port", "10151"]);
    lab.field.settled_when("npu", is_ready_both_ways);
    lab.field.settled_when("gpu", is_ready_both_ways);
    let ids = ["server", "npu.server", "npu.health-here", "npu.health", "gpu.server", "gpu.health-here", "gpu.health"];
    for id in ids {
        agent.forward(gpustack(), id, "works", is_up);
    }
    until("all forwards in the server's list", || {
        let agents = lab.field.server.tunnel_agents().map_err(|error| error.to_string())?;
        let forwards = agents.first().and_then(|agent| agent["report"]["forwards"].as_array()).cloned();
        let forwards = forwards.unwrap_or_default();
        let all_are_up = forwards.len() == ids.len() && forwards.iter().all(is_up);
        if all_are_up { Ok(()) } else { Err(format!("{agents:?}")) }
    });
}

/// Cables are cut for a moment, for a minute, and without a word.
pub fn a_tunnel_outlives_a_short_cut_and_comes_back_after_long_ones() {
    let lab = Lab::new();
    let (agent, _folder) = lab.start_agent(&lab.npu_config());
    let _worker = lab.start_worker(&lab.npu, "npu", &[]);
    lab.field.settled_when("npu", is_ready_by_link);
    let before = agent.forward(gpustack(), "npu.server", "works", is_up);
    assert_eq!(before["reconnects"], 0);

    // shorter than the server may be silent
    let link = lab.field.settled_link("npu");
    lab.npu.run("ip link set eth0 down").unwrap();
    sleep(Duration::from_secs(1));
    lab.npu.run("ip link set eth0 up").unwrap();
    agent.forward(gpustack(), "npu.server", "is probed again", |forward| is_up(forward) && forward["reconnects"] == 0);
    assert_eq!(lab.field.settled_link("npu"), link, "nothing was dropped");

    lab.npu.run("ip link set eth0 down").unwrap();
    let down = agent.forward(gpustack(), "npu.server", "is down", |forward| forward["state"] == "down");
    assert!(
        ["keep_alive_lost", "ssh_no_answer", "no_route", "session_broken"]
            .iter()
            .any(|reason| down["fault"]["reason"] == *reason),
        "{down}"
    );
    lab.npu.run("ip link set eth0 up").unwrap();
    agent.forward(gpustack(), "npu.server", "works again", |forward| is_up(forward) && forward["reconnects"] == 1);

    // nothing says that the path is gone
    lab.cables[1].set(Quality { is_silent: true, ..Quality::default() });
    agent.forward(gpustack(), "npu.server", "is down", |forward| forward["state"] == "down");
    lab.cables[1].set(Quality::default());
    let after =
        agent.forward(gpustack(), "npu.server", "works again", |forward| is_up(forward) && forward["reconnects"] == 2);
    let cuts = after["cuts"].as_array().unwrap();
    assert_eq!(cuts.len(), 2, "{after}");
    assert!(cuts.iter().all(|cut| cut["lasted_ms"].is_u64()), "{after}");
    lab.field.worker("npu", "is ready again", is_ready_by_link);
}

/// The agent dies, and a firewall loses what the kernel says of its end: sshd keeps the listener until it asks for a sign of
/// life, as it was told to.
pub fn a_stale_listener_of_a_killed_agent_is_recognised_and_waited_out() {
    let lab = Lab::with(&["ClientAliveInterval 2", "ClientAliveCountMax 1"]);
    let (agent, folder) = lab.start_agent(&lab.npu_config());
    let _worker = lab.start_worker(&lab.npu, "npu", &[]);
    lab.field.settled_when("npu", is_ready_by_link);
    lab.cables[1].set(Quality { is_silent: true, ..Quality::default() });
    agent.kill();
    lab.cables[1].forget_connections();
    lab.cables[1].set(Quality::default());
    let agent = TunnelAgent::start(&lab.bastion, gpustack(), &folder, &[]).unwrap();
    agent.forward(gpustack(), "npu.server", "waits for its port", |forward| {
        has_reason(forward, "down", "stale_listener")
    });
    agent.forward(gpustack(), "npu.server", "works again", is_up);
    lab.field.worker("npu", "is ready again", is_ready_by_link);
}

pub fn a_tunnel_comes_back_when_sshd_was_restarted() {
    let mut lab = Lab::new();
    let (agent, _folder) = lab.start_agent(&lab.npu_config());
    let _worker = lab.start_worker(&lab.npu, "npu", &[]);
    lab.field.settled_when("npu", is_ready_by_link);
    lab.end_npu_sshd();
    agent.forward(gpustack(), "npu.server", "is refused", |forward| has_reason(forward, "down", "ssh_refused"));
    lab.start_npu_sshd(&[]);
    agent.forward(gpustack(), "npu.server", "works again", is_up);
    lab.field.worker("npu", "is ready again", is_ready_by_link);
}

/// What operators do to their servers, each named with what to change.
pub fn refusals_of_sshd_are_told_apart() {
    let mut lab = Lab::new();
    let (agent, _folder) = lab.start_agent(&lab.npu_config());
    agent.forward(gpustack(), "npu.server", "works", is_up);
    let nobody = lab.ssh.key().with_file_name("nobody");
    let nobody = format!("AuthorizedKeysFile {}", nobody.display());
    for (settings, reason) in [
        (&["AllowTcpForwarding no"][..], "listen_forbidden"),
        (&["PermitListen 9999"], "listen_forbidden"),
        (&["AllowTcpForwarding local"], "listen_forbidden"),
        (&[nobody.as_str()], "login_refused"),
        (&["MaxStartups 1:100:1", "LoginGraceTime 1"], "up"),
    ] {
        lab.end_npu_sshd();
        agent.forward(gpustack(), "npu.server", "is refused", |forward| has_reason(forward, "down", "ssh_refused"));
        lab.start_npu_sshd(settings);
        agent.reload().unwrap();
        agent.forward(gpustack(), "npu.server", &format!("shows {reason}"), |forward| {
            if reason == "up" { is_up(forward) } else { has_reason(forward, "down", reason) }
        });
    }
    // the way to the listener itself is forbidden, the forward is not
    lab.end_npu_sshd();
    lab.start_npu_sshd(&["AllowTcpForwarding remote"]);
    agent.reload().unwrap();
    agent.forward(gpustack(), "npu.server", "stands unproved", |forward| {
        has_reason(forward, "unproved", "probe_forbidden")
    });
}

pub fn a_port_that_somebody_else_has_is_named_until_it_is_free() {
    let lab = Lab::new();
    let mut other = lab.npu.command("python3");
    let other = Process::start(other.args(["-m", "http.server", "--bind", "127.0.0.1", "8090"])).unwrap();
    listens(&lab.npu, 8090);
    let (agent, _folder) = lab.start_agent(&lab.npu_config());
    agent.forward(gpustack(), "npu.server", "finds its port taken", |forward| {
        has_reason(forward, "down", "port_taken_there")
    });
    other.kill();
    agent.forward(gpustack(), "npu.server", "works", is_up);
}

/// What is wrong with reporting is told, and keeps no forward from being made.
pub fn an_agent_that_cannot_report_keeps_its_forwards() {
    let lab = Lab::new();
    let folder = TunnelFolder::new().unwrap();
    let state = folder.path().join("state");
    let without_token = format!("state_dir: {}\n{}", state.display(), lab.npu_config());
    std::fs::write(folder.path().join("tunnels.yaml"), without_token).unwrap();
    let keeps = |what: &str, told: &str| {
        let agent = TunnelAgent::start(&lab.bastion, gpustack(), &folder, &[]).unwrap();
        agent.forward(gpustack(), "npu.server", &format!("works {what}"), is_up);
        let joined = agent.status(gpustack()).unwrap()["joined"].clone();
        assert_eq!(joined["state"], "joining", "{joined}");
        assert!(joined["cause"].as_str().unwrap().contains(told), "{joined}");
        agent.kill();
    };
    keeps("without a token", "there is no token");
    folder.write_config(&lab.npu_config()).unwrap();
    for file in ["agent_uuid", "worker_link_key", "link_server_key"] {
        std::fs::write(state.join(file), "damaged").unwrap();
        keeps(&format!("with a damaged {file}"), file);
        std::fs::remove_file(state.join(file)).unwrap();
    }
}

/// Thirty users log in to one sshd at once, which drops connections from the tenth on by its default settings.
pub fn thirty_tunnels_at_once_all_come_about() {
    let mut lab = Lab::new();
    lab.end_npu_sshd();
    lab.start_npu_sshd(&["MaxStartups 10:30:100", "PermitUserEnvironment no"]);
    let mut forwards = String::from("forwards:\n");
    for number in 0..30_u8 {
        // one session each: the way is another one
        let address = Ipv4Addr::new(198, 18, 20, 100 + number);
        let listen = format!("127.0.0.1:{}", 9000 + u16::from(number));
        writeln!(forwards, "  f{number}: {{remote: \"{listen}\", target: \"{SERVER}:8090\", ssh: \"root@{address}\"}}")
            .unwrap();
        lab.npu.run(&format!("ip addr add {address}/24 dev eth0")).unwrap();
    }
    let (agent, _folder) = lab.start_agent(&lab.config(&format!("report: false\n{forwards}")));
    for number in 0..30 {
        agent.forward(gpustack(), &format!("f{number}"), "works", is_up);
    }
}

/// The worker got another address; the file is changed, and what did not change goes on.
pub fn a_worker_that_moved_is_found_by_a_changed_file_and_the_others_go_on() {
    // it misses a session whose address is gone
    let lab = Lab::with(&["ClientAliveInterval 2", "ClientAliveCountMax 1"]);
    let config = |npu: Ipv4Addr| {
        lab.config(&format!(
            "server: {{address: \"{SERVER}:8090\"}}\nworkers:\n  npu: {{ssh: \"{npu}\"}}\n  gpu: {{ssh: \"{GPU}\"}}\n"
        ))
    };
    let (agent, folder) = lab.start_agent(&config(NPU));
    let _workers = [lab.start_worker(&lab.npu, "npu", &[]), lab.start_worker(&lab.gpu, "gpu", &[])];
    lab.field.settled_when("npu", is_ready_by_link);
    lab.field.settled_when("gpu", is_ready_by_link);
    let gpu_link = lab.field.settled_link("gpu");

    let moved = Ipv4Addr::new(198, 18, 20, 21);
    lab.npu.run(&format!("ip addr add {moved}/24 dev eth0")).unwrap();
    lab.npu.run(&format!("ip addr del {NPU}/24 dev eth0")).unwrap();
    // kept up by the kernel as long as the first address of its network is there
    lab.npu.run(&format!("ip addr replace {moved}/24 dev eth0")).unwrap();
    agent.forward(gpustack(), "npu.server", "is down", |forward| forward["state"] == "down");

    folder.write_config("workers: 7\n").unwrap();
    agent.reload().unwrap();
    let refused = until("the wrong file refused", || {
        let status = agent.status(gpustack()).map_err(|error| error.to_string())?;
        status["refused_config"].as_str().map(str::to_owned).ok_or_else(|| status.to_string())
    });
    assert!(refused.contains("tunnels.yaml"), "{refused}");

    folder.write_config(&config(moved)).unwrap();
    agent.reload().unwrap();
    agent.forward(gpustack(), "npu.server", "works again", is_up);
    lab.field.worker("npu", "is ready again", is_ready_by_link);
    let gpu = agent.forward(gpustack(), "gpu.server", "goes on", is_up);
    assert_eq!(gpu["reconnects"], 0);
    assert_eq!(lab.field.settled_link("gpu"), gpu_link, "nothing was dropped");
    let status = agent.status(gpustack()).unwrap();
    assert!(status["refused_config"].is_null(), "{status}");
}

pub fn the_server_names_the_tunnel_that_a_lost_worker_depends_on() {
    let mut lab = Lab::new();
    let (agent, _folder) = lab.start_agent(&lab.npu_config());
    let _worker = lab.start_worker(&lab.npu, "npu", &[]);
    lab.field.settled_when("npu", is_ready_by_link);
    lab.end_npu_sshd();
    agent.forward(gpustack(), "npu.server", "is down", |forward| forward["state"] == "down");
    lab.field.worker("npu", "is blamed on its tunnel", |row| {
        let conditions = row["conditions"].as_array().cloned().unwrap_or_default();
        conditions
            .iter()
            .any(|condition| condition["reason"] == "tunnel_down" && condition["params"]["forward"] == "npu.server")
    });
    lab.start_npu_sshd(&[]);
    lab.field.worker("npu", "has its link again", has_link);
}
