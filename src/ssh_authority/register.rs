//! What an authority has signed and revoked.

use super::{AuthorityError, Revocation, network, serial};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use ssh::PublicKey;
use ssh::ca::{Network, RevocationList, RevokedByAuthority, SignError};
use std::collections::HashMap;
use std::num::NonZeroU64;

/// Certificates that ended before are forgotten.
const KEPT_AFTER_END: TimeDelta = TimeDelta::days(90);

/// What a key may do, and for how long at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The key, in OpenSSH's format.
    pub public_key: String,
    /// What sshd writes into its log.
    pub key_id: String,
    /// The users as whom its holder may log in.
    pub principals: Vec<String>,
    /// Whence its holder may come; from anywhere when empty.
    pub source_addresses: Vec<String>,
    /// How long each certificate is good, in seconds.
    pub lifetime_s: u32,
    /// Whether it gets a new one by itself when two thirds of that are over.
    pub is_renewed: bool,
}

/// A certificate that was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// Its number.
    pub serial: u64,
    /// For what.
    #[serde(flatten)]
    pub grant: Grant,
    /// When it was signed.
    pub at: DateTime<Utc>,
    /// Until when it is good.
    pub until: DateTime<Utc>,
    /// Since when it is not good, whatever it says.
    pub revoked: Option<DateTime<Utc>>,
    /// The certificate itself, in OpenSSH's format: it may have to be handed over once more.
    pub certificate: String,
}

/// The certificate that a key's holder has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its number.
    pub serial: u64,
    /// Until when it is good, in milliseconds since 1970; None for ever.
    pub valid_before_ms: Option<i64>,
}

/// What the holder of a key is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// A new certificate for this.
    New(Grant),
    /// The last one, which it does not have.
    Last(String),
}

/// All that an authority remembers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Register {
    last_serial: u64,
    list_version: u64,
    pub signed: Vec<Signed>,
    /// Keys that may have no certificate any more.
    revoked_keys: Vec<RevokedKey>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RevokedKey {
    public_key: String,
    at: DateTime<Utc>,
}

impl Grant {
    /// How long each certificate is good.
    pub fn lifetime(&self) -> TimeDelta {
        TimeDelta::seconds(self.lifetime_s.into())
    }

    /// The key.
    pub fn key(&self) -> Result<PublicKey, AuthorityError> {
        Ok(PublicKey::from_openssh(&self.public_key).map_err(|error| SignError::Format(error.to_string()))?)
    }

    /// Whence its holder may come.
    pub fn networks(&self) -> Result<Vec<Network>, AuthorityError> {
        let networks = self.source_addresses.iter().map(|text| network(text)).collect::<Result<_, _>>();
        Ok(networks.map_err(SignError::Format)?)
    }
}

impl Register {
    pub fn next_serial(&self) -> NonZeroU64 {
        serial(self.last_serial.saturating_add(1))
    }

    pub fn add(&mut self, grant: &Grant, serial: NonZeroU64, certificate: String, now: DateTime<Utc>) {
        self.last_serial = serial.get();
        self.signed.retain(|signed| signed.until + KEPT_AFTER_END > now);
        self.signed.push(Signed {
            serial: serial.get(),
            grant: grant.clone(),
            at: now,
            until: now + grant.lifetime(),
            revoked: None,
            certificate,
        });
    }

    /// The keys that may have no certificate any more.
    pub fn revoked_keys(&self) -> RevokedKeys {
        self.revoked_keys.iter().map(|revoked| (revoked.public_key.clone(), revoked.at)).collect()
    }

    /// When a key was revoked.
    pub fn revoked_at(&self, public_key: &str) -> Option<DateTime<Utc>> {
        revoked_at(&self.revoked_keys, public_key)
    }

