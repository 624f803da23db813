//! What workers of ours call: they begin a session, send heartbeats, and tell what they see of their host.

use super::body::JsonBody;
use super::extract::{RawBody, parse_json};
use crate::server::ServerState;
use crate::server::auth::{Auth, bearer};
use crate::server::error::ApiError;
use crate::server::membership::{self, Membership, Proof, credential_revoked, session_replaced, unsupported_protocol};
use crate::server::registry::facts::Facts;
use crate::server::registry::time::system_ms;
use crate::server::registry::{Registry, Worker};
use crate::server::store::workers::CredentialHash;
use api::{HeartbeatRequest, HeartbeatResponse, PROTOCOL_VERSION, RegisterResponse, SessionId, StatusReport};
use axum::Json;
use axum::extract::{FromRef, FromRequestParts, State};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use std::sync::Arc;

/// What a worker keeps to; a third of the shortest offline timeout.
pub const HEARTBEAT_INTERVAL_S: u64 = 10;
/// A credential: 32 bytes in hexadecimal digits.
const CREDENTIAL_DIGITS: usize = 64;

/// The worker that a request's credential belongs to.
pub struct OwnWorker(Arc<Worker>);

impl<S> FromRequestParts<S> for OwnWorker
where
    S: Send + Sync,
    Registry: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let credential = bearer(&parts.headers)
            .ok_or_else(|| ApiError::unauthorized("send the worker's credential as `Authorization: Bearer …`"))?;
        let worker = Registry::from_ref(state).by_credential(&membership::hash(credential));
        worker.map(Self).ok_or_else(credential_revoked)
    }
}

#[derive(Deserialize)]
struct ProtocolOnly {
    protocol: u32,
}

/// Begins a worker's session; joins the worker first when it is new.
#[utoipa::path(
    post, path = "/v1/worker-sessions", tag = "worker protocol",
    request_body = api::RegisterRequest,
    responses(
        (status = 200, body = RegisterResponse),
        (status = 401, body = api::ErrorBody, description = "`Unauthorized`: the join token is wrong. `CredentialRevoked`: join again with the token."),
        (status = 409, body = api::ErrorBody, description = "`AlreadyExists`, `ReplacementNeeded` or `IdentityDuplicated`."),
        (status = 422, body = api::ErrorBody),
        (status = 426, body = api::ErrorBody, description = "`ProtocolUnsupported`."),
    ),
    security(("join_token" = []), ("worker_credential" = [])),
)]
pub async fn begin_session(
    State(auth): State<Auth>,
    State(registry): State<Registry>,
    State(membership): State<Membership>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<Json<RegisterResponse>, ApiError> {
    let proof = prove(&auth, &registry, &headers)?;
    // before all else: another version's request may have other fields
    let ProtocolOnly { protocol } = parse_json(&body)?;
    if protocol != PROTOCOL_VERSION {
        return Err(unsupported_protocol(protocol));
    }
    let registered = membership.register(parse_json(&body)?, proof).await?;
    let facts = registered.worker.facts();
    Ok(Json(RegisterResponse {
        worker_id: facts.row.id,
        name: facts.row.name.clone(),
        credential: registered.credential,
        heartbeat_interval_s: HEARTBEAT_INTERVAL_S,
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

fn prove(auth: &Auth, registry: &Registry, headers: &HeaderMap) -> Result<Proof, ApiError> {
    let secret = bearer(headers).ok_or_else(|| {
        ApiError::unauthorized("send the join token or the worker's credential as `Authorization: Bearer …`")
    })?;
    if auth.is_join_token(secret) {
        return Ok(Proof::JoinToken);
    }
    let credential: CredentialHash = membership::hash(secret);
    if registry.by_credential(&credential).is_some() {
        return Ok(Proof::Credential(credential));
    }
    let looks_like_credential =
        secret.len() == CREDENTIAL_DIGITS && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    if looks_like_credential {
        return Err(credential_revoked());
    }
    Err(ApiError::unauthorized("the join token is wrong; `gpustack token` on the server prints the right one"))
}

/// Takes a worker's sign of life.
#[utoipa::path(
    post, path = "/v1/worker-heartbeats", tag = "worker protocol",
    request_body = HeartbeatRequest,
    responses(
        (status = 200, body = HeartbeatResponse),
        (status = 401, body = api::ErrorBody, description = "`CredentialRevoked`: join again with the token."),
        (status = 409, body = api::ErrorBody, description = "`SessionReplaced`: a newer session of this worker runs."),
    ),
    security(("worker_credential" = [])),
)]
pub async fn heartbeat(
    State(registry): State<Registry>,
    OwnWorker(worker): OwnWorker,
    JsonBody(beat): JsonBody<HeartbeatRequest>,
) -> Result<Json<HeartbeatResponse>, ApiError> {
    let received_ms = system_ms();
    let now = registry.clock().now();
    let status_wanted = {
        let mut facts = worker.facts();
        check_session(&mut facts, beat.session_id)?;
        if let Some(measured) = beat.clock {
            facts.measure_clock(measured, now);
        }
        facts.hear(now, registry.policy().offline_timeout);
        if beat.leaving {
            facts.leave(now);
        }
        facts.status.received.is_none()
    };
    Ok(Json(HeartbeatResponse { received_ms, returned_ms: system_ms(), status_wanted }))
}

/// Takes what a worker sees of its host.
#[utoipa::path(
    put, path = "/v1/worker-status", tag = "worker protocol",
    request_body = StatusReport,
    responses(
        (status = 204),
        (status = 401, body = api::ErrorBody, description = "`CredentialRevoked`: join again with the token."),
        (status = 409, body = api::ErrorBody, description = "`SessionReplaced`: a newer session of this worker runs."),
    ),
    security(("worker_credential" = [])),
)]
pub async fn report_status(
    State(registry): State<Registry>,
    OwnWorker(worker): OwnWorker,
    JsonBody(report): JsonBody<StatusReport>,
) -> Result<StatusCode, ApiError> {
    membership::check::status(&report.status)?;
    let now = registry.clock().now();
    let mut facts = worker.facts();
    check_session(&mut facts, report.session_id)?;
    facts.report(report.status, now);
    Ok(StatusCode::NO_CONTENT)
}

/// A session that a newer one replaced is over.
fn check_session(facts: &mut Facts, id: SessionId) -> Result<(), ApiError> {
    if facts.take_up_session(id) { Ok(()) } else { Err(session_replaced()) }
}

/// The routes of this file.
pub fn routes() -> utoipa_axum::router::OpenApiRouter<ServerState> {
    utoipa_axum::router::OpenApiRouter::new()
        .routes(utoipa_axum::routes!(begin_session))
        .routes(utoipa_axum::routes!(heartbeat))
        .routes(utoipa_axum::routes!(report_status))
}
