//! `/v1/workers`, in GPUStack 0.7's shape.
//!
//! A GPUStack 0.7 worker may look for rows by name or id, list those with its own address, add itself, and change its
//! own row; nothing else.

use super::body::JsonBody;
use super::extract::{PathOf, QueryOf, RawBody, parse_json};
use super::paging::PageQuery;
use super::stream;
use crate::server::ServerState;
use crate::server::announcer::Announcer;
use crate::server::auth::{AdminUser, Caller};
use crate::server::error::ApiError;
use crate::server::examination::examine;
use crate::server::links::Links;
use crate::server::membership::Membership;
use crate::server::registry::{self, Registry, view};
use api::{Examination, Page, Worker, WorkerChange, WorkerId, WorkerReport, WorkerUuid};
use axum::Json;
use axum::extract::{FromRef, FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use serde::Deserialize;
use std::cmp::Reverse;
use std::sync::Arc;
use uuid::Uuid;

/// A link that ended comes back within seconds.
const EXAMINATION_RETRY_S: u64 = 5;

/// Who may ask here.
pub enum Asker {
    /// An administrator.
    Admin,
    /// A GPUStack 0.7 worker, which calls this its address.
    LegacyWorker {
        /// What its user name says.
        address: String,
    },
}

impl<S> FromRequestParts<S> for Asker
where
    S: Send + Sync,
    crate::server::auth::Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Caller::from_request_parts(parts, state).await? {
            Caller::User(user) if user.is_admin => Ok(Self::Admin),
            Caller::User(_) => Err(ApiError::forbidden("this is for administrators")),
            Caller::LegacyWorker { address } => Ok(Self::LegacyWorker { address }),
        }
    }
}

/// What to list.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ListQuery {
    name: Option<String>,
    uuid: Option<String>,
    search: Option<String>,
    watch: Option<String>,
    #[serde(flatten)]
    page: PageQuery,
}

impl ListQuery {
    fn is_watch(&self) -> bool {
        self.watch.as_deref().is_some_and(is_true)
    }

    /// Whether a row is among those that were asked for.
    pub(super) fn matches(&self, worker: &registry::Worker) -> bool {
        let facts = worker.facts();
        self.name.as_ref().is_none_or(|name| *name == facts.row.name)
            && self.uuid.as_ref().is_none_or(|uuid| parse_uuid(uuid) == Some(facts.row.uuid))
            && self.search.as_ref().is_none_or(|search| contains(&facts.row.name, search))
    }

    /// Newest first. Names and ids have an index.
    fn find(&self, registry: &Registry) -> Vec<Arc<registry::Worker>> {
        let candidates = match (&self.name, &self.uuid) {
            (Some(name), _) => registry.by_name(name).into_iter().collect(),
            (None, Some(uuid)) => parse_uuid(uuid).and_then(|uuid| registry.by_uuid(uuid)).into_iter().collect(),
            (None, None) => registry.all(),
        };
        if self.name.is_none() && self.uuid.is_none() && self.search.is_none() {
            // each look at a worker waits for whoever changes it at that moment
            return candidates;
        }
        candidates.into_iter().filter(|worker| self.matches(worker)).collect()
    }
}

/// As GPUStack 0.7 reads a flag of the query.
pub(super) fn is_true(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "true" | "1" | "yes" | "on")
}

pub(super) fn contains(text: &str, search: &str) -> bool {
    text.to_lowercase().contains(&search.to_lowercase())
}

fn parse_uuid(text: &str) -> Option<WorkerUuid> {
    Uuid::parse_str(text).ok().map(WorkerUuid)
}

