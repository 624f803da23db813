//! Whether the right one answers through a forward. That an SSH session stands, or that a port takes connections, says
//! nothing about it.

use super::fault::{self, here};
use crate::http_once::{self, Answer, GetError};
use crate::tunnel::plan::{PlannedForward, Proof, Scheme};
use api::{FaultCause, ForwardDirection, TunnelFault};
use http::StatusCode;
use link::OuterTls;
use serde::Deserialize;
use ssh::{BoxedIo, ChannelError, Endpoint, Session};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Connecting, asking and reading.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// A listener that nobody serves any more takes connections and says nothing.
const POKE_DEADLINE: Duration = Duration::from_secs(3);
const HEALTH_PATH: &str = "/healthz";

/// What a probe found.
#[derive(Debug)]
pub enum Outcome {
    /// The right one answered.
    Proved {
        /// From the question to the answer.
        round_trip: Duration,
    },
    /// Nothing can be asked through it; what can be seen is well.
    Unproved(TunnelFault),
    /// Nobody answered, or somebody else.
    Failed(TunnelFault),
}

/// Who listens at a port that was to be listened at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Something that lives.
    Living,
    /// The listener of a session that has ended without sshd's knowing.
    Stale,
    /// That cannot be seen.
    Unknown,
}

/// What is known of who should answer.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The server that the agent has joined, as its `/healthz` names it.
    pub server: Option<String>,
}

/// What `/healthz` says of whoever answers. GPUStack 0.7 says none of it.
#[derive(Deserialize, Default)]
struct Health {
    /// A server's identity.
    server: Option<String>,
    /// A worker's name.
    name: Option<String>,
    /// There for a worker.
    worker_uuid: Option<String>,
}

/// Asks through a forward that stands on `session`.
pub async fn probe(session: &Session, forward: &PlannedForward, expected: &Expected) -> Outcome {
    if forward.proof == Proof::Connection {
        return connect_only(session, forward).await;
    }
    let question = Question::through(forward, session);
    let asked = async {
        let stream = match enter(session, forward).await {
            Ok(stream) => stream,
            Err(Entry::Forbidden) => return Err(None),
            Err(Entry::Failed(fault)) => return Err(Some(fault)),
        };
        question.ask(stream).await.map_err(Some)
    };
    match timeout(DEADLINE, asked).await {
        Err(_) => Outcome::Failed(question.unanswered(fault::no_answer_within(DEADLINE))),
        Ok(Err(Some(fault))) => Outcome::Failed(fault),
        Ok(Err(None)) => from_behind(session, forward, expected).await,
        Ok(Ok(answer)) => match judge(&answer, forward, expected, &question.url) {
            Ok(()) => Outcome::Proved { round_trip: answer.round_trip },
            Err(cause) => Outcome::Failed(here(cause)),
        },
    }
}

/// Tries who it is that listens at the far end.
pub async fn occupant(session: &Session, listen: &Endpoint) -> Occupant {
    let at = seen_from_itself(listen);
    let question = Question::new(Scheme::Http, &at);
    let asked = async {
        match session.connect(&at, POKE_DEADLINE).await {
            Ok(stream) => match question.ask(stream).await {
                Err(TunnelFault { cause: FaultCause::NothingAnswers { .. }, .. }) => Occupant::Unknown,
                _ => Occupant::Living,
            },
            Err(ChannelError::Deadline { .. }) => Occupant::Stale,
            Err(_) => Occupant::Unknown,
        }
    };
    timeout(POKE_DEADLINE, asked).await.unwrap_or(Occupant::Stale)
}

enum Entry {
    Forbidden,
    Failed(TunnelFault),
}

/// A connection to the port at which the forward listens.
async fn enter(session: &Session, forward: &PlannedForward) -> Result<BoxedIo, Entry> {
    match forward.direction {
        ForwardDirection::Local => match connect_here(&forward.listen).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(fault) => Err(Entry::Failed(fault)),
        },
        ForwardDirection::Remote => session
            .connect(&seen_from_itself(&forward.listen), DEADLINE)
            .await
            .map(|stream| Box::new(stream) as BoxedIo)
            .map_err(|error| match error {
                ChannelError::Prohibited { .. } => Entry::Forbidden,
                error => Entry::Failed(fault::of_channel(session.name(), &error)),
            }),
    }
}

async fn connect_here(at: &Endpoint) -> Result<TcpStream, TunnelFault> {
    let at = seen_from_itself(at);
    match timeout(DEADLINE, TcpStream::connect((at.host.as_str(), at.port))).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => {
            Err(here(FaultCause::TargetRefused { target: at.to_string(), detail: Some(error.to_string()) }))
        }
        Err(_) => Err(here(FaultCause::TargetNoAnswer { target: at.to_string(), deadline_s: DEADLINE.as_secs() })),
    }
}

fn scheme(forward: &PlannedForward) -> Scheme {
    match forward.proof {
        Proof::Server { scheme } => scheme,
        Proof::Worker { .. } | Proof::Connection => Scheme::Http,
    }
}

/// What is asked, and on which host, for whoever has to look when nobody answers.
struct Question {
    scheme: Scheme,
    at: Endpoint,
    url: String,
    /// The SSH server on whose host it is asked; None for this one.
    asked_on: Option<String>,
    target: Option<String>,
    /// The SSH server on whose host the target is connected to; None for this one.
    target_from: Option<String>,
}

