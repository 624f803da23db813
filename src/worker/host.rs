//! How this host is called.

use std::collections::BTreeMap;

const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";

/// The host's name.
pub fn hostname() -> String {
    let name = std::fs::read_to_string(HOSTNAME_FILE).unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

/// The labels that GPUStack 0.7 gives a worker.
pub fn labels(worker_name: &str) -> BTreeMap<String, String> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    [("os", std::env::consts::OS), ("arch", arch), ("worker-name", worker_name)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}
