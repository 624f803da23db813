//! A link as the server uses it.

use crate::body::{self, LinkBody, LinkSender};
use crate::control::{self, Goodbye};
use crate::keys::PublicKey;
use crate::message::Generation;
use crate::meter::Traffic;
use crate::tcp_stream::LinkTcpStream;
use crate::upgrade::Carrier;
use bytes::Bytes;
use h2::client::SendRequest;
use http::header::{CONNECTION, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Headers that have no place in HTTP/2 (RFC 9113, section 8.2.2), which has the authority instead of `host`.
const ABOUT_ONE_CONNECTION: [HeaderName; 7] = [
    HOST,
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Why a link is no more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// A newer link of the same worker took over.
    #[error("a newer link of the same worker took over")]
    Replaced,
    /// The worker was removed.
    #[error("the worker was removed")]
    Revoked,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
    /// The worker ended it, or its connection was closed.
    #[error("the worker closed the connection")]
    ClosedByWorker,
    /// No sign of life came in time.
    #[error("the worker gave no sign of life")]
    Silent,
    /// The connection broke, or something that is no HTTP/2 came.
    #[error("the connection broke: {0}")]
    Broken(String),
}

/// Why a request got no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The link ended.
    #[error("the link to the worker ended: {0}")]
    Closed(CloseReason),
    /// No answer came in time.
    #[error("the worker did not answer within {0:?}")]
    Deadline(Duration),
    /// The worker broke off this one request.
    #[error("the worker broke the request off: {0}")]
    BrokenOff(String),
    /// The request cannot be sent.
    #[error("the request cannot be sent over a link: {0}")]
    Invalid(String),
}

/// Why no TCP connection came about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The worker's list of targets does not have it.
    #[error("the worker does not allow connections to {0}")]
    NotAllowed(Authority),
    /// The worker cannot reach it.
    #[error("the worker cannot connect to {0}")]
    Unreachable(Authority),
    /// The worker gave up waiting for it.
    #[error("{0} does not answer the worker")]
    TimedOut(Authority),
    /// The worker gave another answer.
    #[error("the worker answered a connection with status {0}")]
    UnexpectedStatus(StatusCode),
    /// The question itself got no answer.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Said once; who waits for anything of the link looks here.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    reason: OnceLock<CloseReason>,
    /// Cancelled after the reason was set.
    token: CancellationToken,
    /// What runs may end, nothing new begins.
    draining: AtomicBool,
}

impl Closing {
    /// The first reason counts.
    pub fn close(&self, reason: CloseReason) {
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    pub async fn closed(&self) -> CloseReason {
        self.token.cancelled().await;
        self.reason().unwrap_or(CloseReason::ClosedByWorker)
    }

    pub fn reason(&self) -> Option<CloseReason> {
        self.reason.get().cloned()
    }

    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// What an error of HTTP/2 on one of the link's streams means.
    pub fn why(&self, error: &h2::Error) -> RequestError {
        if let Some(reason) = self.reason() {
            return RequestError::Closed(reason);
        }
        if error.is_reset() {
            return RequestError::BrokenOff(error.to_string());
        }
        RequestError::Closed(self.end_of_connection(Err(error)))
    }

    /// What the end of the whole connection means.
    pub fn end_of_connection(&self, ended: Result<(), &h2::Error>) -> CloseReason {
        if self.is_draining() {
            return CloseReason::Stopping;
        }
        ended.map_or_else(close_reason, |()| CloseReason::ClosedByWorker)
    }
}

fn close_reason(error: &h2::Error) -> CloseReason {
    let ended = error.get_io().is_some_and(|io| {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        matches!(io.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
    });
    let went_away = error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR);
    if ended || went_away { CloseReason::ClosedByWorker } else { CloseReason::Broken(error.to_string()) }
}

/// A link to a worker. Cloning it clones a handle; the link lives in its registry.
#[derive(Clone)]
pub struct LinkHandle {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub id: Box<str>,
    pub worker_key: PublicKey,
    pub generation: Generation,
    pub peer: SocketAddr,
    pub carrier: Carrier,
    pub requests: SendRequest<Bytes>,
    pub traffic: Arc<Traffic>,
    pub closing: Arc<Closing>,
}

/// What is known of a link's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStats {
    /// From the last ping; `None` until the first was answered.
    pub round_trip: Option<Duration>,
    /// All bytes that arrived since the upgrade, with the encryption around them.
    pub received_bytes: u64,
    /// All bytes that were sent, likewise.
    pub sent_bytes: u64,
    /// How often the server took new keys for what it sends.
    pub key_refreshes: u64,
    /// How long the link has stood.
    pub connected_for: Duration,
    /// How long ago the last sign of life came.
    pub silent_for: Duration,
}

