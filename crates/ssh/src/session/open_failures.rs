//! The words with which a server refuses to open a channel.
//!
//! They arrive apart from the refusal itself, and without a mark to which of several it belongs. So they are used only
//! where no other channel was being opened at the time.

use russh::ChannelOpenFailure;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time;

/// They arrive right after the refusal.
const WORDS_DEADLINE: Duration = Duration::from_secs(1);

pub(crate) struct OpenFailures {
    pending: AtomicUsize,
    begun: AtomicU64,
    sender: mpsc::UnboundedSender<String>,
    // one entry for each refusal, and whoever is refused takes one
    receiver: Mutex<mpsc::UnboundedReceiver<String>>,
}

impl OpenFailures {
    pub fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { pending: AtomicUsize::new(0), begun: AtomicU64::new(0), sender, receiver: Mutex::new(receiver) }
    }

    /// Somebody opens a channel, until what is returned is dropped.
    pub fn enter(&self) -> Opening<'_> {
        let alone = self.pending.fetch_add(1, Ordering::SeqCst) == 0;
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        Opening { failures: self, alone, number }
    }

    /// The server refused, with these words.
    pub fn server_says(&self, _reason: ChannelOpenFailure, words: &str) {
        let _ = self.sender.send(words.to_owned());
    }
}

pub(crate) struct Opening<'a> {
    failures: &'a OpenFailures,
    alone: bool,
    number: u64,
}

impl Opening<'_> {
    /// What the server said when it refused; to be asked once, after a refusal.
    pub async fn server_said(&self) -> Option<String> {
        let mut receiver = self.failures.receiver.lock().await;
        let words = time::timeout(WORDS_DEADLINE, receiver.recv()).await.ok().flatten()?;
        let still_alone = self.alone && self.failures.begun.load(Ordering::SeqCst) == self.number;
        (still_alone && !words.is_empty()).then_some(words)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.failures.pending.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn words_belong_to_whoever_was_alone() {
        let failures = OpenFailures::new();
        let first = failures.enter();
        failures.server_says(ChannelOpenFailure::ConnectFailed, "Connection refused");
        assert_eq!(first.server_said().await.as_deref(), Some("Connection refused"));
        let second = failures.enter();
        failures.server_says(ChannelOpenFailure::ConnectFailed, "whose?");
        assert_eq!(second.server_said().await, None);
        drop((first, second));
        let third = failures.enter();
        failures.server_says(ChannelOpenFailure::ConnectFailed, "No route to host");
        assert_eq!(third.server_said().await.as_deref(), Some("No route to host"));
    }
}
