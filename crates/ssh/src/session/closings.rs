//! Which channels the server has closed.
//!
//! The protocol library forgets a channel only when the server closes it first. One that this side closes first stays in
//! its table, some kilobytes of it, as long as the session. So this side waits a little for the server.

use russh::ChannelId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub(crate) struct Closings {
    open: Mutex<HashMap<ChannelId, CancellationToken>>,
}

impl Closings {
    /// Gives what is cancelled when the server closes the channel.
    pub fn watch(&self, channel: ChannelId) -> CancellationToken {
        let closed = CancellationToken::new();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(channel, closed.clone());
        closed
    }

    /// The server has closed the channel, or nobody cares any more.
    pub fn close(&self, channel: ChannelId) {
        if let Some(closed) = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&channel) {
            closed.cancel();
        }
    }
}
