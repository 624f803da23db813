//! Commands that help with a cause. `NTP_SERVER`, `WORKER_IP` and the like stand for what only the operator knows.

use super::is_loopback;
use crate::i18n::Language;
use api::{DriverInitCause, Reason};

/// Which family an operating system belongs to, by its own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OsFamily {
    /// `/etc/chrony.conf`, service `chronyd`.
    RedHat,
    /// `/etc/chrony/chrony.conf`, service `chrony`.
    Debian,
    /// Not known; commands find out.
    Unknown,
}

impl OsFamily {
    fn of(os: &str) -> Self {
        const DEBIAN: [&str; 4] = ["debian", "ubuntu", "deepin", "mint"];
        const RED_HAT: [&str; 17] = [
            "openeuler",
            "euleros",
            "centos",
            "red hat",
            "rhel",
            "rocky",
            "almalinux",
            "fedora",
            "kylin",
            "anolis",
            "alibaba",
            "alinux",
            "tencentos",
            "opencloudos",
            "bclinux",
            "oracle linux",
            "amazon",
        ];
        let os = os.to_ascii_lowercase();
        // `Ubuntu Kylin` is an Ubuntu: Debian's names come first.
        if DEBIAN.iter().any(|name| os.contains(name)) {
            return Self::Debian;
        }
        if RED_HAT.iter().any(|name| os.contains(name)) {
            return Self::RedHat;
        }
        Self::Unknown
    }

    const fn chrony_file(self) -> &'static str {
        match self {
            Self::RedHat => "/etc/chrony.conf",
            Self::Debian => "/etc/chrony/chrony.conf",
            Self::Unknown => "$CONF",
        }
    }

    const fn restart_chrony(self) -> &'static str {
        match self {
            Self::RedHat => "systemctl restart chronyd",
            Self::Debian => "systemctl restart chrony",
            Self::Unknown => "systemctl restart chronyd || systemctl restart chrony",
        }
    }
}

/// The commands for a cause, one a line; none when there is nothing to run.
pub fn commands(reason: &Reason, language: Language, os: &str) -> Vec<String> {
    let places = Places::of(language);
    match reason {
        Reason::HeartbeatLost { .. }
        | Reason::WorkerStopped { .. }
        | Reason::LinkDown { .. }
        | Reason::LinkUnanswered { .. } => lost_heartbeat(places),
        Reason::DirectRefused { url }
        | Reason::DirectTimedOut { url, .. }
        | Reason::DirectClosed { url }
        | Reason::DirectWrongAnswer { url, .. }
        | Reason::DirectWrongWorker { url, .. } => failed_probe(url, places),
        Reason::DirectNoRoute { url } => no_route(url, places),
        Reason::DirectNotResolved { host, .. } => {
            vec![places.server.clone(), format!("getent hosts {host}"), "cat /etc/resolv.conf /etc/hosts".to_owned()]
        }
        Reason::ClockOffset { .. } | Reason::ClockNotSynchronised { .. } => wrong_clock(OsFamily::of(os), places),
        Reason::ClockOffsetZone { .. } | Reason::HardwareClockLocal {} => wrong_zone(OsFamily::of(os), places),
        Reason::DiskFull { path, .. } => vec![places.worker, format!("df -h {path}")],
        Reason::ToolTimedOut { tool, .. } => {
            vec![places.worker, format!("timeout 60 {}", query(tool)), "dmesg -T | tail -n 50".to_owned()]
        }
        Reason::ToolFailed { tool, .. } | Reason::ToolOutputUnknown { tool, .. } => vec![places.worker, query(tool)],
        Reason::ToolNotStarted { tool, .. } => {
            vec![places.worker, format!("ls -lL \"$(command -v {tool})\""), query(tool)]
        }
        Reason::ToolMissing { tool } => {
            vec![places.worker, format!("command -v {tool}"), format!("find / -xdev -name '{tool}*' -type f")]
        }
        Reason::DriverInitFailed { tool, cause: None | Some(DriverInitCause::NodesMissing), .. } => vec![
            places.worker,
            "ls -l /dev/davinci* /dev/devmm_svm /dev/hisi_hdc".to_owned(),
            "ls /usr/local/Ascend/driver/lib64".to_owned(),
            query(tool),
        ],
        Reason::DriverLibraryMissing { library, tool } => {
            vec![places.worker, format!("find / -xdev -name '{library}*'"), format!("ldd \"$(command -v {tool})\"")]
        }
        Reason::DeviceInUseElsewhere { tool, .. } => {
            vec![places.worker, "docker ps --format '{{.ID}} {{.Names}} {{.Image}}'".to_owned(), query(tool)]
        }
        Reason::DeviceNodeMissing { node } | Reason::DeviceNodeUnreadable { node } => {
            vec![places.worker, format!("ls -l {node}")]
        }
        Reason::DriverNotLoaded { .. }
        | Reason::DriverInitFailed { cause: Some(DriverInitCause::ModuleNotLoaded), .. } => {
            vec![places.worker, "lspci -nnk".to_owned(), "dmesg -T | tail -n 50".to_owned()]
        }
        Reason::DriverMismatch { .. }
        | Reason::DriverInitFailed { cause: Some(DriverInitCause::UpgradedWithoutRestart), .. } => {
            vec![places.worker, "cat /usr/local/Ascend/*/version.info /proc/driver/nvidia/version".to_owned()]
        }
        Reason::VisibleDevicesWrong { variable, .. } => {
            vec![places.worker, format!("echo \"${variable}\""), "ls -l /dev/davinci*".to_owned()]
        }
        Reason::ReadingsForbidden { tool }
        | Reason::DriverInitFailed { tool, cause: Some(DriverInitCause::NotAllowed), .. } => {
            vec![places.worker, "id".to_owned(), query(tool)]
        }
        Reason::DeviceUnhealthy { .. } | Reason::DevicesMissing { .. } | Reason::DeviceLost { .. } => {
            vec![places.worker, "npu-smi info || nvidia-smi".to_owned(), "dmesg -T | tail -n 50".to_owned()]
        }
        Reason::HeartbeatReceived { .. }
        | Reason::HeartbeatAwaited { .. }
        | Reason::LinkUp { .. }
        | Reason::LinkAwaited { .. }
        | Reason::TunnelDown { .. }
        | Reason::DirectAnswered { .. }
        | Reason::DirectNotProbed { .. }
        | Reason::ClockInSync { .. }
        | Reason::ClockNotMeasured { .. }
        | Reason::DevicesWorking { .. }
        | Reason::DevicesNone { .. }
        | Reason::DevicesAwaited { .. }
        | Reason::IdentityDuplicated { .. }
        | Reason::ReplacementAsked { .. } => Vec::new(),
    }
}

