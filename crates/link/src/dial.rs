//! The worker's side: dial, join, serve, and again when the link ends.

use crate::client_upgrade::{self, UpgradeError};
use crate::handshake::{JoinError, Joined, WorkerSide, WorkerStream};
use crate::jitter;
use crate::keys::{KeyPair, PublicKey};
use crate::message::Generation;
use crate::meter::Traffic;
use crate::refusal::Refusal;
use crate::serve::{self, LinkEnd};
use crate::targets::AllowedTargets;
use crate::token::JoinToken;
use crate::transport::{ServerAddress, Transport};
use crate::tuning::Tuning;
use crate::upgrade::Carrier;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error as ThisError;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

/// The longest first wait after a link ended or an attempt failed.
const FIRST_RETRY: Duration = Duration::from_millis(500);
/// The longest wait of all.
const MAX_RETRY: Duration = Duration::from_secs(30);
/// A link that stood this long was a good one; the waits begin anew after it.
const GOOD_LINK: Duration = Duration::from_mins(1);

/// What a worker needs to dial its server.
#[derive(Clone)]
pub struct DialConfig {
    /// Opens the connection, [`DirectTransport`](crate::DirectTransport) outside of tests.
    pub transport: Arc<dyn Transport>,
    /// Where the server is, for the HTTP on that connection.
    pub address: ServerAddress,
    /// Who this worker is.
    pub keys: KeyPair,
    /// The server's key from the first join; `None` before it.
    pub server_key: Option<PublicKey>,
    /// The join token. Needed where no server key is known, and to join anew after the worker was removed.
    pub token: Option<JoinToken>,
    /// Where the server may connect to through this worker.
    pub targets: AllowedTargets,
    /// Sizes and times.
    pub tuning: Tuning,
}

/// Why there is no link.
#[derive(Debug, ThisError)]
pub enum DialError {
    /// The HTTP part did not work out.
    #[error(transparent)]
    Upgrade(#[from] UpgradeError),
    /// The server did not let this worker in, or is not the right one.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// It took too long.
    #[error("the server did not {step} within {deadline:?}")]
    Deadline {
        /// What it did not do.
        step: Step,
        /// How long it had.
        deadline: Duration,
    },
}

/// A step on the way to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Connection and upgrade.
    Answer,
    /// Encryption and join.
    Join,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "answer the upgrade",
            Self::Join => "complete the handshake",
        })
    }
}

impl DialError {
    /// When the server wants to be asked again, where it says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Upgrade(UpgradeError::Busy { retry_after })
            | Self::Join(JoinError::Refused { refusal: Refusal::Busy { retry_after }, .. }) => Some(*retry_after),
            _ => None,
        }
    }
}

/// A server that let this worker in.
#[derive(Clone, Debug)]
pub struct Welcome {
    /// Its key, for later links. To be stored before the join token is thrown away.
    pub server_key: PublicKey,
    /// Its answer to the join request.
    pub answer: Bytes,
    /// What carries the link.
    pub carrier: Carrier,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// After the wait.
    Retry,
    /// Not at all.
    GiveUp,
}

/// What uses the links of a worker. Must not block.
pub trait LinkUser: Send + Sync {
    /// What the worker says when it asks to be let in; at most [`MAX_PAYLOAD_BYTES`](crate::MAX_PAYLOAD_BYTES).
    fn join_request(&self) -> Bytes;
    /// The link stands.
    fn joined(&self, welcome: &Welcome);
    /// The link is no more; the next attempt is in `retry_in`.
    fn ended(&self, end: &LinkEnd, retry_in: Duration) -> Next;
    /// No link came about; the next attempt is in `retry_in`.
    fn failed(&self, error: &DialError, retry_in: Duration) -> Next;
}

/// Dials one link after the other.
pub struct Dialer {
    config: DialConfig,
    targets: Arc<AllowedTargets>,
    generation: Generation,
    /// What got through last time.
    carrier: Carrier,
}

impl Dialer {
    /// Nothing is dialled yet.
    pub fn new(config: DialConfig) -> Self {
        let targets = Arc::new(config.targets.clone());
        let generation = Generation { process: jitter::process_number(), attempt: 0 };
        Self { config, targets, generation, carrier: Carrier::Stream }
    }

    /// Makes one attempt. Dropping the future ends it.
    pub async fn dial(&mut self, join_request: Bytes) -> Result<Link, DialError> {
        let (stream, traffic, welcome) = self.join(join_request).await?;
        // from now on nobody else is taken for the server
        self.config.server_key = Some(welcome.server_key);
        let (targets, tuning) = (Arc::clone(&self.targets), self.config.tuning.clone());
        Ok(Link { stream, traffic, targets, tuning, welcome })
    }

