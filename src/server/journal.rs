//! What happened to workers, until the next batch takes it to the database.

use api::{WorkerEvent, WorkerEventKind, WorkerId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// While the database cannot be written, older events make way beyond this.
const WAITING_MAX: usize = 100_000;

/// Events that wait. Cloning it clones a handle.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<VecDeque<(WorkerId, WorkerEvent)>>>);

impl Journal {
    /// Something happened.
    pub fn note(&self, id: WorkerId, at_ms: i64, change: WorkerEventKind) {
        let mut waiting = self.waiting();
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back((id, WorkerEvent { at_ms, change }));
    }

    /// Takes up to `most` events, oldest first.
    pub fn take(&self, most: usize) -> Vec<(WorkerId, WorkerEvent)> {
        let mut waiting = self.waiting();
        let count = most.min(waiting.len());
        waiting.drain(..count).collect()
    }

    /// Puts events that could not be written back to the front.
    pub fn put_back(&self, events: Vec<(WorkerId, WorkerEvent)>) {
        let mut waiting = self.waiting();
        for event in events.into_iter().rev() {
            waiting.push_front(event);
        }
        let surplus = waiting.len().saturating_sub(WAITING_MAX);
        waiting.drain(..surplus);
    }

    /// A worker's events that wait, newest first.
    pub fn of(&self, id: WorkerId) -> Vec<WorkerEvent> {
        self.waiting().iter().rev().filter(|(worker, _)| *worker == id).map(|(_, event)| event.clone()).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(WorkerId, WorkerEvent)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
