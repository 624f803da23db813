//! What keeps the host's clock right, and in which time it keeps it.

use crate::files::Root;
use crate::tool::{Places, Tool};
use api::{Check, HostReason, Reason, Seen, Severity, TimeService};
use chrono::Local;
use std::path::PathBuf;
use std::time::Duration;

/// A file that systemd-timesyncd makes when it has set the clock (`systemd-timesyncd.service(8)`).
const TIMESYNCD_MARK: &str = "/run/systemd/timesync/synchronized";
/// The third line says `UTC` or `LOCAL` (`adjtime_config(5)`).
const ADJTIME: &str = "/etc/adjtime";
const LOCALTIME: &str = "/etc/localtime";
const ZONES: &str = "zoneinfo/";
/// A chrony that has never heard of a server (`chronyc(1)`, tracking).
const NOT_SYNCHRONISED: &str = "Not synchronised";

/// Asks the time services.
pub(super) struct ClockKeeper {
    chronyc: Tool,
    ntpq: Tool,
    directories: Vec<PathBuf>,
}

/// What files say.
pub(super) struct ClockFiles {
    service: Option<TimeService>,
    timesyncd_has_set_it: bool,
    is_local_time: Option<bool>,
    zone: Option<String>,
}

/// What a service says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Standing {
    is_synchronised: Option<bool>,
    source: Option<String>,
}

impl ClockKeeper {
    pub fn new(tool_deadline: Duration, mut directories: Vec<PathBuf>) -> Self {
        // a service's search path lacks them on some systems
        directories.extend(["/usr/bin", "/usr/sbin", "/bin", "/sbin"].map(PathBuf::from));
        Self { chronyc: Tool::new("chronyc", tool_deadline), ntpq: Tool::new("ntpq", tool_deadline), directories }
    }

    pub async fn look(&self, files: ClockFiles, is_contained: bool) -> Vec<Check> {
        let standing = match files.service {
            Some(TimeService::Chrony) => self.ask(&self.chronyc, &["-n", "tracking"], tracking).await,
            Some(TimeService::Ntpd) => self.ask(&self.ntpq, &["-pn"], peers).await,
            Some(TimeService::Timesyncd) => {
                Standing { is_synchronised: Some(files.timesyncd_has_set_it), source: None }
            }
            Some(TimeService::Ptp) | None => Standing::default(),
        };
        let mut checks = vec![judged(files.service, standing, is_contained)];
        checks.extend(files.is_local_time.map(hardware_clock));
        let offset_s = Local::now().offset().local_minus_utc();
        checks.push(Check::good(Seen::TimeZone { name: files.zone, offset_s }));
        checks
    }

    async fn ask(&self, tool: &Tool, question: &[&str], read: fn(&str) -> Standing) -> Standing {
        let directories = self.directories.clone();
        match tool.run(question, move || Places { directories, libraries: Vec::new() }).await {
            Ok(output) => read(&output.stdout),
            Err(_) => Standing::default(),
        }
    }
}

fn judged(service: Option<TimeService>, standing: Standing, is_contained: bool) -> Check {
    let Standing { is_synchronised, source } = standing;
    let seen = Seen::TimeService { service, is_synchronised, source };
    match (service, is_synchronised) {
        (_, Some(true)) => Check::good(seen),
        (Some(service), Some(false)) => {
            let reason = Reason::ClockNotSynchronised { service: service.name().to_owned() };
            Check::bad(seen, Severity::Warning, reason)
        }
        (Some(_), None) => Check::bad(seen, Severity::Ok, HostReason::TimeServiceUnknown {}),
        // the host's processes cannot be seen from inside
        (None, _) if is_contained => Check::bad(seen, Severity::Ok, HostReason::TimeServiceOfHost {}),
        (None, _) => Check::bad(seen, Severity::Warning, HostReason::TimeServiceMissing {}),
    }
}

fn hardware_clock(is_local_time: bool) -> Check {
    let seen = Seen::HardwareClock { is_local_time };
    if is_local_time { Check::bad(seen, Severity::Warning, Reason::HardwareClockLocal {}) } else { Check::good(seen) }
}

