//! What the pages ask the server about the fleet.

use crate::fleet::{FleetPart, ListQuery};
use crate::session::UiError;
use api::WorkerId;
use leptos::prelude::*;
use leptos::server_fn::codec::Json;

#[cfg(feature = "ssr")]
use crate::fleet::roster::Detail;
#[cfg(feature = "ssr")]
use crate::session;

/// The part of the fleet that the list is rendered with.
#[server(input = Json, endpoint = "ask_part")]
pub async fn ask_part(
    /// What the address asks for.
    query: ListQuery,
) -> Result<FleetPart, UiError> {
    let backend = session::authorised().await?.backend;
    let roster = backend.roster(Detail::of_rows(&query)).await;
    Ok(roster.page(&query, |ids| async move { backend.workers(&ids).await }).await)
}

/// All workers in an order, whatever is filtered: some orders follow from figures that only the server has of all.
#[server(input = Json, endpoint = "ask_order")]
pub async fn ask_order(
    /// Its order alone counts.
    query: ListQuery,
) -> Result<Vec<WorkerId>, UiError> {
    let caller = session::authorised().await?;
    Ok(caller.backend.roster(Detail::of_order(&query)).await.order(&query))
}

/// How many workers errors concern: all that a hidden page needs to know.
#[server(input = Json, endpoint = "ask_troubled")]
pub async fn ask_troubled() -> Result<usize, UiError> {
    let caller = session::authorised().await?;
    Ok(caller.backend.roster(Detail::default()).await.trouble().error_workers)
}
