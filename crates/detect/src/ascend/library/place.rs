//! Where the driver's library is, and the libraries that it needs.

use super::LIBRARY;
use crate::ascend::installation::Directories;
use crate::files::Root;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where the loader looks by itself.
const LOADERS_DIRECTORIES: [&str; 6] =
    ["/lib64", "/usr/lib64", "/usr/lib", "/usr/lib/aarch64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/local/lib"];

/// The library as it lies on the disk. An upgrade of the driver puts another in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LibraryFile {
    pub path: PathBuf,
    pub inode: u64,
    pub modified: Option<SystemTime>,
}

/// Somebody's choice first, then where the driver's installer puts it.
pub(super) fn find(root: &Root) -> Option<LibraryFile> {
    directories(root).iter().find_map(|directory| look(&root.path(directory).join(LIBRARY)))
}

/// The value for `LD_LIBRARY_PATH`.
pub(super) fn libraries(root: &Root) -> OsString {
    let of_driver: Vec<PathBuf> = Directories::look(root).libraries().iter().map(|path| root.path(path)).collect();
    crate::tool::library_path(&of_driver)
}

fn directories(root: &Root) -> Vec<PathBuf> {
    let chosen = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let chosen = std::env::split_paths(&chosen).filter(|directory| directory.is_absolute());
    chosen.chain(Directories::look(root).libraries()).chain(LOADERS_DIRECTORIES.map(PathBuf::from)).collect()
}

fn look(path: &Path) -> Option<LibraryFile> {
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(LibraryFile { path: path.to_owned(), inode: metadata.ino(), modified: metadata.modified().ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_wherever_drivers_put_it_and_a_directory_is_none() {
        for directory in [
            "usr/local/Ascend/driver/lib64/driver",
            "usr/local/Ascend/driver/lib64",
            "usr/local/dcmi",
            "usr/lib/aarch64-linux-gnu",
        ] {
            let host = tempfile::tempdir().unwrap();
            let root = Root::new(host.path());
            let path = host.path().join(directory).join(LIBRARY);
            assert_eq!(find(&root), None);
            std::fs::create_dir_all(&path).unwrap();
            assert_eq!(find(&root), None);
            std::fs::remove_dir(&path).unwrap();
            std::fs::write(&path, "").unwrap();
            assert_eq!(find(&root).map(|file| file.path), Some(path), "{directory}");
        }
    }

    #[test]
    fn a_file_that_was_replaced_is_another() {
        let host = tempfile::tempdir().unwrap();
        let root = Root::new(host.path());
        let directory = host.path().join("usr/local/dcmi");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(LIBRARY), "").unwrap();
        let before = find(&root);
        std::fs::write(directory.join("new"), "").unwrap();
        std::fs::rename(directory.join("new"), directory.join(LIBRARY)).unwrap();
        assert_ne!(find(&root), before);
    }
}