pub(super) fn files(root: &Root) -> ClockFiles {
    ClockFiles {
        service: running(root),
        timesyncd_has_set_it: root.path(TIMESYNCD_MARK).exists(),
        is_local_time: root.read(ADJTIME).as_deref().and_then(kept_in_local_time),
        zone: zone(root),
    }
}

/// By the names of the processes, of which the kernel keeps fifteen characters (`proc_pid_comm(5)`).
fn running(root: &Root) -> Option<TimeService> {
    let processes = std::fs::read_dir(root.path("/proc")).ok()?;
    let names = processes.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.bytes().all(|byte| byte.is_ascii_digit()).then(|| root.read(format!("/proc/{name}/comm")))?
    });
    let service_of = |name: &str| match name {
        "chronyd" => Some(TimeService::Chrony),
        "ntpd" | "openntpd" | "ntpsec" => Some(TimeService::Ntpd),
        "systemd-timesyn" => Some(TimeService::Timesyncd),
        "ptp4l" | "phc2sys" => Some(TimeService::Ptp),
        _ => None,
    };
    names.filter_map(|name| service_of(name.trim())).min_by_key(|service| *service as u8)
}

fn kept_in_local_time(adjtime: &str) -> Option<bool> {
    match adjtime.lines().nth(2)?.trim() {
        "LOCAL" => Some(true),
        "UTC" => Some(false),
        _ => None,
    }
}

/// The name of the file that `/etc/localtime` leads to, else what `/etc/timezone` says.
fn zone(root: &Root) -> Option<String> {
    let target = std::fs::read_link(root.path(LOCALTIME)).ok().and_then(|path| path.to_str().map(str::to_owned));
    let linked = target.as_deref().and_then(|path| path.split_once(ZONES)).map(|(_, name)| name.to_owned());
    let told = || root.read("/etc/timezone").map(|name| name.trim().to_owned());
    linked.or_else(told).filter(|name| !name.is_empty())
}

/// `chronyc -n tracking`: `Name : value` lines.
fn tracking(output: &str) -> Standing {
    let value = |name: &str| {
        let line = output.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start().strip_prefix(':')?.trim())
    };
    let Some(leap) = value("Leap status") else { return Standing::default() };
    let address = value("Reference ID").and_then(|id| id.split_once('(')).map(|(_, rest)| rest.trim_end_matches(')'));
    Standing {
        is_synchronised: Some(leap != NOT_SYNCHRONISED),
        source: address.filter(|address| !address.is_empty()).map(str::to_owned),
    }
}

