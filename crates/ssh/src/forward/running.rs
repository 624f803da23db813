//! What all forwards have: connections, a limit on them, and an orderly end.

use crate::forward::counters::{ConnectionFault, Counters};
use crate::forward::{ForwardLimits, ForwardStats};
use crate::session::Session;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How a forward was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// All connections had come to their ends.
    Drained,
    /// Some had not, and were reset.
    Aborted {
        /// How many.
        connections: usize,
    },
}

/// The part of a forward that its tasks use.
#[derive(Clone)]
pub(crate) struct Context {
    pub session: Session,
    pub counters: Arc<Counters>,
    pub limits: ForwardLimits,
    /// No new connections.
    pub stop: CancellationToken,
    /// No connections.
    pub abort: CancellationToken,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Context {
    /// A place for one more connection, if there is one.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        if place.is_none() {
            self.counters.failed(ConnectionFault::TooMany { max_connections: self.limits.max_connections });
        }
        place
    }

    /// Runs a connection, or the task that takes them.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}

/// A forward at work. Dropped, it ends at once.
pub(crate) struct Running {
    context: Context,
}

impl Running {
    pub fn new(session: &Session, limits: ForwardLimits) -> Self {
        let abort = CancellationToken::new();
        let context = Context {
            session: session.clone(),
            counters: Arc::default(),
            places: Arc::new(Semaphore::new(limits.max_connections.min(Semaphore::MAX_PERMITS))),
            limits,
            // what aborts also stops
            stop: abort.child_token(),
            abort,
            tasks: TaskTracker::new(),
        };
        Self { context }
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn stats(&self) -> ForwardStats {
        self.context.counters.stats()
    }

    pub async fn stop(&self, drain_deadline: Duration) -> Stopped {
        let Context { stop, abort, tasks, counters, .. } = &self.context;
        stop.cancel();
        tasks.close();
        if time::timeout(drain_deadline, tasks.wait()).await.is_ok() {
            return Stopped::Drained;
        }
        let connections = counters.stats().open_connections;
        abort.cancel();
        tasks.wait().await;
        Stopped::Aborted { connections }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.context.abort.cancel();
    }
}
