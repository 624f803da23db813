//! The server, as the UI's pages see it.

use crate::server::ServerState;
use crate::server::auth::{LoginError, PasswordError, came_over_https};
use crate::server::error::ApiError;
use crate::server::examination::{ExaminationError, examine};
use crate::server::listen::{PeerAddress, Tls};
use crate::server::registry::{Worker, assess, devices, view};
use api::{
    Examination, Maintenance, ServerUrl, TunnelAgent, TunnelAgentId, WorkerChange, WorkerEvent, WorkerId, WorkerStatus,
    WorkerTunnel, WorkerView,
};
use app::backend::{Backend, BackendFailed, ExaminationFailed};
use app::fleet::Figures;
use app::fleet::device_list::{DeviceList, DeviceQuery};
use app::fleet::roster::{Detail, Listed, Roster};
use app::model::{JoinInfo, LoginOutcome, PasswordOutcome, Session};
use async_trait::async_trait;
use http::header::{self, HeaderName};
use http::request::Parts;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// What proxies add to a request that they pass on.
const PROXY_HEADERS: [HeaderName; 4] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-proto"),
];

/// Answers the pages and server functions of one request.
pub struct UiBackend {
    state: ServerState,
    port: u16,
    tls: Option<Tls>,
    request_id: String,
}

impl UiBackend {
    /// `port` is what the server listens on.
    pub fn new(state: ServerState, port: u16, tls: Option<Tls>, request_id: String) -> Self {
        Self { state, port, tls, request_id }
    }

    /// Of a certificate that no authority vouches for, when it is the one that the browser saw: a proxy in between has
    /// another.
    fn certificate_fingerprint(&self, request: &Parts) -> Option<String> {
        let is_https = request.extensions.get::<PeerAddress>().is_some_and(|peer| peer.https);
        let is_forwarded = PROXY_HEADERS.iter().any(|name| request.headers.contains_key(name));
        let tls = self.tls.as_ref().filter(|tls| is_https && !is_forwarded && tls.is_self_signed())?;
        tls.fingerprint().map(|fingerprint| fingerprint.to_string())
    }

    /// Tunnels of several workers end on one server, so the ports of those that have joined are taken.
    fn ports_behind_tunnels(&self) -> Vec<u16> {
        let port_of = |worker: Arc<Worker>| {
            let row = &worker.facts().row;
            let is_loopback = row.ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()) || row.ip == "localhost";
            is_loopback.then_some(row.port)
        };
        self.state.registry.all().into_iter().filter_map(port_of).collect()
    }

    fn failed(&self, error: &ApiError) -> BackendFailed {
        error.log_cause();
        BackendFailed { request_id: self.request_id.clone() }
    }

    async fn change(&self, id: WorkerId, change: WorkerChange) -> Result<bool, BackendFailed> {
        let changed = self.state.membership.change(id, change).await;
        changed.map(|worker| worker.is_some()).map_err(|error| self.failed(&error))
    }

    async fn events(&self, id: WorkerId) -> Vec<WorkerEvent> {
        // those that wait first: what is written in between is then shown twice rather than not at all
        let mut events = self.state.journal.of(id);
        match self.state.store.worker_events(id).await {
            Ok(stored) => events.extend(stored),
            Err(error) => ApiError::from(error).log_cause(),
        }
        events.dedup();
        events
    }
}

