//! How many files the process may have open.

use crate::files::Root;
use api::{Check, HostReason, Seen, Severity};

/// What a login shell has had for decades, and more than a worker needs.
const ENOUGH: u64 = 1024;
/// The line in `/proc/self/limits` (`proc_pid_limits(5)`); behind it the soft limit, and the hard one, up to which every
/// process may raise the first, as workers and servers do when they start.
const LINE: &str = "Max open files";

pub(super) fn look(root: &Root) -> Check {
    let limits = root.read("/proc/self/limits").unwrap_or_default();
    let limit = hard_limit(&limits);
    let seen = Seen::OpenFiles { limit };
    match limit {
        Some(limit) if limit < ENOUGH => Check::bad(seen, Severity::Warning, HostReason::OpenFilesFew { limit }),
        _ => Check::good(seen),
    }
}

fn hard_limit(limits: &str) -> Option<u64> {
    let figures = limits.lines().find_map(|line| line.strip_prefix(LINE))?;
    figures.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max open files            256                  512                  files
";

    #[test]
    fn the_limit_that_can_be_had_counts() {
        assert_eq!(hard_limit(LIMITS), Some(512));
        assert_eq!(hard_limit(&LIMITS.replace("512 ", "unlimited ")), None);
        assert_eq!(hard_limit(""), None);
    }

    #[test]
    fn few_are_told() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("proc/self")).unwrap();
        let root = Root::new(directory.path());
        assert!(look(&root).problem.is_none());
        std::fs::write(directory.path().join("proc/self/limits"), LIMITS).unwrap();
        let problem = look(&root).problem.unwrap();
        assert_eq!(problem.trouble, HostReason::OpenFilesFew { limit: 512 }.into());
    }
}
