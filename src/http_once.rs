//! One GET over a connection of its own, as a probe sends it. No environment's proxy is asked, no redirect followed.

use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// No answer to a probe needs more.
pub const BODY_LIMIT_BYTES: usize = 64 * 1024;

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    /// Its head and body.
    pub response: Response<Bytes>,
    /// From the request's departure to the answer's head.
    pub round_trip: Duration,
}

/// Why there was no answer.
#[derive(Debug, Error)]
pub enum GetError {
    /// The connection was closed without an answer.
    #[error("the connection was closed without an answer: {0}")]
    Closed(Box<dyn Error + Send + Sync>),
    /// What came back is no HTTP answer, or a far too long one.
    #[error("no HTTP answer: {0}")]
    NotHttp(Box<dyn Error + Send + Sync>),
}

/// Sends a GET for `path` to the `authority` at the other end of `stream`. Whoever calls this sets the deadline.
pub async fn get<S>(stream: S, authority: &str, path: &str) -> Result<Answer, GetError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = Request::builder()
        .method(Method::GET)
        .uri(path)
        .header(header::HOST, authority)
        .header(header::USER_AGENT, concat!("gpustack/", env!("CARGO_PKG_VERSION")))
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| GetError::NotHttp(error.into()))?;
    let talk = async move {
        let sent = Instant::now();
        let response = sender.send_request(request).await.map_err(broken)?;
        let round_trip = sent.elapsed();
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_LIMIT_BYTES).collect().await.map_err(GetError::NotHttp)?;
        Ok(Answer { response: Response::from_parts(head, body.to_bytes()), round_trip })
    };
    tokio::pin!(talk);
    // the connection is driven here and not by a task of its own: when a deadline drops this, all of it is gone
    tokio::select! {
        answer = &mut talk => answer,
        _ = connection => talk.await,
    }
}

fn broken(error: hyper::Error) -> GetError {
    if is_closed(&error) { GetError::Closed(error.into()) } else { GetError::NotHttp(error.into()) }
}

fn is_closed(error: &hyper::Error) -> bool {
    let source = error.source();
    // a request that was given up wraps what became of its connection
    if let Some(of_connection) = source.and_then(|source| source.downcast_ref::<hyper::Error>()) {
        return is_closed(of_connection);
    }
    let is_cut = source.and_then(|source| source.downcast_ref::<io::Error>()).is_some_and(|source| {
        matches!(
            source.kind(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
        )
    });
    is_cut || error.is_incomplete_message() || error.is_closed() || error.is_canceled()
}
