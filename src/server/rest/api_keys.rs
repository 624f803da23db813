//! Keys for programs.

use super::body::JsonBody;
use super::extract::{PathOf, QueryOf};
use super::paging::PageQuery;
use crate::server::auth::{ActiveUser, Auth, rfc3339};
use crate::server::error::ApiError;
use crate::server::store::{ApiKeyRow, now_ms};
use api::{ApiKey, ApiKeyCreate, ErrorBody, Page};
use axum::Json;
use axum::extract::{FromRef, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const MAX_NAME_CHARS: usize = 100;
const MAX_DESCRIPTION_CHARS: usize = 1000;
/// A hundred years.
const MAX_EXPIRES_IN_S: u64 = 100 * 366 * 24 * 60 * 60;

/// These routes.
pub fn router<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Auth: FromRef<S>,
{
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(delete))
}

/// The caller's keys, newest first, without their values.
#[utoipa::path(
    get,
    path = "/v1/api-keys",
    tag = "api keys",
    params(
        ("page" = Option<u32>, Query, description = "Counted from 1"),
        ("perPage" = Option<u32>, Query, description = "1 to 100"),
    ),
    responses((status = OK, body = Page<ApiKey>), (status = UNAUTHORIZED, body = ErrorBody))
)]
async fn list(
    State(auth): State<Auth>,
    ActiveUser(user): ActiveUser,
    QueryOf(query): QueryOf<PageQuery>,
) -> Result<Json<Page<ApiKey>>, ApiError> {
    let wish = query.wish()?;
    let keys = auth.api_keys(&user).await?;
    Ok(Json(wish.cut(keys.into_iter(), |key| shown(key, None))))
}

/// Makes a key. Its value is in this answer and never again.
#[utoipa::path(
    post,
    path = "/v1/api-keys",
    tag = "api keys",
    request_body = ApiKeyCreate,
    responses(
        (status = OK, body = ApiKey),
        (status = CONFLICT, description = "the name is taken", body = ErrorBody),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody),
    )
)]
async fn create(
    State(auth): State<Auth>,
    ActiveUser(user): ActiveUser,
    JsonBody(wish): JsonBody<ApiKeyCreate>,
) -> Result<Response, ApiError> {
    let name = wish.name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        return Err(ApiError::invalid(format!("name must have 1 to {MAX_NAME_CHARS} characters")));
    }
    if wish.description.as_ref().is_some_and(|text| text.chars().count() > MAX_DESCRIPTION_CHARS) {
        return Err(ApiError::invalid(format!("description is longer than {MAX_DESCRIPTION_CHARS} characters")));
    }
    let expires_ms = expires_ms(wish.expires_in)?;
    let created = auth.create_api_key(&user, name, wish.description.as_deref(), expires_ms).await?;
    let created = created.ok_or_else(|| ApiError::already_exists(format!("api key {name} already exists")))?;
    let not_kept = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((not_kept, Json(shown(created.row, Some(created.value)))).into_response())
}

/// Deletes a key; it admits nobody from then on.
#[utoipa::path(
    delete,
    path = "/v1/api-keys/{id}",
    tag = "api keys",
    params(("id" = i64, Path, description = "The key's row")),
    responses((status = OK, description = "null"), (status = NOT_FOUND, body = ErrorBody))
)]
async fn delete(
    State(auth): State<Auth>,
    ActiveUser(user): ActiveUser,
    PathOf(id): PathOf<i64>,
) -> Result<Json<()>, ApiError> {
    if auth.delete_api_key(&user, id).await? { Ok(Json(())) } else { Err(ApiError::not_found("api key")) }
}

fn expires_ms(expires_in_s: Option<u64>) -> Result<Option<i64>, ApiError> {
    let seconds = expires_in_s.unwrap_or(0);
    if seconds > MAX_EXPIRES_IN_S {
        return Err(ApiError::invalid("expires_in is more than a hundred years; leave it out for a key without end"));
    }
    let milliseconds = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
    Ok((milliseconds > 0).then(|| now_ms().saturating_add(milliseconds)))
}

fn shown(row: ApiKeyRow, value: Option<String>) -> ApiKey {
    ApiKey {
        name: row.name,
        description: row.description,
        id: row.id,
        value,
        created_at: rfc3339(row.created_ms),
        updated_at: rfc3339(row.updated_ms),
        expires_at: row.expires_ms.map(rfc3339),
    }
}
