//! `/v1/dashboard`: the fleet in a few figures, in GPUStack 0.7's shape. What is about models is empty: none run yet.

use crate::server::ServerState;
use crate::server::auth::AdminUser;
use crate::server::load::{Load, LoadHistory, Sample};
use crate::server::registry::Registry;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// The fleet in a few figures.
#[derive(Debug, Serialize, ToSchema)]
pub struct Dashboard {
    resource_counts: ResourceCounts,
    system_load: SystemLoad,
    model_usage: ModelUsage,
    /// Always empty.
    #[schema(value_type = Vec<Object>)]
    active_models: [(); 0],
}

/// How many there are.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "GPUStack 0.7 calls them so")]
struct ResourceCounts {
    worker_count: usize,
    gpu_count: usize,
    /// Always 0.
    model_count: usize,
    /// Always 0.
    model_instance_count: usize,
}

/// How busy the fleet is.
#[derive(Debug, Serialize, ToSchema)]
struct SystemLoad {
    current: CurrentLoad,
    history: HistoryOfLoad,
}

/// Averages in percent: of processors and memory over workers, of devices and their memory over devices; null when
/// nobody tells.
#[derive(Debug, Serialize, ToSchema)]
struct CurrentLoad {
    cpu: Option<f64>,
    ram: Option<f64>,
    gpu: Option<f64>,
    vram: Option<f64>,
}

/// A point for each minute of the last hour in which somebody told, oldest first.
#[derive(Debug, Serialize, ToSchema)]
struct HistoryOfLoad {
    cpu: Vec<Point>,
    ram: Vec<Point>,
    gpu: Vec<Point>,
    vram: Vec<Point>,
}

/// A value and its time.
#[derive(Debug, Serialize, ToSchema)]
struct Point {
    /// Seconds since 1970.
    timestamp: i64,
    value: f64,
}

/// Always empty.
#[derive(Debug, Default, Serialize, ToSchema)]
struct ModelUsage {
    #[schema(value_type = Vec<Object>)]
    api_request_history: [(); 0],
    #[schema(value_type = Vec<Object>)]
    completion_token_history: [(); 0],
    #[schema(value_type = Vec<Object>)]
    prompt_token_history: [(); 0],
    #[schema(value_type = Vec<Object>)]
    top_users: [(); 0],
}

/// The fleet in a few figures.
#[utoipa::path(
    get, path = "/v1/dashboard", tag = "fleet",
    responses((status = 200, body = Dashboard), (status = 401, body = api::ErrorBody)),
    security(("session" = []), ("api_key" = [])),
)]
pub async fn read(
    State(registry): State<Registry>,
    State(history): State<LoadHistory>,
    _: AdminUser,
) -> Json<Dashboard> {
    let Load { cpu, ram, gpu, vram } = Load::now(&registry);
    let samples = history.samples();
    Json(Dashboard {
        resource_counts: resource_counts(&registry),
        system_load: SystemLoad {
            current: CurrentLoad { cpu, ram, gpu, vram },
            history: HistoryOfLoad {
                cpu: points(&samples, |load| load.cpu),
                ram: points(&samples, |load| load.ram),
                gpu: points(&samples, |load| load.gpu),
                vram: points(&samples, |load| load.vram),
            },
        },
        model_usage: ModelUsage::default(),
        active_models: [],
    })
}

fn resource_counts(registry: &Registry) -> ResourceCounts {
    let workers = registry.all();
    let devices = |worker: &crate::server::registry::Worker| {
        worker.facts().status.reported.gpu_devices.as_ref().map_or(0, Vec::len)
    };
    ResourceCounts {
        worker_count: workers.len(),
        gpu_count: workers.iter().map(|worker| devices(worker)).sum(),
        model_count: 0,
        model_instance_count: 0,
    }
}

fn points(samples: &[Sample], pick: impl Fn(&Load) -> Option<f64>) -> Vec<Point> {
    let point = |sample: &Sample| Some(Point { timestamp: sample.at_ms.div_euclid(1000), value: pick(&sample.load)? });
    samples.iter().filter_map(point).collect()
}

/// The routes of this file.
pub fn routes() -> utoipa_axum::router::OpenApiRouter<ServerState> {
    utoipa_axum::router::OpenApiRouter::new().routes(utoipa_axum::routes!(read))
}
