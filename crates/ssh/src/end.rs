//! How a session ended.

use crate::address::HopName;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;

/// Why a session is no more. Everything that went over it ended with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SessionEnd {
    /// This side ended it.
    #[error("it was stopped here")]
    Stopped,
    /// The server did not answer any more.
    #[error(
        "the server gave no sign of life for {} s: the path or the host is down, or a firewall forgot the connection",
        silent_for.as_secs()
    )]
    KeepAliveLost {
        /// Since the last sign.
        silent_for: Duration,
    },
    /// The server said goodbye.
    #[error("the server ended it: {message} ({reason})")]
    Disconnected {
        /// Its reason (RFC 4253, section 11.1).
        reason: DisconnectCode,
        /// Its words.
        message: String,
    },
    /// The server closed the connection without a word: sshd was stopped or killed, or something in between did it.
    #[error("the connection was closed from the other side: sshd ended there, or something in between cut it")]
    Closed,
    /// The connection broke, or what came over it was not understood.
    #[error("the connection broke: {what}")]
    Broken {
        /// What happened.
        what: String,
    },
    /// The session that carried it ended.
    #[error("the session with {hop}, through which it went, ended: {end}")]
    Via {
        /// The bastion.
        hop: HopName,
        /// How that session ended.
        end: Arc<SessionEnd>,
    },
}

/// A reason to disconnect (RFC 4253, section 11.1), by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisconnectCode(pub u32);

impl fmt::Display for DisconnectCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            1 => "host not allowed to connect",
            2 => "protocol error",
            3 => "key exchange failed",
            7 => "service not available",
            8 => "protocol version not supported",
            9 => "host key not verifiable",
            10 => "connection lost",
            11 => "by application",
            12 => "too many connections",
            13 => "authentication cancelled by user",
            14 => "no more authentication methods available",
            15 => "illegal user name",
            _ => return write!(f, "reason {}", self.0),
        };
        f.write_str(name)
    }
}

/// Where the end of a session is written, once.
pub(crate) struct EndSlot {
    end: watch::Sender<Option<SessionEnd>>,
}

impl EndSlot {
    pub fn new() -> Self {
        Self { end: watch::Sender::new(None) }
    }

    /// The first cause counts: what follows it are consequences.
    pub fn set(&self, end: SessionEnd) {
        self.end.send_if_modified(|slot| {
            let first = slot.is_none();
            if first {
                *slot = Some(end);
            }
            first
        });
    }

    pub fn get(&self) -> Option<SessionEnd> {
        self.end.borrow().clone()
    }

    pub fn is_set(&self) -> bool {
        self.end.borrow().is_some()
    }

    /// Waits for it.
    pub async fn wait(&self) -> SessionEnd {
        let mut receiver = self.end.subscribe();
        match receiver.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(SessionEnd::Stopped),
            // cannot be, as the sender is borrowed here
            Err(_) => SessionEnd::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_cause_counts() {
        let slot = EndSlot::new();
        assert!(!slot.is_set());
        slot.set(SessionEnd::KeepAliveLost { silent_for: Duration::from_secs(20) });
        slot.set(SessionEnd::Closed);
        assert_eq!(slot.wait().await, SessionEnd::KeepAliveLost { silent_for: Duration::from_secs(20) });
    }
}
