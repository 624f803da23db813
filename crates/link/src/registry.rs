//! The links that stand, by the name that the gatekeeper gave them.

use crate::control::Goodbye;
use crate::handle::LinkHandle;
use crate::jitter;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The links that stand. Cloning it clones a handle.
#[derive(Clone, Default)]
pub struct Registry {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    links: Mutex<HashMap<Box<str>, LinkHandle>>,
    draining: AtomicBool,
}

/// How the links end when the server stops.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How many workers a second the server can take back when it is up again.
    pub returns_per_second: u32,
    /// How long running requests may take to end.
    pub deadline: Duration,
}

impl Default for Drain {
    fn default() -> Self {
        Self { returns_per_second: 500, deadline: Duration::from_secs(10) }
    }
}

/// How the links did end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Ended by themselves, after what ran was done.
    pub orderly: usize,
    /// Cut off at the deadline.
    pub cut_off: usize,
}

impl Registry {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The link of this name.
    pub fn get(&self, id: &str) -> Option<LinkHandle> {
        self.links().get(id).cloned()
    }

    /// How many links stand.
    pub fn len(&self) -> usize {
        self.links().len()
    }

    /// Whether none stands.
    pub fn is_empty(&self) -> bool {
        self.links().is_empty()
    }

    /// All links as they stand now, in no order.
    pub fn all(&self) -> Vec<LinkHandle> {
        self.links().values().cloned().collect()
    }

    /// Ends all links in good order: workers are told when to come back, spread over the time that
    /// [`Drain::returns_per_second`] takes for all of them, and what runs may end. No new link begins afterwards.
    pub async fn drain(&self, drain: Drain) -> Drained {
        self.shared.draining.store(true, Ordering::SeqCst);
        let links = self.all();
        let count = u32::try_from(links.len()).unwrap_or(u32::MAX);
        let spread = Duration::from_secs(1).max(Duration::from_secs(count.into()) / drain.returns_per_second.max(1));
        let mut ends = JoinSet::new();
        for link in links {
            ends.spawn(end(link, jitter::up_to(spread), drain.deadline));
        }
        let mut drained = Drained::default();
        while let Some(orderly) = ends.join_next().await {
            if orderly.unwrap_or(false) {
                drained.orderly += 1;
            } else {
                drained.cut_off += 1;
            }
        }
        drained
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::SeqCst)
    }

    /// Puts a link in its place and ends the older one there. `false` when it is itself the older one, or when the
    /// server stops.
    pub(crate) fn insert(&self, link: &LinkHandle) -> bool {
        let mut links = self.links();
        if self.is_draining() {
            return false;
        }
        match links.entry(link.id().into()) {
            Entry::Vacant(place) => {
                place.insert(link.clone());
            }
            Entry::Occupied(place) if link.generation().is_older_than(place.get().generation()) => return false,
            Entry::Occupied(mut place) => place.insert(link.clone()).replace(),
        }
        true
    }

    /// Takes this very link out, not a newer one of the same name.
    pub(crate) fn remove(&self, link: &LinkHandle) {
        let mut links = self.links();
        if links.get(link.id()).is_some_and(|current| current.is_same_link(link)) {
            links.remove(link.id());
        }
    }

    fn links(&self) -> MutexGuard<'_, HashMap<Box<str>, LinkHandle>> {
        // nothing panics while it holds the lock, and a map of handles has no half-done states
        self.shared.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("links", &self.len()).finish_non_exhaustive()
    }
}

/// Whether the link ended by itself.
async fn end(link: LinkHandle, retry_after: Duration, deadline: Duration) -> bool {
    link.drain();
    let orderly = async {
        // a worker that cannot be told is gone, or is cut off below
        let _ = link.say(Goodbye::Stopping { retry_after }, deadline).await;
        link.closed().await
    };
    if tokio::time::timeout(deadline, orderly).await.is_ok() {
        return true;
    }
    link.stop();
    false
}
