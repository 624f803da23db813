//! `/v1/tunnels`: the agents that keep SSH forwards, with all that they told last.

use super::extract::PathOf;
use crate::server::ServerState;
use crate::server::auth::AdminUser;
use crate::server::error::ApiError;
use crate::server::tunnels::Tunnels;
use api::{TunnelAgent, TunnelAgentId, WorkerId, WorkerTunnel};
use axum::Json;
use axum::extract::State;

/// Lists tunnel agents, by name. Of one that is not connected it shows what it told last.
#[utoipa::path(
    get, path = "/v1/tunnels", tag = "tunnels",
    responses((status = 200, body = Vec<TunnelAgent>), (status = 401, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn list(State(tunnels): State<Tunnels>, _: AdminUser) -> Json<Vec<TunnelAgent>> {
    Json(tunnels.agents())
}

/// One tunnel agent.
#[utoipa::path(
    get, path = "/v1/tunnels/{id}", tag = "tunnels",
    params(("id" = i64, Path, description = "The agent's row.")),
    responses((status = 200, body = TunnelAgent), (status = 404, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn read(
    State(tunnels): State<Tunnels>,
    _: AdminUser,
    PathOf(id): PathOf<TunnelAgentId>,
) -> Result<Json<TunnelAgent>, ApiError> {
    tunnels.agent(id).map(Json).ok_or_else(|| ApiError::not_found("tunnel agent"))
}

/// Deletes a tunnel agent: its link ends and its key is revoked. With the join token it can come again, as a new one.
#[utoipa::path(
    delete, path = "/v1/tunnels/{id}", tag = "tunnels",
    params(("id" = i64, Path, description = "The agent's row.")),
    responses((status = 200, description = "`null`"), (status = 404, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn delete(
    State(tunnels): State<Tunnels>,
    _: AdminUser,
    PathOf(id): PathOf<TunnelAgentId>,
) -> Result<Json<()>, ApiError> {
    if tunnels.delete(id).await? { Ok(Json(())) } else { Err(ApiError::not_found("tunnel agent")) }
}

/// The tunnels that a worker depends on: those that name it, and those that they go through.
#[utoipa::path(
    get, path = "/v1/workers/{id}/tunnels", tag = "tunnels",
    params(("id" = i64, Path, description = "The worker's row.")),
    responses((status = 200, body = Vec<WorkerTunnel>), (status = 404, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn of_worker(
    State(tunnels): State<Tunnels>,
    _: AdminUser,
    PathOf(id): PathOf<WorkerId>,
) -> Result<Json<Vec<WorkerTunnel>>, ApiError> {
    tunnels.of_worker(id).map(Json).ok_or_else(|| ApiError::not_found("worker"))
}

/// The routes of this file.
pub fn routes() -> utoipa_axum::router::OpenApiRouter<ServerState> {
    utoipa_axum::router::OpenApiRouter::new()
        .routes(utoipa_axum::routes!(list))
        .routes(utoipa_axum::routes!(read, delete))
        .routes(utoipa_axum::routes!(of_worker))
}
