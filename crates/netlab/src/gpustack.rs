//! This project's programs on hosts, seen from outside: their command line, the server's REST API, and what the kernel
//! shows of their processes.

use crate::host::Host;
use crate::process::Process;
use crate::sockets::{self, SocketState};
use crate::wait::until;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The join token of these servers.
pub const TOKEN: &str = "8fb74878a2e813ed19c54bfe8810ad3e";
/// The administrator's password.
pub const PASSWORD: &str = "correct horse battery";
/// `admin:PASSWORD` in Base64, as HTTP has it.
const BASIC: &str = "YWRtaW46Y29ycmVjdCBob3JzZSBiYXR0ZXJ5";
const PORT: u16 = 8090;
const REST_DEADLINE: Duration = Duration::from_secs(30);

/// A server on this process's own host, where its REST API is asked.
#[derive(Debug)]
pub struct Server {
    gpustack: PathBuf,
    arguments: Vec<String>,
    data_dir: TempDir,
    process: Option<Process>,
}

impl Server {
    /// Starts one at port 8090 of all the host's addresses, with more `arguments`, and waits until it answers.
    pub fn start(here: &Host, gpustack: &Path, arguments: &[&str]) -> Result<Self> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let data_dir = tempfile::tempdir().context("no folder for the server's data")?;
        let mut server = Self { gpustack: gpustack.to_owned(), arguments, data_dir, process: None };
        server.start_again(here)?;
        Ok(server)
    }

    /// Starts it with the data it has, and waits until it answers.
    pub fn start_again(&mut self, here: &Host) -> Result<()> {
        let mut command = program(here, &self.gpustack);
        command.args(["start", "--host", "0.0.0.0", "--port", &PORT.to_string(), "--disable-worker"]);
        command.args(["--token", TOKEN, "--bootstrap-password", PASSWORD]).args(&self.arguments);
        // what it says there is for somebody who has just installed it
        command.arg("--data-dir").arg(self.data_dir.path()).stdout(Stdio::null());
        self.process = Some(Process::start(&mut command)?);
        until("the server's first answer", || ask("GET", "/healthz", None));
        Ok(())
    }

    /// Ends it with a signal that it cannot hear. Its data stays.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// The process.
    pub fn process(&self) -> Result<&Process> {
        self.process.as_ref().context("the server does not run")
    }

    /// The URL for workers that reach it at `address`.
    pub fn url(address: Ipv4Addr) -> String {
        format!("http://{address}:{PORT}")
    }

    /// All workers' rows.
    pub fn workers(&self) -> Result<Vec<Value>> {
        let answer = ask("GET", "/v1/workers", None)?;
        Ok(answer.get("items").and_then(Value::as_array).context("no list of workers")?.clone())
    }

    /// What the server knows of tunnels.
    pub fn tunnel_agents(&self) -> Result<Vec<Value>> {
        let answer = ask("GET", "/v1/tunnels", None)?;
        Ok(answer.as_array().context("no list of tunnel agents")?.clone())
    }

    /// Where its data is.
    pub fn data_dir(&self) -> &Path {
        self.data_dir.path()
    }

    /// Waits until the row of the worker of this name is as wished.
    ///
    /// # Panics
    ///
    /// When it never is; with the row as it was last.
    pub fn worker(&self, name: &str, what: &str, is_wished: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{name} {what}"), || {
            let rows = self.workers().map_err(|error| error.to_string())?;
            let row = rows.into_iter().find(|row| row["name"] == name).ok_or_else(|| format!("no {name}"))?;
            if is_wished(&row) { Ok(row) } else { Err(row.to_string()) }
        })
    }

    /// Gives a worker labels.
    pub fn set_labels(&self, id: &Value, labels: &Value) -> Result<()> {
        let body = serde_json::json!({ "labels": labels });
        ask("PUT", &format!("/v1/workers/{id}"), Some(&body)).map(drop)
    }

    /// How many connections to its port stand.
    pub fn connections(&self) -> Result<usize> {
        sockets::count(&self.process()?.id().to_string(), SocketState::Established, PORT)
    }
}

/// Asks the REST API of the server on this host, as its administrator.
fn ask(method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    write!(request, "authorization: Basic {BASIC}\r\ncontent-type: application/json\r\n")?;
    write!(request, "content-length: {}\r\n\r\n{body}", body.len())?;
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), REST_DEADLINE)?;
    stream.set_read_timeout(Some(REST_DEADLINE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{method} {path}: {head}\n{body}");
    serde_json::from_str(body).with_context(|| format!("{method} {path} answered {body}"))
}

/// A worker's files: its data, and the tool that shows its eight devices. It can be started on any host. They are
/// there as long as this or a worker that was started with it.
#[derive(Clone, Debug)]
pub struct WorkerFolder {
    folder: Arc<TempDir>,
}

impl WorkerFolder {
    /// New, with a stand-in for `npu-smi`.
    pub fn new(npu_smi: &Path) -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder for the worker's data")?;
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin)?;
        symlink(npu_smi, bin.join("npu-smi"))?;
        Ok(Self { folder: Arc::new(folder) })
    }

    /// One with the same data, as when a disk is copied.
    pub fn copy(&self) -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder for the worker's data")?;
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(self.folder.path().join(".")).arg(folder.path());
        crate::process::run(&mut copy, "copy the worker's data")?;
        Ok(Self { folder: Arc::new(folder) })
    }
}

