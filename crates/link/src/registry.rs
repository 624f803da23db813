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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::{CloseReason, Inner};
    use crate::keys::PublicKey;
    use crate::message::Generation;
    use crate::meter::Traffic;
    use crate::upgrade::Carrier;

    async fn link(id: &str, process: u64, attempt: u64) -> LinkHandle {
        let (near, _far) = tokio::io::duplex(1024);
        let (requests, _connection) = h2::client::handshake(near).await.unwrap();
        LinkHandle::new(Inner {
            id: id.into(),
            worker_key: PublicKey::from_bytes([0; 32]),
            generation: Generation { process, attempt },
            peer: "127.0.0.1:1".parse().unwrap(),
            carrier: Carrier::Stream,
            requests,
            traffic: Traffic::new(),
            closing: Arc::default(),
        })
    }

    #[tokio::test]
    async fn a_later_attempt_or_another_process_takes_over() {
        let registry = Registry::new();
        let links = [link("a", 1, 1).await, link("a", 1, 2).await, link("a", 2, 1).await];
        for link in &links {
            assert!(registry.insert(link));
            assert!(registry.get("a").unwrap().is_same_link(link));
        }
        let ends = links.map(|link| link.close_reason());
        assert_eq!(ends, [Some(CloseReason::Replaced), Some(CloseReason::Replaced), None]);
    }

    #[tokio::test]
    async fn an_earlier_attempt_that_arrives_late_changes_nothing() {
        let registry = Registry::new();
        let (newer, older) = (link("a", 1, 2).await, link("a", 1, 1).await);
        assert!(registry.insert(&newer));
        assert!(!registry.insert(&older));
        assert!(registry.get("a").unwrap().is_same_link(&newer));
        assert_eq!(newer.close_reason(), None);
    }

    #[tokio::test]
    async fn the_end_of_an_older_link_leaves_the_newer_one() {
        let registry = Registry::new();
        let (older, newer) = (link("a", 1, 1).await, link("a", 1, 2).await);
        registry.insert(&older);
        registry.insert(&newer);
        registry.remove(&older);
        assert_eq!(registry.len(), 1);
        registry.remove(&newer);
        assert!(registry.is_empty());
    }

    #[tokio::test]
    async fn names_do_not_touch_each_other_and_none_begins_after_the_end() {
        let registry = Registry::new();
        registry.insert(&link("a", 1, 1).await);
        registry.insert(&link("b", 1, 1).await);
        let mut names: Vec<String> = registry.all().iter().map(|link| link.id().to_owned()).collect();
        names.sort();
        assert_eq!(names, ["a", "b"]);
        registry.drain(Drain { deadline: Duration::ZERO, ..Drain::default() }).await;
        assert!(!registry.insert(&link("c", 1, 1).await));
    }
}
