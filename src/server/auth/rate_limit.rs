//! How often a password may be tried. By monotonic time, in bounded memory.
//!
//! Behind SSH tunnels and proxies many people and programs share one address. So that one of them does not lock the
//! others out, only what could be a guess counts: not sessions, API keys and workers' secrets, which cannot be guessed,
//! and not a password again that was wrong before, as a program sends that nobody told of the new one.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Tries of one user from one address.
const OF_LOGIN: Limit = Limit { burst: 10, one_per: Duration::from_secs(30) };
/// Tries of all users from one address.
const OF_ADDRESS: Limit = Limit { burst: 50, one_per: Duration::from_secs(3) };
/// The same from this host, where tunnels end: what keeps processors free, since guesses of one user are limited above.
const OF_LOOPBACK: Limit = Limit { burst: 200, one_per: Duration::from_millis(200) };
const MAX_KEYS: usize = 10_000;

#[derive(Clone, Copy)]
struct Limit {
    /// So many at once,
    burst: u32,
    /// then one each time.
    one_per: Duration,
}

/// Try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany {
    pub(super) retry_after_s: u64,
}

pub(super) struct RateLimiter {
    buckets: Mutex<AllBuckets>,
}

struct AllBuckets {
    logins: Buckets<(IpAddr, [u8; 32])>,
    addresses: Buckets<IpAddr>,
    loopback: Buckets<IpAddr>,
}

impl AllBuckets {
    fn shared_by(&mut self, address: IpAddr) -> &mut Buckets<IpAddr> {
        if address.is_loopback() { &mut self.loopback } else { &mut self.addresses }
    }
}

impl RateLimiter {
    pub(super) fn new() -> Self {
        let all = AllBuckets {
            logins: Buckets::new(OF_LOGIN),
            addresses: Buckets::new(OF_ADDRESS),
            loopback: Buckets::new(OF_LOOPBACK),
        };
        Self { buckets: Mutex::new(all) }
    }

    /// Whether a try would be refused. For what is answered without checking a password: it must not tell a right guess
    /// from a wrong one when the tries are used up.
    pub(super) fn check(&self, peer: IpAddr, username: &str) -> Result<(), TooMany> {
        self.lock().logins.check(&(network_of(peer), digest(username)), Instant::now())
    }

    /// Counts a try. It counts before the password is checked, so that many at once gain nothing.
    pub(super) fn count_try(&self, peer: IpAddr, username: &str) -> Result<(), TooMany> {
        let now = Instant::now();
        let address = network_of(peer);
        let mut all = self.lock();
        all.shared_by(address).check(&address, now)?;
        all.logins.check(&(address, digest(username)), now)?;
        all.shared_by(address).count(address, now);
        all.logins.count((address, digest(username)), now);
        Ok(())
    }

    /// The password was right: the tries of this user from there count no more.
    pub(super) fn succeeded(&self, peer: IpAddr, username: &str) {
        let address = network_of(peer);
        let mut all = self.lock();
        all.logins.full_at.remove(&(address, digest(username)));
        all.shared_by(address).uncount(&address);
    }

    fn lock(&self) -> MutexGuard<'_, AllBuckets> {
        // every change is complete at each point where it could panic
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Token buckets, each kept as the moment at which it is full again; a full one is not kept.
struct Buckets<K> {
    limit: Limit,
    full_at: HashMap<K, Instant>,
}

impl<K: Copy + Eq + Hash> Buckets<K> {
    fn new(limit: Limit) -> Self {
        Self { limit, full_at: HashMap::new() }
    }

    fn check(&self, key: &K, now: Instant) -> Result<(), TooMany> {
        let Some(full_at) = self.full_at.get(key) else { return Ok(()) };
        let missing = full_at.saturating_duration_since(now);
        let too_much = missing.saturating_sub(self.limit.one_per * (self.limit.burst - 1));
        if too_much.is_zero() {
            return Ok(());
        }
        Err(TooMany { retry_after_s: too_much.as_secs() + 1 })
    }