/// `ntpq -pn`: a table, in which an asterisk stands before the server that is followed, and an `o` before one that gives a
/// pulse each second (`ntpq(8)`).
fn peers(output: &str) -> Standing {
    let rows: Vec<&str> = output.lines().skip_while(|line| !line.starts_with("===")).skip(1).collect();
    if rows.is_empty() {
        return Standing::default();
    }
    let followed = rows.iter().find_map(|row| row.strip_prefix(['*', 'o']));
    Standing {
        is_synchronised: Some(followed.is_some()),
        source: followed.and_then(|row| row.split_whitespace().next()).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Trouble, Verdict};
    use proptest::prelude::*;

    const TRACKING: &str = "\
Reference ID    : CB00710F (203.0.113.15)
Stratum         : 3
Ref time (UTC)  : Fri Nov 27 09:49:17 2026
System time     : 0.000006523 seconds slow of NTP time
Last offset     : -0.000006747 seconds
RMS offset      : 0.000035822 seconds
Frequency       : 3.225 ppm slow
Residual freq   : -0.000 ppm
Skew            : 0.129 ppm
Root delay      : 0.013639022 seconds
Root dispersion : 0.001100737 seconds
Update interval : 64.2 seconds
Leap status     : Normal
";
    const NEVER_HEARD: &str = "\
Reference ID    : 00000000 ()
Stratum         : 0
Ref time (UTC)  : Thu Jan 01 00:00:00 1970
Leap status     : Not synchronised
";
    const PEERS: &str = "\
     remote           refid      st t when poll reach   delay   offset  jitter
==============================================================================
+203.0.113.9     192.0.2.1        2 u   33   64  377    0.412   -0.031   0.020
*203.0.113.15    192.0.2.2        2 u   12   64  377    0.398    0.011   0.014
";

    fn standing(is_synchronised: Option<bool>, source: Option<&str>) -> Standing {
        Standing { is_synchronised, source: source.map(str::to_owned) }
    }

    #[test]
    fn chrony_says_whether_and_whom_it_follows() {
        assert_eq!(tracking(TRACKING), standing(Some(true), Some("203.0.113.15")));
        assert_eq!(tracking(NEVER_HEARD), standing(Some(false), None));
        assert_eq!(tracking("506 Cannot talk to daemon\n"), Standing::default());
    }

    #[test]
    fn ntpd_marks_whom_it_follows() {
        assert_eq!(peers(PEERS), standing(Some(true), Some("203.0.113.15")));
        assert_eq!(peers(&PEERS.replace('*', " ")), standing(Some(false), None));
        assert_eq!(peers("No association ID's returned\n"), Standing::default());
    }

    #[test]
    fn the_third_line_tells_in_which_time_the_hardware_clock_is_kept() {
        assert_eq!(kept_in_local_time("0.0 0 0.0\n0\nLOCAL\n"), Some(true));
        assert_eq!(kept_in_local_time("0.0 0 0.0\n0\nUTC\n"), Some(false));
        assert_eq!(kept_in_local_time("0.0 0 0.0\n"), None);
    }

    #[test]
    fn a_service_that_does_not_follow_anybody_is_told_and_a_container_is_not_blamed_for_having_none() {
        let chrony = Some(TimeService::Chrony);
        let table = [
            (chrony, Some(true), false, Verdict::Ok),
            (chrony, Some(false), false, Verdict::Warning),
            (chrony, None, false, Verdict::NotChecked),
            (None, None, false, Verdict::Warning),
            (None, None, true, Verdict::NotChecked),
        ];
        for (service, is_synchronised, is_contained, verdict) in table {
            let check = judged(service, standing(is_synchronised, None), is_contained);
            assert_eq!(check.verdict(), verdict, "{service:?} {is_synchronised:?} {is_contained}");
        }
        let check = judged(chrony, standing(Some(false), None), false);
        let reason = Reason::ClockNotSynchronised { service: "chronyd".to_owned() };
        assert_eq!(check.problem.unwrap().trouble, Trouble::Reason(reason));
    }

    #[test]
    fn the_service_is_known_by_its_process_and_the_zone_by_its_link() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path());
        assert_eq!(running(&root), None);
        for (pid, name) in [("1", "systemd"), ("77", "systemd-timesyn"), ("self", "chronyd")] {
            std::fs::create_dir_all(directory.path().join("proc").join(pid)).unwrap();
            std::fs::write(directory.path().join("proc").join(pid).join("comm"), format!("{name}\n")).unwrap();
        }
        assert_eq!(running(&root), Some(TimeService::Timesyncd));
        assert_eq!(zone(&root), None);
        std::fs::create_dir_all(directory.path().join("etc")).unwrap();
        std::os::unix::fs::symlink("../usr/share/zoneinfo/Asia/Shanghai", directory.path().join("etc/localtime"))
            .unwrap();
        assert_eq!(zone(&root).as_deref(), Some("Asia/Shanghai"));
    }

    proptest! {
        #[test]
        fn no_output_makes_a_reader_panic(output in any::<String>(), cut in any::<prop::sample::Index>()) {
            tracking(&output);
            peers(&output);
            kept_in_local_time(&output);
            tracking(&TRACKING[..cut.index(TRACKING.len())]);
            peers(&PEERS[..cut.index(PEERS.len())]);
        }
    }
}
