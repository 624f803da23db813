//! The host's files, under a root that tests put elsewhere.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// Version notes and the like have a few lines.
const TEXT_LIMIT_BYTES: u64 = 64 * 1024;

/// What stands in front of every absolute path; `/` on a real host.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// An absolute path of the host, under the root.
    pub(crate) fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.0.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// A small text file; bytes that are no text are replaced. None when it cannot be read.
    pub(crate) fn read(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(self.path(absolute)).ok()?;
        file.take(TEXT_LIMIT_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Reads files on a thread of its own, since a dead network disk holds up whoever reads it, perhaps for ever. A plain
/// thread does no harm then: neither the runtime nor the end of the process waits for it, and no second one is started
/// beside it.
pub(crate) struct PatientReader {
    deadline: Duration,
    slot: Arc<Semaphore>,
}

impl PatientReader {
    pub(crate) fn new(deadline: Duration) -> Self {
        Self { deadline, slot: Arc::new(Semaphore::new(1)) }
    }

    /// None when it took too long, now or at an earlier time that has not ended.
    pub(crate) async fn read<T, F>(&self, read: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let slot = Arc::clone(&self.slot).try_acquire_owned().ok()?;
        let (answer, answered) = oneshot::channel();
        let thread = move || {
            let value = read();
            drop(slot);
            // Nobody listens when the deadline is over.
            let _ = answer.send(value);
        };
        std::thread::Builder::new().name("read files".to_owned()).spawn(thread).ok()?;
        timeout(self.deadline, answered).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_path_stays_under_the_root() {
        let root = Root::new(Path::new("/tmp/host"));
        assert_eq!(root.path("/dev/null"), Path::new("/tmp/host/dev/null"));
    }

    #[test]
    fn what_is_no_text_is_read_all_the_same_and_a_directory_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path());
        std::fs::write(directory.path().join("note"), b"Version=\xff1").unwrap();
        assert_eq!(root.read("/note").as_deref(), Some("Version=\u{fffd}1"));
        assert_eq!((root.read("/"), root.read("/none")), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn reading_that_hangs_is_given_up_and_not_begun_again_beside_it() {
        let reader = PatientReader::new(Duration::from_secs(5));
        let (release, released) = std::sync::mpsc::channel::<()>();
        assert_eq!(reader.read(move || released.recv()).await, None);
        assert_eq!(reader.read(|| 1).await, None);
        drop(release);
        let slot = reader.slot.acquire().await.unwrap();
        drop(slot);
        // the clock of this test runs ahead of threads
        tokio::time::resume();
        assert_eq!(reader.read(|| 1).await, Some(1));
    }
}