    fn count(&mut self, key: K, now: Instant) {
        if self.full_at.len() >= MAX_KEYS && !self.full_at.contains_key(&key) {
            self.make_room(now);
        }
        let full_at = self.full_at.entry(key).or_insert(now);
        *full_at = (*full_at).max(now) + self.limit.one_per;
    }

    fn uncount(&mut self, key: &K) {
        if let Some(full_at) = self.full_at.get_mut(key) {
            *full_at = full_at.checked_sub(self.limit.one_per).unwrap_or(*full_at);
        }
    }

    /// Drops the buckets that are full, else the one that is full soonest.
    fn make_room(&mut self, now: Instant) {
        self.full_at.retain(|_, full_at| *full_at > now);
        if self.full_at.len() < MAX_KEYS {
            return;
        }
        let soonest = self.full_at.iter().min_by_key(|(_, full_at)| **full_at).map(|(key, _)| *key);
        if let Some(key) = soonest {
            self.full_at.remove(&key);
        }
    }
}

/// One host has a whole /64 of IPv6 addresses.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// A name can be long; this is not.
fn digest(username: &str) -> [u8; 32] {
    Sha256::digest(username).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn use_up(limiter: &RateLimiter, peer: IpAddr, username: &str) -> u32 {
        (0..1_000).take_while(|_| limiter.count_try(peer, username).is_ok()).count().try_into().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn tries_of_one_user_from_one_address_run_out_and_come_back() {
        let limiter = RateLimiter::new();
        let peer = address("10.0.0.1");
        assert_eq!(use_up(&limiter, peer, "admin"), OF_LOGIN.burst);
        let Err(TooMany { retry_after_s }) = limiter.count_try(peer, "admin") else { panic!("not refused") };
        advance(Duration::from_secs(retry_after_s)).await;
        assert_eq!(use_up(&limiter, peer, "admin"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn another_address_and_another_user_are_not_held_up() {
        let limiter = RateLimiter::new();
        use_up(&limiter, address("10.0.0.1"), "admin");
        assert_eq!(limiter.count_try(address("10.0.0.2"), "admin"), Ok(()));
        assert_eq!(limiter.count_try(address("10.0.0.1"), "other"), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn guessing_user_names_runs_out_too() {
        let limiter = RateLimiter::new();
        let peer = address("10.0.0.1");
        let tried = (0..1_000).take_while(|n| limiter.count_try(peer, &format!("user{n}")).is_ok()).count();
        assert_eq!(u32::try_from(tried).unwrap(), OF_ADDRESS.burst);
    }

    #[tokio::test(start_paused = true)]
    async fn where_tunnels_end_many_users_may_try() {
        let limiter = RateLimiter::new();
        let peer = address("127.0.0.1");
        for number in 0..100 {
            assert_eq!(limiter.count_try(peer, &format!("user{number}")), Ok(()));
        }
        assert_eq!(use_up(&limiter, peer, "admin"), OF_LOGIN.burst);
        assert!(limiter.check(peer, "admin").is_err());
        assert_eq!(limiter.check(peer, "other"), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_password_resets_the_count() {
        let limiter = RateLimiter::new();
        let peer = address("10.0.0.1");
        for _ in 0..OF_LOGIN.burst - 1 {
            limiter.count_try(peer, "admin").unwrap();
        }
        limiter.succeeded(peer, "admin");
        assert_eq!(use_up(&limiter, peer, "admin"), OF_LOGIN.burst);
    }

    #[tokio::test(start_paused = true)]
    async fn the_addresses_of_one_ipv6_network_count_together() {
        let limiter = RateLimiter::new();
        use_up(&limiter, address("2001:db8::1"), "admin");
        assert!(limiter.count_try(address("2001:db8::ffff"), "admin").is_err());
        assert!(limiter.count_try(address("2001:db8:0:1::1"), "admin").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded() {
        let mut buckets = Buckets::new(OF_ADDRESS);
        let now = Instant::now();
        for number in 0..MAX_KEYS + 10 {
            buckets.count(number, now);
        }
        assert!(buckets.full_at.len() <= MAX_KEYS);
    }
}
