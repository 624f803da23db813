//! What the admin UI reads: the whole fleet at one moment, and then what changes.

use super::stream::Streams;
use crate::server::ServerState;
use crate::server::announcer::Announcer;
use crate::server::auth::AdminUser;
use crate::server::error::ApiError;
use crate::server::registry::{Registry, view};
use api::FleetSnapshot;
use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::response::Response;

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

/// All workers at this moment, by name.
pub fn snapshot(registry: &Registry, announcer: &Announcer) -> FleetSnapshot {
    // the number first: what changes while rows are read is in a later update too
    let sequence = announcer.sequence();
    let moment = registry.moment();
    let all = registry.all();
    let mut workers: Vec<_> =
        all.iter().map(|worker| view::worker_view(&worker.facts(), &moment, registry.policy())).collect();
    workers.sort_by(|a, b| a.name.cmp(&b.name));
    FleetSnapshot { sequence, server_time_ms: moment.wall_ms(moment.now), workers }
}

/// What changes, as server-sent events: `hello`, then `update` about once a second, `resync` when some were lost.
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
    Ok(streams.events(state, parts))
}

/// The routes of this file.
pub fn routes() -> utoipa_axum::router::OpenApiRouter<ServerState> {
    utoipa_axum::router::OpenApiRouter::new().routes(utoipa_axum::routes!(read)).routes(utoipa_axum::routes!(events))
}