    /// What the holder of a key is to get, which has `held`.
    pub fn due(&self, public_key: &str, held: Option<&Held>, now: DateTime<Utc>) -> Option<Due> {
        if self.revoked_at(public_key).is_some() {
            return None;
        }
        let of_key = |signed: &&Signed| same_key(&signed.grant.public_key, public_key);
        let last = self.signed.iter().rev().find(of_key)?;
        if !last.grant.is_renewed {
            return None;
        }
        if now >= last.at + last.grant.lifetime() * 2 / 3 {
            return Some(Due::New(last.grant.clone()));
        }
        let is_better = held.is_none_or(|held| {
            let until_ms = held.valid_before_ms.unwrap_or(i64::MAX);
            held.serial != last.serial && until_ms < last.until.timestamp_millis()
        });
        is_better.then(|| Due::Last(last.certificate.clone()))
    }

    pub fn revoke(&mut self, what: &Revocation, now: DateTime<Utc>) -> Result<Vec<Signed>, AuthorityError> {
        let is_meant = |signed: &Signed| match what {
            Revocation::Serial(serial) => signed.serial == *serial,
            Revocation::KeyId(id) => signed.grant.key_id == *id,
            Revocation::Key(key) => signed.grant.key().is_ok_and(|signed| signed.key_data() == key.key_data()),
        };
        let mut keys: Vec<String> = self
            .signed
            .iter()
            .filter(|signed| is_meant(signed))
            .map(|signed| signed.grant.public_key.clone())
            .collect();
        match what {
            Revocation::Serial(serial) if keys.is_empty() => {
                return Err(AuthorityError::NothingSigned(format!("the number {serial}")));
            }
            Revocation::KeyId(id) if keys.is_empty() => {
                return Err(AuthorityError::NothingSigned(format!("the name `{id}`")));
            }
            // also a key that was never signed, so that it never will be
            Revocation::Key(key) => {
                keys.push(key.to_openssh().map_err(|error| SignError::Format(error.to_string()))?);
            }
            Revocation::Serial(_) | Revocation::KeyId(_) => {}
        }
        for public_key in keys {
            if self.revoked_at(&public_key).is_none() {
                self.revoked_keys.push(RevokedKey { public_key, at: now });
            }
        }
        let mut revoked = Vec::new();
        for signed in self.signed.iter_mut().filter(|signed| signed.revoked.is_none()) {
            if let Some(at) = revoked_at(&self.revoked_keys, &signed.grant.public_key) {
                signed.revoked = Some(at);
                revoked.push(signed.clone());
            }
        }
        self.list_version += 1;
        Ok(revoked)
    }

    /// For sshd.
    pub fn revocation_list(&self, authority: &PublicKey, now: DateTime<Utc>) -> Result<RevocationList, AuthorityError> {
        let serials = self.signed.iter().filter(|signed| signed.revoked.is_some()).map(|signed| serial(signed.serial));
        let keys = self.revoked_keys.iter().map(|revoked| {
            PublicKey::from_openssh(&revoked.public_key).map_err(|error| SignError::Format(error.to_string()).into())
        });
        Ok(RevocationList {
            version: self.list_version,
            made_at: now,
            certificates: vec![RevokedByAuthority {
                authority: authority.clone(),
                serials: serials.collect(),
                key_ids: std::collections::BTreeSet::new(),
            }],
            keys: keys.collect::<Result<_, AuthorityError>>()?,
        })
    }
}

fn revoked_at(revoked_keys: &[RevokedKey], public_key: &str) -> Option<DateTime<Utc>> {
    revoked_keys.iter().find(|revoked| same_key(&revoked.public_key, public_key)).map(|revoked| revoked.at)
}

/// Keys that were revoked, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevokedKeys(HashMap<String, DateTime<Utc>>);

impl FromIterator<(String, DateTime<Utc>)> for RevokedKeys {
    fn from_iter<I: IntoIterator<Item = (String, DateTime<Utc>)>>(keys: I) -> Self {
        Self(keys.into_iter().map(|(key, at)| (bare(&key), at)).collect())
    }
}

impl RevokedKeys {
    /// When a key was revoked.
    pub fn at(&self, public_key: &str) -> Option<DateTime<Utc>> {
        self.0.get(&bare(public_key)).copied()
    }
}

/// A key in OpenSSH's format without its comment.
fn bare(public_key: &str) -> String {
    public_key.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// Whatever comments they have.
fn same_key(one: &str, other: &str) -> bool {
    bare(one) == bare(other)
}
