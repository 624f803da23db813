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
    pub fn take(&self, most: usize) -> Taken {
        let mut waiting = self.waiting();
        let count = most.min(waiting.len());
        Taken { journal: self.clone(), events: waiting.drain(..count).collect() }
    }

    /// A worker's events that wait, newest first.
    pub fn of(&self, id: WorkerId) -> Vec<WorkerEvent> {
        self.waiting().iter().rev().filter(|(worker, _)| *worker == id).map(|(_, event)| event.clone()).collect()
    }

    fn put_back(&self, events: Vec<(WorkerId, WorkerEvent)>) {
        let mut waiting = self.waiting();
        for event in events.into_iter().rev() {
            waiting.push_front(event);
        }
        let surplus = waiting.len().saturating_sub(WAITING_MAX);
        waiting.drain(..surplus);
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(WorkerId, WorkerEvent)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events on their way to the database. Until they are there, dropping this puts them back.
#[derive(Debug)]
pub struct Taken {
    journal: Journal,
    events: Vec<(WorkerId, WorkerEvent)>,
}

impl Taken {
    /// Oldest first.
    pub fn events(&self) -> &[(WorkerId, WorkerEvent)] {
        &self.events
    }

    /// They are in the database.
    pub fn settle(mut self) {
        self.events.clear();
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let events = std::mem::take(&mut self.events);
        if !events.is_empty() {
            self.journal.put_back(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal_of(count: i64) -> Journal {
        let journal = Journal::default();
        for at_ms in 0..count {
            journal.note(WorkerId(1), at_ms, WorkerEventKind::Joined {});
        }
        journal
    }

    fn times(journal: &Journal) -> Vec<i64> {
        journal.of(WorkerId(1)).iter().map(|event| event.at_ms).collect()
    }

    #[test]
    fn events_that_were_not_written_come_back_in_their_order() {
        let journal = journal_of(3);
        let taken = journal.take(2);
        assert_eq!((taken.events().len(), times(&journal)), (2, vec![2]));
        drop(taken);
        assert_eq!(times(&journal), [2, 1, 0]);
        journal.take(2).settle();
        assert_eq!(times(&journal), [2]);
    }

    #[test]
    fn beyond_the_limit_older_events_make_way() {
        let most = i64::try_from(WAITING_MAX).unwrap();
        let journal = journal_of(most + 1);
        assert_eq!(journal.take(1).events()[0].1.at_ms, 1);
    }
}
