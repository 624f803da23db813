//! What a tunnel agent tells over its link. The server asks once for each link, and the answer goes on for as long as the
//! link stands.

use super::{Agent, Tunnels, check};
use crate::server::error::ApiError;
use api::TUNNELS_PATH;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use link::{LinkHandle, RequestError};
use report::tunnels::{TunnelFrames, TunnelsError};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::time::sleep;

/// For the head of the answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// After a stream that ended although its link stands.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Why an agent tells no more although its link stands.
#[derive(Debug, Error)]
enum ListenError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("the agent answers with {0}")]
    Status(StatusCode),
    #[error("the agent has ended its answer")]
    Ended,
    #[error(transparent)]
    Frame(#[from] TunnelsError),
    #[error("the report is refused: {}", .0.message())]
    Refused(ApiError),
}

/// Listens to the agent for as long as its link stands.
pub async fn listen(link: LinkHandle, agent: Arc<Agent>, tunnels: Tunnels) {
    let mut told = String::new();
    loop {
        let Err(error) = hear(&link, &agent, &tunnels).await;
        if link.close_reason().is_some() {
            return;
        }
        let words = error.to_string();
        if words != told {
            tracing::warn!(agent = agent.id().0, %error, "a tunnel agent's reports have ended; asking for them again");
            told = words;
        }
        tokio::select! {
            _ = link.closed() => return,
            () = sleep(RETRY_AFTER) => {}
        }
    }
}

async fn hear(link: &LinkHandle, agent: &Agent, tunnels: &Tunnels) -> Result<Infallible, ListenError> {
    let request = Request::post(TUNNELS_PATH).body(());
    let request = request.map_err(|error| RequestError::Invalid(error.to_string()))?;
    // the request stays open: what a later version asks goes there
    let (_asking, response) = link.converse(request, ANSWER_DEADLINE).await?;
    if response.status() != StatusCode::OK {
        return Err(ListenError::Status(response.status()));
    }
    let (mut body, mut frames) = (response.into_body(), TunnelFrames::default());
    loop {
        let arrived = body.frame().await.ok_or(ListenError::Ended)??;
        let Ok(piece) = arrived.into_data() else { return Err(ListenError::Ended) };
        frames.push(&piece);
        while let Some(report) = frames.take()? {
            check::report(&report).map_err(ListenError::Refused)?;
            tunnels.hear(agent, report);
        }
    }
}
