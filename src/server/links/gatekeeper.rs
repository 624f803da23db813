//! Who may have a link: a worker with a running session, under its own credential and, from its first link on, its own
//! key.

use super::link_id;
use crate::server::error::ApiError;
use crate::server::membership::{self, Membership, credential_revoked, session_replaced, unsupported_protocol};
use crate::server::registry::Registry;
use api::{LinkDeclined, LinkJoinRequest, PROTOCOL_VERSION};
use async_trait::async_trait;
use bytes::Bytes;
use link::{Admission, Applicant, Gatekeeper, JoinToken, Refusal, ShownToken};
use serde::Deserialize;
use std::time::Duration;

/// A worker whose key could not be written comes back after this.
const STORE_RETRY: Duration = Duration::from_secs(5);

/// Lets in workers that have a session.
pub struct WorkerGatekeeper {
    pub token: JoinToken,
    pub registry: Registry,
    pub membership: Membership,
}

#[derive(Deserialize)]
struct ProtocolOnly {
    protocol: u32,
}

#[async_trait]
impl Gatekeeper for WorkerGatekeeper {
    async fn tokens(&self) -> Vec<JoinToken> {
        vec![self.token.clone()]
    }

    async fn recognise(&self, applicant: &Applicant) -> Result<(), Refusal> {
        match &applicant.token {
            ShownToken::Valid(_) => Ok(()),
            _ if self.registry.knows_link_key(&applicant.worker_key) => Ok(()),
            ShownToken::Wrong => Err(Refusal::WrongToken),
            ShownToken::None => Err(Refusal::UnknownKey),
        }
    }

    async fn admit(&self, applicant: &Applicant, join_request: Bytes) -> Result<Admission, Refusal> {
        // before all else: another version's request may have other fields
        let ProtocolOnly { protocol } = serde_json::from_slice(&join_request).map_err(|_| Refusal::Malformed)?;
        if protocol != PROTOCOL_VERSION {
            return Err(declined(&unsupported_protocol(protocol)));
        }
        let request: LinkJoinRequest = serde_json::from_slice(&join_request).map_err(|_| Refusal::Malformed)?;
        let Some(worker) = self.registry.by_credential(&membership::hash(&request.credential)) else {
            return Err(declined(&credential_revoked()));
        };
        let known_key = {
            let mut facts = worker.facts();
            if !facts.take_up_session(request.session_id) {
                return Err(declined(&session_replaced()));
            }
            facts.row.link_key
        };
        if known_key != Some(applicant.worker_key) {
            // its key is another worker's, by which it was recognised
            if !matches!(applicant.token, ShownToken::Valid(_)) {
                return Err(Refusal::UnknownKey);
            }
            let pinned = self.membership.pin_link_key(worker.id(), applicant.worker_key).await;
            pinned.map_err(|error| {
                tracing::warn!(
                    worker = worker.id().0,
                    error = error.message(),
                    "the key of a worker's link cannot be kept"
                );
                Refusal::Busy { retry_after: STORE_RETRY }
            })?;
        }
        Ok(Admission { id: link_id(worker.id()), answer: Bytes::new() })
    }
}

fn declined(error: &ApiError) -> Refusal {
    let declined = LinkDeclined { reason: error.reason().to_owned(), message: error.message().to_owned() };
    Refusal::Declined { detail: serde_json::to_vec(&declined).unwrap_or_default().into() }
}
