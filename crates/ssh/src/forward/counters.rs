//! What a forward did.

use crate::error::ChannelError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// What a forward did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardStats {
    /// Bytes from whoever connects to the target.
    pub bytes_to_target: u64,
    /// Bytes from the target to whoever connects.
    pub bytes_from_target: u64,
    /// Connections at the moment.
    pub open_connections: usize,
    /// All that reached the target.
    pub connections_total: u64,
    /// All that did not.
    pub failed_total: u64,
    /// Why the last one did not, or broke.
    pub last_fault: Option<ConnectionFault>,
}

/// Why a connection over a forward did not reach its target, or broke.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectionFault {
    /// There were too many already.
    #[error("there were {max_connections} connections already")]
    TooMany {
        /// How many there may be.
        max_connections: usize,
    },
    /// The server does not get through to the target.
    #[error(transparent)]
    Channel(ChannelError),
    /// This host does not get through to the target.
    #[error("cannot connect to the target: {what}")]
    Target {
        /// What happened.
        what: String,
    },
    /// This host takes no connections at the moment, mostly for want of file descriptors (`ulimit -n`).
    #[error("cannot take connections: {what}")]
    Accept {
        /// What happened.
        what: String,
    },
    /// The forward was stopped before it had ended.
    #[error("the forward was stopped")]
    Stopped,
    /// Its reader at this end took nothing, and all other connections of the session waited for it.
    #[error("its reader stopped reading, and held up all other connections of the session")]
    HeldUpOthers,
    /// It broke in the middle.
    #[error("the connection broke: {what}")]
    Broke {
        /// What happened.
        what: String,
    },
}

#[derive(Default)]
pub(crate) struct Counters {
    to_target: AtomicU64,
    from_target: AtomicU64,
    open: AtomicUsize,
    total: AtomicU64,
    failed: AtomicU64,
    last_fault: Mutex<Option<ConnectionFault>>,
}

impl Counters {
    pub fn stats(&self) -> ForwardStats {
        ForwardStats {
            bytes_to_target: self.to_target.load(Ordering::Relaxed),
            bytes_from_target: self.from_target.load(Ordering::Relaxed),
            open_connections: self.open.load(Ordering::Relaxed),
            connections_total: self.total.load(Ordering::Relaxed),
            failed_total: self.failed.load(Ordering::Relaxed),
            last_fault: self.last_fault.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// A connection reached its target; it is open until what is returned is dropped.
    pub fn opened(self: &Arc<Self>) -> OpenConnection {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// A connection did not reach its target.
    pub fn failed(&self, fault: ConnectionFault) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.note(fault);
    }

    /// Something went wrong that costs no connection, or one that was counted already.
    pub fn note(&self, fault: ConnectionFault) {
        *self.last_fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }
}

pub(crate) struct OpenConnection(Arc<Counters>);

impl OpenConnection {
    pub fn add_to_target(&self, bytes: usize) {
        self.0.to_target.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn add_from_target(&self, bytes: usize) {
        self.0.from_target.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn ended_by(&self, fault: ConnectionFault) {
        self.0.note(fault);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
