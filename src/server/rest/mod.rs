//! The HTTP side: routes, and what holds for all of them.

pub mod api_keys;
mod body;
mod dashboard;
mod devices;
mod extract;
pub mod fleet;
mod health;
pub mod login;
mod models;
mod onlookers;
mod openapi;
mod paging;
mod request_id;
mod stream;
mod tunnels;
pub mod users;
mod workers;

pub use request_id::{RequestId, not_found};
pub use stream::Streams;

use super::ServerState;
use super::error::ApiError;
use super::links;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderName, HeaderValue, header};
use std::any::Any;
use std::time::Duration;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;

/// A report of a thousand devices is smaller.
const BODY_LIMIT_BYTES: usize = 2 * 1024 * 1024;
/// From a request's head to its answer's head; streams go on after that.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Everything that is no page of the UI: resources, probes and the document that describes them.
fn resources() -> (Router<ServerState>, utoipa::openapi::OpenApi) {
    openapi::document()
        .merge(workers::routes())
        .merge(devices::routes())
        .merge(tunnels::routes())
        .merge(fleet::routes())
        .merge(dashboard::routes())
        .merge(health::routes())
        .merge(login::router())
        .merge(users::router())
        .merge(api_keys::router())
        .split_for_parts()
}

/// All routes, with `pages` for the rest: they answer what is nowhere, too.
pub fn router(state: ServerState, pages: Router<ServerState>) -> Router {
    let (resources, document) = resources();
    let document = serde_json::to_value(document).unwrap_or_default();
    let resources = resources
        .merge(models::routes())
        .merge(health::probes())
        .route("/openapi.json", get(move || async move { axum::Json(document) }))
        .layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, HeaderValue::from_static("no-store")));
    resources
        .merge(pages)
        .method_not_allowed_fallback(request_id::method_not_allowed)
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(BODY_LIMIT_BYTES))
        // the fastest: figures compress well, and a slow tunnel is still faster than a busy core
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(from_fn(limit_time))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(SetResponseHeaderLayer::if_not_present(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")))
        .layer(SetResponseHeaderLayer::if_not_present(
            HeaderName::from_static("referrer-policy"),
            HeaderValue::from_static("same-origin"),
        ))
        .layer(from_fn(request_id::assign))
        .merge(links::routes())
        .with_state(state)
}

async fn limit_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::unavailable("the request took too long; try again", 5).into_response(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the layer gives it away")]
fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let words = panic
        .downcast_ref::<&str>()
        .map(|words| (*words).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned());
    ApiError::internal(words).into_response()
}
