//! Who takes nothing of what came for them, and so holds up everybody else on a session.
//!
//! The protocol library lets the server send on as soon as something has arrived, whether it was read or not. When the
//! place for what was not read is full, its task waits for that one reader, and the whole session waits with it. A reader
//! that goes on reading, however slowly, only slows the others down. One that has stopped is shown the door, or every
//! connection would end with the session, which hears nothing any more.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The reader at this end of a connection.
pub(crate) struct NearReader {
    started: Instant,
    last_take_ms: AtomicU64,
    /// It was offered something and did not take it.
    waits: AtomicBool,
    shown_the_door: CancellationToken,
}

impl NearReader {
    /// It took what it was offered, or did not.
    pub fn offered(&self, taken: bool) {
        self.waits.store(!taken, Ordering::Relaxed);
        if taken {
            let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.last_take_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    fn idle_for(&self) -> Duration {
        if !self.waits.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let last_take = Duration::from_millis(self.last_take_ms.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(last_take)
    }

    /// Waits for the moment when it holds up the others for too long.
    pub async fn is_shown_the_door(&self) {
        self.shown_the_door.cancelled().await;
    }
}

#[derive(Default)]
pub(crate) struct SlowReaders {
    readers: Mutex<Vec<Weak<NearReader>>>,
}

impl SlowReaders {
    /// Keeps an eye on a reader, until what is returned is dropped.
    pub fn register(&self) -> Arc<NearReader> {
        let reader = Arc::new(NearReader {
            started: Instant::now(),
            last_take_ms: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            shown_the_door: CancellationToken::new(),
        });
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(&reader));
        reader
    }

    /// Ends the connections of those who have taken nothing for this long.
    pub fn show_the_door(&self, idle_for: Duration) {
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        for reader in readers.iter().filter_map(Weak::upgrade).filter(|reader| reader.idle_for() >= idle_for) {
            reader.shown_the_door.cancel();
        }
    }
}