/// Shell comments that say where to run what follows.
struct Places {
    server: String,
    worker: String,
    bastion: String,
}

impl Places {
    fn of(language: Language) -> Self {
        let words = &language.messages().words;
        Self {
            server: format!("# {}", words.on_server),
            worker: format!("# {}", words.on_worker_host),
            bastion: format!("# {}", words.on_bastion),
        }
    }
}

fn lost_heartbeat(places: Places) -> Vec<String> {
    vec![
        places.worker,
        "docker ps -a --filter name=gpustack; systemctl status 'gpustack*' --no-pager".to_owned(),
        "ss -ltn | grep 8090".to_owned(),
        "curl -sS -m 5 http://127.0.0.1:8090/healthz".to_owned(),
    ]
}

/// The tunnels are those of an operator who follows the usual way: a local forward on the bastion to the worker, then
/// a remote forward from the bastion to the server.
fn failed_probe(url: &str, places: Places) -> Vec<String> {
    let (host, port) = host_and_port(url);
    let mut commands = vec![places.server, format!("curl -sS -m 5 {url}")];
    if !is_loopback(url) {
        commands.extend([
            places.worker,
            format!("ss -ltnp | grep ':{port} '"),
            format!("curl -sS -m 5 http://{host}:{port}/healthz"),
        ]);
        return commands;
    }
    let keep_alive = "-o ServerAliveInterval=60 -o ServerAliveCountMax=3 -o ExitOnForwardFailure=yes";
    commands.extend([
        format!("ss -ltnp | grep ':{port} '"),
        places.bastion,
        format!("ss -ltnp | grep ':{port} '"),
        format!("ssh {keep_alive} -fN -L {port}:WORKER_IP:{port} USER@WORKER_IP"),
        format!("ssh {keep_alive} -fN -R {port}:127.0.0.1:{port} USER@SERVER_IP"),
    ]);
    commands
}

fn no_route(url: &str, places: Places) -> Vec<String> {
    let (host, _) = host_and_port(url);
    vec![places.server, format!("ip route get {host}")]
}

fn wrong_clock(family: OsFamily, places: Places) -> Vec<String> {
    let file = family.chrony_file();
    let mut commands = vec![places.worker, "timedatectl".to_owned()];
    if family == OsFamily::Unknown {
        commands.push("CONF=$(ls /etc/chrony.conf /etc/chrony/chrony.conf 2>/dev/null | head -n 1)".to_owned());
    }
    commands.extend([
        format!("sed -i.bak -E '/^(server|pool) /d' {file}"),
        format!("echo 'server NTP_SERVER iburst' >> {file}"),
        family.restart_chrony().to_owned(),
        "chronyc makestep".to_owned(),
        "chronyc sources".to_owned(),
        "hwclock --systohc".to_owned(),
    ]);
    commands
}

fn wrong_zone(family: OsFamily, places: Places) -> Vec<String> {
    vec![
        places.worker,
        "timedatectl".to_owned(),
        "timedatectl set-local-rtc 0".to_owned(),
        "timedatectl set-timezone UTC".to_owned(),
        family.restart_chrony().to_owned(),
        "chronyc makestep".to_owned(),
        "hwclock --systohc".to_owned(),
    ]
}

/// How a vendor's tool is asked for what it sees.
fn query(tool: &str) -> String {
    if tool.ends_with("npu-smi") { format!("{tool} info") } else { tool.to_owned() }
}

/// Host and port of an `http` URL; port 80 when it has none.
pub(super) fn host_and_port(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (authority, "80"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_are_found_in_every_spelling() {
        for (url, expected) in [
            ("http://127.0.0.1:10150/healthz", ("127.0.0.1", "10150")),
            ("http://[fe80::1]:10150/", ("[fe80::1]", "10150")),
            ("http://[fe80::1]/", ("[fe80::1]", "80")),
            ("http://npu-1", ("npu-1", "80")),
        ] {
            assert_eq!(host_and_port(url), expected);
        }
    }

    #[test]
    fn an_operating_system_is_known_by_its_name() {
        for (os, expected) in [
            ("openEuler 22.03 (LTS-SP4)", OsFamily::RedHat),
            ("CentOS Linux 7 (Core)", OsFamily::RedHat),
            ("Kylin Linux Advanced Server V10 (Lance)", OsFamily::RedHat),
            ("Ubuntu 22.04.4 LTS", OsFamily::Debian),
            ("Ubuntu Kylin 22.04", OsFamily::Debian),
            ("UnionTech OS Server 20", OsFamily::Unknown),
            ("", OsFamily::Unknown),
        ] {
            assert_eq!(OsFamily::of(os), expected, "{os}");
        }
    }
}
