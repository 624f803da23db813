//! What the UI asks of the server it runs in. The server implements it, so this crate knows no database.

use api::{Examination, TunnelAgent, TunnelAgentId, WorkerEvent, WorkerId, WorkerStatus, WorkerTunnel, WorkerView};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fleet::device_list::{DeviceList, DeviceQuery};
use crate::fleet::roster::{Detail, Roster};
use crate::model::{JoinInfo, LoginOutcome, PasswordOutcome, Session};

/// The server, as the UI needs it. Handed to pages and server functions as a context of type
/// [`SharedBackend`].
#[async_trait]
pub trait Backend: Send + Sync {
    /// Who is logged in, by the request's cookie.
    async fn session(&self, request: &http::request::Parts) -> Option<Session>;

    /// Checks a password; the outcome holds the cookie to set.
    async fn login(&self, request: &http::request::Parts, username: &str, password: &str) -> LoginOutcome;

    /// Ends the session and gives the value of the `Set-Cookie` header that removes its cookie.
    async fn logout(&self, request: &http::request::Parts) -> String;

    /// Changes the caller's own password and ends its other sessions.
    async fn change_password(&self, request: &http::request::Parts, current: &str, new: &str) -> PasswordOutcome;

    /// All workers at this moment.
    async fn roster(&self, detail: Detail) -> Roster;

    /// Everything about these workers, in this order; without those that do not exist.
    async fn workers(&self, ids: &[WorkerId]) -> Vec<WorkerView>;

    /// One worker with its last report and its events, newest first; None when it does not exist.
    async fn worker(&self, id: WorkerId) -> Option<(WorkerView, WorkerStatus, Vec<WorkerEvent>)>;

    /// The page of devices that a query asks for.
    async fn devices(&self, query: &DeviceQuery) -> DeviceList;

    /// Has a worker look at its host, now. It takes as long as the worker takes, up to 20 s.
    async fn examine(&self, id: WorkerId) -> Result<Examination, ExaminationFailed>;

    /// All tunnel agents at this moment, by name.
    async fn tunnel_agents(&self) -> Vec<TunnelAgent>;

    /// The tunnels that a worker depends on.
    async fn worker_tunnels(&self, id: WorkerId) -> Vec<WorkerTunnel>;

    /// Deletes a tunnel agent and revokes its key; false when it does not exist.
    async fn delete_tunnel_agent(&self, id: TunnelAgentId) -> Result<bool, BackendFailed>;

    /// Deletes a worker and revokes its credential; false when it does not exist.
    async fn delete_worker(&self, id: WorkerId) -> Result<bool, BackendFailed>;

    /// Puts a worker into or out of maintenance; false when it does not exist.
    async fn set_maintenance(
        &self,
        id: WorkerId,
        enabled: bool,
        message: Option<String>,
    ) -> Result<bool, BackendFailed>;

    /// Replaces a worker's labels; false when it does not exist.
    async fn set_labels(&self, id: WorkerId, labels: BTreeMap<String, String>) -> Result<bool, BackendFailed>;

    /// Lets the host that asked take the name and row of this worker, which is gone; false when nobody asks.
    async fn allow_replacement(&self, id: WorkerId) -> Result<bool, BackendFailed>;

    /// What a join command needs. The address is the one that the request was made to.
    async fn join_info(&self, request: &http::request::Parts) -> JoinInfo;
}

/// The backend, shared by all requests.
pub type SharedBackend = Arc<dyn Backend>;

/// Why a worker's host cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExaminationFailed {
    /// The worker has no link at this moment.
    NoLink,
    /// It did not answer in time.
    Unanswered,
    /// Its version knows no doctor.
    TooOld,
}

/// The server could not do it; its log has the cause under this request id.
#[derive(Clone, Debug)]
pub struct BackendFailed {
    /// Names the request in the server's log.
    pub request_id: String,
}
