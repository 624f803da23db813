//! What a local forward costs compared with OpenSSH's own client: `cargo bench --package ssh`.
//!
//! One sshd, one target, and three ways to it, which take turns so that whatever else the machine does falls on all of
//! them: directly, through `ssh -N -L`, and through a forward of this crate. The target and this crate's forward run in
//! this process, sshd and ssh in their own.

#![expect(clippy::print_stdout, reason = "the figures are the result")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot go on ends")]
#![expect(clippy::panic, reason = "as in the tests, with which it shares the server")]

#[path = "../tests/ssh/sshd.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod sshd;

use ssh::{
    Connector, Endpoint, ForwardLimits, Hop, Identity, KnownHosts, LocalForward, LocalForwardSpec, NoPassphrases,
    Route, TcpTransport, Tuning,
};
use sshd::{Setup, Sshd, keygen, run};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const BULK_BYTES: usize = 256 * 1024 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;
const BULKS: usize = 3;
const SMALL_BYTES: usize = 64;
const SMALL_REQUESTS: usize = 5_000;
/// Ways take turns after so many requests.
const TURN: usize = 100;

fn main() {
    // `cargo bench` says `--bench`; `cargo test --all-targets` runs this file too, does not, and wants no measurement
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

/// A way to the target, and what it took.
struct Way {
    name: &'static str,
    address: SocketAddr,
    small_us: Vec<f64>,
    down_mb_per_s: Vec<f64>,
    up_mb_per_s: Vec<f64>,
}

impl Way {
    fn new(name: &'static str, address: SocketAddr) -> Self {
        Self { name, address, small_us: Vec::new(), down_mb_per_s: Vec::new(), up_mb_per_s: Vec::new() }
    }
}

async fn measure() {
    let folder = tempfile::tempdir().unwrap();
    keygen(&folder.path().join("key"), &[]);
    let setup = Setup::new();
    setup.authorise(&folder.path().join("key.pub"), "");
    let sshd = setup.start().await;
    let target = target().await;
    let user = run(Command::new("id").arg("-un")).trim().to_owned();

    let ours = forward(&sshd, &user, folder.path(), target).await;
    let openssh = OpenSsh::start(&sshd, &user, folder.path(), target).await;
    let mut ways = [
        Way::new("directly", target),
        Way::new("ssh -N -L", openssh.address),
        Way::new("forward of this crate", ours.address()),
    ];
    for _ in 0..SMALL_REQUESTS / TURN {
        for way in &mut ways {
            small(way).await;
        }
    }
    for _ in 0..BULKS {
        for way in &mut ways {
            bulk(way).await;
        }
    }

    println!("load average of this machine: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    println!("{:24} {:>12} {:>12} {:>12} {:>12}", "way", "small p50 µs", "small p99 µs", "down MB/s", "up MB/s");
    for way in &mut ways {
        let percentile = |values: &mut Vec<f64>, percent: usize| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() * percent / 100).copied().unwrap_or(f64::NAN)
        };
        let (p50, p99) = (percentile(&mut way.small_us, 50), percentile(&mut way.small_us, 99));
        let (down, up) = (percentile(&mut way.down_mb_per_s, 50), percentile(&mut way.up_mb_per_s, 50));
        println!("{:24} {p50:12.0} {p99:12.0} {down:12.0} {up:12.0}", way.name);
    }
}

/// Does what the first byte of a connection says.
async fn target() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(async move {
                match stream.read_u8().await {
                    Ok(b'd') => send(&mut stream).await,
                    Ok(b'u') => {
                        receive(&mut stream).await;
                        let _ = stream.write_all(b".").await;
                    }
                    _ => {
                        let (mut read, mut write) = stream.split();
                        let _ = tokio::io::copy(&mut read, &mut write).await;
                    }
                }
            });
        }
    });
    address
}

async fn send(stream: &mut TcpStream) {
    let chunk = vec![7; CHUNK_BYTES];
    for _ in 0..BULK_BYTES / CHUNK_BYTES {
        if stream.write_all(&chunk).await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

/// Reads to the end.
async fn receive(stream: &mut TcpStream) -> usize {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        match stream.read(&mut chunk).await.unwrap() {
            0 => return bytes,
            read => bytes += read,
        }
    }
}

async fn connect(way: &Way, manner: u8) -> TcpStream {
    let mut stream = TcpStream::connect(way.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_u8(manner).await.unwrap();
    stream
}

async fn small(way: &mut Way) {
    let mut stream = connect(way, b'e').await;
    let mut answer = [0; SMALL_BYTES];
    // the first one also waits for the connection
    for request in 0..=TURN {
        let begun = Instant::now();
        stream.write_all(&[7; SMALL_BYTES]).await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
        if request > 0 {
            way.small_us.push(begun.elapsed().as_secs_f64() * 1e6);
        }
    }
}

async fn bulk(way: &mut Way) {
    let rate = |begun: Instant| BULK_BYTES as f64 / begun.elapsed().as_secs_f64() / 1e6;
    let begun = Instant::now();
    assert_eq!(receive(&mut connect(way, b'd').await).await, BULK_BYTES);
    way.down_mb_per_s.push(rate(begun));

    let begun = Instant::now();
    let mut stream = connect(way, b'u').await;
    send(&mut stream).await;
    stream.read_exact(&mut [0]).await.unwrap();
    way.up_mb_per_s.push(rate(begun));
}

async fn forward(sshd: &Sshd, user: &str, folder: &Path, target: SocketAddr) -> LocalForward {
    let server = Endpoint::new(sshd.address().ip().to_string(), sshd.address().port());
    let key = std::fs::read_to_string(sshd.path("host.pub")).unwrap();
    std::fs::write(folder.join("known_hosts"), format!("[{}]:{} {key}", server.host, server.port)).unwrap();
    let tuning = Tuning::default();
    let connector = Connector {
        transport: Arc::new(TcpTransport::new(tuning.connect_deadline)),
        known_hosts: KnownHosts::new(folder.join("known_hosts"), Vec::new()),
        passphrases: Arc::new(NoPassphrases),
        tuning,
    };
    let hop = Hop::new(user, server, Identity::key_file(folder.join("key")));
    let session = connector.connect(&Route::new(vec![hop]).unwrap()).await.unwrap();
    let spec = LocalForwardSpec {
        listen: "127.0.0.1:0".parse().unwrap(),
        target: Endpoint::new(target.ip().to_string(), target.port()),
        limits: ForwardLimits::default(),
    };
    LocalForward::start(&session, spec).await.unwrap()
}

/// OpenSSH's client at work. Dropped, it is killed.
struct OpenSsh {
    address: SocketAddr,
    child: Child,
}

impl OpenSsh {
    async fn start(sshd: &Sshd, user: &str, folder: &Path, target: SocketAddr) -> Self {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new("ssh")
            .args([
                "-F",
                "none",
                "-N",
                "-o",
                "BatchMode=yes",
                "-o",
                "IdentitiesOnly=yes",
                "-o",
                "ExitOnForwardFailure=yes",
            ])
            .arg("-o")
            .arg(format!("UserKnownHostsFile={}", folder.join("known_hosts").display()))
            .args(["-p", &sshd.address().port().to_string(), "-L", &format!("{address}:{target}"), "-i"])
            .arg(folder.join("key"))
            .arg(format!("{user}@{}", sshd.address().ip()))
            .stdin(Stdio::null())
            .spawn()
            .expect("cannot start ssh: install the package openssh-client");
        let openssh = Self { address, child };
        while TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        openssh
    }
}

impl Drop for OpenSsh {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