/// Lists workers.
#[utoipa::path(
    get, path = "/v1/workers", tag = "workers",
    params(
        ("name" = Option<String>, Query, description = "This name exactly."),
        ("uuid" = Option<String>, Query, description = "This worker id exactly."),
        ("search" = Option<String>, Query, description = "Part of the name, in any case."),
        ("page" = Option<u32>, Query, description = "From 1."),
        ("perPage" = Option<u32>, Query, description = "1 to 100; 100 when absent."),
        ("watch" = Option<bool>, Query, description = "A stream of changes that begins with all rows: JSON objects `{\"type\":1|2|3,\"data\":…}`, each followed by two newlines."),
    ),
    responses((status = 200, body = Page<Worker>), (status = 401, body = api::ErrorBody), (status = 422, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn list(
    State(registry): State<Registry>,
    State(announcer): State<Announcer>,
    State(streams): State<stream::Streams>,
    asker: Asker,
    QueryOf(query): QueryOf<ListQuery>,
) -> Result<Response, ApiError> {
    let moment = registry.moment();
    let policy = *registry.policy();
    match asker {
        Asker::Admin if query.is_watch() => Ok(streams.watch_workers(registry, &announcer, query)),
        Asker::Admin => {
            let rows = query.find(&registry);
            let make = |worker: Arc<registry::Worker>| view::worker(&worker.facts(), &moment, &policy);
            Ok(Json(query.page.wish()?.cut(rows.into_iter(), make)).into_response())
        }
        Asker::LegacyWorker { .. } if query.is_watch() => Err(only_its_own()),
        Asker::LegacyWorker { address } => {
            let mut rows = query.find(&registry);
            if query.name.is_none() && query.uuid.is_none() {
                rows.retain(|worker| worker.facts().row.ip == address);
                // the caller looks for itself among the first hundred: behind tunnels all have one address
                rows.sort_by_key(|worker| Reverse(worker.facts().registered));
            }
            let make = |worker: Arc<registry::Worker>| view::legacy_worker(&worker.facts(), &moment, &policy);
            Ok(Json(query.page.wish()?.cut(rows.into_iter(), make)).into_response())
        }
    }
}

fn only_its_own() -> ApiError {
    ApiError::forbidden("a worker may read and change its own row only")
}

/// Adds a GPUStack 0.7 worker. Workers of ours begin a session instead.
#[utoipa::path(
    post, path = "/v1/workers", tag = "workers",
    request_body = WorkerReport,
    responses((status = 200, body = Worker), (status = 403, body = api::ErrorBody), (status = 409, body = api::ErrorBody), (status = 422, body = api::ErrorBody)),
    security(("legacy_worker" = [])),
)]
pub async fn create(
    State(registry): State<Registry>,
    State(membership): State<Membership>,
    asker: Asker,
    JsonBody(report): JsonBody<WorkerReport>,
) -> Result<Json<Worker>, ApiError> {
    if matches!(asker, Asker::Admin) {
        return Err(ApiError::forbidden("workers add themselves, with the join token"));
    }
    let worker = membership.legacy_join(report).await?;
    let facts = worker.facts();
    Ok(Json(view::legacy_worker(&facts, &registry.moment(), registry.policy())))
}

