//! Joins the server like a worker, and tells it how the forwards are.

use super::certificates::{self, KeyFile};
use super::join_words;
use super::probe::Expected;
use super::view::View;
use crate::worker::{JoinError, Line, Member, SessionEnd};
use api::{
    CERTIFICATE_PATH, NewCertificate, PROTOCOL_VERSION, TUNNELS_PATH, TunnelAgentRequest, TunnelAgentResponse,
    TunnelAgentUuid,
};
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use link::{Dialer, Link};
use serde::Serialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Reports are no closer than this.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// Counters and round trips are brought up to date this often.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);
/// A certificate has some two kilobytes.
const CERTIFICATE_MAX_BYTES: usize = 64 * 1024;

/// Whether the agent has joined its server, as its status tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Joined {
    /// It does not report.
    Off,
    /// Not yet, or not any more.
    Joining {
        /// Why not, in English.
        cause: Option<String>,
        /// The same in Chinese; absent where nobody has put it so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause_zh: Option<String>,
    },
    /// It has.
    Up,
}

/// Keeps the agent joined.
pub struct Reporter {
    /// What the server is dialled with.
    pub line: Line,
    /// Who the agent is.
    pub uuid: TunnelAgentUuid,
    /// Its name.
    pub name: String,
    /// What it tells.
    pub view: View,
    /// Told which server it has joined.
    pub expected: watch::Sender<Expected>,
    /// Told whether it has.
    pub joined: watch::Sender<Joined>,
}

impl Reporter {
    /// Runs until `shutdown`.
    pub async fn run(&self, shutdown: CancellationToken) {
        self.line.keep_joined(self, &shutdown).await;
    }

    async fn serve(&self, link: Link, shutdown: &CancellationToken) -> SessionEnd {
        let stop = CancellationToken::new();
        let router = routes(self.view.clone(), stop.clone());
        let mut serving = std::pin::pin!(link.serve(router, stop.clone()));
        tokio::select! {
            end = &mut serving => {
                JoinError::of_end(&end, self.line.server()).map_or(SessionEnd::Stopped, SessionEnd::Failed)
            }
            () = shutdown.cancelled() => {
                stop.cancel();
                // bounded by the link's own deadline
                serving.await;
                SessionEnd::Stopped
            }
        }
    }
}

impl Member for Reporter {
    async fn session(&self, dialer: &mut Dialer, shutdown: &CancellationToken) -> Result<SessionEnd, JoinError> {
        let request = TunnelAgentRequest {
            protocol: PROTOCOL_VERSION,
            tunnel_agent: self.uuid,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.name.clone(),
            hostname: crate::worker::hostname(),
        };
        let request = serde_json::to_vec(&request).unwrap_or_default();
        let dialled = tokio::select! {
            () = shutdown.cancelled() => return Ok(SessionEnd::Stopped),
            dialled = Box::pin(dialer.dial(request.into())) => dialled,
        };
        let link = dialled.map_err(|error| self.line.explain(&error))?;
        let welcome = link.welcome();
        let _: TunnelAgentResponse = serde_json::from_slice(&welcome.answer)
            .map_err(|error| JoinError::AnswerNotUnderstood { detail: error.to_string() })?;
        self.line.keep_server_key(welcome.server_key);
        self.expected.send_replace(Expected { server: Some(welcome.server_key.fingerprint()) });
        tracing::info!("has joined the server at {} as {}", self.line.server(), self.name);
        self.joined.send_replace(Joined::Up);
        Ok(self.serve(link, shutdown).await)
    }

    fn note(&self, what: &str, error: &JoinError) {
        let cause_zh = Some(join_words::chinese(error));
        let error = in_words_of_the_file(&error.to_string());
        let cause = Joined::Joining { cause: Some(error.clone()), cause_zh };
        if *self.joined.borrow() != cause {
            tracing::warn!("{what}: {error}");
        }
        self.joined.send_replace(cause);
    }
}

/// What is said of joining is said to whoever starts a worker; an agent has a file in place of flags.
fn in_words_of_the_file(text: &str) -> String {
    let words = [
        ("--server-url", "`server_url`"),
        ("--token", "`token_file`"),
        ("--data-dir", "`state_dir`"),
        ("this worker", "this agent"),
        ("the worker", "the agent"),
    ];
    words.iter().fold(text.to_owned(), |text, (of_worker, of_agent)| text.replace(of_worker, of_agent))
}

#[derive(Clone)]
struct Asked {
    view: View,
    stop: CancellationToken,
}

fn routes(view: View, stop: CancellationToken) -> Router {
    Router::new()
        .route(TUNNELS_PATH, post(tell))
        .route(CERTIFICATE_PATH, put(take_certificate))
        .layer(DefaultBodyLimit::max(CERTIFICATE_MAX_BYTES))
        .with_state(Asked { view, stop })
}

/// The answer goes on for as long as the link stands: a report at once, then whenever something has changed, and now
/// and then.
async fn tell(State(Asked { view, stop }): State<Asked>) -> Body {
    let (sender, pieces) = mpsc::channel::<Bytes>(1);
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        let mut changes = view.changes();
        loop {
            match report::tunnels::pack(&view.report()) {
                Ok(packed) => {
                    if sender.send(packed).await.is_err() {
                        return;
                    }
                }
                Err(error) => tracing::error!(%error, "the server cannot be told how the forwards are"),
            }
            sleep(SHORTEST_INTERVAL).await;
            // whether something has changed or not
            let _ = timeout(LONGEST_INTERVAL.saturating_sub(SHORTEST_INTERVAL), changes.changed()).await;
        }
    }));
    Body::from_stream(stream::unfold(pieces, async |mut pieces| {
        let piece: Bytes = pieces.recv().await?;
        Some((Ok::<_, Infallible>(piece), pieces))
    }))
}

async fn take_certificate(State(Asked { view, .. }): State<Asked>, Json(new): Json<NewCertificate>) -> Response {
    let files: Vec<KeyFile> = view.key_files();
    match certificates::take(&files, &new.certificate) {
        Ok(path) => {
            tracing::info!(path = %path.display(), "a new certificate from the server is in force for the next logins");
            view.touch();
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => {
            tracing::warn!("a certificate from the server is not taken: {error}");
            (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).into_response()
        }
    }
}