/// A worker on some host. Dropped, it is killed.
#[derive(Debug)]
pub struct Worker {
    process: Process,
    #[expect(dead_code, reason = "held so that the files stay")]
    folder: WorkerFolder,
}

impl Worker {
    /// Starts one that reaches its server at `url`, with more `arguments`. `wrapper` goes before the program, as
    /// `faketime` does.
    pub fn start(
        host: &Host,
        gpustack: &Path,
        folder: &WorkerFolder,
        url: &str,
        arguments: &[&str],
        wrapper: &[&str],
    ) -> Result<Self> {
        let path = folder.folder.path();
        let mut command = program_under(host, wrapper, gpustack);
        command.args(["start", "--server-url", url, "--token", TOKEN]).args(arguments);
        command.arg("--data-dir").arg(path.join("data"));
        command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", path.join("bin").display()));
        Ok(Self { process: Process::start(&mut command)?, folder: folder.clone() })
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Ends it with a signal that it cannot hear.
    pub fn kill(self) {}
}

/// A tunnel agent on some host. Dropped, it is killed.
#[derive(Debug)]
pub struct TunnelAgent {
    process: Process,
    folder: TunnelFolder,
}

/// A tunnel agent's files: its `tunnels.yaml` and its state.
#[derive(Clone, Debug)]
pub struct TunnelFolder {
    folder: Arc<TempDir>,
}

impl TunnelFolder {
    /// New, with the join token of this lab's servers in `token`.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder for the tunnel agent")?;
        let token = folder.path().join("token");
        std::fs::write(&token, TOKEN)?;
        std::fs::set_permissions(token, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { folder: Arc::new(folder) })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the `tunnels.yaml`: `state_dir` and `token_file`, and then `rest`.
    pub fn write_config(&self, rest: &str) -> Result<()> {
        let root = self.path().display();
        let head = format!("state_dir: {root}/state\ntoken_file: {root}/token\n");
        std::fs::write(self.config(), head + rest).context("cannot write tunnels.yaml")
    }

    fn config(&self) -> PathBuf {
        self.path().join("tunnels.yaml")
    }
}

impl TunnelAgent {
    /// Starts one. `wrapper` goes before the program, as `faketime` does.
    pub fn start(host: &Host, gpustack: &Path, folder: &TunnelFolder, wrapper: &[&str]) -> Result<Self> {
        let mut command = program_under(host, wrapper, gpustack);
        command.args(["tunnel", "run", "--config"]).arg(folder.config());
        Ok(Self { process: Process::start(&mut command)?, folder: folder.clone() })
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Has it read its file again.
    pub fn reload(&self) -> Result<()> {
        let process = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).context("no process number")?;
        Ok(kill_process(process, Signal::HUP)?)
    }

    /// What `gpustack tunnel status --json` prints.
    pub fn status(&self, gpustack: &Path) -> Result<Value> {
        let mut command = Command::new(gpustack);
        command.args(["tunnel", "status", "--json", "--state-dir"]).arg(self.folder.path().join("state"));
        let output = command.output().context("gpustack does not start")?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("no status: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Waits until the forward with this id is as wished, by the agent's own status.
    ///
    /// # Panics
    ///
    /// When it never is; with what was told of it last.
    pub fn forward(&self, gpustack: &Path, id: &str, what: &str, is_wished: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{id} {what}"), || {
            let status = self.status(gpustack).map_err(|error| error.to_string())?;
            let mut forwards = status.get("forwards").and_then(Value::as_array).into_iter().flatten();
            let forward = forwards.find(|forward| forward.get("id").is_some_and(|other| other == id));
            match forward {
                Some(forward) if is_wished(forward) => Ok(forward.clone()),
                Some(forward) => Err(forward.to_string()),
                None => Err(status.to_string()),
            }
        })
    }

    /// Ends it with a signal that it cannot hear.
    pub fn kill(self) {}
}

/// One of this project's programs under `wrapper`, which changes what it sees.
fn program_under(host: &Host, wrapper: &[&str], gpustack: &Path) -> Command {
    let [first, rest @ ..] = wrapper else { return program(host, gpustack) };
    let mut command = program(host, Path::new(first));
    command.args(rest).arg(gpustack);
    command
}

/// One of this project's programs, with nothing in its environment that could change what it does.
fn program(host: &Host, program: &Path) -> Command {
    let mut command = host.command(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GPUSTACK_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// A worker's condition of this kind.
pub fn condition<'a>(row: &'a Value, kind: &str) -> Option<&'a Value> {
    row["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether a worker has this condition with this status and this reason.
pub fn has(row: &Value, kind: &str, status: &str, reason: &str) -> bool {
    condition(row, kind).is_some_and(|condition| condition["status"] == status && condition["reason"] == reason)
}
