//! The caller's own account.

use super::body::JsonBody;
use crate::server::auth::{Auth, LoggedIn};
use crate::server::error::ApiError;
use api::{ErrorBody, User};
use axum::Json;
use axum::extract::{FromRef, State};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const MAX_FULL_NAME_CHARS: usize = 200;

/// These routes.
pub fn router<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Auth: FromRef<S>,
{
    OpenApiRouter::new().routes(routes!(get_me, put_me))
}

/// What a user may change of the own account. GPUStack 0.7 sends all its fields; those that are not here stay as
/// they are.
#[derive(Deserialize, ToSchema)]
pub struct OwnAccountChange {
    /// For people.
    full_name: Option<String>,
    /// Refused here: the current password is needed too.
    password: Option<String>,
}

/// The caller's account.
#[utoipa::path(
    get,
    path = "/v1/users/me",
    tag = "users",
    responses((status = OK, body = User), (status = UNAUTHORIZED, body = ErrorBody))
)]
async fn get_me(State(auth): State<Auth>, LoggedIn(user): LoggedIn) -> Result<Json<User>, ApiError> {
    auth.account(&user).await.map(Json)
}

/// Changes the caller's name for people.
#[utoipa::path(
    put,
    path = "/v1/users/me",
    tag = "users",
    request_body = OwnAccountChange,
    responses((status = OK, body = User), (status = UNPROCESSABLE_ENTITY, body = ErrorBody))
)]
async fn put_me(
    State(auth): State<Auth>,
    LoggedIn(user): LoggedIn,
    JsonBody(change): JsonBody<OwnAccountChange>,
) -> Result<Json<User>, ApiError> {
    if change.password.is_some_and(|password| !password.is_empty()) {
        return Err(ApiError::invalid(
            "change the password by POST /auth/update-password with current_password and new_password",
        ));
    }
    let full_name = change.full_name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    if full_name.is_some_and(|name| name.chars().count() > MAX_FULL_NAME_CHARS) {
        return Err(ApiError::invalid(format!("full_name is longer than {MAX_FULL_NAME_CHARS} characters")));
    }
    auth.set_full_name(&user, full_name).await?;
    auth.account(&user).await.map(Json)
}
