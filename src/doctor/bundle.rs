//! A diagnostics bundle: everything that the doctor saw, and what the vendors' tools printed, in one file to hand on.
//! Neither tokens nor passwords nor keys are in it.

use super::Findings;
use detect::Printed;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tar::{Builder, Header};
use thiserror::Error;

/// Lists of the kernel that tell what is wrong with a driver; none holds a secret.
const KERNEL_FILES: [&str; 8] = [
    "/etc/os-release",
    "/proc/version",
    "/proc/modules",
    "/proc/mounts",
    "/proc/self/status",
    "/proc/self/limits",
    "/proc/self/cgroup",
    "/proc/driver/nvidia/version",
];
/// None of them comes near it.
const FILE_LIMIT_BYTES: usize = 1024 * 1024;

/// Why there is no bundle.
#[derive(Debug, Error)]
pub enum BundleError {
    /// The file is there already.
    #[error("{path} is there already; remove it or give --bundle another name")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("cannot write the bundle {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Writes the bundle, for its owner alone. `report` is what a person would read. A file that could not be written whole
/// is removed.
pub fn write(path: &Path, findings: &Findings, report: &str) -> Result<(), BundleError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = opened.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => BundleError::Exists { path: path.to_owned() },
        _ => BundleError::Write { path: path.to_owned(), source },
    })?;
    fill(file, findings, report).map_err(|source| {
        // what is told is why it could not be written
        let _ = std::fs::remove_file(path);
        BundleError::Write { path: path.to_owned(), source }
    })
}

fn fill(file: File, findings: &Findings, report: &str) -> io::Result<()> {
    let mut archive =
        Archive { tar: Builder::new(GzEncoder::new(file, Compression::default())), at_ms: findings.examination.at_ms };
    archive.add("report.txt", report.as_bytes())?;
    archive.add("examination.json", &json(&findings.examination)?)?;
    archive.add("devices.json", &json(&findings.inventory.devices)?)?;
    archive.add("problems.json", &json(&findings.inventory.problems)?)?;
    for (number, printed) in findings.printed.iter().enumerate() {
        archive.add(&format!("tools/{number:02}-{}.txt", printed.tool), told(printed).as_bytes())?;
    }
    for name in KERNEL_FILES {
        if let Ok(mut content) = std::fs::read(name) {
            content.truncate(FILE_LIMIT_BYTES);
            archive.add(&format!("host{name}"), &content)?;
        }
    }
    archive.tar.into_inner()?.finish()?.sync_all()
}

struct Archive {
    tar: Builder<GzEncoder<File>>,
    at_ms: i64,
}

impl Archive {
    fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(u64::try_from(self.at_ms / 1000).unwrap_or(0));
        self.tar.append_data(&mut header, format!("gpustack-doctor/{name}"), content)
    }
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    serde_json::to_vec_pretty(value).map_err(io::Error::other)
}

fn told(printed: &Printed) -> String {
    let Printed { tool, question, exit_code, output } = printed;
    let status = exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    format!("$ {tool} {question}\n# exit status: {status}\n{output}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Examination;
    use detect::Inventory;
    use flate2::read::GzDecoder;
    use std::collections::BTreeMap;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    fn findings() -> Findings {
        let printed = Printed {
            tool: "npu-smi".to_owned(),
            question: "info".to_owned(),
            exit_code: Some(1),
            output: "dcmi module initialize failed".to_owned(),
        };
        Findings {
            examination: Examination {
                version: "0.1.0".to_owned(),
                hostname: "npu-1".to_owned(),
                os: String::new(),
                at_ms: 1_764_504_093_000,
                checks: Vec::new(),
            },
            inventory: Inventory::default(),
            printed: vec![printed],
        }
    }

    fn content(path: &Path) -> BTreeMap<String, String> {
        let mut archive = tar::Archive::new(GzDecoder::new(File::open(path).unwrap()));
        let files = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        });
        files.collect()
    }

    #[test]
    fn a_bundle_has_the_report_and_what_the_tools_printed_and_is_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bundle.tar.gz");
        write(&path, &findings(), "all of it").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let files = content(&path);
        assert_eq!(files["gpustack-doctor/report.txt"], "all of it");
        let tool = &files["gpustack-doctor/tools/00-npu-smi.txt"];
        assert_eq!(tool, "$ npu-smi info\n# exit status: 1\ndcmi module initialize failed\n");
        assert!(files["gpustack-doctor/host/proc/version"].starts_with("Linux"));
    }

    #[test]
    fn a_file_that_is_there_stays_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = write(file.path(), &findings(), "").unwrap_err();
        assert!(matches!(error, BundleError::Exists { .. }), "{error}");
        assert_eq!(file.path().metadata().unwrap().len(), 0);
    }
}
