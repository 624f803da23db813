//! Whether the server runs, for load balancers and the like. No database is asked and nobody need log in.

use crate::server::ServerState;
use crate::server::auth::AdminUser;
use crate::server::supervisor::{JobView, Supervisor};
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

/// Which version runs; GPUStack's shape.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Version {
    /// The release.
    pub version: String,
    /// The commit, when it was known at build time.
    pub git_commit: String,
}

/// That the server runs, and which it is.
#[derive(Clone, Debug, Serialize)]
struct Health {
    status: &'static str,
    /// Tells this server from others, as whoever knows its key on links can check.
    server: String,
}

async fn healthz(State(key): State<link::PublicKey>) -> Json<Health> {
    Json(Health { status: "ok", server: key.fingerprint() })
}

async fn ok() -> Json<&'static str> {
    Json("ok")
}

/// Which version runs.
#[utoipa::path(get, path = "/version", tag = "server", responses((status = 200, body = Version)))]
pub async fn version() -> Json<Version> {
    Json(Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git_commit: option_env!("GPUSTACK_GIT_COMMIT").unwrap_or_default().to_owned(),
    })
}

/// The server's background jobs.
#[utoipa::path(
    get, path = "/v1/tasks", tag = "server",
    responses((status = 200, body = Vec<JobView>), (status = 401, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn tasks(State(supervisor): State<Supervisor>, _: AdminUser) -> Json<Vec<JobView>> {
    Json(supervisor.view())
}

/// The probes.
pub fn probes() -> Router<ServerState> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(ok))
}

/// The other routes of this file.
pub fn routes() -> utoipa_axum::router::OpenApiRouter<ServerState> {
    utoipa_axum::router::OpenApiRouter::new().routes(utoipa_axum::routes!(version)).routes(utoipa_axum::routes!(tasks))
}
