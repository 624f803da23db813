//! Which workers somebody is looking at, so that these tell their readings more often than the rest.

use api::WorkerId;
use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Who is looked at, by how many. Cloning it clones a handle.
#[derive(Clone, Debug, Default)]
pub struct Watching(Arc<Mutex<Lookers>>);

/// How many look at a worker; of workers that are looked at, and of those that a [`Follower`] follows.
type Lookers = HashMap<WorkerId, watch::Sender<usize>>;

impl Watching {
    /// Nobody is looked at.
    pub fn new() -> Self {
        Self::default()
    }

    /// Somebody looks at these until the guard is dropped. Ids of workers that do not exist do no harm.
    pub fn watch(&self, workers: impl IntoIterator<Item = WorkerId>) -> WatchGuard {
        let mut workers: Vec<WorkerId> = workers.into_iter().collect();
        workers.sort_unstable();
        workers.dedup();
        let mut lookers = self.lock();
        for worker in &workers {
            count(lookers.entry(*worker).or_default(), |count| count + 1);
        }
        drop(lookers);
        WatchGuard { watching: self.clone(), workers }
    }

    /// Whether anybody looks at this worker now.
    pub fn is_watched(&self, worker: WorkerId) -> bool {
        self.lock().get(&worker).is_some_and(|lookers| *lookers.borrow() > 0)
    }

    /// Tells when people begin and cease to look at this worker.
    pub fn follow(&self, worker: WorkerId) -> Follower {
        let lookers = self.lock().entry(worker).or_default().subscribe();
        Follower { watching: self.clone(), worker, lookers: Some(lookers) }
    }

    /// Forgets a worker at which nobody looks and which nobody follows.
    fn tidy(lookers: &mut Lookers, worker: WorkerId) {
        if lookers.get(&worker).is_some_and(|count| *count.borrow() == 0 && count.receiver_count() == 0) {
            lookers.remove(&worker);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lookers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes followers only when the first comes or the last goes.
fn count(lookers: &watch::Sender<usize>, next: impl FnOnce(usize) -> usize) {
    lookers.send_if_modified(|count| {
        let before = *count;
        *count = next(before);
        (before == 0) != (*count == 0)
    });
}

/// Somebody looks at some workers for as long as it lives.
#[derive(Debug)]
pub struct WatchGuard {
    watching: Watching,
    workers: Vec<WorkerId>,
}

impl WatchGuard {
    /// Whether this worker is among them.
    pub fn has(&self, worker: WorkerId) -> bool {
        self.workers.binary_search(&worker).is_ok()
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        let mut lookers = self.watching.lock();
        for worker in &self.workers {
            if let Some(lookers) = lookers.get(worker) {
                count(lookers, |count| count.saturating_sub(1));
            }
            Watching::tidy(&mut lookers, *worker);
        }
    }
}

/// Sees whether anybody looks at one worker.
#[derive(Debug)]
pub struct Follower {
    watching: Watching,
    worker: WorkerId,
    /// There until it is dropped.
    lookers: Option<watch::Receiver<usize>>,
}

impl Follower {
    /// Whether anybody looks at it now; [`Follower::changed`] then waits for the next change.
    pub fn is_watched(&mut self) -> bool {
        self.lookers.as_mut().is_some_and(|lookers| *lookers.borrow_and_update() > 0)
    }

    /// Waits until that has changed since it was asked last. Nothing is lost when it is cancelled.
    pub async fn changed(&mut self) {
        let changed = match &mut self.lookers {
            Some(lookers) => lookers.changed().await.is_ok(),
            None => false,
        };
        if !changed {
            pending::<()>().await;
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut lookers = self.watching.lock();
        self.lookers = None;
        Watching::tidy(&mut lookers, self.worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const ONE: WorkerId = WorkerId(1);
    const TWO: WorkerId = WorkerId(2);

    #[test]
    fn a_worker_is_watched_until_the_last_one_looks_away() {
        let watching = Watching::new();
        let (first, second) = (watching.watch([ONE]), watching.watch([TWO, ONE, ONE]));
        assert!(watching.is_watched(ONE) && watching.is_watched(TWO));
        drop(first);
        assert!(watching.is_watched(ONE));
        drop(second);
        assert!(!watching.is_watched(ONE) && !watching.is_watched(TWO));
    }

    #[test]
    fn a_guard_knows_its_workers() {
        let guard = Watching::new().watch([TWO]);
        assert!(guard.has(TWO) && !guard.has(ONE));
    }

    #[test]
    fn followers_hear_of_the_first_and_the_last_only() {
        let watching = Watching::new();
        let mut follower = watching.follow(ONE);
        assert!(!follower.is_watched());
        let first = watching.watch([ONE]);
        assert!(follower.changed().now_or_never().is_some() && follower.is_watched());
        let second = watching.watch([ONE]);
        let other = watching.watch([TWO]);
        drop((first, other));
        assert!(follower.changed().now_or_never().is_none());
        drop(second);
        assert!(follower.changed().now_or_never().is_some() && !follower.is_watched());
    }

    #[test]
    fn a_follower_that_comes_late_knows_at_once() {
        let watching = Watching::new();
        let _guard = watching.watch([ONE]);
        assert!(watching.follow(ONE).is_watched());
    }

    #[test]
    fn nothing_is_remembered_of_workers_that_nobody_minds() {
        let watching = Watching::new();
        let (guard, follower) = (watching.watch([ONE, TWO]), watching.follow(ONE));
        drop(guard);
        assert_eq!(watching.lock().len(), 1);
        drop(follower);
        let (guard, follower) = (watching.watch([ONE]), watching.follow(ONE));
        drop(follower);
        drop(guard);
        assert!(watching.lock().is_empty());
    }
}
