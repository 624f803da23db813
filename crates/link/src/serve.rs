//! The worker's end of a link: it serves its requests on the connection that it dialled.

use crate::control::{
    CONNECT_FAILED_STATUS, CONNECT_REFUSED_STATUS, CONNECT_TIMED_OUT_STATUS, Goodbye, Incoming, classify,
};
use crate::handshake::WorkerStream;
use crate::meter::Traffic;
use crate::targets::AllowedTargets;
use crate::tuning::{MAX_FRAME_BYTES, MAX_HEADER_BYTES, MAX_RESET_STREAMS, MAX_SEND_BUFFER_BYTES, Tuning};
use bytes::Bytes;
use http::uri::Authority;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming as IncomingBody;
use hyper::server::conn::http2;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error as ThisError;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use tracing::debug;

/// How long a target may take to accept.
const TARGET_CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// What is copied at a time between a target and the link.
const COPY_BUFFER_BYTES: usize = 64 * 1024;

type BoxError = Box<dyn Error + Send + Sync>;
type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// Why a link ended, as the worker sees it.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum LinkEnd {
    /// This worker ended it.
    #[error("this worker stops")]
    Shutdown,
    /// The server stops; the worker is to come back after this time.
    #[error("the server stops; coming back in {} s", .0.as_secs())]
    ServerStopping(Duration),
    /// A newer link took over. Where this process did not dial it, another one has the same identity.
    #[error("a newer link of the same worker took over; is its data directory used on another host too?")]
    Replaced,
    /// The worker was removed from the server.
    #[error("this worker was removed from the server; start it with the server's join token to join again as new")]
    Revoked,
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// No sign of life came in time.
    #[error("the server gave no sign of life")]
    Silent,
    /// The connection broke, or something that is no HTTP/2 came.
    #[error("the connection to the server broke: {0}")]
    Broken(String),
}

/// Serves until the link ends, which [`LinkEnd`] tells the reason of. A shutdown lets running requests end.
pub(crate) async fn serve<S, B>(
    stream: WorkerStream,
    traffic: Arc<Traffic>,
    service: S,
    targets: Arc<AllowedTargets>,
    tuning: &Tuning,
    shutdown: CancellationToken,
) -> LinkEnd
where
    S: Service<Request<IncomingBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (said, mut goodbye) = watch::channel(None);
    let end = Dispatch { service, targets, said };
    let answer = hyper::service::service_fn(move |request| end.clone().answer(request));
    let mut connection = pin!(builder(tuning).serve_connection(TokioIo::new(stream), answer));
    let silence = silent(&traffic, tuning.ping_interval + tuning.ping_timeout);
    let farewell = async {
        // a sender that is gone has said nothing
        let said = async { goodbye.wait_for(Option::is_some).await.ok().and_then(|said| *said) };
        tokio::select! {
            () = shutdown.cancelled() => LinkEnd::Shutdown,
            Some(said) = said => said.into(),
            else => std::future::pending().await,
        }
    };
    let why = tokio::select! {
        ended = &mut connection => return end_of_connection(ended),
        () = silence => return LinkEnd::Silent,
        why = farewell => why,
    };
    connection.as_mut().graceful_shutdown();
    // whether what runs ends in time or not, the reason stays the same
    let _ = time::timeout(tuning.drain_deadline, connection).await;
    why
}

impl From<Goodbye> for LinkEnd {
    fn from(goodbye: Goodbye) -> Self {
        match goodbye {
            Goodbye::Stopping { retry_after } => Self::ServerStopping(retry_after),
            Goodbye::Replaced => Self::Replaced,
            Goodbye::Revoked => Self::Revoked,
        }
    }
}

