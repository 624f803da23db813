//! A server that answers as a test says, without a network.

use super::{HeartbeatAnswer, JoinError, Proof, Transport};
use crate::config::Secret;
use api::{
    HeartbeatRequest, HeartbeatResponse, RegisterRequest, RegisterResponse, StatusReport, WorkerId, WorkerStatus,
};
use async_trait::async_trait;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// One call and when it came.
#[derive(Clone, Debug)]
pub struct Call {
    pub at: Duration,
    pub said: Said,
}

#[derive(Clone, Debug)]
pub enum Said {
    Begin { request: RegisterRequest, proof: Proof },
    Beat { request: HeartbeatRequest, credential: String },
    Report(Box<WorkerStatus>),
}

/// What the server does with a call.
pub enum Reply<T> {
    Answer(T),
    Fail(JoinError),
    Panic,
    Hang,
}

type OnBegin = dyn Fn(usize, &Proof) -> Reply<Option<&'static str>> + Send + Sync;
type OnBeat = dyn Fn(usize) -> Reply<bool> + Send + Sync;
type OnReport = dyn Fn(usize) -> Reply<()> + Send + Sync;

/// Each function gets the number of the call of its kind, from 0.
pub struct FakeTransport {
    start: Instant,
    calls: watch::Sender<Vec<Call>>,
    /// Gives the credential to answer with.
    pub on_begin: Box<OnBegin>,
    /// Gives whether a status is wanted.
    pub on_beat: Box<OnBeat>,
    pub on_report: Box<OnReport>,
}

impl Default for FakeTransport {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            calls: watch::Sender::default(),
            on_begin: Box::new(|_, _| Reply::Answer(Some("credential"))),
            on_beat: Box::new(|_| Reply::Answer(false)),
            on_report: Box::new(|_| Reply::Answer(())),
        }
    }
}

impl FakeTransport {
    /// How far the worker's clock is ahead of the server's, and the time on the wire, there and back.
    pub const OFFSET_MS: i64 = 187_000;
    pub const ROUND_TRIP_MS: i64 = 20;

    /// All calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.borrow().clone()
    }

    /// Waits until the calls are as wished, and gives them.
    pub async fn until(&self, is_wished: impl Fn(&[Call]) -> bool) -> Vec<Call> {
        let mut seen = self.calls.subscribe();
        let calls = seen.wait_for(|calls| is_wished(calls)).await.unwrap();
        calls.clone()
    }

    fn note(&self, said: Said) -> usize {
        let kind = std::mem::discriminant(&said);
        let number = self.calls.borrow().iter().filter(|call| std::mem::discriminant(&call.said) == kind).count();
        self.calls.send_modify(|calls| calls.push(Call { at: self.start.elapsed(), said }));
        number
    }
}

async fn perform<T>(reply: Reply<T>) -> Result<T, JoinError> {
    match reply {
        Reply::Answer(answer) => Ok(answer),
        Reply::Fail(error) => Err(error),
        Reply::Panic => panic!("as the test wishes"),
        Reply::Hang => std::future::pending().await,
    }
}

#[async_trait]
impl Transport for FakeTransport {
    async fn begin_session(&self, request: &RegisterRequest, proof: &Proof) -> Result<RegisterResponse, JoinError> {
        let number = self.note(Said::Begin { request: request.clone(), proof: proof.clone() });
        let credential = perform((self.on_begin)(number, proof)).await?;
        Ok(RegisterResponse {
            worker_id: WorkerId(1),
            name: request.name.clone().unwrap_or_else(|| "given-name".to_owned()),
            credential: credential.map(str::to_owned),
            heartbeat_interval_s: 10,
            server_version: "0".to_owned(),
        })
    }

    async fn heartbeat(
        &self,
        request: &HeartbeatRequest,
        credential: &Secret,
        _deadline: Duration,
    ) -> Result<HeartbeatAnswer, JoinError> {
        let number = self.note(Said::Beat { request: request.clone(), credential: credential.expose().to_owned() });
        let status_wanted = perform((self.on_beat)(number)).await?;
        let server_ms = i64::try_from(self.start.elapsed().as_millis()).unwrap();
        Ok(HeartbeatAnswer {
            response: HeartbeatResponse { received_ms: server_ms, returned_ms: server_ms, status_wanted },
            sent_ms: server_ms + Self::OFFSET_MS - Self::ROUND_TRIP_MS / 2,
            answered_ms: server_ms + Self::OFFSET_MS + Self::ROUND_TRIP_MS / 2,
            took: Duration::from_millis(Self::ROUND_TRIP_MS.unsigned_abs()),
        })
    }

    async fn report_status(&self, report: &StatusReport, _credential: &Secret) -> Result<(), JoinError> {
        let number = self.note(Said::Report(Box::new(report.status.clone())));
        perform((self.on_report)(number)).await
    }
}
