//! At which workers the browsers look whose streams are open.

use crate::random;
use crate::server::watching::{WatchGuard, Watching};
use api::WorkerId;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All of them. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Onlookers {
    watching: Watching,
    streams: Arc<Mutex<HashMap<String, Gaze>>>,
}

/// What one looks at. Its browser changes it while its stream reads it.
type Gaze = Arc<Mutex<WatchGuard>>;

impl Onlookers {
    /// Nobody yet; what they look at is told to `watching`.
    pub fn new(watching: Watching) -> Self {
        Self { watching, streams: Arc::default() }
    }

    /// A browser has opened its stream and looks at nothing yet.
    pub fn come(&self) -> io::Result<Onlooker> {
        let stream = random::hex(&random::bytes::<16>()?);
        let gaze = Arc::new(Mutex::new(self.watching.watch([])));
        self.lock().insert(stream.clone(), Arc::clone(&gaze));
        Ok(Onlooker { onlookers: self.clone(), stream, gaze })
    }

    /// The browser with this stream looks at these workers from now on and at no others; false when there is no such
    /// stream any more.
    pub fn look(&self, stream: &str, workers: &[WorkerId]) -> bool {
        let Some(gaze) = self.lock().get(stream).cloned() else { return false };
        // the new one first: who is in both stays watched
        let next = self.watching.watch(workers.iter().copied());
        let before = std::mem::replace(&mut *lock(&gaze), next);
        drop(before);
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Gaze>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(gaze: &Mutex<WatchGuard>) -> MutexGuard<'_, WatchGuard> {
    gaze.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One browser; it looks away when this is dropped.
#[derive(Debug)]
pub struct Onlooker {
    onlookers: Onlookers,
    stream: String,
    gaze: Gaze,
}

impl Onlooker {
    /// The name by which its browser says what it looks at.
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// Whether it looks at this worker now.
    pub fn looks_at(&self, worker: WorkerId) -> bool {
        lock(&self.gaze).has(worker)
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        self.onlookers.lock().remove(&self.stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: WorkerId = WorkerId(1);
    const TWO: WorkerId = WorkerId(2);

    #[test]
    fn a_browser_looks_at_what_it_said_last() {
        let watching = Watching::new();
        let onlookers = Onlookers::new(watching.clone());
        let browser = onlookers.come().unwrap();
        assert!(onlookers.look(browser.stream(), &[ONE]));
        assert!(browser.looks_at(ONE) && watching.is_watched(ONE));
        assert!(onlookers.look(browser.stream(), &[TWO]));
        assert!(!browser.looks_at(ONE) && browser.looks_at(TWO));
        assert!(!watching.is_watched(ONE) && watching.is_watched(TWO));
    }

    #[test]
    fn a_worker_that_stays_in_view_is_watched_all_the_time() {
        use futures_util::FutureExt;

        let watching = Watching::new();
        let onlookers = Onlookers::new(watching.clone());
        let browser = onlookers.come().unwrap();
        onlookers.look(browser.stream(), &[ONE]);
        let mut follower = watching.follow(ONE);
        assert!(follower.is_watched());
        onlookers.look(browser.stream(), &[TWO, ONE]);
        assert!(follower.changed().now_or_never().is_none());
    }

    #[test]
    fn a_browser_that_is_gone_looks_at_nothing() {
        let watching = Watching::new();
        let onlookers = Onlookers::new(watching.clone());
        let browser = onlookers.come().unwrap();
        let stream = browser.stream().to_owned();
        onlookers.look(&stream, &[ONE]);
        drop(browser);
        assert!(!watching.is_watched(ONE) && !onlookers.look(&stream, &[ONE]));
        assert!(onlookers.lock().is_empty());
    }

    #[test]
    fn two_browsers_do_not_share_a_name() {
        let onlookers = Onlookers::new(Watching::new());
        let (one, other) = (onlookers.come().unwrap(), onlookers.come().unwrap());
        assert_ne!(one.stream(), other.stream());
    }
}
