//! Lists that GPUStack 0.7 workers read and that are empty here: models do not run yet.

use super::extract::QueryOf;
use super::paging::PageQuery;
use super::stream;
use super::workers::{Asker, is_true};
use crate::server::ServerState;
use crate::server::error::ApiError;
use api::Page;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
struct ListQuery {
    watch: Option<String>,
    #[serde(flatten)]
    page: PageQuery,
}

async fn list(
    State(streams): State<stream::Streams>,
    _: Asker,
    QueryOf(query): QueryOf<ListQuery>,
) -> Result<Response, ApiError> {
    if query.watch.as_deref().is_some_and(is_true) {
        return Ok(streams.watch_nothing());
    }
    let page: Page<()> = query.page.wish()?.cut(std::iter::empty(), |row| row);
    Ok(Json(page).into_response())
}

/// The routes of this file.
pub fn routes() -> Router<ServerState> {
    Router::new()
        .route("/v1/model-instances", get(list))
        .route("/v1/model-files", get(list))
        .route("/v1/models", get(list))
}