/// One worker.
#[utoipa::path(
    get, path = "/v1/workers/{id}", tag = "workers",
    params(("id" = i64, Path, description = "The worker's row.")),
    responses((status = 200, body = Worker), (status = 404, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn read(
    State(registry): State<Registry>,
    asker: Asker,
    PathOf(id): PathOf<WorkerId>,
) -> Result<Json<Worker>, ApiError> {
    let missing = || ApiError::not_found("worker");
    match asker {
        Asker::Admin => {
            let worker = registry.get(id).ok_or_else(missing)?;
            let facts = worker.facts();
            Ok(Json(view::worker(&facts, &registry.moment(), registry.policy())))
        }
        Asker::LegacyWorker { address } => {
            let worker = registry.get(id).ok_or_else(missing)?;
            let facts = worker.facts();
            if facts.is_own() || facts.row.ip != address {
                return Err(only_its_own());
            }
            Ok(Json(view::legacy_worker(&facts, &registry.moment(), registry.policy())))
        }
    }
}

/// Has a worker look at its host, point by point, now: what `gpustack doctor` prints there.
#[utoipa::path(
    get, path = "/v1/workers/{id}/examination", tag = "workers",
    params(("id" = i64, Path, description = "The worker's row.")),
    responses(
        (status = 200, body = Examination),
        (status = 404, body = api::ErrorBody),
        (status = 503, body = api::ErrorBody, description = "The worker cannot be asked at this moment."),
    ),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn examination(
    State(registry): State<Registry>,
    State(links): State<Links>,
    _: AdminUser,
    PathOf(id): PathOf<WorkerId>,
) -> Result<Json<Examination>, ApiError> {
    let worker = registry.get(id).ok_or_else(|| ApiError::not_found("worker"))?;
    let examined = examine(&worker, &links).await;
    examined.map(Json).map_err(|error| ApiError::unavailable(error.to_string(), EXAMINATION_RETRY_S))
}

/// Changes a worker: its labels and maintenance for an administrator; for a GPUStack 0.7 worker its own row, which is
/// its heartbeat.
#[utoipa::path(
    put, path = "/v1/workers/{id}", tag = "workers",
    params(("id" = i64, Path, description = "The worker's row.")),
    request_body = WorkerChange,
    responses((status = 200, body = Worker), (status = 403, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 422, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = []), ("legacy_worker" = [])),
)]
pub async fn update(
    State(registry): State<Registry>,
    State(membership): State<Membership>,
    asker: Asker,
    PathOf(id): PathOf<WorkerId>,
    RawBody(body): RawBody,
) -> Result<Json<Worker>, ApiError> {
    match asker {
        Asker::Admin => {
            let change: WorkerChange = parse_json(&body)?;
            refuse_renaming(&registry, id, parse_json(&body)?)?;
            let worker = membership.change(id, change).await?.ok_or_else(|| ApiError::not_found("worker"))?;
            let facts = worker.facts();
            Ok(Json(view::worker(&facts, &registry.moment(), registry.policy())))
        }
        Asker::LegacyWorker { .. } => {
            let report: WorkerReport = parse_json(&body)?;
            let worker = membership.legacy_update(id, report).await?;
            let facts = worker.facts();
            Ok(Json(view::legacy_worker(&facts, &registry.moment(), registry.policy())))
        }
    }
}

#[derive(Deserialize)]
struct GivenName {
    name: Option<String>,
}

/// Programs send whole rows back, so the present name is no fault; another one would change nothing, and look as if.
fn refuse_renaming(registry: &Registry, id: WorkerId, given: GivenName) -> Result<(), ApiError> {
    let present = registry.get(id).map(|worker| worker.facts().row.name.clone());
    match present.zip(given.name) {
        Some((present, given)) if present != given => Err(ApiError::invalid(format!(
            "a worker is renamed where it runs, with --worker-name; here it stays `{present}`"
        ))),
        _ => Ok(()),
    }
}

/// Deletes a worker and revokes its credential.
#[utoipa::path(
    delete, path = "/v1/workers/{id}", tag = "workers",
    params(("id" = i64, Path, description = "The worker's row.")),
    responses((status = 200, description = "`null`"), (status = 404, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn delete(
    State(membership): State<Membership>,
    _: AdminUser,
    PathOf(id): PathOf<WorkerId>,
) -> Result<Json<()>, ApiError> {
    if membership.delete(id).await? { Ok(Json(())) } else { Err(ApiError::not_found("worker")) }
}

/// Lets the host that asked for it take this worker's name and row.
#[utoipa::path(
    post, path = "/v1/workers/{id}/replacement", tag = "workers",
    params(("id" = i64, Path, description = "The row of the worker that is gone.")),
    responses((status = 204), (status = 404, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn allow_replacement(
    State(membership): State<Membership>,
    _: AdminUser,
    PathOf(id): PathOf<WorkerId>,
) -> Result<http::StatusCode, ApiError> {
    if membership.allow_replacement(id).await? {
        return Ok(http::StatusCode::NO_CONTENT);
    }
    Err(ApiError::not_found("host that asks for this worker's place"))
}

/// The routes of this file.
pub fn routes() -> utoipa_axum::router::OpenApiRouter<ServerState> {
    utoipa_axum::router::OpenApiRouter::new()
        .routes(utoipa_axum::routes!(list, create))
        .routes(utoipa_axum::routes!(read, update, delete))
        .routes(utoipa_axum::routes!(allow_replacement))
        .routes(utoipa_axum::routes!(examination))
}
