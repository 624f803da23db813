//! Who this worker is: a random id and the name that the server gave it, each in a file of the data directory, so that
//! they outlive the process and move with the directory. Its key is there too, see [`super::session`].

use crate::data_dir::{DataDir, DataDirError, InstanceLock, LockName};
use crate::random;
use api::WorkerUuid;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use thiserror::Error;
use uuid::Uuid;

/// GPUStack 0.7 keeps its worker's id in the same file; such an id is kept.
const UUID_FILE: &str = "worker_uuid";
const NAME_FILE: &str = "worker_name";
/// Linux makes it anew on every boot (`random(4)`).
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// Why a worker does not know who it is. It never becomes somebody else instead.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The data directory or a file in it cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The system does not tell which boot this is.
    #[error("cannot read {BOOT_ID_FILE}: {0}; is /proc mounted?")]
    BootId(io::Error),
    /// The id file holds something else.
    #[error(
        "{path} holds no worker id (a UUID); put the right file back, or remove it to join as a new worker under a new id"
    )]
    BadUuid {
        /// The file.
        path: PathBuf,
    },
    /// The name file holds something else.
    #[error("{path} holds no worker name; remove it to let the server choose a name again")]
    BadName {
        /// The file.
        path: PathBuf,
    },
}

/// Who this worker is.
#[derive(Debug)]
pub struct Identity {
    data_dir: DataDir,
    uuid: WorkerUuid,
    host_key: String,
    given: Mutex<Given>,
    /// Two workers in one data directory would be one worker to the server.
    _lock: InstanceLock,
}

/// What the server gave.
#[derive(Debug)]
struct Given {
    name: Option<String>,
}

impl Identity {
    /// Reads the identity in the data directory at `path`, and makes one where there is none.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let data_dir = DataDir::open(path)?;
        let lock = data_dir.lock(LockName::Worker)?;
        let given = Given { name: read_name(&data_dir)? };
        let uuid = read_or_make_uuid(&data_dir)?;
        let boot_id = fs::read_to_string(BOOT_ID_FILE).map_err(IdentityError::BootId)?;
        let metadata = fs::metadata(path).map_err(|source| DataDirError::Folder { path: path.to_owned(), source })?;
        let host_key = host_key(boot_id.trim(), metadata.dev(), metadata.ino());
        Ok(Self { data_dir, uuid, host_key, given: Mutex::new(given), _lock: lock })
    }

    /// Who it is.
    pub fn uuid(&self) -> WorkerUuid {
        self.uuid
    }

    /// See [`api::RegisterRequest::host_key`].
    pub fn host_key(&self) -> &str {
        &self.host_key
    }

    /// The name that the server gave last.
    pub fn name(&self) -> Option<String> {
        self.given().name.clone()
    }

    /// Keeps the name that the server gave. On an error this run still knows it.
    pub fn keep_name(&self, name: &str) -> Result<(), DataDirError> {
        let before = self.given().name.replace(name.to_owned());
        if before.as_deref() == Some(name) {
            return Ok(());
        }
        self.data_dir.write(NAME_FILE, &format!("{name}\n"))
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        // each change is one assignment, so a panic elsewhere leaves nothing half done here
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker of the data directory at `path`, when it has one. Nothing is made there.
pub fn existing_uuid(path: &Path) -> Option<WorkerUuid> {
    let text = DataDir::existing(path).ok()?.read(UUID_FILE).ok()??;
    Uuid::try_parse(text.trim()).ok().filter(|uuid| !uuid.is_nil()).map(WorkerUuid)
}

fn read_or_make_uuid(data_dir: &DataDir) -> Result<WorkerUuid, IdentityError> {
    let Some(text) = data_dir.read(UUID_FILE)? else {
        let uuid = Uuid::new_v4();
        data_dir.write(UUID_FILE, &format!("{uuid}\n"))?;
        return Ok(WorkerUuid(uuid));
    };
    match Uuid::try_parse(text.trim()) {
        Ok(uuid) if !uuid.is_nil() => Ok(WorkerUuid(uuid)),
        _ => Err(IdentityError::BadUuid { path: data_dir.file(UUID_FILE) }),
    }
}

fn read_name(data_dir: &DataDir) -> Result<Option<String>, IdentityError> {
    let Some(text) = data_dir.read(NAME_FILE)? else {
        return Ok(None);
    };
    let name = text.trim();
    if name.is_empty() || name.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
        return Err(IdentityError::BadName { path: data_dir.file(NAME_FILE) });
    }
    Ok(Some(name.to_owned()))
}

fn host_key(boot_id: &str, device: u64, inode: u64) -> String {
    random::hex(&Sha256::digest(format!("{boot_id}\n{device}:{inode}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_first_start_makes_an_identity_and_a_second_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = Identity::load(dir.path()).unwrap();
        first.keep_name("npu-1").unwrap();
        let (uuid, host_key) = (first.uuid(), first.host_key().to_owned());
        drop(first);
        let second = Identity::load(dir.path()).unwrap();
        assert_eq!(second.uuid(), uuid);
        assert_eq!(second.host_key(), host_key);
        assert_eq!(second.name().as_deref(), Some("npu-1"));
    }

    #[test]
    fn its_files_are_for_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let identity = Identity::load(dir.path()).unwrap();
        identity.keep_name("npu-1").unwrap();
        for name in [UUID_FILE, NAME_FILE] {
            let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn the_id_of_a_gpustack_worker_is_kept_with_whatever_space_is_around_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(UUID_FILE), " 5f2b6f0e-3d2e-4d5f-9b0e-0c5f4a6b7c8d\r\n").unwrap();
        let identity = Identity::load(dir.path()).unwrap();
        assert_eq!(identity.uuid().to_string(), "5f2b6f0e-3d2e-4d5f-9b0e-0c5f4a6b7c8d");
    }

    #[test]
    fn a_damaged_file_is_named_and_nothing_is_made_in_its_place() {
        let table: [(&str, &[u8]); 5] = [
            (UUID_FILE, b""),
            (UUID_FILE, b"5f2b6f0e"),
            (UUID_FILE, b"00000000-0000-0000-0000-000000000000"),
            (NAME_FILE, b"\n"),
            (NAME_FILE, b"npu\xff"),
        ];
        for (name, content) in table {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(name);
            fs::write(&path, content).unwrap();
            let error = Identity::load(dir.path()).unwrap_err().to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
            assert_eq!(fs::read(&path).unwrap(), content, "{name} must stay as it was");
        }
    }

    #[test]
    fn a_second_worker_in_one_data_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let first = Identity::load(dir.path()).unwrap();
        let second = Identity::load(dir.path());
        assert!(matches!(second, Err(IdentityError::DataDir(DataDirError::InUse { .. }))));
        drop(first);
        assert!(Identity::load(dir.path()).is_ok());
    }

    #[test]
    fn the_host_key_differs_for_another_boot_device_or_directory() {
        let key = host_key("5b0f", 1, 2);
        assert_eq!(key, host_key("5b0f", 1, 2));
        assert_eq!(key.len(), 64);
        for other in [host_key("5b10", 1, 2), host_key("5b0f", 2, 2), host_key("5b0f", 1, 3), host_key("5b0f", 12, 2)] {
            assert_ne!(key, other);
        }
    }
}