impl Question {
    /// Asked here, of nobody behind a forward.
    fn new(scheme: Scheme, at: &Endpoint) -> Self {
        let url = format!("{scheme}://{at}{HEALTH_PATH}");
        Self { scheme, at: at.clone(), url, asked_on: None, target: None, target_from: None }
    }

    /// Where the forward listens.
    fn through(forward: &PlannedForward, session: &Session) -> Self {
        let far_end = Some(session.name().to_string());
        let (asked_on, target_from) = match forward.direction {
            ForwardDirection::Local => (None, far_end),
            ForwardDirection::Remote => (far_end, None),
        };
        let target = Some(forward.target.to_string());
        Self { asked_on, target, target_from, ..Self::new(scheme(forward), &forward.listen) }
    }

    async fn ask(&self, stream: BoxedIo) -> Result<Answer, TunnelFault> {
        let wrong = || here(FaultCause::WrongAnswer { url: self.url.clone(), status: None });
        let stream: BoxedIo = match self.scheme {
            Scheme::Http => stream,
            Scheme::Https => {
                let tls = OuterTls::anybody().map_err(|error| self.unanswered(error.to_string()))?;
                Box::new(tls.connect(&self.at.host, stream).await.map_err(|_| wrong())?)
            }
        };
        http_once::get(stream, &self.at.to_string(), HEALTH_PATH).await.map_err(|error| match error {
            GetError::Closed(_) => self.unanswered(error.to_string()),
            GetError::NotHttp(_) => wrong(),
        })
    }

    /// Nobody answers.
    fn unanswered(&self, detail: String) -> TunnelFault {
        here(FaultCause::NothingAnswers {
            url: self.url.clone(),
            detail,
            asked_on: self.asked_on.clone(),
            target: self.target.clone(),
            target_from: self.target_from.clone(),
        })
    }
}

fn judge(answer: &Answer, forward: &PlannedForward, expected: &Expected, url: &str) -> Result<(), FaultCause> {
    let (status, body) = (answer.response.status(), answer.response.body());
    if status != StatusCode::OK {
        return Err(FaultCause::WrongAnswer { url: url.to_owned(), status: Some(status.as_u16()) });
    }
    let health: Health = serde_json::from_slice(body).unwrap_or_default();
    match &forward.proof {
        Proof::Connection => Ok(()),
        Proof::Server { .. } if health.worker_uuid.is_some() => {
            Err(FaultCause::WrongAnswer { url: url.to_owned(), status: Some(status.as_u16()) })
        }
        Proof::Server { .. } => match (&expected.server, health.server) {
            (Some(expected), Some(answered)) if *expected != answered => {
                let (expected, answered) = (Some(expected.clone()), Some(answered));
                Err(FaultCause::WrongServer { url: url.to_owned(), expected, answered })
            }
            _ => Ok(()),
        },
        Proof::Worker { name } => match health.name {
            Some(answered) if answered != *name => Err(FaultCause::WrongWorker { expected: name.clone(), answered }),
            _ if health.server.is_some() => {
                Err(FaultCause::WrongAnswer { url: url.to_owned(), status: Some(status.as_u16()) })
            }
            _ => Ok(()),
        },
    }
}

/// Of a forward that may not be asked through: whether what it goes to answers from here.
async fn from_behind(session: &Session, forward: &PlannedForward, expected: &Expected) -> Outcome {
    let forbidden = TunnelFault {
        hop: Some(session.name().to_string()),
        cause: FaultCause::ProbeForbidden { address: seen_from_itself(&forward.listen).to_string() },
    };
    let question = Question::new(scheme(forward), &forward.target);
    let asked = async {
        let stream = connect_here(&forward.target).await?;
        let answer = question.ask(Box::new(stream)).await?;
        judge(&answer, forward, expected, &question.url).map_err(here)
    };
    match timeout(DEADLINE, asked).await {
        Ok(Ok(())) => Outcome::Unproved(forbidden),
        Ok(Err(fault)) => Outcome::Failed(fault),
        Err(_) => Outcome::Failed(question.unanswered(fault::no_answer_within(DEADLINE))),
    }
}

/// Of a forward to something that need not speak HTTP: whether it takes connections.
async fn connect_only(session: &Session, forward: &PlannedForward) -> Outcome {
    let begun = Instant::now();
    let connected = match forward.direction {
        ForwardDirection::Local => session
            .check_target(&forward.target, DEADLINE)
            .await
            .map_err(|error| fault::of_channel(session.name(), &error)),
        ForwardDirection::Remote => connect_here(&forward.target).await.map(drop),
    };
    match connected {
        Ok(()) => Outcome::Proved { round_trip: begun.elapsed() },
        Err(fault) => Outcome::Failed(fault),
    }
}

/// Where somebody on the same host finds what listens at this place.
fn seen_from_itself(listen: &Endpoint) -> Endpoint {
    match listen.host.as_str() {
        "" | "0.0.0.0" | "*" | "localhost" => Endpoint::new("127.0.0.1", listen.port),
        "::" => Endpoint::new("::1", listen.port),
        _ => listen.clone(),
    }
}

#[cfg(test)]
mod tests;
