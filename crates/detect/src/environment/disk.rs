//! The directory with the worker's state, and room on its disk.

use api::{Check, HostReason, Reason, Seen, Severity};
use rustix::fs::{Access, access, statvfs};
use std::io;
use std::path::Path;

/// A worker keeps a few small files; with less room than this not even they are safe beside other programs' logs.
const FEW_BYTES: u64 = 100 * 1024 * 1024;

pub(super) fn look(data_dir: &Path) -> Check {
    // before the first start it is not there yet
    let existing = data_dir.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let (available_bytes, total_bytes) = room(existing);
    let seen = Seen::DataDir { path: text(data_dir), available_bytes, total_bytes };
    if let Err(error) = usable(existing) {
        let path = text(existing);
        return Check::bad(seen, Severity::Error, HostReason::DataDirUnusable { path, error: error.to_string() });
    }
    judged(seen)
}

fn judged(seen: Seen) -> Check {
    match &seen {
        Seen::DataDir { path, available_bytes: Some(free_bytes), .. } if *free_bytes < FEW_BYTES => {
            let reason = Reason::DiskFull { path: path.clone(), free_bytes: *free_bytes };
            Check::bad(seen, Severity::Warning, reason)
        }
        _ => Check::good(seen),
    }
}

/// The disk does not answer, as a network disk whose server is gone.
pub(super) fn silent(data_dir: &Path) -> Check {
    let seen = Seen::DataDir { path: text(data_dir), available_bytes: None, total_bytes: None };
    let error = io::Error::from(io::ErrorKind::TimedOut).to_string();
    Check::bad(seen, Severity::Error, HostReason::DataDirUnusable { path: text(data_dir), error })
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn usable(path: &Path) -> io::Result<()> {
    if !path.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
}

/// What this process may still write, and how much there is in all (`statvfs(3)`).
fn room(path: &Path) -> (Option<u64>, Option<u64>) {
    let Ok(disk) = statvfs(path) else { return (None, None) };
    (disk.f_bavail.checked_mul(disk.f_frsize), disk.f_blocks.checked_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Trouble, Verdict};

    #[test]
    fn a_directory_that_is_not_there_yet_is_judged_by_the_one_it_will_be_in() {
        let directory = tempfile::tempdir().unwrap();
        let check = look(&directory.path().join("not/yet"));
        assert_eq!(check.verdict(), Verdict::Ok);
        let Seen::DataDir { available_bytes: Some(_), total_bytes: Some(total), .. } = check.seen else { panic!() };
        assert!(total > 0);
    }

    #[test]
    fn little_room_is_told_and_unknown_room_is_not() {
        let with = |available_bytes| {
            let path = "/var/lib/gpustack".to_owned();
            judged(Seen::DataDir { path, available_bytes, total_bytes: Some(1 << 40) })
        };
        assert_eq!([with(None), with(Some(FEW_BYTES))].map(|check| check.verdict()), [Verdict::Ok; 2]);
        let reason = Reason::DiskFull { path: "/var/lib/gpustack".to_owned(), free_bytes: 7 << 20 };
        assert_eq!(with(Some(7 << 20)).problem.unwrap().trouble, reason.into());
    }

    #[test]
    fn a_file_in_the_way_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let check = look(&file.path().join("state"));
        let problem = check.problem.unwrap();
        let Trouble::Host(HostReason::DataDirUnusable { path, error }) = problem.trouble else { panic!() };
        assert_eq!((path, problem.severity), (text(file.path()), Severity::Error));
        assert!(error.contains("directory"), "{error}");
    }
}