/// hyper's own keep-alive stays off: it takes a connection for dead whose answer to a ping is late, however much else
/// arrives. The server pings; [`silent`] looks at what comes.
fn builder(tuning: &Tuning) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .initial_stream_window_size(tuning.stream_window_bytes)
        .initial_connection_window_size(tuning.connection_window_bytes)
        .max_frame_size(MAX_FRAME_BYTES)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_send_buf_size(MAX_SEND_BUFFER_BYTES)
        .max_concurrent_streams(tuning.max_streams)
        .max_local_error_reset_streams(MAX_RESET_STREAMS)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .auto_date_header(false);
    builder
}

fn end_of_connection(ended: Result<(), hyper::Error>) -> LinkEnd {
    let Err(error) = ended else { return LinkEnd::Closed };
    let mut source: Option<&dyn Error> = Some(&error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
            if matches!(io.kind(), BrokenPipe | ConnectionReset | UnexpectedEof) {
                return LinkEnd::Closed;
            }
            return LinkEnd::Broken(io.to_string());
        }
        source = cause.source();
    }
    LinkEnd::Broken(error.to_string())
}

/// Returns when nothing has come for `timeout`. The server pings more often than that.
async fn silent(traffic: &Traffic, timeout: Duration) {
    let mut deadline = traffic.last_life() + timeout;
    while Instant::now() < deadline {
        time::sleep_until(deadline).await;
        deadline = traffic.last_life() + timeout;
    }
}

/// Tells the link's own requests from those for the worker's service.
#[derive(Clone)]
struct Dispatch<S> {
    service: S,
    targets: Arc<AllowedTargets>,
    said: watch::Sender<Option<Goodbye>>,
}

impl<S, B> Dispatch<S>
where
    S: Service<Request<IncomingBody>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn answer(mut self, request: Request<IncomingBody>) -> Result<Response<AnyBody>, BoxError> {
        match classify(&request) {
            Incoming::Request => {
                poll_fn(|cx| self.service.poll_ready(cx)).await.map_err(Into::into)?;
                let response = self.service.call(request).await.map_err(Into::into)?;
                Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
            }
            Incoming::Connect => Ok(empty(connect(&self.targets, request).await)),
            Incoming::Goodbye(goodbye) => {
                self.said.send_replace(Some(goodbye));
                Ok(empty(StatusCode::NO_CONTENT))
            }
            Incoming::UnknownControl => Ok(empty(StatusCode::NOT_FOUND)),
        }
    }
}

fn empty(status: StatusCode) -> Response<AnyBody> {
    let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}

async fn connect(targets: &AllowedTargets, mut request: Request<IncomingBody>) -> StatusCode {
    let target = request.uri().authority().cloned();
    let Some((target, port)) = target.and_then(|target| target.port_u16().map(|port| (target, port))) else {
        return StatusCode::BAD_REQUEST;
    };
    if !targets.allows(target.host(), port) {
        debug!(%target, "a connection to this target is not allowed");
        return CONNECT_REFUSED_STATUS;
    }
    let host = target.host().trim_start_matches('[').trim_end_matches(']');
    match time::timeout(TARGET_CONNECT_DEADLINE, TcpStream::connect((host, port))).await {
        Ok(Ok(stream)) => {
            let on_upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(relay(on_upgrade, stream, target));
            StatusCode::OK
        }
        Ok(Err(error)) => {
            debug!(%target, "cannot connect: {error}");
            CONNECT_FAILED_STATUS
        }
        Err(_) => CONNECT_TIMED_OUT_STATUS,
    }
}

/// Ends with either side, and with the link.
async fn relay(on_upgrade: OnUpgrade, mut stream: TcpStream, target: Authority) {
    let _ = stream.set_nodelay(true);
    let upgraded = match on_upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => {
            debug!(%target, "the link ended before the connection began: {error}");
            return;
        }
    };
    let mut upgraded = TokioIo::new(upgraded);
    let copied =
        tokio::io::copy_bidirectional_with_sizes(&mut upgraded, &mut stream, COPY_BUFFER_BYTES, COPY_BUFFER_BYTES);
    if let Err(error) = copied.await {
        debug!(%target, "the connection broke: {error}");
    }
}
