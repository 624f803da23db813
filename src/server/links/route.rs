//! Where workers' links arrive.

use crate::server::ServerState;
use crate::server::listen::PeerAddress;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Router, http};
use link::{Acceptor, LINK_PATH};

/// The one route. It stays outside of what is wrapped around the others: its answers are the link's own, and what
/// follows them is no HTTP.
pub fn routes() -> Router<ServerState> {
    Router::new().route(LINK_PATH, any(take))
}

async fn take(State(acceptor): State<Acceptor>, Extension(peer): Extension<PeerAddress>, request: Request) -> Response {
    let response: http::Response<_> = acceptor.respond(request, peer.addr);
    response.map(Body::new).into_response()
}