impl LinkHandle {
    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// The name that the gatekeeper gave.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// The worker's key.
    pub fn worker_key(&self) -> PublicKey {
        self.inner.worker_key
    }

    /// Which of the worker's attempts this link came from.
    pub fn generation(&self) -> Generation {
        self.inner.generation
    }

    /// The other end of the connection, which may be a proxy or a bastion.
    pub fn peer(&self) -> SocketAddr {
        self.inner.peer
    }

    /// What carries the link.
    pub fn carrier(&self) -> Carrier {
        self.inner.carrier
    }

    /// Measurements up to now.
    pub fn stats(&self) -> LinkStats {
        let traffic = &self.inner.traffic;
        LinkStats {
            round_trip: traffic.round_trip(),
            received_bytes: traffic.received_bytes(),
            sent_bytes: traffic.sent_bytes(),
            key_refreshes: traffic.key_refreshes(),
            connected_for: traffic.since().elapsed(),
            silent_for: traffic.last_life().elapsed(),
        }
    }

    /// Whether both handles are of one link.
    pub fn is_same_link(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Why the link is no more; `None` while it stands.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.inner.closing.reason()
    }

    /// Waits until the link is no more.
    pub async fn closed(&self) -> CloseReason {
        self.inner.closing.closed().await
    }

    /// Ends the link at once, as the worker is no longer welcome. The worker is told if it still listens.
    pub fn revoke(&self) {
        self.inner.closing.close(CloseReason::Revoked);
    }

    pub(crate) fn replace(&self) {
        self.inner.closing.close(CloseReason::Replaced);
    }

    /// Nothing new begins; see [`Registry::drain`](crate::Registry::drain).
    pub(crate) fn drain(&self) {
        self.inner.closing.drain();
    }

    pub(crate) fn stop(&self) {
        self.inner.closing.close(CloseReason::Stopping);
    }

    /// Asks the worker. `deadline` is for the head of its answer; the body that follows takes the time it takes.
    ///
    /// Only path and query of the request's target count. Any number of requests run side by side; those beyond the
    /// worker's limit wait. Dropping the future, or the body, tells the worker to stop. A body has to be read or
    /// dropped: a few big ones that are neither fill the window that all share, and the others wait.
    pub async fn request<B>(&self, request: Request<B>, deadline: Duration) -> Result<Response<LinkBody>, RequestError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Send,
    {
        let (mut parts, body) = request.into_parts();
        if parts.method == Method::CONNECT {
            return Err(RequestError::Invalid("CONNECT is for `connect_tcp`".to_owned()));
        }
        parts.uri = control::worker_uri(&parts.uri);
        parts.version = Version::HTTP_2;
        for name in ABOUT_ONE_CONNECTION {
            parts.headers.remove(name);
        }
        self.within(deadline, self.send(Request::from_parts(parts, ()), body)).await
    }

    /// Asks the worker something to which both bodies go on, piece by piece. `deadline` is for the head of its answer.
    /// Only path and query of the request's target count.
    pub async fn converse(
        &self,
        head: Request<()>,
        deadline: Duration,
    ) -> Result<(LinkSender, Response<LinkBody>), RequestError> {
        let (mut parts, ()) = head.into_parts();
        parts.uri = control::worker_uri(&parts.uri);
        parts.version = Version::HTTP_2;
        let (response, sender) = self.within(deadline, self.exchange(Request::from_parts(parts, ()), false)).await?;
        let response = response.map(|stream| LinkBody::new(stream, Arc::clone(&self.inner.closing), None));
        Ok((LinkSender::new(sender), response))
    }

