//! Connections that come to a server's port for this side.

use crate::address::Endpoint;
use crate::session::shared::Shared;
use russh::Channel;
use russh::client::{ChannelOpenHandle, Msg};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::mpsc;

/// A connection that the server took. It waits to hear whether this side takes it too; dropped, it is refused.
pub(crate) struct Incoming {
    pub channel: Channel<Msg>,
    pub reply: ChannelOpenHandle,
    /// Who connected there.
    pub originator: Endpoint,
}

/// Who takes which connections.
#[derive(Default)]
pub(crate) struct IncomingRegistry {
    takers: Mutex<Vec<Taker>>,
    numbers: AtomicU64,
}

struct Taker {
    number: u64,
    listen: Endpoint,
    sender: mpsc::Sender<Incoming>,
}

impl IncomingRegistry {
    /// Hands on a connection to `address`. Refuses it where nobody waits for it, or too many wait.
    pub fn deliver(&self, address: &str, port: u32, incoming: Incoming) {
        let sender = self.sender(address, port);
        if let Some(sender) = sender {
            // dropped where there is no room, which refuses it
            let _ = sender.try_send(incoming);
        }
    }

    /// The server names the address as it was asked for it. One that names it otherwise is understood where there is
    /// only one forward of that port.
    fn sender(&self, address: &str, port: u32) -> Option<mpsc::Sender<Incoming>> {
        let takers = self.lock();
        let of_port = || takers.iter().filter(|taker| u32::from(taker.listen.port) == port);
        let exact = of_port().find(|taker| taker.listen.host == address);
        let only = || if of_port().count() == 1 { of_port().next() } else { None };
        exact.or_else(only).map(|taker| taker.sender.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Taker>> {
        self.takers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a forward's place. Dropped, its connections are refused.
pub(crate) struct Registration {
    shared: Weak<Shared>,
    number: u64,
}

impl Registration {
    pub fn new(shared: &Arc<Shared>, listen: &Endpoint, sender: mpsc::Sender<Incoming>) -> Self {
        let registry = &shared.incoming;
        let number = registry.numbers.fetch_add(1, Ordering::Relaxed);
        registry.lock().push(Taker { number, listen: listen.clone(), sender });
        Self { shared: Arc::downgrade(shared), number }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.incoming.lock().retain(|taker| taker.number != self.number);
        }
    }
}
