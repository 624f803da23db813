//! How a worker talks to its server. Everything else in this module knows only [`Transport`].

#[cfg(test)]
pub(super) mod fake;
mod join_error;
mod rest;

pub use join_error::{CertificateClocks, JoinError, Pace};
pub(super) use rest::client_tls;
pub use rest::{RestTransport, TransportError};

use crate::config::{JoinToken, Secret};
use api::{ClockSample, HeartbeatRequest, HeartbeatResponse, RegisterRequest, RegisterResponse, StatusReport};
use async_trait::async_trait;
use std::time::Duration;

/// The three things that a worker says to its server. Every call ends within its deadline.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Begins a session, joining first if the worker must.
    async fn begin_session(&self, request: &RegisterRequest, proof: &Proof) -> Result<RegisterResponse, JoinError>;

    /// Gives a sign of life and measures the clock by the way.
    async fn heartbeat(
        &self,
        request: &HeartbeatRequest,
        credential: &Secret,
        deadline: Duration,
    ) -> Result<HeartbeatAnswer, JoinError>;

    /// Tells what the worker sees of its host.
    async fn report_status(&self, report: &StatusReport, credential: &Secret) -> Result<(), JoinError>;
}

/// What a worker shows to begin a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The secret with which any worker may join.
    JoinToken(JoinToken),
    /// This worker's own.
    Credential(Secret),
}

/// The answer to a heartbeat and when it came and went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// What the server said.
    pub response: HeartbeatResponse,
    /// This host's clock when the request went, in milliseconds since 1970.
    pub sent_ms: i64,
    /// This host's clock when the answer came.
    pub answered_ms: i64,
    /// Between the two, by the monotonic clock.
    pub took: Duration,
}

impl HeartbeatAnswer {
    /// The four times of the exchange.
    pub fn clock_sample(&self) -> ClockSample {
        ClockSample {
            sent_ms: self.sent_ms,
            received_ms: self.response.received_ms,
            returned_ms: self.response.returned_ms,
            answered_ms: self.answered_ms,
        }
    }
}
