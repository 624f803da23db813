//! The worker's side of the upgrade, and which of the two ways gets through.

use crate::io::BoxedIo;
use crate::refusal::Refusal;
use crate::transport::{ServerAddress, Transport, TransportError};
use crate::upgrade::{
    self, Carrier, LINK_PATH, MARK, PROTOCOL, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, WEBSOCKET, WEBSOCKET_PROTOCOL, WEBSOCKET_VERSION,
};
use crate::websocket::{self, WebSocketIo};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, LOCATION, RETRY_AFTER, UPGRADE};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use thiserror::Error;
use tokio::time;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Enough to tell what answers: a page has its title at its beginning.
const FOREIGN_BODY_BYTES: usize = 16 * 1024;
const FOREIGN_BODY_DEADLINE: Duration = Duration::from_secs(3);

/// Why no upgrade came about.
#[derive(Debug, Error)]
pub enum UpgradeError {
    /// There is no connection to upgrade.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The connection ended, or what came is no HTTP.
    #[error("the server or a proxy in between ended the connection instead of answering: {0}")]
    NoAnswer(#[source] hyper::Error),
    /// Something else than a link answers at this address.
    #[error("{}", .0.describe())]
    Foreign(Box<ForeignAnswer>),
    /// The server itself answers, so a proxy took the upgrade away.
    #[error(
        "a proxy between this worker and the server takes the upgrade away; make it pass on the headers Upgrade and \
         Connection (nginx: proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header \
         Connection \"upgrade\")"
    )]
    TakenAway,
    /// The server has no room for the moment.
    #[error("{}", Refusal::Busy { retry_after: *retry_after })]
    Busy {
        /// When to come back.
        retry_after: Duration,
    },
}

/// What something else answered to a request for a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Where it points to, when it is a redirection.
    pub location: Option<String>,
    /// The type of its body, when it says so.
    pub content_type: Option<String>,
    /// The beginning of its body, at most 16 KiB.
    pub body: Bytes,
}

impl ForeignAnswer {
    async fn read(response: Response<Incoming>) -> Self {
        let status = response.status();
        let text = |name: HeaderName| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let location = text(LOCATION).filter(|_| status.is_redirection());
        let content_type = text(CONTENT_TYPE);
        let body = time::timeout(FOREIGN_BODY_DEADLINE, beginning(response.into_body())).await.unwrap_or_default();
        Self { status, location, content_type, body }
    }

    fn describe(&self) -> String {
        let status = self.status;
        if let Some(location) = &self.location {
            return format!("the server's address sends elsewhere ({status}): use {location} as the server's address");
        }
        let hint = match status {
            StatusCode::NOT_FOUND => "is this the address of a gpustack server, and is the server new enough?",
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                "something in between wants a sign-in: let /v1/link through without one"
            }
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                "a proxy answers, and the server behind it does not"
            }
            _ => "is this the address of a gpustack server?",
        };
        format!("no link at this address, the answer was {status}; {hint}")
    }
}

/// What has come of a body when it is long enough, ends, or breaks.
async fn beginning(mut body: Incoming) -> Bytes {
    let mut begun = BytesMut::new();
    while let Some(Ok(piece)) = body.frame().await {
        let Ok(piece) = piece.into_data() else { break };
        let room = FOREIGN_BODY_BYTES - begun.len();
        begun.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if begun.len() == FOREIGN_BODY_BYTES {
            break;
        }
    }
    begun.freeze()
}

/// Gets a stream that is ready for the handshake. Tries `first`, then the other way where the first may have been
/// refused for what it is.
pub(crate) async fn upgrade(
    transport: &dyn Transport,
    address: &ServerAddress,
    first: Carrier,
) -> Result<(BoxedIo, Carrier), UpgradeError> {
    let refused = match attempt(transport, address, first).await {
        Ok(io) => return Ok((io, first)),
        Err(error) if error.may_be_about_the_way() => error,
        Err(error) => return Err(error),
    };
    let second = match first {
        Carrier::Stream => Carrier::WebSocket,
        Carrier::WebSocket => Carrier::Stream,
    };
    match attempt(transport, address, second).await {
        Ok(io) => Ok((io, second)),
        // of two ways that both fail, the first tells more unless the second got further
        Err(error) if error.may_be_about_the_way() => Err(refused),
        Err(error) => Err(error),
    }
}

