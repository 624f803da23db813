//! OpenSSH's server, each with a configuration, keys and a port of its own.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;
use tokio::sync::watch;

/// How often another port is tried when somebody else was quicker to take one.
const PORT_TRIES: usize = 20;

/// A server that is not started yet. Its folder holds its keys, and whatever its configuration names.
pub struct Setup {
    ip: Ipv4Addr,
    folder: TempDir,
    lines: Vec<String>,
}

/// A running server. Dropped, it is killed with all its sessions.
pub struct Sshd {
    setup: Setup,
    address: SocketAddr,
    child: Child,
    log: Log,
}

/// What the server says to its standard error, as it comes.
#[derive(Clone)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    count: watch::Sender<usize>,
}

impl Setup {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        keygen(&folder.path().join("host"), &[]);
        std::fs::write(folder.path().join("authorized_keys"), "").unwrap();
        Self { ip: own_ip(), folder, lines: Vec::new() }
    }

    /// Where it will listen, at a port that is not known yet.
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A line of the configuration; it comes before those that all servers have, and so has the last word.
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Whose key is in this file may log in, with these options.
    pub fn authorise(&self, public_key: &Path, options: &str) {
        let key = std::fs::read_to_string(public_key).unwrap();
        let path = self.path("authorized_keys");
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{before}{options} {key}")).unwrap();
    }

    pub async fn start(self) -> Sshd {
        for _ in 0..PORT_TRIES {
            let port = TcpListener::bind((self.ip, 0)).unwrap().local_addr().unwrap().port();
            if let Some((child, log)) = self.try_start(port).await {
                return Sshd { address: SocketAddr::from((self.ip, port)), setup: self, child, log };
            }
        }
        panic!("no port stayed free for sshd");
    }

    async fn try_start(&self, port: u16) -> Option<(Child, Log)> {
        let root = self.folder.path().display();
        let config = format!(
            "{}\nPort {port}\nListenAddress {ip}\nHostKey {root}/host\nAuthorizedKeysFile {root}/authorized_keys\n\
             PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nUseDNS no\nLogLevel DEBUG1\n",
            self.lines.join("\n"),
            ip = self.ip,
        );
        std::fs::write(self.path("sshd_config"), config).unwrap();
        let mut child = Command::new(program())
            .args(["-D", "-e", "-f"])
            .arg(self.path("sshd_config"))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("cannot start sshd: install the package openssh-server");
        let log = Log::of(&mut child);
        match log.first(&["Server listening on", "Address already in use", "fatal", "error"]).await {
            Some(line) if line.starts_with("Server listening on") => Some((child, log)),
            other => {
                let _ = child.kill();
                let _ = child.wait();
                let taken = log.text().contains("Address already in use");
                assert!(taken, "sshd does not start: {other:?}\n{}", log.text());
                None
            }
        }
    }
}

impl Sshd {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.setup.path(name)
    }

    pub fn authorise(&self, public_key: &Path, options: &str) {
        self.setup.authorise(public_key, options);
    }

    /// Kills the listener and every session.
    pub fn kill(&mut self) {
        let id = self.child.id();
        for process in descendants(id) {
            kill(process);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again at the same port, with the same keys.
    pub async fn start_again(&mut self) {
        (self.child, self.log) = self.setup.try_start(self.address.port()).await.expect("the port is taken");
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("sshd at {}:\n{}", self.address, self.log.text());
        }
        self.kill();
    }
}

impl Log {
    fn of(child: &mut Child) -> Self {
        let log = Self { lines: Arc::default(), count: watch::Sender::new(0) };
        let (lines, count) = (Arc::clone(&log.lines), log.count.clone());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.trim_end().to_owned());
                count.send_modify(|count| *count += 1);
            }
            // nothing more comes
            count.send_modify(|count| *count = usize::MAX);
        });
        log
    }

    fn text(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// The first line that begins with one of these; `None` when the server ended without one.
    async fn first(&self, beginnings: &[&str]) -> Option<String> {
        let mut count = self.count.subscribe();
        loop {
            let ended = *count.borrow_and_update() == usize::MAX;
            let found = |line: &&String| beginnings.iter().any(|beginning| line.starts_with(beginning));
            let line = self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().find(found).cloned();
            if line.is_some() || ended {
                return line;
            }
            count.changed().await.unwrap();
        }
    }
}

/// An address of this host that nobody else uses: all of 127.0.0.0/8 is this host's. So no two tests come into each other's
/// way, though each lets the system choose its ports.
pub fn own_ip() -> Ipv4Addr {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let octet = |number: u32| u8::try_from(number).unwrap();
    Ipv4Addr::new(127, octet(64 + std::process::id() % 128), octet(count / 250), octet(1 + count % 250))
}

/// Debian has it where only root's path looks, and it wants to be called by its full name.
fn program() -> PathBuf {
    let candidates = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"];
    let found = candidates.into_iter().map(PathBuf::from).find(|path| path.exists());
    let found = found.expect("sshd is missing: install the package openssh-server");
    // what Debian's service makes, and sshd does not start without when it is root
    let _ = std::fs::create_dir_all("/run/sshd");
    found
}

/// All processes below one, as sshd's sessions leave its process group.
fn descendants(id: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.flat_map(|child| std::iter::once(child).chain(descendants(child))).collect()
}

fn kill(id: u32) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // fails where it has ended, which is what is wished
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Makes a key pair at `path`, without a passphrase unless these words say otherwise.
pub fn keygen(path: &Path, words: &[&str]) {
    let passphrase: &[&str] = if words.contains(&"-N") { &[] } else { &["-N", ""] };
    let kind: &[&str] = if words.contains(&"-t") { &[] } else { &["-t", "ed25519"] };
    run(Command::new("ssh-keygen").arg("-q").args(kind).args(passphrase).args(words).arg("-f").arg(path));
}

/// Runs a program to its end, and gives what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("install the package openssh-client");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
