//! Who may have a link: a worker or tunnel agent that shows the join token, or one whose key is known. A worker's link
//! begins its session.

use super::{agent_link_id, link_id};
use crate::server::error::ApiError;
use crate::server::membership::{Membership, Proof, unsupported_protocol};
use crate::server::probe;
use crate::server::registry::Registry;
use crate::server::tunnels::Tunnels;
use api::{
    ExaminationAnswer, ExaminedWorker, PROTOCOL_VERSION, RegisterDeclined, RegisterRequest, RegisterResponse,
    TunnelAgentRequest, TunnelAgentResponse, TunnelAgentUuid, WayBackAddress,
};
use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use link::{Admission, Applicant, Gatekeeper, JoinToken, Refusal, ShownToken};
use serde::Deserialize;
use std::time::Duration;

/// What a worker keeps to; a third of the shortest offline timeout.
const HEARTBEAT_INTERVAL_S: u64 = 10;
/// A worker that came at a bad moment comes back after this.
const BUSY_RETRY: Duration = Duration::from_secs(5);

/// Lets workers and tunnel agents in.
pub struct LinkGatekeeper {
    pub token: JoinToken,
    pub registry: Registry,
    pub membership: Membership,
    pub tunnels: Tunnels,
}

/// What is the same in all that somebody may say to be let in, in every version.
#[derive(Deserialize)]
struct Opening {
    protocol: u32,
    /// There when a doctor asks.
    #[serde(default)]
    examine: Option<ExaminedWorker>,
    /// There when a tunnel agent asks.
    #[serde(default)]
    tunnel_agent: Option<TunnelAgentUuid>,
}

#[async_trait]
impl Gatekeeper for LinkGatekeeper {
    async fn tokens(&self) -> Vec<JoinToken> {
        vec![self.token.clone()]
    }

    async fn recognise(&self, applicant: &Applicant) -> Result<(), Refusal> {
        match &applicant.token {
            ShownToken::Valid(_) => Ok(()),
            _ if self.registry.knows_link_key(&applicant.worker_key) => Ok(()),
            _ if self.tunnels.knows_key(&applicant.worker_key) => Ok(()),
            ShownToken::Wrong => Err(Refusal::WrongToken),
            ShownToken::None => Err(Refusal::UnknownKey),
        }
    }

    async fn admit(&self, applicant: &Applicant, join_request: Bytes) -> Result<Admission, Refusal> {
        // before all else: another version's request may have other fields
        let opening = serde_json::from_slice(&join_request).map_err(|_| Refusal::Malformed)?;
        let Opening { protocol, examine, tunnel_agent } = opening;
        if protocol != PROTOCOL_VERSION {
            return Err(refusal(&unsupported_protocol(protocol)));
        }
        if let Some(worker) = examine {
            return Ok(Admission::Answer(self.examine(worker).await));
        }
        let proof = match applicant.token {
            ShownToken::Valid(_) => Proof::JoinToken,
            ShownToken::Wrong | ShownToken::None => Proof::Key,
        };
        if tunnel_agent.is_some() {
            return self.admit_agent(&join_request, proof, applicant.worker_key).await;
        }
        let request: RegisterRequest = serde_json::from_slice(&join_request)
            .map_err(|error| refusal(&ApiError::invalid(format!("the worker's request is not understood: {error}"))))?;
        let registered = self.membership.register(request, proof, applicant.worker_key).await;
        let worker = registered.map_err(|error| refusal(&error))?;
        let name = worker.facts().row.name.clone();
        let response = RegisterResponse {
            worker_id: worker.id(),
            name,
            heartbeat_interval_s: HEARTBEAT_INTERVAL_S,
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let answer = serde_json::to_vec(&response).unwrap_or_default().into();
        Ok(Admission::Link { id: link_id(worker.id()), answer })
    }
}

impl LinkGatekeeper {
    async fn admit_agent(&self, join_request: &[u8], proof: Proof, key: link::PublicKey) -> Result<Admission, Refusal> {
        let request: TunnelAgentRequest = serde_json::from_slice(join_request)
            .map_err(|error| refusal(&ApiError::invalid(format!("the agent's request is not understood: {error}"))))?;
        let admitted = self.tunnels.admit(request, proof, key).await;
        let agent = admitted.map_err(|error| refusal(&error))?;
        let response = TunnelAgentResponse {
            agent_id: agent.id(),
            name: agent.facts().row.name.clone(),
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let answer = serde_json::to_vec(&response).unwrap_or_default().into();
        Ok(Admission::Link { id: agent_link_id(agent.id()), answer })
    }

    /// Tells a doctor what only the server can see. Nothing changes by it.
    async fn examine(&self, worker: ExaminedWorker) -> Bytes {
        let wall_ms = || {
            let moment = self.registry.moment();
            moment.wall_ms(moment.now)
        };
        let received_ms = wall_ms();
        let way_back = match &worker.way_back {
            Some(WayBackAddress { ip, port }) => {
                Some(probe::try_way(&self.registry, worker.worker_uuid, &ip.to_string(), *port).await)
            }
            None => None,
        };
        let known = self.registry.by_uuid(worker.worker_uuid);
        let answer = ExaminationAnswer {
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
            received_ms,
            returned_ms: wall_ms(),
            known_as: known.map(|known| known.facts().row.name.clone()),
            way_back,
        };
        serde_json::to_vec(&answer).unwrap_or_default().into()
    }
}

fn refusal(error: &ApiError) -> Refusal {
    error.log_cause();
    if error.status() == StatusCode::SERVICE_UNAVAILABLE {
        return Refusal::Busy { retry_after: BUSY_RETRY };
    }
    let declined = RegisterDeclined { reason: error.reason().to_owned(), message: error.message().to_owned() };
    Refusal::Declined { detail: serde_json::to_vec(&declined).unwrap_or_default().into() }
}
