//! What the admin UI reads: the whole fleet at one moment, and then what changes.

use super::body::JsonBody;
use super::extract::PathOf;
use super::stream::Streams;
use crate::server::ServerState;
use crate::server::announcer::Announcer;
use crate::server::auth::AdminUser;
use crate::server::error::ApiError;
use crate::server::registry::{Registry, Worker, assess, view};
use api::{FleetSnapshot, WatchRequest, WatchedUpdate, WorkerId};
use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::response::Response;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All workers at one moment.
#[utoipa::path(
    get, path = "/v1/fleet", tag = "fleet",
    responses((status = 200, body = FleetSnapshot), (status = 401, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn read(
    State(registry): State<Registry>,
    State(announcer): State<Announcer>,
    _: AdminUser,
) -> Json<FleetSnapshot> {
    Json(snapshot(&registry, &announcer))
}

fn snapshot(registry: &Registry, announcer: &Announcer) -> FleetSnapshot {
    // the number first: what changes while rows are read is in a later update too
    let sequence = announcer.sequence();
    let moment = registry.moment();
    let brief = |worker: &Arc<Worker>| {
        let facts = worker.facts();
        view::brief(&facts, assess::assess_briefly(&facts, &moment, registry.policy()))
    };
    let workers = registry.all().iter().map(brief).collect();
    FleetSnapshot { sequence, server_time_ms: moment.wall_ms(moment.now), workers }
}

/// What changes, as server-sent events: `hello`, then `update` and `watched` once a second at most, `resync` when some
/// were lost.
#[utoipa::path(
    get, path = "/v1/events", tag = "fleet",
    responses((status = 200, body = api::FleetUpdate, content_type = "text/event-stream"), (status = 401, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn events(
    State(state): State<ServerState>,
    State(streams): State<Streams>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut parts, _) = request.into_parts();
    AdminUser::from_request_parts(&mut parts, &state).await?;
    streams.events(state, parts)
}

/// Says at which workers the reader of a stream looks: only of these it is told readings and heartbeats.
#[utoipa::path(
    post, path = "/v1/events/{stream}/watch", tag = "fleet",
    params(("stream" = String, Path, description = "As the stream's `hello` names it.")),
    request_body = WatchRequest,
    responses(
        (status = 200, body = WatchedUpdate),
        (status = 401, body = api::ErrorBody),
        (status = 404, description = "the stream has ended", body = api::ErrorBody),
        (status = 422, body = api::ErrorBody),
    ),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn watch(
    State(registry): State<Registry>,
    State(streams): State<Streams>,
    _: AdminUser,
    PathOf(stream): PathOf<String>,
    JsonBody(wish): JsonBody<WatchRequest>,
) -> Result<Json<WatchedUpdate>, ApiError> {
    for (field, workers) in [("workers", &wish.workers), ("show", &wish.show)] {
        if workers.len() > WatchRequest::MOST {
            return Err(ApiError::invalid(format!("{field}: more than {} workers", WatchRequest::MOST)));
        }
    }
    // what changes after this is told by the stream
    if !streams.onlookers().look(&stream, &wish.workers) {
        return Err(ApiError::not_found("stream of events"));
    }
    Ok(Json(shown(&registry, &wish.show)))
}

fn shown(registry: &Registry, ids: &[WorkerId]) -> WatchedUpdate {
    let moment = registry.moment();
    let known = ids.iter().filter_map(|id| registry.get(*id));
    let changed = known.map(|worker| view::worker_view(&worker.facts(), &moment, registry.policy())).collect();
    WatchedUpdate { server_time_ms: moment.wall_ms(moment.now), changed, ..WatchedUpdate::default() }
}

/// The routes of this file.
pub fn routes() -> OpenApiRouter<ServerState> {
    OpenApiRouter::new().routes(routes!(read)).routes(routes!(events)).routes(routes!(watch))
}
