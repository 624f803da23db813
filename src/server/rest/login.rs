//! Logging in and out, as GPUStack 0.7 has it.

use super::body::{FormBody, JsonBody};
use crate::server::auth::Auth;
use crate::server::error::ApiError;
use api::ErrorBody;
use axum::Json;
use axum::extract::{FromRef, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// These routes.
pub fn router<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Auth: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(login))
        .routes(routes!(logout))
        .routes(routes!(update_password))
        .routes(routes!(auth_config))
}

/// What a login form sends.
#[derive(Deserialize, ToSchema)]
pub struct LoginForm {
    username: String,
    password: String,
}

/// What a change of password takes.
#[derive(Deserialize, ToSchema)]
pub struct PasswordChange {
    current_password: String,
    new_password: String,
}

/// Logs in: the answer sets the session's cookie.
#[utoipa::path(
    post,
    path = "/auth/login",
    tag = "login",
    request_body(content = LoginForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = OK, description = "null; the session is in Set-Cookie"),
        (status = UNAUTHORIZED, description = "wrong user or password", body = ErrorBody),
        (status = TOO_MANY_REQUESTS, description = "too many attempts; see Retry-After", body = ErrorBody),
    )
)]
async fn login(
    State(auth): State<Auth>,
    parts: Parts,
    FormBody(form): FormBody<LoginForm>,
) -> Result<Response, ApiError> {
    let session = auth.login(&parts, &form.username, &form.password).await?;
    with_cookie(&session.set_cookie)
}

/// Logs out: the session ends and its cookie is removed.
#[utoipa::path(
    post,
    path = "/auth/logout",
    tag = "login",
    responses((status = OK, description = "null, whether somebody was logged in or not"))
)]
async fn logout(State(auth): State<Auth>, parts: Parts) -> Result<Response, ApiError> {
    with_cookie(&auth.logout(&parts).await?)
}

/// Changes the caller's own password; other sessions end.
#[utoipa::path(
    post,
    path = "/auth/update-password",
    tag = "login",
    request_body = PasswordChange,
    responses(
        (status = OK, description = "null"),
        (status = BAD_REQUEST, description = "the current password is wrong", body = ErrorBody),
        (status = UNPROCESSABLE_ENTITY, description = "the new password cannot be taken", body = ErrorBody),
    )
)]
async fn update_password(
    State(auth): State<Auth>,
    parts: Parts,
    JsonBody(change): JsonBody<PasswordChange>,
) -> Result<Json<()>, ApiError> {
    auth.change_password(&parts, &change.current_password, &change.new_password).await?;
    Ok(Json(()))
}

/// Which other ways to log in there are: none yet.
#[utoipa::path(get, path = "/auth-config", tag = "login", responses((status = OK, description = "an empty object")))]
async fn auth_config() -> Json<serde_json::Value> {
    Json(json!({}))
}

fn with_cookie(set_cookie: &str) -> Result<Response, ApiError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::SET_COOKIE, HeaderValue::from_str(set_cookie).map_err(ApiError::internal)?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok((headers, Json(())).into_response())
}
