//! The admin UI's pages, and what they ask of the server.

use super::ServerState;
use super::assets;
use super::auth::{LoginError, PasswordError};
use super::error::ApiError;
use super::registry::view;
use super::rest::{RequestId, fleet};
use api::{FleetSnapshot, Maintenance, ServerUrl, WorkerChange, WorkerEvent, WorkerId, WorkerStatus, WorkerView};
use app::backend::{Backend, BackendFailed, SharedBackend};
use app::model::{JoinInfo, LoginOutcome, PasswordOutcome, Session};
use app::{App, BrowserFiles, shell};
use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::routing::get;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};
use leptos::nonce::use_nonce;
use leptos::prelude::{LeptosOptions, provide_context, use_context};
use leptos_axum::{LeptosRoutes, ResponseOptions, generate_route_list, render_app_async_with_context};
use std::collections::BTreeMap;
use std::sync::Arc;
use tower_http::set_header::SetResponseHeaderLayer;

/// The browser files' base name.
const OUTPUT_NAME: &str = "app";

/// All pages, their files, and the page for addresses that do not exist. `port` is the one that the server listens on.
pub fn pages(state: &ServerState, port: u16) -> Router<ServerState> {
    let options = LeptosOptions::builder().output_name(OUTPUT_NAME).build();
    let backend: SharedBackend = Arc::new(UiBackend { state: state.clone(), port });
    let files = BrowserFiles(assets::browser_folder());
    let context = move || {
        provide_context(Arc::clone(&backend));
        provide_context(files.clone());
        forbid_foreign_code();
    };
    let document = {
        let options = options.clone();
        move || shell(options.clone())
    };
    let missing = render_app_async_with_context(context.clone(), document.clone());
    let fallback = move |request: Request| {
        let missing = missing.clone();
        async move {
            if wants_page(&request) { missing(request).await } else { super::rest::not_found().await.into_response() }
        }
    };
    Router::new()
        .leptos_routes_with_context(&options, generate_route_list(App), context, document)
        .fallback(fallback)
        // pages show the fleet: what a browser kept of them would be old, or another user's
        .layer(SetResponseHeaderLayer::if_not_present(CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .with_state(options)
        .route("/pkg/{*path}", get(assets::serve))
}

/// Only the page's own scripts run, whatever text a worker reports.
fn forbid_foreign_code() {
    // server functions render no page and have no nonce
    let (Some(nonce), Some(response)) = (use_nonce(), use_context::<ResponseOptions>()) else { return };
    let policy = format!(
        "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; \
         img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(CONTENT_SECURITY_POLICY, policy);
    }
}

/// Whether somebody looks for a page in a browser, and not a program for a resource.
fn wants_page(request: &Request) -> bool {
    let path = request.uri().path();
    let is_resource = ["/v1/", "/auth/", "/api/", "/pkg/"].into_iter().any(|prefix| path.starts_with(prefix));
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    !is_resource && matches!(*request.method(), Method::GET | Method::HEAD) && accepts.contains("text/html")
}

struct UiBackend {
    state: ServerState,
    port: u16,
}

#[async_trait]
impl Backend for UiBackend {
    async fn session(&self, request: &Parts) -> Option<Session> {
        let user = match self.state.auth.session_of(request).await {
            Ok(user) => user?,
            Err(error) => {
                failed(error);
                return None;
            }
        };
        // the UI is the administrators'; other users have the API
        user.is_admin
            .then_some(Session { username: user.username, require_password_change: user.require_password_change })
    }

    async fn login(&self, request: &Parts, username: &str, password: &str) -> LoginOutcome {
        match self.state.auth.login(request, username, password).await {
            Ok(session) => LoginOutcome::LoggedIn {
                set_cookie: session.set_cookie,
                require_password_change: session.user.require_password_change,
            },
            Err(LoginError::Wrong) => LoginOutcome::Wrong,
            Err(LoginError::TooMany { retry_after_s }) => LoginOutcome::TooMany { retry_after_s },
            Err(LoginError::Failed(error)) => {
                failed(error);
                LoginOutcome::Failed
            }
        }
    }

    async fn logout(&self, request: &Parts) -> String {
        self.state.auth.logout(request).await.unwrap_or_else(|error| {
            failed(error);
            // the session stays, and so does its cookie: browsers ignore an empty header
            String::new()
        })
    }

    async fn change_password(&self, request: &Parts, current: &str, new: &str) -> PasswordOutcome {
        match self.state.auth.change_password(request, current, new).await {
            Ok(()) => PasswordOutcome::Changed,
            Err(PasswordError::LoggedOut) => PasswordOutcome::LoggedOut,
            Err(PasswordError::WrongCurrent) => PasswordOutcome::WrongCurrent,
            Err(PasswordError::TooShort(least)) => PasswordOutcome::TooShort(least),
            Err(PasswordError::Same) => PasswordOutcome::Same,
            Err(PasswordError::TooMany { retry_after_s }) => PasswordOutcome::TooMany { retry_after_s },
            Err(PasswordError::Failed(error)) => {
                failed(error);
                PasswordOutcome::Failed
            }
        }
    }

    async fn fleet(&self) -> FleetSnapshot {
        fleet::snapshot(&self.state.registry, &self.state.announcer)
    }

    async fn worker(&self, id: WorkerId) -> Option<(WorkerView, WorkerStatus, Vec<WorkerEvent>)> {
        let registry = &self.state.registry;
        let (view, status) = {
            let worker = registry.get(id)?;
            let facts = worker.facts();
            let view = view::worker_view(&facts, &registry.moment(), registry.policy());
            (view, WorkerStatus::clone(&facts.status.reported))
        };
        Some((view, status, self.events(id).await))
    }

    async fn delete_worker(&self, id: WorkerId) -> Result<bool, BackendFailed> {
        self.state.membership.delete(id).await.map_err(failed)
    }

    async fn set_maintenance(
        &self,
        id: WorkerId,
        enabled: bool,
        message: Option<String>,
    ) -> Result<bool, BackendFailed> {
        let maintenance = Some(Maintenance { enabled, message });
        self.change(id, WorkerChange { maintenance, ..WorkerChange::default() }).await
    }

    async fn set_labels(&self, id: WorkerId, labels: BTreeMap<String, String>) -> Result<bool, BackendFailed> {
        self.change(id, WorkerChange { labels: Some(labels), ..WorkerChange::default() }).await
    }

    async fn allow_replacement(&self, id: WorkerId) -> Result<bool, BackendFailed> {
        self.state.membership.allow_replacement(id).await.map_err(failed)
    }

    async fn join_info(&self, request: &Parts) -> JoinInfo {
        JoinInfo {
            server_url: visited_url(request, self.port),
            token: self.state.auth.join_token().expose().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            port: self.port,
        }
    }
}

impl UiBackend {
    async fn change(&self, id: WorkerId, change: WorkerChange) -> Result<bool, BackendFailed> {
        let changed = self.state.membership.change(id, change).await;
        changed.map(|worker| worker.is_some()).map_err(failed)
    }

    /// Those that wait for the database, then those that are in it. A page without its older events is better than no
    /// page.
    async fn events(&self, id: WorkerId) -> Vec<WorkerEvent> {
        let mut events = self.state.journal.of(id);
        match self.state.store.worker_events(id).await {
            // one that was written in between is in both
            Ok(stored) => events.extend(stored.into_iter().filter(|event| !events.contains(event)).collect::<Vec<_>>()),
            Err(error) => {
                failed(error.into());
            }
        }
        events
    }
}

/// Logs the cause, which no page shows, under the id that the page shows.
fn failed(error: ApiError) -> BackendFailed {
    let request_id = use_context::<Parts>()
        .and_then(|parts| parts.extensions.get::<RequestId>().map(|id| id.0.clone()))
        .unwrap_or_default();
    tracing::warn!(request_id, message = error.message(), "the UI's request failed");
    // logs its cause, as for every other answer
    drop(error.into_response());
    BackendFailed { request_id }
}

/// The address under which the browser sees this server.
fn visited_url(request: &Parts, port: u16) -> String {
    let scheme = if super::auth::came_over_https(request) { "https" } else { "http" };
    let of_header = |name: &str| header_text(&request.headers, name);
    let host = of_header("x-forwarded-host")
        .or_else(|| request.uri.authority().map(http::uri::Authority::as_str))
        .or_else(|| of_header(HOST.as_str()));
    let written = host.map(|host| format!("{scheme}://{host}")).and_then(|url| ServerUrl::parse(&url).ok());
    written.map_or_else(|| format!("{scheme}://127.0.0.1:{port}"), |url| url.to_string())
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request {
        let mut request = Request::new(axum::body::Body::empty());
        for (name, value) in headers {
            request.headers_mut().insert(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        request
    }

    #[test]
    fn the_join_command_names_the_server_as_the_browser_sees_it() {
        for (headers, url) in [
            (&[("host", "10.0.0.1:8090")][..], "http://10.0.0.1:8090"),
            (&[("host", "[fd00::1]:8090")], "http://[fd00::1]:8090"),
            (&[("host", "127.0.0.1:80"), ("x-forwarded-host", "gpus.example:8443")], "http://gpus.example:8443"),
            (&[("host", "a b\"; rm")], "http://127.0.0.1:8090"),
            (&[], "http://127.0.0.1:8090"),
        ] {
            let (parts, _) = request(headers).into_parts();
            assert_eq!(visited_url(&parts, 8090), url);
        }
    }

    #[test]
    fn only_browsers_get_a_page_for_an_address_that_does_not_exist() {
        for (path, accept, is_page) in [
            ("/nothing", "text/html,*/*", true),
            ("/nothing", "application/json", false),
            ("/v1/nothing", "text/html", false),
            ("/api/nothing", "text/html", false),
        ] {
            let mut request = request(&[("accept", accept)]);
            *request.uri_mut() = path.parse().unwrap();
            assert_eq!(wants_page(&request), is_page, "{path} {accept}");
        }
    }
}
