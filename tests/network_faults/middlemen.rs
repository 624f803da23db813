//! Bastions and proxies between a worker and its server.

use crate::field::{Field, gpustack, is_ready_by_link, new_worker_folder};
use netlab::{Cable, End, Host, PacketSize, Process, Ssh, Worker, WorkerFolder, until};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 10);
const TOWARDS_SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 1);
const TOWARDS_WORKER: Ipv4Addr = Ipv4Addr::new(198, 18, 20, 1);
const WORKER: Ipv4Addr = Ipv4Addr::new(198, 18, 20, 20);

/// A host between the server's network and the worker's, which have no route to one another.
struct Between {
    middle: Host,
    worker_host: Host,
    worker_folder: WorkerFolder,
    _cables: [Cable; 2],
}

impl Between {
    fn new(field: &Field) -> Self {
        let (middle, worker_host) = (Host::new("bastion").unwrap(), Host::new("npu-20").unwrap());
        let lay = |one: (&Host, &str, Ipv4Addr), other: (&Host, &str, Ipv4Addr)| {
            let end = |(host, interface, address)| End { host, interface, address };
            Cable::lay(end(one), end(other), PacketSize::Ethernet).unwrap()
        };
        let cables = [
            lay((&field.here, "eth0", SERVER), (&middle, "eth0", TOWARDS_SERVER)),
            lay((&middle, "eth1", TOWARDS_WORKER), (&worker_host, "eth0", WORKER)),
        ];
        Self { middle, worker_host, worker_folder: new_worker_folder(), _cables: cables }
    }

    fn start_worker(&self, url: &str) -> Worker {
        let arguments = ["--worker-name", "npu-a"];
        Worker::start(&self.worker_host, gpustack(), &self.worker_folder, url, &arguments, &[]).unwrap()
    }
}

pub fn a_link_through_a_bastion_comes_back_when_the_bastion_was_restarted() {
    let field = Field::new();
    let between = Between::new(&field);
    let ssh = Ssh::new().unwrap();
    let _servers = [ssh.serve(&field.here).unwrap(), ssh.serve(&between.worker_host).unwrap()];
    let forwards = start_forwards(&ssh, &between);
    let _worker = between.start_worker("http://127.0.0.1:8090");
    let before = field.settled_when("npu-a", is_ready_by_link);
    let (link, open) = (field.settled_link("npu-a"), field.open());
    drop(forwards);
    field.worker("npu-a", "is unreachable", |row| row["state"] == "unreachable");
    let _forwards = start_forwards(&ssh, &between);
    field.has_other_link("npu-a", &link);
    field.is_back_when(&before, is_ready_by_link);
    field.has_no_more_open_than(open);
}

/// The two commands that bring the server's port to the worker, run on the bastion.
fn start_forwards(ssh: &Ssh, between: &Between) -> [Process; 2] {
    // what was cut off a moment ago may not have given its port back
    until("a free port on the worker's host", || listens(&between.worker_host, false));
    let (server, worker) = (format!("root@{SERVER}"), format!("root@{WORKER}"));
    let to_server = ssh.forward(&between.middle, &["-L", &format!("8090:{SERVER}:8090"), &server]).unwrap();
    until("a forward to the server", || listens(&between.middle, true));
    let to_worker = ssh.forward(&between.middle, &["-R", "8090:127.0.0.1:8090", &worker]).unwrap();
    until("a forward from the worker", || listens(&between.worker_host, true));
    [to_server, to_worker]
}

fn listens(host: &Host, wished: bool) -> Result<(), &'static str> {
    if host.listens(8090).unwrap() == wished { Ok(()) } else { Err("not yet") }
}

pub fn a_link_through_nginx_outlives_a_reload_and_comes_back_after_a_restart() {
    let field = Field::new();
    let between = Between::new(&field);
    let mut nginx = Nginx::start(&between.middle);
    let _worker = between.start_worker(&format!("http://{TOWARDS_WORKER}"));
    let before = field.settled_when("npu-a", is_ready_by_link);
    let (link, open) = (field.settled_link("npu-a"), field.open());
    nginx.reload(&between.middle);
    field.stays_ready("npu-a", 2);
    assert_eq!(field.settled_link("npu-a"), link, "a reload ends no link");
    nginx.restart(&between.middle);
    field.has_other_link("npu-a", &link);
    field.is_back_when(&before, is_ready_by_link);
    field.has_no_more_open_than(open);
}

/// As the operating guide sets it up.
struct Nginx {
    folder: TempDir,
    process: Process,
}

impl Nginx {
    fn start(host: &Host) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "daemon off; worker_processes 1; pid {root}/pid; error_log {root}/error.log;
            events {{}}
            http {{
                access_log off;
                client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fastcgi;
                uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;
                map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
                server {{
                    listen {TOWARDS_WORKER}:80;
                    location / {{
                        proxy_pass http://{SERVER}:8090;
                        proxy_http_version 1.1;
                        proxy_set_header Host $host;
                        proxy_set_header Upgrade $http_upgrade;
                        proxy_set_header Connection $connection_upgrade;
                    }}
                }}
            }}",
            root = folder.path().display(),
        );
        std::fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let process = Self::run(host, folder.path());
        Self { folder, process }
    }

    fn run(host: &Host, folder: &Path) -> Process {
        let process = Process::start(nginx(host, folder).stdin(Stdio::null())).unwrap();
        until("nginx at work", || if children(&process).is_empty() { Err("nobody") } else { Ok(()) });
        process
    }

    fn reload(&self, host: &Host) {
        let before = children(&self.process);
        signal(host, self.folder.path(), "reload");
        until("nginx reloaded", || {
            let now = children(&self.process);
            if now.iter().any(|child| !before.contains(child)) { Ok(()) } else { Err(now) }
        });
    }

    fn restart(&mut self, host: &Host) {
        signal(host, self.folder.path(), "stop");
        until("nginx stopped", || if self.process.is_running() { Err("it runs") } else { Ok(()) });
        self.process = Self::run(host, self.folder.path());
    }
}

fn nginx(host: &Host, folder: &Path) -> std::process::Command {
    // Debian has it where only root's path looks
    let mut command = host.command("/usr/sbin/nginx");
    command.arg("-c").arg(folder.join("nginx.conf")).arg("-p").arg(folder);
    command
}

fn signal(host: &Host, folder: &Path, what: &str) {
    let status = nginx(host, folder).args(["-s", what]).status().unwrap();
    assert!(status.success(), "nginx -s {what}");
}

/// The processes that a process has started.
fn children(process: &Process) -> Vec<String> {
    let id = process.id();
    let path = PathBuf::from(format!("/proc/{id}/task/{id}/children"));
    let children = std::fs::read_to_string(path).unwrap_or_default();
    children.split_whitespace().map(str::to_owned).collect()
}
