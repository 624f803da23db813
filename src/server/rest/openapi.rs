//! `/openapi.json`: the document is made from the handlers.

use super::super::ServerState;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

/// The document's frame; the routes fill it.
pub fn document() -> OpenApiRouter<ServerState> {
    OpenApiRouter::with_openapi(frame())
}

fn frame() -> OpenApi {
    let http = |scheme, description: &str| {
        SecurityScheme::Http(HttpBuilder::new().scheme(scheme).description(Some(description)).build())
    };
    let cookie = ApiKey::Cookie(ApiKeyValue::with_description(
        "gpustack_session_…",
        "A browser's session, begun by `POST /auth/login`; the name ends in the instance's id.",
    ));
    let components = ComponentsBuilder::new()
        .security_scheme("session", SecurityScheme::ApiKey(cookie))
        .security_scheme("api_key", http(HttpAuthScheme::Bearer, "An API key, `gpustack_<16 hex>_<32 hex>`."))
        .security_scheme(
            "legacy_worker",
            http(HttpAuthScheme::Basic, "A GPUStack 0.7 worker: `system/worker/<ip>` and the join token."),
        )
        .build();
    let info = InfoBuilder::new().title("gpustack").version(env!("CARGO_PKG_VERSION")).build();
    OpenApiBuilder::new().info(info).components(Some(components)).build()
}
