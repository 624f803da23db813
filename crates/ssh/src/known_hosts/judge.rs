//! The judgement on the key or certificate that a server shows.

use super::line::{HostNames, Purpose};
use super::{Book, HostKey, KnownHostsError};
use crate::address::Endpoint;
use crate::known_hosts::pattern::glob_matches;
use crate::validity::{Validity, ValidityFault};
use chrono::{DateTime, Utc};
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::{Certificate, PublicKey, PublicKeyOrCertificate};
use std::path::PathBuf;
use thiserror::Error;

/// A key that a file has for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKey {
    /// The key.
    pub key: HostKey,
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
}

/// A server cannot be taken for the one that it should be.
#[derive(Debug, Error)]
pub enum HostKeyError {
    /// Nobody has decided about this server yet.
    #[error(
        "the server's key is not known: {key}. Compare it with what `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` \
         (or the file of that kind) says on {host}, and trust it only if both are the same"
    )]
    Unknown {
        /// The server.
        host: Endpoint,
        /// What it shows.
        key: HostKey,
    },
    /// The server is known by another key.
    #[error(
        "the server shows another key than the one that is known: it shows {key}, {} has {}. Either the server was set \
         up anew, or somebody sits in between: ask who runs {host} before you remove that line",
        place(known),
        fingerprints(known)
    )]
    Changed {
        /// The server.
        host: Endpoint,
        /// What it shows.
        key: HostKey,
        /// What it should show; at least one.
        known: Vec<KnownKey>,
    },
    /// The key is one that nobody may show any more.
    #[error("the server shows a key that was revoked: {key}, line {line} of {file}; it needs a new one")]
    Revoked {
        /// The server.
        host: Endpoint,
        /// What it shows.
        key: HostKey,
        /// The file that says so.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// A trusted authority signed a certificate that does not fit.
    #[error("the server's certificate `{key_id}` cannot be taken: {fault}")]
    Certificate {
        /// The server.
        host: Endpoint,
        /// How its authority calls the certificate.
        key_id: String,
        /// What is wrong.
        fault: HostCertificateFault,
    },
    /// Nobody can say what is known.
    #[error(transparent)]
    Files(#[from] KnownHostsError),
}

/// What is wrong with a server's certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostCertificateFault {
    /// It is valid at another time, or the clock of this host is wrong.
    #[error(transparent)]
    Validity(#[from] ValidityFault),
    /// It is for a server of another name.
    #[error("it is for {}, and the server was reached as {name}", list(principals))]
    OtherName {
        /// How the server was reached.
        name: String,
        /// Whom it is for.
        principals: Vec<String>,
    },
    /// It is for no server in particular, and would be good for each.
    #[error("it names no host; sign the server's key with names (`ssh-keygen -s CA -h -n NAME`)")]
    NoName,
    /// It is for a user.
    #[error("it is a certificate for users; sign the server's key with `ssh-keygen -h`")]
    ForUsers,
    /// It demands something that this program does not know.
    #[error("it has the critical option `{0}`, which is not known for servers")]
    CriticalOption(String),
    /// It was changed, or signed by somebody else than it says.
    #[error("its signature is wrong")]
    Signature,
}

fn list(words: &[String]) -> String {
    words.join(", ")
}

fn place(known: &[KnownKey]) -> String {
    known.first().map(|key| format!("line {} of {}", key.line, key.file.display())).unwrap_or_default()
}

fn fingerprints(known: &[KnownKey]) -> String {
    known.iter().map(|key| key.key.to_string()).collect::<Vec<_>>().join(" and ")
}

impl Book {
    /// Whether `shown` is what `host` should show, at `now` by the clock of this host.
    pub fn judge(
        &self,
        host: &Endpoint,
        shown: &PublicKeyOrCertificate,
        now: DateTime<Utc>,
    ) -> Result<(), HostKeyError> {
        match shown.certificate() {
            Some(certificate) => self.judge_certificate(host, certificate, now),
            None => self.judge_key(host, shown.public_key()),
        }
    }

    fn judge_key(&self, host: &Endpoint, key: PublicKey) -> Result<(), HostKeyError> {
        let names = HostNames::of(host);
        self.refuse_revoked(host, &names, &key)?;
        if self.knows(&names.full, &key) || self.knows(&names.bare, &key) {
            return Ok(());
        }
        let known: Vec<KnownKey> = self
            .lines(Purpose::Host, &names.full)
            .map(|entry| KnownKey {
                key: HostKey::new(entry.line.key.clone()),
                file: entry.file.to_path_buf(),
                line: entry.number,
            })
            .collect();
        let (host, key) = (host.clone(), HostKey::new(key));
        // a key of another kind than the known ones is a change too: a server that still had a known one was asked for it
        Err(if known.is_empty() {
            HostKeyError::Unknown { host, key }
        } else {
            HostKeyError::Changed { host, key, known }
        })
    }

    fn judge_certificate(
        &self,
        host: &Endpoint,
        certificate: &Certificate,
        now: DateTime<Utc>,
    ) -> Result<(), HostKeyError> {
        let names = HostNames::of(host);
        let authority = PublicKey::from(certificate.signature_key().clone());
        let key = PublicKey::from(certificate.public_key().clone());
        let trusted = [&names.full, &names.bare].into_iter().any(|name| {
            self.lines(Purpose::Authority, name).any(|entry| entry.line.key.key_data() == authority.key_data())
        });
        if !trusted {
            return self.judge_key(host, key);
        }
        self.refuse_revoked(host, &names, &authority)?;
        self.refuse_revoked(host, &names, &key)?;
        check_certificate(certificate, &names.bare, now).map_err(|fault| HostKeyError::Certificate {
            host: host.clone(),
            key_id: certificate.key_id().to_owned(),
            fault,
        })
    }

    fn refuse_revoked(&self, host: &Endpoint, names: &HostNames, key: &PublicKey) -> Result<(), HostKeyError> {
        let revoked =
            |name| self.lines(Purpose::Revoked, name).find(|entry| entry.line.key.key_data() == key.key_data());
        match revoked(&names.full).or_else(|| revoked(&names.bare)) {
            None => Ok(()),
            Some(entry) => Err(HostKeyError::Revoked {
                host: host.clone(),
                key: HostKey::new(key.clone()),
                file: entry.file.to_path_buf(),
                line: entry.number,
            }),
        }
    }
}

fn check_certificate(certificate: &Certificate, name: &str, now: DateTime<Utc>) -> Result<(), HostCertificateFault> {
    if certificate.cert_type() != CertType::Host {
        return Err(HostCertificateFault::ForUsers);
    }
    certificate.verify_signature().map_err(|_| HostCertificateFault::Signature)?;
    if let Some((option, _)) = certificate.critical_options().iter().next() {
        return Err(HostCertificateFault::CriticalOption(option.clone()));
    }
    let principals = certificate.valid_principals();
    if principals.is_empty() {
        return Err(HostCertificateFault::NoName);
    }
    if !principals.iter().any(|principal| glob_matches(&principal.to_ascii_lowercase(), name)) {
        let (name, principals) = (name.to_owned(), principals.to_vec());
        return Err(HostCertificateFault::OtherName { name, principals });
    }
    Ok(Validity::of(certificate).check(now)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ca::CertificateAuthority;
    use crate::known_hosts::KnownHosts;
    use chrono::TimeDelta;
    use russh::keys::key::safe_rng;
    use russh::keys::{Algorithm, PrivateKey};
    use tempfile::TempDir;

    fn key() -> PublicKey {
        PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap().public_key().clone()
    }

    fn shown(key: &PublicKey) -> PublicKeyOrCertificate {
        key.clone().into()
    }

    /// Files of its own, with these lines; `{n}` stands for the n-th key.
    fn files(text: &str, keys: &[&PublicKey]) -> (TempDir, KnownHosts) {
        let folder = tempfile::tempdir().unwrap();
        let mut text = text.to_owned();
        for (index, key) in keys.iter().enumerate() {
            text = text.replace(&format!("{{{index}}}"), key.to_openssh().unwrap().trim());
        }
        std::fs::write(folder.path().join("known_hosts"), text).unwrap();
        let known = KnownHosts::new(folder.path().join("known_hosts"), Vec::new());
        (folder, known)
    }

    fn judge(known: &KnownHosts, host: &str, key: &PublicKey) -> Result<(), HostKeyError> {
        known.read().unwrap().judge(&host.parse().unwrap(), &shown(key), Utc::now())
    }

    #[test]
    fn a_host_is_unknown_until_somebody_trusts_it() {
        let (_folder, known) = files("", &[]);
        let (right, wrong) = (key(), key());
        let HostKeyError::Unknown { host, key } = judge(&known, "bastion:2222", &right).unwrap_err() else { panic!() };
        assert_eq!(key.public_key(), &right);
        known.trust(&host, &key).unwrap();
        judge(&known, "bastion:2222", &right).unwrap();
        judge(&known, "BASTION:2222", &right).unwrap();
        assert!(matches!(judge(&known, "bastion:22", &right), Err(HostKeyError::Unknown { .. })));
        let error = judge(&known, "bastion:2222", &wrong).unwrap_err();
        assert!(matches!(&error, HostKeyError::Changed { known, .. } if known[0].line == 1), "{error}");
    }

    #[test]
    fn another_key_is_not_trusted_beside_a_known_one() {
        let (old, new) = (key(), key());
        let (folder, known) = files("# by hand\n[bastion]:2222 {0}", &[&old]);
        let host = "bastion:2222".parse().unwrap();
        let error = known.trust(&host, &HostKey::new(new)).unwrap_err();
        assert!(matches!(error, KnownHostsError::OtherKeyKnown { line: 2, .. }), "{error}");
        known.trust(&host, &HostKey::new(old)).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("known_hosts")).unwrap().lines().count(), 2);
    }

    #[test]
    fn a_line_is_added_after_one_without_an_end() {
        let (first, second) = (key(), key());
        let (_folder, known) = files("one {0}", &[&first]);
        known.trust(&Endpoint::new("two", 22), &HostKey::new(second.clone())).unwrap();
        judge(&known, "one:22", &first).unwrap();
        judge(&known, "two:22", &second).unwrap();
    }

    #[test]
    fn a_name_without_a_port_vouches_for_every_port_but_denies_none() {
        let (right, other) = (key(), key());
        let (_folder, known) = files("bastion {0}", &[&right]);
        judge(&known, "bastion:2222", &right).unwrap();
        assert!(matches!(judge(&known, "bastion:2222", &other), Err(HostKeyError::Unknown { .. })));
        assert!(matches!(judge(&known, "bastion:22", &other), Err(HostKeyError::Changed { .. })));
    }

    #[test]
    fn a_revoked_key_is_refused_though_it_is_known() {
        let right = key();
        let (_folder, known) = files("bastion {0}\n@revoked * {0}", &[&right]);
        assert!(matches!(judge(&known, "bastion:22", &right), Err(HostKeyError::Revoked { line: 2, .. })));
    }

    fn judge_certificate(line: &str, names: &[&str], valid_h: (i64, i64), host: &str) -> Result<(), HostKeyError> {
        let authority = CertificateAuthority::generate("hosts").unwrap();
        let now = Utc::now();
        let valid =
            Validity { after: now + TimeDelta::hours(valid_h.0), before: Some(now + TimeDelta::hours(valid_h.1)) };
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = authority.sign_host(&key(), "a host", &names, valid).unwrap();
        let (_folder, known) = files(line, &[authority.public_key()]);
        known.read().unwrap().judge(&host.parse().unwrap(), &certificate.into(), now)
    }

    #[test]
    fn certificates_and_whether_they_are_taken() {
        use HostCertificateFault::{OtherName, Validity as At};
        const TRUSTED: &str = "@cert-authority *.example,bastion {0}";
        judge_certificate(TRUSTED, &["npu.example"], (-1, 1), "npu.example:22").unwrap();
        judge_certificate(TRUSTED, &["*.example"], (-1, 1), "npu.example:2222").unwrap();
        let fault = |names: &[&str], valid_h, host: &str| match judge_certificate(TRUSTED, names, valid_h, host) {
            Err(HostKeyError::Certificate { fault, .. }) => fault,
            other => panic!("{other:?}"),
        };
        assert!(matches!(fault(&["bastion"], (-2, -1), "bastion:22"), At(ValidityFault::Expired { .. })));
        assert!(matches!(fault(&["bastion"], (1, 2), "bastion:22"), At(ValidityFault::NotYet { .. })));
        assert!(matches!(fault(&["npu"], (-1, 1), "bastion:22"), OtherName { .. }));
    }

    #[test]
    fn an_authority_speaks_only_for_hosts_that_it_is_trusted_with() {
        let stranger = judge_certificate("@cert-authority *.example {0}", &["bastion"], (-1, 1), "bastion:22");
        assert!(matches!(stranger, Err(HostKeyError::Unknown { .. })), "{stranger:?}");
        let revoked = judge_certificate("@cert-authority * {0}\n@revoked * {0}", &["bastion"], (-1, 1), "bastion:22");
        assert!(matches!(revoked, Err(HostKeyError::Revoked { .. })), "{revoked:?}");
    }
}
