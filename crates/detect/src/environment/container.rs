//! The host itself, or a container on it.

use crate::files::Root;
use api::Seen;

/// All capabilities that a kernel of 2025 knows: 0 to 40 (`capabilities(7)`). Older kernels have fewer.
const PRIVILEGED_MIN_BITS: u32 = 38;
/// `Seccomp:` in `proc_pid_status(5)`.
const FILTER_MODE: &str = "2";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    pub engine: Option<String>,
    is_privileged: bool,
    is_filtered: bool,
}

impl Container {
    pub fn seen(self) -> Seen {
        let Self { engine, is_privileged, is_filtered } = self;
        Seen::Container { engine, is_privileged, is_filtered }
    }
}

pub(super) fn look(root: &Root) -> Container {
    let status = root.read("/proc/self/status").unwrap_or_default();
    Container {
        engine: engine(root),
        is_privileged: is_privileged(field(&status, "CapEff")),
        is_filtered: field(&status, "Seccomp") == Some(FILTER_MODE),
    }
}

/// Engines leave their marks: Docker an empty file, Podman one with its name, Kubernetes a directory with the service
/// account or its name in the control group, systemd's kind a variable of the first process.
fn engine(root: &Root) -> Option<String> {
    let is_there = |path: &str| root.path(path).exists();
    if is_there("/var/run/secrets/kubernetes.io") {
        return Some("Kubernetes".to_owned());
    }
    if is_there("/.dockerenv") {
        return Some("Docker".to_owned());
    }
    if is_there("/run/.containerenv") {
        return Some("Podman".to_owned());
    }
    if let Some(name) = root.read("/run/systemd/container").filter(|name| !name.trim().is_empty()) {
        return Some(name.trim().to_owned());
    }
    let groups = root.read("/proc/1/cgroup").unwrap_or_default();
    let marks = [("kubepods", "Kubernetes"), ("docker", "Docker"), ("containerd", "containerd"), ("lxc", "LXC")];
    marks.iter().find(|(mark, _)| groups.contains(mark)).map(|(_, name)| (*name).to_owned())
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn is_privileged(effective: Option<&str>) -> bool {
    let bits = effective.and_then(|hexadecimal| u64::from_str_radix(hexadecimal, 16).ok()).unwrap_or(0);
    bits.trailing_ones() >= PRIVILEGED_MIN_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Container) {
        let directory = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = directory.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let container = look(&Root::new(directory.path()));
        (directory, container)
    }

    #[test]
    fn each_engine_is_known_by_its_mark() {
        let table = [
            ("/.dockerenv", "", "Docker"),
            ("/run/.containerenv", "engine=\"podman-4.9.4\"", "Podman"),
            ("/run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"),
            ("/var/run/secrets/kubernetes.io/serviceaccount/token", "x", "Kubernetes"),
            ("/proc/1/cgroup", "0::/kubepods/besteffort/pod1/abc\n", "Kubernetes"),
            ("/proc/1/cgroup", "12:cpu:/docker/abc\n", "Docker"),
        ];
        for (path, content, engine) in table {
            assert_eq!(host(&[(path, content)]).1.engine.as_deref(), Some(engine), "{path}");
        }
        assert_eq!(host(&[("/proc/1/cgroup", "0::/init.scope\n")]).1.engine, None);
    }

    #[test]
    fn privileges_and_filter_are_read_from_the_process() {
        let plain = "Name:\tgpustack\nCapEff:\t00000000a80425fb\nSeccomp:\t2\n";
        let privileged = "CapEff:\t000001ffffffffff\nSeccomp:\t0\n";
        let of_linux_4 = "CapEff:\t0000003fffffffff\nSeccomp:\t0\n";
        for (status, is_privileged, is_filtered) in
            [(plain, false, true), (privileged, true, false), (of_linux_4, true, false), ("", false, false)]
        {
            let container = host(&[("/proc/self/status", status)]).1;
            assert_eq!((container.is_privileged, container.is_filtered), (is_privileged, is_filtered), "{status}");
        }
    }
}
