//! Why a server does not let a worker in, as it is told to the worker.

use bytes::Bytes;
use std::time::Duration;
use thiserror::Error;

/// Why the server refuses. The sentences are for the worker's log: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The worker showed a proof of a token that is not valid.
    #[error("the join token is not the server's; `gpustack token` on the server's host prints the right one")]
    WrongToken,
    /// The server does not know the worker's key, and the worker showed no token.
    #[error("the server does not know this worker; start it with the server's join token (--token)")]
    UnknownKey,
    /// The worker was deleted.
    #[error("this worker was removed from the server; start it with the server's join token to join again as new")]
    Revoked,
    /// The two speak different versions of the protocol.
    #[error("the server speaks versions {min} to {max} of the link, this worker does not; update the older of the two")]
    VersionUnsupported {
        /// The oldest that the server speaks.
        min: u16,
        /// The newest.
        max: u16,
    },
    /// The server takes no more for the moment.
    #[error("the server is busy; trying again in {} s", retry_after.as_secs().max(1))]
    Busy {
        /// When to come back.
        retry_after: Duration,
    },
    /// The worker broke the protocol.
    #[error("the server did not understand this worker; something in between may change what is sent")]
    Malformed,
    /// What uses the link declines, for a reason of its own.
    #[error("the server declines this worker")]
    Declined {
        /// The reason, in that program's own encoding; at most [`Refusal::MAX_DETAIL_BYTES`].
        detail: Bytes,
    },
}

impl Refusal {
    /// The longest detail of [`Refusal::Declined`]; more is cut off.
    pub const MAX_DETAIL_BYTES: usize = 4096;

    /// A word for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::WrongToken => "wrong_token",
            Self::UnknownKey => "unknown_key",
            Self::Revoked => "revoked",
            Self::VersionUnsupported { .. } => "version_unsupported",
            Self::Busy { .. } => "busy",
            Self::Malformed => "malformed",
            Self::Declined { .. } => "declined",
        }
    }
}