#[async_trait]
impl Backend for UiBackend {
    async fn session(&self, request: &Parts) -> Option<Session> {
        let user = match self.state.auth.session_of(request).await {
            Ok(user) => user?,
            Err(error) => {
                error.log_cause();
                return None;
            }
        };
        let session = Session { username: user.username, require_password_change: user.require_password_change };
        // pages show and change everything: they are for administrators
        user.is_admin.then_some(session)
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
                error.log_cause();
                LoginOutcome::Failed
            }
        }
    }

    async fn logout(&self, request: &Parts) -> String {
        self.state.auth.logout(request).await.unwrap_or_else(|error| {
            error.log_cause();
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
                error.log_cause();
                PasswordOutcome::Failed
            }
        }
    }

    async fn roster(&self, detail: Detail) -> Roster {
        let registry = &self.state.registry;
        let moment = registry.moment();
        let listed = |worker: &Arc<Worker>| {
            let facts = worker.facts();
            let assessment = assess::assess_briefly(&facts, &moment, registry.policy());
            let state = assessment.state;
            let figures = if detail.has_figures { view::figures(&facts, state, &moment) } else { Figures::default() };
            let brief = if detail.is_searched { view::brief } else { view::unsearched_brief };
            Listed { brief: brief(&facts, assessment), figures }
        };
        let workers = registry.all().iter().map(listed).collect();
        Roster { server_time_ms: moment.wall_ms(moment.now), workers }
    }

    async fn workers(&self, ids: &[WorkerId]) -> Vec<WorkerView> {
        let registry = &self.state.registry;
        let moment = registry.moment();
        let known = ids.iter().filter_map(|id| registry.get(*id));
        known.map(|worker| view::worker_view(&worker.facts(), &moment, registry.policy())).collect()
    }

    async fn worker(&self, id: WorkerId) -> Option<(WorkerView, WorkerStatus, Vec<WorkerEvent>)> {
        let registry = &self.state.registry;
        let worker = registry.get(id)?;
        let (view, status) = {
            let facts = worker.facts();
            let view = view::worker_view(&facts, &registry.moment(), registry.policy());
            (view, WorkerStatus::clone(&facts.status.reported))
        };
        Some((view, status, self.events(id).await))
    }

    async fn devices(&self, query: &DeviceQuery) -> DeviceList {
        devices::list(&self.state.registry, query)
    }

    async fn examine(&self, id: WorkerId) -> Result<Examination, ExaminationFailed> {
        let worker = self.state.registry.get(id).ok_or(ExaminationFailed::NoLink)?;
        examine(&worker, &self.state.links).await.map_err(|error| match error {
            ExaminationError::NoLink => ExaminationFailed::NoLink,
            ExaminationError::Unanswered(_) => ExaminationFailed::Unanswered,
            ExaminationError::Unknown(_) | ExaminationError::NotUnderstood(_) => ExaminationFailed::TooOld,
        })
    }

    async fn tunnel_agents(&self) -> Vec<TunnelAgent> {
        self.state.tunnels.agents()
    }

    async fn worker_tunnels(&self, id: WorkerId) -> Vec<WorkerTunnel> {
        self.state.tunnels.of_worker(id).unwrap_or_default()
    }

    async fn delete_tunnel_agent(&self, id: TunnelAgentId) -> Result<bool, BackendFailed> {
        self.state.tunnels.delete(id).await.map_err(|error| self.failed(&error))
    }

    async fn delete_worker(&self, id: WorkerId) -> Result<bool, BackendFailed> {
        self.state.membership.delete(id).await.map_err(|error| self.failed(&error))
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
        self.state.membership.allow_replacement(id).await.map_err(|error| self.failed(&error))
    }

    async fn join_info(&self, request: &Parts) -> JoinInfo {
        JoinInfo {
            server_url: server_url(request).unwrap_or_else(|| format!("http://127.0.0.1:{}", self.port)),
            token: self.state.auth.join_token().expose().to_owned(),
            token_file: self.state.auth.join_token_file().map(|file| file.display().to_string()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            port: self.port,
            certificate_fingerprint: self.certificate_fingerprint(request),
            taken_ports: self.ports_behind_tunnels(),
            newest_worker: self.state.registry.all().first().map_or(WorkerId(0), |worker| worker.id()),
        }
    }
}

/// The address that the browser used; None when the request names none that makes sense.
fn server_url(request: &Parts) -> Option<String> {
    let named = request.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = named.or_else(|| request.uri.authority().map(http::uri::Authority::as_str))?;
    let scheme = if came_over_https(request) { "https" } else { "http" };
    let url = ServerUrl::parse(&format!("{scheme}://{host}")).ok()?;
    Some(url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_for(host: &str) -> Option<String> {
        let (parts, ()) = http::Request::builder().header(header::HOST, host).body(()).unwrap().into_parts();
        server_url(&parts)
    }

    #[test]
    fn a_join_command_names_the_address_that_the_browser_used() {
        assert_eq!(url_for("10.0.0.1:8090").as_deref(), Some("http://10.0.0.1:8090"));
        assert_eq!(url_for("gpu.example").as_deref(), Some("http://gpu.example"));
    }

    #[test]
    fn a_host_header_that_is_no_host_is_not_passed_on() {
        for host in ["evil.example/path?x", "a b", "x@y", "`id`"] {
            assert!(!url_for(host).is_some_and(|url| url.contains(host)), "{host}");
        }
    }
}
