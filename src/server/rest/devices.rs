//! `/v1/gpu-devices`: the devices of all workers.

use super::extract::{PathOf, QueryOf};
use super::paging::PageQuery;
use super::workers::contains;
use crate::server::ServerState;
use crate::server::auth::AdminUser;
use crate::server::error::ApiError;
use crate::server::registry::{Registry, view};
use api::{GpuDeviceItem, Page};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;

/// What to list.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ListQuery {
    search: Option<String>,
    #[serde(flatten)]
    page: PageQuery,
}

/// Lists devices.
#[utoipa::path(
    get, path = "/v1/gpu-devices", tag = "devices",
    params(
        ("search" = Option<String>, Query, description = "Part of the device's or the worker's name, in any case."),
        ("page" = Option<u32>, Query, description = "From 1."),
        ("perPage" = Option<u32>, Query, description = "1 to 100; 100 when absent."),
    ),
    responses((status = 200, body = Page<GpuDeviceItem>), (status = 401, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn list(
    State(registry): State<Registry>,
    _: AdminUser,
    QueryOf(query): QueryOf<ListQuery>,
) -> Result<Json<Page<GpuDeviceItem>>, ApiError> {
    let wish = query.page.wish()?;
    // places first, rows only for the page: a fleet has tens of thousands of devices
    let mut places = Vec::new();
    for worker in registry.all() {
        let facts = worker.facts();
        for (place, device) in facts.status.reported.gpu_devices.iter().flatten().enumerate() {
            let is_wanted = query
                .search
                .as_ref()
                .is_none_or(|search| contains(&device.name, search) || contains(&facts.row.name, search));
            if is_wanted {
                places.push((std::sync::Arc::clone(&worker), place));
            }
        }
    }
    let page = wish.cut(places.into_iter(), |(worker, place)| view::device_item(&worker.facts(), place));
    // a report that came in between may have fewer
    let items = page.items.into_iter().flatten().collect();
    Ok(Json(Page { items, pagination: page.pagination }))
}

/// One device, by an id like `npu-node-01:npu:3`.
#[utoipa::path(
    get, path = "/v1/gpu-devices/{id}", tag = "devices",
    params(("id" = String, Path, description = "`<worker name>:<type>:<index>`")),
    responses((status = 200, body = GpuDeviceItem), (status = 404, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn read(
    State(registry): State<Registry>,
    _: AdminUser,
    PathOf(id): PathOf<String>,
) -> Result<Json<GpuDeviceItem>, ApiError> {
    let missing = || ApiError::not_found("gpu device");
    // a worker's name may hold colons, type and index do not
    let name = id.rsplitn(3, ':').nth(2).ok_or_else(missing)?;
    let worker = registry.by_name(name).ok_or_else(missing)?;
    let items = view::device_items(&worker.facts());
    items.into_iter().find(|item| item.id == id).map(Json).ok_or_else(missing)
}

/// The routes of this file.
pub fn routes() -> utoipa_axum::router::OpenApiRouter<ServerState> {
    utoipa_axum::router::OpenApiRouter::new().routes(utoipa_axum::routes!(list)).routes(utoipa_axum::routes!(read))
}
