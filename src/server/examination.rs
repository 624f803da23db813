//! The doctor's look at a worker's host, asked for over its link.

use crate::server::dial::{DialError, Way, dial_worker, ways};
use crate::server::links::Links;
use crate::server::registry::Worker;
use api::{EXAMINATION_PATH, Examination};
use http::StatusCode;
use std::time::Duration;
use thiserror::Error;

/// The worker asks its time service, and waits for the end of its first look at the devices.
const DEADLINE: Duration = Duration::from_secs(20);

/// Why a worker's host cannot be looked at.
#[derive(Debug, Error)]
pub enum ExaminationError {
    /// It has no link, as GPUStack 0.7's workers have none. Its port tells nothing: anybody may ask there.
    #[error("the worker has no link at the moment")]
    NoLink,
    /// It did not answer.
    #[error("the worker did not answer over its link: {0}")]
    Unanswered(DialError),
    /// It is of a version that knows no doctor.
    #[error("the worker answered with HTTP {0}; its version may be too old to look at its host")]
    Unknown(StatusCode),
    /// Its answer is not understood.
    #[error("the worker's answer is not understood: {0}")]
    NotUnderstood(serde_json::Error),
}

/// Has a worker look at its host, now.
pub async fn examine(worker: &Worker, links: &Links) -> Result<Examination, ExaminationError> {
    let mut ways = ways(worker, links);
    ways.retain(|way| matches!(way, Way::Link(_)));
    if ways.is_empty() {
        return Err(ExaminationError::NoLink);
    }
    let answer = dial_worker(&ways, EXAMINATION_PATH, DEADLINE).await.map_err(ExaminationError::Unanswered)?;
    match answer.response.status() {
        StatusCode::OK => serde_json::from_slice(answer.response.body()).map_err(ExaminationError::NotUnderstood),
        status => Err(ExaminationError::Unknown(status)),
    }
}
