//! The certificates with which an agent logs in: what they say, and new ones from the server.

use crate::tunnel::plan::Plan;
use api::{CertificateReport, CertificateView};
use ssh::ca::{self, CertificateFacts, CertificateFault};
use ssh::{Certificate, Identity, KeyFileError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A private key in a file, and where its certificate is or will be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyFile {
    /// The private key.
    pub key: PathBuf,
    /// The certificate.
    pub certificate: PathBuf,
}

/// Why a certificate that the server sent is not taken.
#[derive(Debug, Error)]
pub enum TakeError {
    /// It is none.
    #[error("it is no OpenSSH certificate")]
    NoCertificate,
    /// It is for a key that this agent does not have.
    #[error("it is for none of this agent's keys")]
    OtherKey,
    /// It is no better than the one that is there.
    #[error("it does not last longer than the one that is there")]
    NotLonger,
    /// It does not hold.
    #[error(transparent)]
    Fault(#[from] CertificateFault),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] KeyFileError),
}

/// The key files of a plan, each once.
pub fn key_files(plan: &Plan) -> Vec<KeyFile> {
    let identities = plan.forwards.iter().flat_map(|forward| &forward.route).flat_map(|hop| &hop.identities);
    let files: BTreeSet<KeyFile> = identities
        .filter_map(|identity| match identity {
            Identity::KeyFile { path, certificate } => Some(KeyFile {
                key: path.clone(),
                certificate: certificate.clone().unwrap_or_else(|| beside(path, "-cert.pub")),
            }),
            Identity::Agent { .. } => None,
        })
        .collect();
    files.into_iter().collect()
}

/// What the files hold at the moment. Keys without a public half beside them are left out: nothing can be said of those.
pub fn reports(files: &[KeyFile]) -> Vec<CertificateReport> {
    files.iter().filter_map(report).collect()
}

fn report(file: &KeyFile) -> Option<CertificateReport> {
    let certificate = ca::read_certificate(&file.certificate).ok();
    let public_key = match &certificate {
        Some(certificate) => public_key_of(certificate)?,
        None => std::fs::read_to_string(beside(&file.key, ".pub")).ok()?.trim().to_owned(),
    };
    let key_file = file.key.display().to_string();
    Some(CertificateReport { key_file, public_key, certificate: certificate.as_ref().map(view), revoked_ms: None })
}

fn view(certificate: &Certificate) -> CertificateView {
    let facts = CertificateFacts::of(certificate);
    CertificateView {
        key_id: facts.key_id,
        serial: facts.serial,
        principals: facts.principals,
        authority: facts.authority,
        valid_after_ms: facts.validity.after.timestamp_millis(),
        valid_before_ms: facts.validity.before.map(|before| before.timestamp_millis()),
    }
}

/// Writes a certificate from the server beside its key. The next login uses it; sessions that stand go on.
pub fn take(files: &[KeyFile], text: &str) -> Result<PathBuf, TakeError> {
    let certificate: Certificate = text.trim().parse().map_err(|_| TakeError::NoCertificate)?;
    let public_key = public_key_of(&certificate).ok_or(TakeError::NoCertificate)?;
    let own = reports(files);
    let (file, report) = files
        .iter()
        .find_map(|file| {
            let key_file = file.key.display().to_string();
            let report = own.iter().find(|report| report.key_file == key_file)?;
            same_key(&report.public_key, &public_key).then_some((file, report))
        })
        .ok_or(TakeError::OtherKey)?;
    let lasts_until = |view: &CertificateView| view.valid_before_ms.unwrap_or(i64::MAX);
    if report.certificate.as_ref().is_some_and(|old| lasts_until(old) >= lasts_until(&view(&certificate))) {
        return Err(TakeError::NotLonger);
    }
    ca::write_certificate(&file.certificate, &certificate)?;
    Ok(file.certificate.clone())
}

fn public_key_of(certificate: &Certificate) -> Option<String> {
    ssh::PublicKey::from(certificate.public_key().clone()).to_openssh().ok()
}

/// Whatever comments they have.
pub fn same_key(one: &str, other: &str) -> bool {
    let key = |text: &str| text.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
    key(one) == key(other)
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
