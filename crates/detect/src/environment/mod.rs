//! What a worker needs of its host besides accelerators: a right clock, room on the disk, file descriptors.

mod clock;
mod container;
mod disk;
mod open_files;
mod system;

use crate::DetectorConfig;
use crate::files::{PatientReader, Root};
use crate::problem_ages::ProblemAges;
use crate::tool::search_path;
use crate::vendor::Finding;
use api::{Check, CheckProblem, HostReason, Problem, Seen, Severity, Trouble};
use clock::ClockKeeper;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// All files of one look, which lie in memory or on the system's disk; the data directory may be on a dead network disk.
const FILES_DEADLINE: Duration = Duration::from_secs(5);

/// Looks at the host. Keep one for the life of the process.
pub struct Environment {
    root: Root,
    clock: ClockKeeper,
    files: PatientReader,
    data_dir_files: PatientReader,
    data_dir: PathBuf,
    problem_ages: ProblemAges,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// System, container, disk, limits.
    pub host: Vec<Check>,
    /// What keeps the clock right.
    pub clock: Vec<Check>,
}

impl Environment {
    /// Looks at nothing yet. The worker's state is, or will be, in `data_dir`, an absolute path that `config.root` does
    /// not stand before.
    pub fn new(config: &DetectorConfig, data_dir: &Path) -> Self {
        Self {
            root: Root::new(&config.root),
            clock: ClockKeeper::new(config.tool_deadline, search_path(config.path.clone())),
            files: PatientReader::new(FILES_DEADLINE),
            data_dir_files: PatientReader::new(FILES_DEADLINE),
            data_dir: data_dir.to_owned(),
            problem_ages: ProblemAges::default(),
        }
    }

    /// Looks, and gives what is wrong in the way of a worker's report, with its age. What only a doctor says is not
    /// among it.
    pub async fn problems(&mut self) -> Vec<Problem> {
        let told = |check: Check| match check.problem {
            Some(CheckProblem { severity, trouble: Trouble::Reason(reason) }) => Some(Finding { severity, reason }),
            _ => None,
        };
        let Surroundings { host, clock } = self.look().await;
        let findings = host.into_iter().chain(clock).filter_map(told).collect();
        self.problem_ages.date(findings, Instant::now())
    }

    /// Every point, once. Never fails as a whole: what cannot be found out is absent. Starts at most one process.
    pub async fn look(&self) -> Surroundings {
        let root = self.root.clone();
        let read = self.files.read(move || (system::look(&root), container::look(&root), clock::files(&root)));
        let Some((system, container, clock_files)) = read.await else { return Surroundings::default() };
        let data_dir = self.data_dir.clone();
        let disk = self.data_dir_files.read(move || disk::look(&data_dir)).await;
        let is_contained = container.engine.is_some();
        let host = vec![
            Check::good(system),
            Check::good(container.seen()),
            disk.unwrap_or_else(|| disk::silent(&self.data_dir)),
            open_files::look(&self.root),
        ];
        Surroundings { host, clock: self.clock.look(clock_files, is_contained).await }
    }
}

/// Whether devices that do not work may be kept from it by a container's seccomp filter.
pub fn blame_filter(checks: &mut [Check]) {
    let is_wrong = |check: &Check| {
        check
            .problem
            .as_ref()
            .is_some_and(|problem| problem.severity == Severity::Error && matches!(problem.trouble, Trouble::Reason(_)))
    };
    let devices_fail = checks.iter().any(|check| matches!(check.seen, Seen::Tool { .. }) && is_wrong(check));
    if !devices_fail {
        return;
    }
    for check in checks {
        if let Seen::Container { engine: Some(_), is_filtered: true, .. } = check.seen {
            *check = Check::bad(check.seen.clone(), Severity::Warning, HostReason::SeccompFilter {});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Reason;

    fn container(is_filtered: bool) -> Check {
        Check::good(Seen::Container { engine: Some("docker".to_owned()), is_privileged: false, is_filtered })
    }

    fn tool(works: bool) -> Check {
        let seen = Seen::Tool { tool: "npu-smi".to_owned(), path: None };
        let failed = Reason::ToolFailed { tool: "npu-smi".to_owned(), exit_code: Some(1), output: String::new() };
        if works { Check::good(seen) } else { Check::bad(seen, Severity::Error, failed) }
    }

    #[test]
    fn a_filter_is_blamed_only_where_the_devices_do_not_work() {
        for (is_filtered, works, is_blamed) in
            [(true, false, true), (true, true, false), (false, false, false), (false, true, false)]
        {
            let mut checks = [container(is_filtered), tool(works)];
            blame_filter(&mut checks);
            let trouble = checks[0].problem.as_ref().map(|problem| problem.trouble.clone());
            let expected = is_blamed.then(|| HostReason::SeccompFilter {}.into());
            assert_eq!(trouble, expected, "{is_filtered} {works}");
        }
    }
}
