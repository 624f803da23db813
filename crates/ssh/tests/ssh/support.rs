//! A user with a key, a server that lets the user in, and programs to talk to.

use crate::sshd::{Setup, Sshd, keygen, own_ip, run};
use crate::trouble::Trouble;
use ssh::{Connector, Endpoint, ForwardLimits, Hop, Identity, KnownHosts, LocalForwardSpec, NoPassphrases, Route};
use ssh::{Session, Tuning};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than anything takes on a busy machine, and shorter than a test run may hang.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for what must come.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("what was to come did not come")
}

/// Looks again and again until it is so.
pub async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "never seen: {what}");
}

/// This side: a user with a key, and what is known of servers.
pub struct User {
    pub folder: TempDir,
    pub trouble: Arc<Trouble>,
    pub tuning: Tuning,
}

impl User {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        keygen(&folder.path().join("key"), &[]);
        Self { folder, trouble: Arc::default(), tuning: Tuning::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn known_hosts(&self) -> KnownHosts {
        KnownHosts::new(self.path("known_hosts"), Vec::new())
    }

    pub fn trust(&self, sshd: &Sshd) {
        let key = std::fs::read_to_string(sshd.path("host.pub")).unwrap();
        let words: Vec<&str> = key.split_whitespace().take(2).collect();
        let (ip, port) = (sshd.address().ip(), sshd.address().port());
        let line = format!("[{ip}]:{port} {}\n", words.join(" "));
        let path = self.path("known_hosts");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, before + &line).unwrap();
    }

    pub fn connector(&self) -> Connector {
        Connector {
            transport: Arc::new(crate::trouble::TroubledTransport(Arc::clone(&self.trouble))),
            known_hosts: self.known_hosts(),
            passphrases: Arc::new(NoPassphrases),
            tuning: self.tuning.clone(),
        }
    }

    pub fn identity(&self) -> Identity {
        Identity::key_file(self.path("key"))
    }

    pub fn hop(&self, sshd: &Sshd) -> Hop {
        Hop::new(login(), endpoint(sshd.address()), self.identity())
    }

    pub fn route(&self, sshd: &Sshd) -> Route {
        Route::new(vec![self.hop(sshd)]).unwrap()
    }

    pub async fn connect(&self, sshd: &Sshd) -> Result<Session, ssh::ConnectFault> {
        soon(self.connector().connect(&self.route(sshd))).await.map_err(|error| error.fault)
    }

    pub async fn session(&self, sshd: &Sshd) -> Session {
        self.connect(sshd).await.unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// A server that knows the user's key, and that the user knows.
    pub async fn server(&self, setup: Setup) -> Sshd {
        setup.authorise(&self.path("key.pub"), "");
        let sshd = setup.start().await;
        self.trust(&sshd);
        sshd
    }
}

/// A server with these lines in its configuration, a user whom it lets in, and a session.
pub async fn logged_in(lines: &[&str]) -> (Sshd, User, Session) {
    let user = User::new();
    let setup = lines.iter().fold(Setup::new(), |setup, line| setup.line(*line));
    let sshd = user.server(setup).await;
    let session = user.session(&sshd).await;
    (sshd, user, session)
}

/// OpenSSH's agent. Dropped, it is killed.
pub struct Agent {
    socket: PathBuf,
    child: Child,
}

impl Agent {
    pub async fn start(user: &User) -> Self {
        let socket = user.path("agent");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket).stdout(Stdio::null());
        let child = command.spawn().expect("cannot start ssh-agent: install the package openssh-client");
        let agent = Self { socket, child };
        until("the agent's socket", async || tokio::net::UnixStream::connect(&agent.socket).await.is_ok()).await;
        agent
    }

    pub fn add(&self, key: &Path) {
        run(Command::new("ssh-add").arg("-q").arg(key).env("SSH_AUTH_SOCK", &self.socket));
    }

    pub fn identity(&self) -> Identity {
        Identity::Agent { socket: self.socket.clone() }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::new(address.ip().to_string(), address.port())
}

/// Who runs the tests, as whom sshd lets somebody in without being root.
pub fn login() -> String {
    run(Command::new("id").arg("-un")).trim().to_owned()
}

pub fn host_key(sshd: &Sshd) -> String {
    let words = run(Command::new("ssh-keygen").arg("-lf").arg(sshd.path("host.pub")));
    words.split_whitespace().nth(1).unwrap().to_owned()
}

/// What a program at a port does with each connection.
#[derive(Clone, Copy)]
pub enum Manner {
    /// Sends back what comes, as it comes.
    Echo,
    /// Sends back what came, once the other side has ended.
    EchoAtTheEnd,
    /// Sends without end.
    Babble,
    /// Reads nothing and says nothing.
    Silent,
}

pub async fn program(manner: Manner) -> SocketAddr {
    let listener = TcpListener::bind((own_ip(), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(behave(stream, manner));
        }
    });
    address
}

async fn behave(mut stream: TcpStream, manner: Manner) {
    match manner {
        Manner::Echo => {
            let (mut read, mut write) = stream.split();
            let _ = tokio::io::copy(&mut read, &mut write).await;
            let _ = write.shutdown().await;
        }
        Manner::EchoAtTheEnd => {
            let mut all = Vec::new();
            if stream.read_to_end(&mut all).await.is_ok() {
                let _ = stream.write_all(&all).await;
                let _ = stream.shutdown().await;
            }
        }
        Manner::Babble => while stream.write_all(&[7; 16 * 1024]).await.is_ok() {},
        Manner::Silent => std::future::pending().await,
    }
}

/// Where nobody listens, and nobody will.
pub fn unused_address() -> SocketAddr {
    // the socket is closed, and the address is used by no other test
    std::net::TcpListener::bind((own_ip(), 0)).unwrap().local_addr().unwrap()
}

/// A local forward at a port that the system chooses.
pub fn local_spec(target: Endpoint) -> LocalForwardSpec {
    LocalForwardSpec { listen: SocketAddr::from((own_ip(), 0)), target, limits: ForwardLimits::default() }
}

/// Bytes that no part of which looks like another.
pub fn bytes(count: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..count).map(|_| next()).collect()
}

/// Sends, ends, and reads to the end, both at the same time.
pub async fn exchange(address: SocketAddr, sent: &[u8]) -> std::io::Result<Vec<u8>> {
    let (mut read, mut write) = TcpStream::connect(address).await?.into_split();
    let sending = async {
        write.write_all(sent).await?;
        write.shutdown().await
    };
    let mut received = Vec::new();
    let (sending, receiving) = soon(async { tokio::join!(sending, read.read_to_end(&mut received)) }).await;
    sending?;
    receiving?;
    Ok(received)
}

/// Whether nobody listens any more.
pub async fn is_refused(address: SocketAddr) -> bool {
    matches!(TcpStream::connect(address).await, Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused)
}