impl UpgradeError {
    /// Whether the other way may get through. A proxy that does not like an upgrade says so with one of these, breaks
    /// the connection, or takes the upgrade out of the request; everything else is about the address or the server.
    fn may_be_about_the_way(&self) -> bool {
        match self {
            Self::NoAnswer(_) | Self::TakenAway => true,
            Self::Foreign(answer) => matches!(
                answer.status,
                StatusCode::BAD_REQUEST
                    | StatusCode::FORBIDDEN
                    | StatusCode::METHOD_NOT_ALLOWED
                    | StatusCode::UPGRADE_REQUIRED
                    | StatusCode::NOT_IMPLEMENTED
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::HTTP_VERSION_NOT_SUPPORTED
            ),
            Self::Transport(_) | Self::Busy { .. } => false,
        }
    }
}

async fn attempt(
    transport: &dyn Transport,
    address: &ServerAddress,
    carrier: Carrier,
) -> Result<BoxedIo, UpgradeError> {
    let io = transport.open().await?;
    let (mut requests, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(io)).await.map_err(UpgradeError::NoAnswer)?;
    let connection = tokio::spawn(connection.with_upgrades());
    // drops the connection with this future, should the deadline come first
    let _connection = tokio_util::task::AbortOnDropHandle::new(connection);
    let key = websocket_key();
    let mut response = requests.send_request(request(address, carrier, &key)).await.map_err(UpgradeError::NoAnswer)?;
    if !is_accepted(&response, carrier, &key) {
        return Err(refusal(response).await);
    }
    let upgraded = hyper::upgrade::on(&mut response).await.map_err(UpgradeError::NoAnswer)?;
    let io: BoxedIo = Box::new(TokioIo::new(upgraded));
    Ok(match carrier {
        Carrier::Stream => io,
        Carrier::WebSocket => Box::new(WebSocketIo::new(io, Role::Client).await),
    })
}

fn request(address: &ServerAddress, carrier: Carrier, key: &str) -> Request<Empty<Bytes>> {
    let mut builder = Request::get(format!("{}{LINK_PATH}", address.base_path()))
        .header(HOST, address.authority())
        .header(CONNECTION, "Upgrade");
    builder = match carrier {
        Carrier::Stream => builder.header(UPGRADE, PROTOCOL),
        Carrier::WebSocket => builder
            .header(UPGRADE, WEBSOCKET)
            .header(SEC_WEBSOCKET_VERSION, WEBSOCKET_VERSION)
            .header(SEC_WEBSOCKET_PROTOCOL, WEBSOCKET_PROTOCOL)
            .header(SEC_WEBSOCKET_KEY, key),
    };
    // all parts are constants, or come from a `Uri`
    builder.body(Empty::new()).unwrap_or_default()
}

/// RFC 6455 wants 16 random bytes, so that no cache takes one conversation for another. They are no secret.
fn websocket_key() -> String {
    let mut nonce = [0; 16];
    let _ = aws_lc_rs::rand::fill(&mut nonce);
    STANDARD.encode(nonce)
}

fn is_accepted(response: &Response<Incoming>, carrier: Carrier, key: &str) -> bool {
    let headers = response.headers();
    response.status() == StatusCode::SWITCHING_PROTOCOLS
        && match carrier {
            Carrier::Stream => upgrade::has_token(headers, &UPGRADE, PROTOCOL),
            Carrier::WebSocket => {
                let accept = websocket::accept_key(key.as_bytes());
                upgrade::has_token(headers, &UPGRADE, WEBSOCKET)
                    && headers.get(SEC_WEBSOCKET_ACCEPT).is_some_and(|value| value == accept.as_str())
            }
        }
}

async fn refusal(response: Response<Incoming>) -> UpgradeError {
    let status = response.status();
    let from_server = response.headers().contains_key(MARK);
    match status {
        StatusCode::UPGRADE_REQUIRED if from_server => UpgradeError::TakenAway,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS if from_server => {
            UpgradeError::Busy { retry_after: retry_after(response.headers()) }
        }
        _ => UpgradeError::Foreign(Box::new(ForeignAnswer::read(response).await)),
    }
}

fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|value| value.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}
