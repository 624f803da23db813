//! What was looked up a moment ago, and which passwords were wrong.

use super::UserIdentity;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const MAX_AGE: Duration = Duration::from_mins(1);
const WRONG_MAX_AGE: Duration = Duration::from_mins(10);
/// More programs and browsers than this at once just look up again.
const MAX_ENTRIES: usize = 4096;

/// A hash of a credential, so that the credential itself is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CacheKey([u8; 32]);

pub(super) struct Cache {
    /// Random, so that a hash in memory cannot be looked up in a table of passwords.
    pepper: [u8; 32],
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// Counts clearings: what was read from the database before one must not be put in after it.
    generation: u64,
    users: HashMap<CacheKey, (UserIdentity, Instant)>,
    /// Until when they are remembered.
    wrong: HashMap<CacheKey, Instant>,
}

impl Cache {
    pub(super) fn new(pepper: [u8; 32]) -> Self {
        Self { pepper, entries: Mutex::default() }
    }

    /// The key of a credential of this kind with these parts.
    pub(super) fn key(&self, kind: &str, parts: &[&[u8]]) -> CacheKey {
        let mut hash = Sha256::new_with_prefix(self.pepper);
        for part in [kind.as_bytes()].iter().chain(parts) {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        CacheKey(hash.finalize().into())
    }

    pub(super) fn get(&self, key: &CacheKey) -> Option<UserIdentity> {
        let entries = self.lock();
        let (user, valid_until) = entries.users.get(key)?;
        (Instant::now() < *valid_until).then(|| user.clone())
    }

    /// To be asked before the database is, and given to [`Cache::put`] with what it said.
    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Remembers a user, no longer than the credential lives.
    pub(super) fn put(&self, key: CacheKey, user: UserIdentity, remaining: Option<Duration>, generation: u64) {
        let now = Instant::now();
        let mut entries = self.lock();
        if entries.generation != generation {
            return;
        }
        if entries.users.len() >= MAX_ENTRIES {
            entries.users.retain(|_, (_, valid_until)| now < *valid_until);
        }
        if entries.users.len() >= MAX_ENTRIES {
            entries.users.clear();
        }
        let age = remaining.map_or(MAX_AGE, |remaining| remaining.min(MAX_AGE));
        entries.users.insert(key, (user, now + age));
    }

    /// Whether this was wrong a while ago, and so still is.
    pub(super) fn is_wrong(&self, key: &CacheKey) -> bool {
        self.lock().wrong.get(key).is_some_and(|until| Instant::now() < *until)
    }

    /// Remembers that this is wrong, unless something has changed since `generation`.
    pub(super) fn put_wrong(&self, key: CacheKey, generation: u64) {
        let now = Instant::now();
        let mut entries = self.lock();
        if entries.generation != generation {
            return;
        }
        if entries.wrong.len() >= MAX_ENTRIES {
            entries.wrong.retain(|_, until| now < *until);
        }
        if entries.wrong.len() >= MAX_ENTRIES {
            entries.wrong.clear();
        }
        entries.wrong.insert(key, now + WRONG_MAX_AGE);
    }

    pub(super) fn clear(&self) {
        let mut entries = self.lock();
        entries.generation += 1;
        entries.users.clear();
        entries.wrong.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // every change above is complete at each point where it could panic
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> UserIdentity {
        UserIdentity { id: 1, username: "admin".into(), is_admin: true, require_password_change: false }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_is_remembered_for_a_minute() {
        let cache = Cache::new([7; 32]);
        let key = cache.key("session", &[b"a"]);
        cache.put(key, user(), None, cache.generation());
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(cache.get(&key), Some(user()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(cache.get(&key), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_is_not_remembered_longer_than_the_credential_lives() {
        let cache = Cache::new([7; 32]);
        let key = cache.key("api key", &[b"a"]);
        cache.put(key, user(), Some(Duration::from_secs(5)), cache.generation());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(cache.get(&key), None);
    }

    #[test]
    fn what_was_read_before_a_clearing_is_not_remembered_after_it() {
        let cache = Cache::new([7; 32]);
        let key = cache.key("session", &[b"a"]);
        let generation = cache.generation();
        cache.clear();
        cache.put(key, user(), None, generation);
        assert_eq!(cache.get(&key), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_wrong_is_remembered_until_something_changes() {
        let cache = Cache::new([7; 32]);
        let key = cache.key("password", &[b"a", b"b"]);
        cache.put_wrong(key, cache.generation());
        assert!(cache.is_wrong(&key));
        cache.clear();
        assert!(!cache.is_wrong(&key));
        cache.put_wrong(key, cache.generation());
        tokio::time::advance(WRONG_MAX_AGE).await;
        assert!(!cache.is_wrong(&key));
    }

    #[test]
    fn it_never_grows_beyond_its_bound() {
        let cache = Cache::new([7; 32]);
        for number in 0..=MAX_ENTRIES {
            let key = cache.key("session", &[&number.to_be_bytes()]);
            cache.put(key, user(), None, cache.generation());
            cache.put_wrong(key, cache.generation());
        }
        assert!(cache.lock().users.len() <= MAX_ENTRIES && cache.lock().wrong.len() <= MAX_ENTRIES);
    }

    #[test]
    fn the_border_between_user_and_password_counts() {
        let cache = Cache::new([7; 32]);
        assert!(cache.key("password", &[b"ab", b"c"]) != cache.key("password", &[b"a", b"bc"]));
    }
}
