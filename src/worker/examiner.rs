//! Asks a server about this worker, as the worker would dial it, for a doctor. Nothing is made, kept or changed.

use super::AddressError;
use super::address::AddressBook;
use super::address_setting;
use super::join_error::JoinError;
use super::line::{Line, LinkSetupError};
use crate::config::WorkerConfig;
use api::{
    CredentialKind, ExaminationAnswer, ExaminationRequest, ExaminedWorker, PROTOCOL_VERSION, WayBackAddress, WorkerUuid,
};
use link::{DialError, Welcome};
use std::net::IpAddr;
use thiserror::Error;
use uuid::Uuid;

/// Why a server cannot be asked.
#[derive(Debug, Error)]
pub enum ExaminerError {
    /// The address setting.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The line.
    #[error(transparent)]
    Line(#[from] LinkSetupError),
}

/// Asks a server about this worker.
pub struct Examiner {
    line: Line,
    addresses: AddressBook,
}

impl Examiner {
    /// With what the worker has.
    pub fn new(config: &WorkerConfig) -> Result<Self, ExaminerError> {
        let addresses = AddressBook::new(address_setting(config), config.server_url.clone())?;
        Ok(Self { line: Line::look(config)?, addresses })
    }

    /// The address that the worker would tell.
    pub async fn address(&self) -> IpAddr {
        self.addresses.current().await.address
    }

    /// What the worker would join with.
    pub fn credential(&self) -> CredentialKind {
        match (self.line.has_token(), self.line.server_key()) {
            (true, _) => CredentialKind::Token,
            (false, Some(_)) => CredentialKind::Key,
            (false, None) => CredentialKind::Nothing,
        }
    }

    /// Asks. A server with another key than before has to prove that it knows the token, as to the worker.
    pub async fn ask(
        &self,
        worker_uuid: WorkerUuid,
        way_back: Option<WayBackAddress>,
    ) -> Result<ExaminationAnswer, JoinError> {
        let examine = ExaminedWorker { worker_uuid, way_back };
        let request = ExaminationRequest { protocol: PROTOCOL_VERSION, examine };
        let question = serde_json::to_vec(&request).unwrap_or_default();
        let mut asked = self.line.dialer(self.line.server_key()).ask(question.clone().into()).await;
        if is_key_changed(&asked) && self.line.has_token() {
            asked = self.line.dialer(None).ask(question.into()).await;
        }
        let welcome = asked.map_err(|error| self.line.explain(&error))?;
        serde_json::from_slice(&welcome.answer)
            .map_err(|error| JoinError::AnswerNotUnderstood { detail: error.to_string() })
    }

    /// Knocks with a token that cannot be right. A server of ours, reached through whatever is in between, refuses just
    /// that.
    pub async fn try_without_credential(&self) -> JoinError {
        let no_token = Uuid::new_v4().simple().to_string();
        match self.line.dialer_with_token(&no_token).ask(Vec::new().into()).await {
            Ok(_) => JoinError::AnswerNotUnderstood { detail: "a token that cannot be right was taken".to_owned() },
            Err(error) => self.line.explain(&error),
        }
    }
}

fn is_key_changed(asked: &Result<Welcome, DialError>) -> bool {
    matches!(asked, Err(DialError::Join(link::JoinError::ServerKeyChanged { .. })))
}
