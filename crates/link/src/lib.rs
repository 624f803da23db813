//! One outbound, encrypted connection for each worker, over which the server reaches it.
//!
//! A worker dials ([`Dialer`]), an HTTP/1.1 connection of the server is upgraded ([`Acceptor`]), both speak TLS 1.3 inside
//! whatever carries that, prove to each other who they are, and turn the roles round: the worker serves HTTP/2 requests
//! on the connection that it dialled, and the server sends them ([`LinkHandle`]). What goes over the wire, and who can do
//! what to it, stands in `docs/link-protocol.md`.
//!
//! On the server, with axum:
//!
//! ```no_run
//! # use axum::{extract::{ConnectInfo, Request, State}, response::IntoResponse};
//! # use std::net::SocketAddr;
//! async fn link(
//!     State(acceptor): State<link::Acceptor>,
//!     ConnectInfo(peer): ConnectInfo<SocketAddr>,
//!     request: Request,
//! ) -> impl IntoResponse {
//!     acceptor.respond(request, peer).map(axum::body::Body::new)
//! }
//! # let _ = axum::Router::<link::Acceptor>::new().route(link::LINK_PATH, axum::routing::get(link));
//! ```
//!
//! On the worker:
//!
//! ```no_run
//! # async fn worker(config: link::DialConfig, user: &dyn link::LinkUser, routes: axum::Router) {
//! let shutdown = tokio_util::sync::CancellationToken::new();
//! link::Dialer::new(config).run(user, routes, shutdown).await;
//! # }
//! ```
//!
//! The crate knows no route, no database and no word of what uses it: what the two sides have to say to each other when
//! a worker joins is bytes to it, and who may come in is for a [`Gatekeeper`] to say.

mod accept;
mod body;
mod client_upgrade;
mod control;
mod dial;
mod driver;
mod encryption;
mod handle;
mod handshake;
mod io;
mod jitter;
mod keys;
mod log_limit;
mod message;
mod meter;
mod outer_tls;
mod refusal;
mod registry;
mod serve;
mod targets;
mod tcp_stream;
mod token;
mod transport;
mod tuning;
mod upgrade;
mod websocket;

pub use accept::{Acceptor, LinkObserver};
pub use body::{LinkBody, LinkSender};
pub use client_upgrade::{ForeignAnswer, UpgradeError};
pub use dial::{DialConfig, DialError, Dialer, Link, LinkUser, Next, Step, Welcome};
pub use handle::{CloseReason, ConnectError, LinkHandle, LinkStats, RequestError};
pub use handshake::{Admission, Applicant, Gatekeeper, JoinError};
pub use io::{BoxedIo, Io, tune_socket};
pub use keys::{KeyError, KeyPair, NoPublicKey, PublicKey};
pub use message::{Generation, MAX_PAYLOAD_BYTES, MessageError};
pub use outer_tls::{OuterTls, PinMismatch};
pub use refusal::Refusal;
pub use registry::{Drain, Drained, Registry};
pub use serve::LinkEnd;
pub use targets::AllowedTargets;
pub use tcp_stream::LinkTcpStream;
pub use token::{JoinToken, ShownToken};
pub use transport::{AddressError, DirectTransport, ServerAddress, Transport, TransportError};
pub use tuning::Tuning;
pub use upgrade::{Carrier, LINK_PATH};