    /// Asks the server something, as one that may join, and wants no link for it. The connection ends with the answer.
    pub async fn ask(&mut self, question: Bytes) -> Result<Welcome, DialError> {
        let (_, _, welcome) = self.join(question).await?;
        Ok(welcome)
    }

    async fn join(&mut self, request: Bytes) -> Result<(WorkerStream, Arc<Traffic>, Welcome), DialError> {
        self.generation.attempt += 1;
        let DialConfig { transport, address, tuning, .. } = &self.config;
        let deadline = tuning.handshake_deadline;
        // each of the two ways may take the whole time
        let upgraded = time::timeout(2 * deadline, client_upgrade::upgrade(&**transport, address, self.carrier)).await;
        let late = |step| move |_| DialError::Deadline { step, deadline };
        let (io, carrier) = upgraded.map_err(late(Step::Answer))??;
        let traffic = Traffic::new();
        let joined = time::timeout(deadline, self.worker_side(request).join(io, &traffic)).await;
        let Joined { stream, server_key, answer } = joined.map_err(late(Step::Join))??;
        self.carrier = carrier;
        Ok((stream, traffic, Welcome { server_key, answer, carrier }))
    }

    /// Keeps a link until `shutdown`, or until `user` gives up: dials, serves, waits, and dials again. Waits are random
    /// up to half a second at first and up to 30 s in the end, or what the server asked for.
    pub async fn run<S, B>(mut self, user: &dyn LinkUser, service: S, shutdown: CancellationToken)
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let mut backoff = Backoff::default();
        loop {
            let dialled = tokio::select! {
                () = shutdown.cancelled() => return,
                // boxed, so that a link that stands does not carry the memory of its beginning
                dialled = Box::pin(self.dial(user.join_request())) => dialled,
            };
            let (next, wait) = match dialled {
                Ok(link) => {
                    user.joined(link.welcome());
                    let since = Instant::now();
                    let end = Box::pin(link.serve(service.clone(), shutdown.clone())).await;
                    if since.elapsed() >= GOOD_LINK {
                        backoff = Backoff::default();
                    }
                    let wait = match end {
                        LinkEnd::Shutdown => return,
                        LinkEnd::ServerStopping(retry_after) => retry_after,
                        _ => backoff.next(),
                    };
                    (user.ended(&end, wait), wait)
                }
                Err(error) => {
                    let wait = error.retry_after().unwrap_or_default() + backoff.next();
                    (user.failed(&error, wait), wait)
                }
            };
            if next == Next::GiveUp {
                return;
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = time::sleep(wait) => {}
            }
        }
    }

    fn worker_side(&self, join_request: Bytes) -> WorkerSide<'_> {
        WorkerSide {
            keys: &self.config.keys,
            server_key: self.config.server_key,
            token: self.config.token.as_ref(),
            generation: self.generation,
            join_request,
            key_rotation: self.config.tuning.key_rotation,
        }
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("address", &self.config.address)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

/// A link that the worker has not begun to serve. The server may ask already; the requests wait.
pub struct Link {
    stream: WorkerStream,
    traffic: Arc<Traffic>,
    targets: Arc<AllowedTargets>,
    tuning: Tuning,
    welcome: Welcome,
}

impl Link {
    /// What the server said.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Answers the server's requests with `service`, such as an axum `Router`, until the link ends.
    ///
    /// When `shutdown` comes, no new request is taken, and those that run may end.
    pub async fn serve<S, B>(self, service: S, shutdown: CancellationToken) -> LinkEnd
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        serve::serve(self.stream, self.traffic, service, self.targets, &self.tuning, shutdown).await
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("welcome", &self.welcome).finish_non_exhaustive()
    }
}

/// Waits that grow, with full jitter: each is random between nothing and a limit that doubles.
#[derive(Default)]
struct Backoff {
    failures: u32,
}

impl Backoff {
    fn next(&mut self) -> Duration {
        let most = FIRST_RETRY.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(MAX_RETRY);
        self.failures = self.failures.saturating_add(1);
        jitter::up_to(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_stay_below_limits_that_double_up_to_half_a_minute() {
        let limits_ms = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
        for _ in 0..50 {
            let mut backoff = Backoff::default();
            for limit_ms in limits_ms {
                assert!(backoff.next() < Duration::from_millis(limit_ms));
            }
        }
        let mut backoff = Backoff { failures: u32::MAX };
        assert!(backoff.next() < MAX_RETRY);
    }
}