    /// Opens a TCP connection from the worker to `target`, a `host:port` that the worker allows.
    pub async fn connect_tcp(&self, target: &Authority, deadline: Duration) -> Result<LinkTcpStream, ConnectError> {
        let mut request = Request::new(());
        *request.method_mut() = Method::CONNECT;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = Uri::from(target.clone());
        let (response, send) = self.within(deadline, self.exchange(request, false)).await?;
        match response.status() {
            StatusCode::OK => Ok(LinkTcpStream::new(send, response.into_body(), Arc::clone(&self.inner.closing))),
            control::CONNECT_REFUSED_STATUS => Err(ConnectError::NotAllowed(target.clone())),
            control::CONNECT_FAILED_STATUS => Err(ConnectError::Unreachable(target.clone())),
            control::CONNECT_TIMED_OUT_STATUS => Err(ConnectError::TimedOut(target.clone())),
            other => Err(ConnectError::UnexpectedStatus(other)),
        }
    }

    /// Tells the worker that the link is about to end, and waits until it has heard.
    pub(crate) async fn say(&self, goodbye: Goodbye, deadline: Duration) -> Result<(), RequestError> {
        let said = tokio::time::timeout(deadline, self.exchange(goodbye.request(), true)).await;
        said.map_err(|_| RequestError::Deadline(deadline))?.map(|_| ())
    }

    async fn send<B>(&self, head: Request<()>, body: B) -> Result<Response<LinkBody>, RequestError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Send,
    {
        let nothing_to_send = body.is_end_stream();
        let mut requests = self.ready().await?;
        let (response, stream) = requests.send_request(head, nothing_to_send).map_err(|error| self.unsent(&error))?;
        let upload =
            (!nothing_to_send).then(|| AbortOnDropHandle::new(tokio::spawn(body::upload(Box::pin(body), stream))));
        let response = response.await.map_err(|error| self.inner.closing.why(&error))?;
        Ok(response.map(|stream| LinkBody::new(stream, Arc::clone(&self.inner.closing), upload)))
    }

    async fn exchange(
        &self,
        head: Request<()>,
        end_of_stream: bool,
    ) -> Result<(Response<h2::RecvStream>, h2::SendStream<Bytes>), RequestError> {
        let mut requests = self.ready().await?;
        let (response, stream) = requests.send_request(head, end_of_stream).map_err(|error| self.unsent(&error))?;
        let response = response.await.map_err(|error| self.inner.closing.why(&error))?;
        Ok((response, stream))
    }

    async fn ready(&self) -> Result<SendRequest<Bytes>, RequestError> {
        self.inner.requests.clone().ready().await.map_err(|error| self.inner.closing.why(&error))
    }

    fn unsent(&self, error: &h2::Error) -> RequestError {
        match error.reason() {
            None if !error.is_io() && !error.is_go_away() => RequestError::Invalid(error.to_string()),
            _ => self.inner.closing.why(error),
        }
    }

    /// Fails at once when the link ends, whatever the other side does.
    async fn within<T>(
        &self,
        deadline: Duration,
        work: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        if self.inner.closing.is_draining() {
            return Err(RequestError::Closed(CloseReason::Stopping));
        }
        tokio::select! {
            biased;
            // an answer that came as the last thing on the link is an answer
            done = tokio::time::timeout_at(Instant::now() + deadline, work) => {
                done.unwrap_or(Err(RequestError::Deadline(deadline)))
            }
            reason = self.inner.closing.closed() => Err(RequestError::Closed(reason)),
        }
    }
}

impl fmt::Debug for LinkHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkHandle")
            .field("id", &self.inner.id)
            .field("worker_key", &self.inner.worker_key)
            .field("peer", &self.inner.peer)
            .field("close_reason", &self.close_reason())
            .finish_non_exhaustive()
    }
}
