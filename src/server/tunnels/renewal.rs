//! New certificates for the keys of tunnel agents, sent over their links before the old ones end.

use super::Tunnels;
use crate::data_dir::DataDir;
use crate::server::links::Links;
use crate::server::supervisor::Job;
use crate::ssh_authority::{Authority, AuthorityError, Held};
use api::{CERTIFICATE_PATH, CertificateReport, NewCertificate, TunnelAgentId};
use bytes::Bytes;
use chrono::Utc;
use http::{Request, header};
use http_body_util::{BodyExt, Full, Limited};
use link::LinkHandle;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

const LOOK_INTERVAL: Duration = Duration::from_secs(10);
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// A refusal's reason.
const ANSWER_MAX_BYTES: usize = 4 * 1024;

/// Why an agent did not take a certificate.
#[derive(Debug, Error)]
enum SendError {
    #[error("the link: {0}")]
    Link(#[from] link::RequestError),
    #[error("the agent refuses it: {0}")]
    Refused(String),
}

/// Looks for ever after certificates that are due.
pub async fn run(tunnels: Tunnels, links: Links, data_dir: PathBuf, job: Job) -> Infallible {
    let mut look = interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        renew_all(&tunnels, &links, &data_dir).await;
        job.succeeded();
    }
}

async fn renew_all(tunnels: &Tunnels, links: &Links, data_dir: &Path) {
    note_revoked(tunnels, data_dir).await;
    let held = held_certificates(tunnels);
    if held.is_empty() {
        return;
    }
    let data_dir = data_dir.to_owned();
    let signed = match spawn_blocking(move || sign_due(&data_dir, held)).await {
        Ok(Ok(signed)) => signed,
        Ok(Err(AuthorityError::None)) => return,
        Ok(Err(error)) => return tracing::error!(%error, "certificates of tunnels cannot be renewed"),
        Err(panic) => return tracing::error!(%panic, "certificates of tunnels cannot be renewed"),
    };
    for (agent, new) in signed {
        let Some(link) = links.agent(agent) else { continue };
        match send(&link, &new).await {
            Ok(()) => tracing::info!(agent = agent.0, "a tunnel agent has a new certificate"),
            Err(error) => tracing::warn!(agent = agent.0, %error, "a tunnel agent did not take its new certificate"),
        }
    }
}

/// Has what was revoked shown where agents have it. What cannot be read, the renewal tells.
async fn note_revoked(tunnels: &Tunnels, data_dir: &Path) {
    let data_dir = data_dir.to_owned();
    let read = spawn_blocking(move || Authority::open(&DataDir::existing(&data_dir)?)?.revoked_keys());
    if let Ok(Ok(revoked)) = read.await {
        tunnels.set_revoked(revoked);
    }
}

/// What the agents whose links stand told of their keys.
fn held_certificates(tunnels: &Tunnels) -> Vec<(TunnelAgentId, CertificateReport)> {
    let mut held = Vec::new();
    for agent in tunnels.all() {
        let facts = agent.facts();
        let Some(told) = facts.told.as_ref().filter(|_| facts.is_connected()) else { continue };
        held.extend(told.report.certificates.iter().map(|certificate| (agent.id(), certificate.clone())));
    }
    held
}

fn sign_due(
    data_dir: &Path,
    held: Vec<(TunnelAgentId, CertificateReport)>,
) -> Result<Vec<(TunnelAgentId, NewCertificate)>, AuthorityError> {
    let authority = Authority::open(&DataDir::existing(data_dir)?)?;
    let mut signed = Vec::new();
    for (agent, report) in held {
        let held = report.certificate.map(|held| Held { serial: held.serial, valid_before_ms: held.valid_before_ms });
        if let Some(certificate) = authority.renew(&report.public_key, held.as_ref(), Utc::now())? {
            signed.push((agent, NewCertificate { certificate }));
        }
    }
    Ok(signed)
}

async fn send(link: &LinkHandle, new: &NewCertificate) -> Result<(), SendError> {
    let body = Full::new(Bytes::from(serde_json::to_vec(new).unwrap_or_default()));
    let request = Request::put(CERTIFICATE_PATH).header(header::CONTENT_TYPE, "application/json").body(body);
    let request = request.map_err(|error| link::RequestError::Invalid(error.to_string()))?;
    let response = link.request(request, ANSWER_DEADLINE).await?;
    let (head, body) = response.into_parts();
    if head.status.is_success() {
        return Ok(());
    }
    let why = Limited::new(body, ANSWER_MAX_BYTES).collect().await.map(http_body_util::Collected::to_bytes);
    let why = String::from_utf8_lossy(&why.unwrap_or_default()).into_owned();
    Err(SendError::Refused(format!("{} {why}", head.status)))
}
