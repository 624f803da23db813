//! A host with eight NPUs, which a stand-in for `npu-smi` shows, and workers on it in this process.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part of it; what cannot go on fails the test")]

use api::{ServerUrl, SystemReserved};
use detect::DetectorConfig;
use gpustack::config::{JoinToken, Resources, ServerTrust, WorkerConfig, WorkerIdentity};
use gpustack::worker::{DetectionConfig, WorkerError};
use http::StatusCode;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The server's join token in all tests.
pub const TOKEN: &str = "8fb74878a2e813ed19c54bfe8810ad3e";

/// A host with eight NPUs, and the worker's data directory.
pub struct Host {
    pub dir: TempDir,
}

impl Host {
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let dev = dir.path().join("dev");
        std::fs::create_dir_all(&dev).unwrap();
        let chips = (0..8).map(|number| format!("davinci{number}"));
        for node in ["davinci_manager", "hisi_hdc", "devmm_svm"].map(str::to_owned).into_iter().chain(chips) {
            std::fs::write(dev.join(node), "").unwrap();
        }
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/npu-smi"), bin.join("npu-smi")).unwrap();
        Self { dir }
    }

    pub fn set_tool_mode(&self, mode: &str) {
        let path = self.dir.path().join("bin/npu-smi-mode");
        std::fs::write(path.with_extension("new"), mode).unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    }

    pub fn config(&self, server: SocketAddr) -> WorkerConfig {
        WorkerConfig {
            server_url: ServerUrl::parse(&server.to_string()).unwrap(),
            token: Some(JoinToken::parse(TOKEN).unwrap()),
            trust: ServerTrust::System,
            data_dir: self.dir.path().join("data"),
            identity: WorkerIdentity { name: None, ip: Some("127.0.0.1".parse().unwrap()), ifname: None, port: 0 },
            system_reserved: SystemReserved::default(),
            key_rotation: Duration::from_hours(24),
            resources: Resources::default(),
        }
    }

    /// Looks at this host instead of the real one.
    pub fn detector(&self) -> DetectorConfig {
        DetectorConfig {
            root: self.dir.path().to_owned(),
            // only a test whose tool hangs waits for it
            tool_deadline: Duration::from_secs(2),
            path: Some(format!("{}:/usr/bin:/bin", self.dir.path().join("bin").display()).into()),
            ..DetectorConfig::default()
        }
    }

    pub async fn start_worker(&self, config: WorkerConfig) -> Worker {
        self.start_worker_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), config)
    }

    pub fn start_worker_on(&self, listener: TcpListener, config: WorkerConfig) -> Worker {
        let address = listener.local_addr().unwrap();
        let detection = DetectionConfig {
            detector: self.detector(),
            interval: Duration::from_millis(100),
            resources: config.resources.clone(),
        };
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let task = tokio::spawn(gpustack::worker::run_with_detection(listener, config, detection, stop));
        Worker { address, shutdown, task }
    }
}

pub struct Worker {
    /// Where it answers health checks.
    pub address: SocketAddr,
    shutdown: CancellationToken,
    pub task: JoinHandle<Result<(), WorkerError>>,
}

impl Worker {
    pub async fn get(&self, path: &str) -> (StatusCode, serde_json::Value) {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let response = client.get(format!("http://{}{path}", self.address)).send().await.unwrap();
        (response.status(), response.json().await.unwrap_or_default())
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
    }
}
