//! All workers, in memory: what was decided about them, what was observed of them, and what that amounts to.
//!
//! Locks are std's. They are held for moments, never across an await (a lint sees to it), and there is little to wait
//! for: the index is locked for writing only when a worker comes, goes or is renamed, and each worker's facts have a
//! lock of their own. Who needs both takes the index first.

pub mod assess;
pub mod devices;
pub mod facts;
pub mod message;
pub mod time;
pub mod view;

use crate::server::store::workers::{StoredWorker, WorkerRow};
use api::{WorkerId, WorkerState, WorkerUuid};
use assess::Policy;
use facts::Facts;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use time::{Moment, Monotonic, ServerClock};

/// All workers. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Registry(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: ServerClock,
    policy: Policy,
    index: RwLock<Index>,
    /// Who was removed since the last announcement.
    removed: Mutex<Vec<Arc<Worker>>>,
}

#[derive(Debug, Default)]
struct Index {
    workers: BTreeMap<WorkerId, Arc<Worker>>,
    uuids: HashMap<WorkerUuid, WorkerId>,
    names: HashMap<String, WorkerId>,
    /// Of how many workers each is: a data directory may have been copied, all but the identity.
    link_keys: HashMap<link::PublicKey, usize>,
}

/// One worker.
#[derive(Debug)]
pub struct Worker {
    id: WorkerId,
    facts: Mutex<Facts>,
    /// When its next direct probe is due.
    pub(crate) probe: ProbeSlot,
    /// When the next health check over its link is due.
    pub(crate) link_probe: ProbeSlot,
    announced: Mutex<Announced>,
}

/// When a worker is probed next.
#[derive(Debug, Default)]
pub struct ProbeSlot {
    due_ms: AtomicI64,
    running: AtomicBool,
}

/// What was told of a worker last, to tell the next time only what changed. Nobody reads a state from here.
#[derive(Clone, Debug, Default)]
pub struct Announced {
    /// Its state; None until the first look after the server's start.
    pub state: Option<WorkerState>,
    /// Whether another host used its identity or asked for its place.
    pub identity_troubled: bool,
    /// Whether its heartbeat was excused by a grace period.
    pub excused: bool,
    /// How the way over its link was; None when there was no such way.
    pub link: Option<api::ConditionStatus>,
    /// The conditions that were wrong.
    pub troubles: Vec<api::Condition>,
}

impl Registry {
    /// Of the workers that the database knows.
    pub fn new(clock: ServerClock, policy: Policy, stored: Vec<StoredWorker>) -> Self {
        let now = clock.now();
        let mut index = Index::default();
        for worker in stored {
            let worker = Worker::of(Facts::stored(worker, now));
            // a server that starts must not probe everybody in its first second
            worker.probe.set_due(crate::server::probe::next_due(worker.id, now));
            index.insert(worker);
        }
        Self(Arc::new(Shared { clock, policy, index: RwLock::new(index), removed: Mutex::default() }))
    }

    /// The time for one look at the fleet.
    pub fn moment(&self) -> Moment {
        self.0.clock.moment()
    }

    /// The server's clocks.
    pub fn clock(&self) -> &ServerClock {
        &self.0.clock
    }

    /// What workers are judged by.
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// By row.
    pub fn get(&self, id: WorkerId) -> Option<Arc<Worker>> {
        self.read().workers.get(&id).cloned()
    }

    /// By identity.
    pub fn by_uuid(&self, uuid: WorkerUuid) -> Option<Arc<Worker>> {
        let index = self.read();
        index.workers.get(index.uuids.get(&uuid)?).cloned()
    }

    /// By name.
    pub fn by_name(&self, name: &str) -> Option<Arc<Worker>> {
        let index = self.read();
        index.workers.get(index.names.get(name)?).cloned()
    }

    /// Whether a worker has this key.
    pub fn knows_link_key(&self, key: &link::PublicKey) -> bool {
        self.read().link_keys.contains_key(key)
    }

