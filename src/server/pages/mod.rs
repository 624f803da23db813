//! The admin UI: its pages, its server functions, and its files for the browser.

mod backend;

use super::listen::Tls;
use super::{ServerState, assets};
use crate::server::rest::{RequestId, not_found};
use app::BrowserFiles;
use app::backend::SharedBackend;
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use backend::UiBackend;
use http::{HeaderMap, HeaderValue, Method, header};
use leptos::config::LeptosOptions;
use leptos::nonce::use_nonce;
use leptos::prelude::{provide_context, use_context};
use leptos_axum::{
    LeptosRoutes, ResponseOptions, generate_route_list, handle_server_fns_with_context, render_app_async_with_context,
};
use std::sync::Arc;

/// What wasm-bindgen calls its files; the build helper gives the name.
const OUTPUT_NAME: &str = "app";

/// The UI's routes, and a page for people who come to a path that is none.
pub fn router(state: ServerState, port: u16, tls: Option<Tls>) -> Router<ServerState> {
    let options = LeptosOptions::builder().output_name(OUTPUT_NAME).build();
    let context = move || provide_server(&state, port, tls.as_ref());
    let shell = {
        let options = options.clone();
        move || app::shell(options.clone())
    };
    let server_functions = {
        let context = context.clone();
        move |request: Request| handle_server_fns_with_context(context.clone(), request)
    };
    let missing_page = render_app_async_with_context(context.clone(), shell.clone());
    let missing = move |request: Request| async move {
        if wants_page(request.method(), request.headers()) {
            return missing_page(request).await;
        }
        not_found().await.into_response()
    };
    Router::new()
        .route("/pkg/{*path}", get(assets::serve))
        .route("/api/{*function}", post(server_functions))
        .route("/{*path}", any(missing))
        .leptos_routes_with_context(&options, generate_route_list(app::App), context, shell)
        .with_state(options)
}

/// Whether a browser asks for something to show, not a program for data.
fn wants_page(method: &Method, headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    *method == Method::GET && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// What pages and server functions find as their context.
fn provide_server(state: &ServerState, port: u16, tls: Option<&Tls>) {
    let request_id = use_context::<http::request::Parts>()
        .and_then(|request| request.extensions.get::<RequestId>().cloned())
        .map_or_else(String::new, |RequestId(id)| id);
    let backend: SharedBackend = Arc::new(UiBackend::new(state.clone(), port, tls.cloned(), request_id));
    provide_context(backend);
    provide_context(BrowserFiles(assets::browser_folder()));
    forbid_foreign_code();
}

/// A page runs the scripts that this server wrote into it and its own files, and nothing else. Styles may stand in
/// elements, as those of meters do: they cannot run.
fn forbid_foreign_code() {
    let Some(response) = use_context::<ResponseOptions>() else { return };
    let nonce = use_nonce().map(|nonce| format!(" 'nonce-{nonce}'")).unwrap_or_default();
    let policy = format!(
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{nonce}; style-src 'self' 'unsafe-inline'; \
         img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
    // a page shows the fleet at one moment, and the token
    response.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}
