//! What the pages ask the server about the fleet.

use crate::fleet::{FleetPart, ListQuery};
use crate::session::UiError;
use leptos::prelude::*;
use leptos::server_fn::codec::Json;

#[cfg(feature = "ssr")]
use crate::{fleet::Trouble, session};

/// The part of the fleet that the list is rendered with.
#[server(input = Json, endpoint = "ask_part")]
pub async fn ask_part(
    /// What the address asks for.
    query: ListQuery,
) -> Result<FleetPart, UiError> {
    let caller = session::authorised().await?;
    Ok(FleetPart::of(caller.backend.fleet().await, &query))
}

/// How many workers errors concern: all that a hidden page needs to know.
#[server(input = Json, endpoint = "ask_troubled")]
pub async fn ask_troubled() -> Result<usize, UiError> {
    let caller = session::authorised().await?;
    Ok(Trouble::of(caller.backend.fleet().await.workers.iter()).error_workers)
}