    /// All, newest first.
    pub fn all(&self) -> Vec<Arc<Worker>> {
        self.read().workers.values().rev().cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.read().workers.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A worker has joined and its row is in the database.
    pub(crate) fn insert(&self, facts: Facts) -> Arc<Worker> {
        let worker = Worker::of(facts);
        // who has just been heard is taken for ready until the first look: what that finds wrong is news
        worker.announced().state = Some(WorkerState::Ready);
        self.write().insert(Arc::clone(&worker));
        worker
    }

    /// A row was decided anew and is in the database; `and` then changes the facts in the same moment.
    pub(crate) fn decide(&self, row: WorkerRow, and: impl FnOnce(&mut Facts)) -> Option<Arc<Worker>> {
        let mut index = self.write();
        let worker = Arc::clone(index.workers.get(&row.id)?);
        let mut facts = worker.facts();
        index.forget_keys(&facts.row);
        index.learn_keys(&row);
        let moved = facts.row.ip != row.ip || facts.row.port != row.port;
        facts.decide(row);
        and(&mut facts);
        drop(facts);
        if moved {
            worker.probe.probe_now();
        }
        Some(worker)
    }

    /// A worker was deleted and its row is gone from the database.
    pub(crate) fn remove(&self, id: WorkerId) -> Option<Arc<Worker>> {
        let worker = {
            let mut index = self.write();
            let worker = index.workers.remove(&id)?;
            index.forget_keys(&worker.facts().row);
            worker
        };
        self.0.removed.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&worker));
        Some(worker)
    }

    /// Who was removed since the last call.
    pub(crate) fn take_removed(&self) -> Vec<Arc<Worker>> {
        std::mem::take(&mut *self.0.removed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.0.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.0.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn insert(&mut self, worker: Arc<Worker>) {
        self.learn_keys(&worker.facts().row);
        self.workers.insert(worker.id, worker);
    }

    fn learn_keys(&mut self, row: &WorkerRow) {
        self.uuids.insert(row.uuid, row.id);
        self.names.insert(row.name.clone(), row.id);
        if let Some(key) = row.link_key {
            *self.link_keys.entry(key).or_default() += 1;
        }
    }

    fn forget_keys(&mut self, row: &WorkerRow) {
        self.uuids.remove(&row.uuid);
        self.names.remove(&row.name);
        if let Some(key) = row.link_key
            && let Entry::Occupied(mut count) = self.link_keys.entry(key)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Worker {
    /// Of what is known of it.
    pub(crate) fn of(facts: Facts) -> Arc<Self> {
        Arc::new(Self {
            id: facts.row.id,
            facts: Mutex::new(facts),
            probe: ProbeSlot::default(),
            link_probe: ProbeSlot::default(),
            announced: Mutex::default(),
        })
    }

    /// Its row.
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// What is known of it. A panic of another holder cannot leave facts half changed in a way that matters: each
    /// fact is replaced as a whole.
    pub fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was told of it last; for the announcer alone.
    pub(crate) fn announced(&self) -> MutexGuard<'_, Announced> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProbeSlot {
    /// Under way: due only when somebody asks meanwhile.
    const CLAIMED: i64 = i64::MAX;

    /// The next probe is due then.
    pub fn set_due(&self, due: Monotonic) {
        self.due_ms.store(due.ms(), Ordering::Release);
    }

    /// The address is new or changed: what was known of it is void.
    pub fn probe_now(&self) {
        self.due_ms.store(i64::MIN, Ordering::Release);
    }

    /// When it is due, as far as it is known.
    pub fn due(&self) -> Monotonic {
        Monotonic::from_ms(self.due_ms.load(Ordering::Acquire))
    }

    /// Whether a probe is due and none is under way.
    pub fn is_due(&self, now: Monotonic) -> bool {
        self.due_ms.load(Ordering::Acquire) <= now.ms() && !self.running.load(Ordering::Acquire)
    }

    /// Whether the caller may probe now: nobody else does.
    pub fn begin(&self) -> bool {
        if self.running.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.due_ms.store(Self::CLAIMED, Ordering::Release);
        true
    }

    /// The probe is over; the next is due then, or at once when [`Self::probe_now`] was called meanwhile.
    pub fn end(&self, next: Monotonic) {
        let _ = self.due_ms.compare_exchange(Self::CLAIMED, next.ms(), Ordering::AcqRel, Ordering::Relaxed);
        self.running.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::facts::tests::{at, facts};
    use super::*;
    use std::time::Duration;

    pub(crate) fn registry() -> Registry {
        let offline_timeout = Duration::from_mins(1);
        Registry::new(ServerClock::start(offline_timeout), Policy { offline_timeout }, Vec::new())
    }

    #[test]
    fn a_worker_is_found_by_its_new_keys_and_no_longer_by_its_old_ones() {
        let registry = registry();
        registry.insert(facts());
        let old = facts().row;
        let new = WorkerRow { name: "b".into(), ..old.clone() };
        registry.decide(new, |_| ());
        assert!(registry.by_name("a").is_none() && registry.by_name("b").is_some());
        registry.remove(old.id);
        assert!(registry.by_name("b").is_none() && registry.by_uuid(old.uuid).is_none());
        assert_eq!(registry.take_removed().len(), 1);
    }

    #[test]
    fn a_link_key_is_known_for_as_long_as_a_worker_has_it() {
        let (registry, key) = (registry(), link::PublicKey::from_bytes([7; 32]));
        let with = |id, link_key| {
            let row = facts().row;
            let uuid = WorkerUuid(uuid::Uuid::from_u128(id));
            let id = WorkerId(i64::try_from(id).unwrap());
            WorkerRow { id, uuid, name: format!("w{}", id.0), link_key, ..row }
        };
        let known = [with(1, Some(key)), with(2, Some(key))];
        for row in &known {
            registry.insert(Facts::new(row.clone(), at(0)));
        }
        registry.decide(with(1, None), |_| ());
        assert!(registry.knows_link_key(&key));
        registry.remove(WorkerId(2));
        assert!(!registry.knows_link_key(&key));
    }

    #[test]
    fn an_address_that_changes_during_a_probe_is_probed_again_at_once() {
        let slot = ProbeSlot::default();
        assert!(slot.is_due(at(10)) && slot.begin());
        assert!(!slot.is_due(at(10)) && !slot.begin());
        slot.probe_now();
        assert!(!slot.is_due(at(10)), "one at a time");
        slot.end(at(25));
        assert!(slot.is_due(at(10)));
    }

    #[test]
    fn a_probe_that_is_over_is_due_again_after_its_interval() {
        let slot = ProbeSlot::default();
        assert!(slot.begin());
        slot.end(at(25));
        assert!(!slot.is_due(at(24)) && slot.is_due(at(25)));
    }
}
