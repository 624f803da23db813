//! The doctor's look at a host that is a worker already: over its link, for the server's UI and API.

use crate::doctor;
use api::{EXAMINATION_PATH, Examination};
use axum::Router;
use axum::extract::State;
use axum::response::Json;
use axum::routing::get;
use detect::{DetectorConfig, Environment, Inventory};
use http::StatusCode;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

struct Examined {
    environment: Environment,
    /// The running detection's: a second one beside it would make the vendors' tools wait for each other.
    inventory: watch::Receiver<Option<Arc<Inventory>>>,
}

/// Answers with an [`Examination`]. To be had over the link only.
pub fn routes(config: &DetectorConfig, data_dir: &Path, inventory: watch::Receiver<Option<Arc<Inventory>>>) -> Router {
    let examined = Examined { environment: Environment::new(config, data_dir), inventory };
    Router::new().route(EXAMINATION_PATH, get(examine)).with_state(Arc::new(examined))
}

async fn examine(State(examined): State<Arc<Examined>>) -> Result<Json<Examination>, StatusCode> {
    let mut latest = examined.inventory.clone();
    // the first look may still go on; who asks has a deadline
    let seen = latest.wait_for(Option::is_some).await.map(|inventory| inventory.clone());
    let inventory = seen.ok().flatten().ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    let surroundings = examined.environment.look().await;
    Ok(Json(doctor::examination(doctor::of_host(surroundings, &inventory))))
}
