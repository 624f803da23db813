//! A certificate authority for SSH: short-lived certificates instead of keys on every server.
//!
//! Servers trust the authority (`TrustedUserCAKeys` in `sshd_config`), users get certificates that are good for some
//! days, for these user names, from these addresses, and for forwards only. What was given out and should not be good any
//! more goes into a [`RevocationList`] (`RevokedKeys`).

mod krl;

pub use krl::{RevocationList, RevokedByAuthority, WriteListError};

use crate::key_file::{self, KeyFileError, Passphrase};
use crate::validity::{Validity, ValidityFault};
use chrono::{DateTime, Utc};
use russh::keys::key::safe_rng;
use russh::keys::ssh_key::certificate::{Builder, CertType};
use russh::keys::{Algorithm, Certificate, HashAlg, PrivateKey, PublicKey};
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::path::Path;
use thiserror::Error;

/// What lets a certificate's holder make forwards (PROTOCOL.certkeys, "Extensions").
const PERMIT_PORT_FORWARDING: &str = "permit-port-forwarding";
/// What is run instead of whatever the holder asks for.
const FORCE_COMMAND: &str = "force-command";
/// What a holder gets who asks for a shell. It needs no terminal and leaves at once.
const NO_COMMAND: &str = "/bin/false";
/// Whence the holder may come.
const SOURCE_ADDRESS: &str = "source-address";

/// A key that signs others.
pub struct CertificateAuthority {
    key: PrivateKey,
}

/// A certificate cannot be signed.
#[derive(Debug, Error)]
pub enum SignError {
    /// It would be good for every user or host.
    #[error("a certificate needs at least one name that it is for")]
    NoName,
    /// It would never be valid.
    #[error("a certificate that ends before it begins is never valid")]
    NeverValid,
    /// What it is to hold does not fit into one.
    #[error("the certificate cannot be made: {0}")]
    Format(String),
}

/// A certificate for a user, as it is wished. It is good for forwards and nothing else.
#[derive(Clone, Debug)]
pub struct UserCertificate {
    /// The user's key.
    pub key: PublicKey,
    /// What sshd writes into its log when the certificate is used.
    pub key_id: String,
    /// The number by which it can be revoked. OpenSSH takes 0 for "none".
    pub serial: NonZeroU64,
    /// The users as whom its holder may log in; at least one.
    pub principals: Vec<String>,
    /// When it is valid. Servers go by their own clocks: let it begin some minutes early.
    pub validity: Validity,
    /// The networks from which its holder may come; empty for all.
    pub source_addresses: Vec<Network>,
}

/// A range of addresses, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

/// It has more bits than its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("/{0} is longer than the address")]
pub struct PrefixTooLong(u8);

impl Network {
    /// All addresses that share the first bits with `address`. sshd wants the other bits to be zero, so they are set so.
    pub fn new(address: IpAddr, prefix_bits: u8) -> Result<Self, PrefixTooLong> {
        let length_bits: u8 = if address.is_ipv4() { 32 } else { 128 };
        let host_bits = length_bits.checked_sub(prefix_bits).ok_or(PrefixTooLong(prefix_bits))?;
        let address = match address {
            IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(host_bits.into()).unwrap_or(0)).into()),
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(host_bits.into()).unwrap_or(0)).into()),
        };
        Ok(Self { address, prefix_bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

impl CertificateAuthority {
    /// A new key that is kept nowhere.
    pub fn generate(comment: &str) -> Result<Self, SignError> {
        let mut key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).map_err(format_error)?;
        key.set_comment(comment);
        Ok(Self { key })
    }

    /// Reads the key in a file that nobody else may read.
    pub fn load(path: &Path, passphrase: Option<&Passphrase>) -> Result<Self, KeyFileError> {
        let key = key_file::read_private_key(path)?;
        let key = if key.is_encrypted() { key_file::decrypt(&key, passphrase, path)? } else { key };
        Ok(Self { key })
    }

    /// Writes the key to a file of mode 0600. Whoever has read it can let in anybody anywhere.
    pub fn save(&self, path: &Path) -> Result<(), KeyFileError> {
        key_file::write_private_key(path, &self.key)
    }

    /// The half that servers (`TrustedUserCAKeys`) and clients (`@cert-authority` in `known_hosts`) are to know.
    pub fn public_key(&self) -> &PublicKey {
        self.key.public_key()
    }

    /// Signs a certificate for a user.
    pub fn sign_user(&self, wish: &UserCertificate) -> Result<Certificate, SignError> {
        let mut builder = builder(&wish.key, CertType::User, &wish.key_id, &wish.principals, wish.validity)?;
        builder.serial(wish.serial.get()).map_err(format_error)?;
        builder.extension(PERMIT_PORT_FORWARDING, "").map_err(format_error)?;
        builder.critical_option(FORCE_COMMAND, NO_COMMAND).map_err(format_error)?;
        if !wish.source_addresses.is_empty() {
            let list = wish.source_addresses.iter().map(Network::to_string).collect::<Vec<_>>().join(",");
            builder.critical_option(SOURCE_ADDRESS, list).map_err(format_error)?;
        }
        builder.sign(&self.key).map_err(format_error)
    }

    /// Signs a certificate for a server that is reached by these names.
    pub fn sign_host(
        &self,
        key: &PublicKey,
        key_id: &str,
        names: &[String],
        validity: Validity,
    ) -> Result<Certificate, SignError> {
        let builder = builder(key, CertType::Host, key_id, names, validity)?;
        builder.sign(&self.key).map_err(format_error)
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fingerprint = self.public_key().fingerprint(HashAlg::Sha256).to_string();
        f.debug_struct("CertificateAuthority").field("public_key", &fingerprint).finish_non_exhaustive()
    }
}

fn builder(
    key: &PublicKey,
    kind: CertType,
    key_id: &str,
    names: &[String],
    validity: Validity,
) -> Result<Builder, SignError> {
    if names.is_empty() {
        return Err(SignError::NoName);
    }
    if validity.before.is_some_and(|before| before <= validity.after) {
        return Err(SignError::NeverValid);
    }
    let seconds = |time: DateTime<Utc>| u64::try_from(time.timestamp()).unwrap_or(0);
    let before = validity.before.map_or(u64::MAX, seconds);
    let mut builder = Builder::new_with_random_nonce(&mut safe_rng(), key.clone(), seconds(validity.after), before)
        .map_err(format_error)?;
    builder.cert_type(kind).map_err(format_error)?;
    builder.key_id(key_id).map_err(format_error)?;
    for name in names {
        builder.valid_principal(name.as_str()).map_err(format_error)?;
    }
    Ok(builder)
}

fn format_error(error: impl fmt::Display) -> SignError {
    SignError::Format(error.to_string())
}

/// What a certificate says, for whoever looks after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// What sshd writes into its log.
    pub key_id: String,
    /// Its number; 0 for none.
    pub serial: u64,
    /// Whom it is for.
    pub principals: Vec<String>,
    /// When it is valid.
    pub validity: Validity,
    /// The key that signed it, as `SHA256:` and 43 characters.
    pub authority: String,
    /// The networks from which its holder may come, as sshd reads them; `None` for all.
    pub source_address: Option<String>,
    /// What its holder may do.
    pub extensions: Vec<String>,
}

/// Why a certificate does not let its holder in. What a server would say, but for its own settings and its list of
/// revoked keys.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CertificateFault {
    /// It is valid at another time, or the clock is wrong.
    #[error(transparent)]
    Validity(#[from] ValidityFault),
    /// It is for a server.
    #[error("it is a certificate for servers")]
    ForHosts,
    /// Somebody else signed it.
    #[error("it is signed by {signer}, which is none of the trusted authorities")]
    OtherAuthority {
        /// `SHA256:` and 43 characters.
        signer: String,
    },
    /// It is for other users.
    #[error("it is for {}, not for {user}", principals.join(", "))]
    OtherUser {
        /// Who wants in.
        user: String,
        /// Whom it is for.
        principals: Vec<String>,
    },
    /// It does not let its holder make forwards.
    #[error("it does not permit forwards; sign it with the extension `permit-port-forwarding`")]
    NoForwards,
    /// It was changed.
    #[error("its signature is wrong")]
    Signature,
}

impl CertificateFacts {
    /// What `certificate` says.
    pub fn of(certificate: &Certificate) -> Self {
        let option = |name: &str| certificate.critical_options().get(name).cloned();
        Self {
            key_id: certificate.key_id().to_owned(),
            serial: certificate.serial(),
            principals: certificate.valid_principals().to_vec(),
            validity: Validity::of(certificate),
            authority: PublicKey::from(certificate.signature_key().clone()).fingerprint(HashAlg::Sha256).to_string(),
            source_address: option(SOURCE_ADDRESS),
            extensions: certificate.extensions().keys().cloned().collect(),
        }
    }
}

/// Reads the certificate in a `-cert.pub` file.
pub fn read_certificate(path: &Path) -> Result<Certificate, KeyFileError> {
    key_file::read_certificate(path)?.ok_or_else(|| KeyFileError::NoCertificate { path: path.to_owned() })
}

/// Writes a certificate, for everybody to read: it is no secret.
pub fn write_certificate(path: &Path, certificate: &Certificate) -> Result<(), KeyFileError> {
    let text = certificate.to_openssh().map_err(|_| KeyFileError::NoCertificate { path: path.to_owned() })?;
    key_file::write(path, format!("{}\n", text.trim_end()).as_bytes(), 0o644)
}

/// Whether `certificate` lets its holder log in as `user` and make forwards, on a server that trusts these authorities,
/// at `now`.
pub fn check_user_certificate(
    certificate: &Certificate,
    authorities: &[PublicKey],
    user: &str,
    now: DateTime<Utc>,
) -> Result<(), CertificateFault> {
    if certificate.cert_type() != CertType::User {
        return Err(CertificateFault::ForHosts);
    }
    if !authorities.iter().any(|authority| authority.key_data() == certificate.signature_key()) {
        return Err(CertificateFault::OtherAuthority { signer: CertificateFacts::of(certificate).authority });
    }
    certificate.verify_signature().map_err(|_| CertificateFault::Signature)?;
    let principals = certificate.valid_principals();
    if !principals.iter().any(|principal| principal == user) {
        return Err(CertificateFault::OtherUser { user: user.to_owned(), principals: principals.to_vec() });
    }
    if certificate.extensions().get(PERMIT_PORT_FORWARDING).is_none() {
        return Err(CertificateFault::NoForwards);
    }
    Ok(Validity::of(certificate).check(now)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    fn wish() -> UserCertificate {
        let key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap();
        UserCertificate {
            key: key.public_key().clone(),
            key_id: "bastion-1".to_owned(),
            serial: NonZeroU64::new(7).unwrap(),
            principals: vec!["tunnel".to_owned(), "root".to_owned()],
            validity: Validity {
                after: Utc::now() - TimeDelta::minutes(5),
                before: Some(Utc::now() + TimeDelta::days(7)),
            },
            source_addresses: vec![Network::new([10, 1, 2, 3].into(), 16).unwrap()],
        }
    }

    #[test]
    fn a_certificate_says_what_was_wished_and_permits_forwards_only() {
        let authority = CertificateAuthority::generate("users").unwrap();
        let certificate = authority.sign_user(&wish()).unwrap();
        let facts = CertificateFacts::of(&certificate);
        assert_eq!((facts.key_id.as_str(), facts.serial), ("bastion-1", 7));
        assert_eq!(facts.principals, ["tunnel", "root"]);
        assert_eq!(facts.source_address.as_deref(), Some("10.1.0.0/16"));
        assert_eq!(facts.extensions, ["permit-port-forwarding"]);
        assert_eq!(facts.validity.before.unwrap().timestamp(), wish().validity.before.unwrap().timestamp());
    }

    #[test]
    fn certificates_and_what_is_wrong_with_them() {
        use CertificateFault::{NoForwards, OtherAuthority, OtherUser, Validity as At};
        let authority = CertificateAuthority::generate("users").unwrap();
        let authorities = [authority.public_key().clone()];
        let certificate = authority.sign_user(&wish()).unwrap();
        let check =
            |user, days| check_user_certificate(&certificate, &authorities, user, Utc::now() + TimeDelta::days(days));
        assert_eq!(check("tunnel", 0), Ok(()));
        assert!(matches!(check("admin", 0), Err(OtherUser { .. })));
        assert!(matches!(check("root", 8), Err(At(ValidityFault::Expired { .. }))));
        assert!(matches!(check("root", -1), Err(At(ValidityFault::NotYet { .. }))));

        let stranger = CertificateAuthority::generate("stranger").unwrap().sign_user(&wish()).unwrap();
        let strange = check_user_certificate(&stranger, &authorities, "root", Utc::now());
        assert!(matches!(strange, Err(OtherAuthority { .. })));

        let names = vec!["root".to_owned()];
        let host = authority.sign_host(&wish().key, "host", &names, wish().validity).unwrap();
        assert_eq!(check_user_certificate(&host, &authorities, "root", Utc::now()), Err(CertificateFault::ForHosts));

        let bare = builder(&wish().key, CertType::User, "bare", &names, wish().validity).unwrap();
        let bare = bare.sign(&authority.key).unwrap();
        assert_eq!(check_user_certificate(&bare, &authorities, "root", Utc::now()), Err(NoForwards));
    }

    #[test]
    fn certificates_for_everybody_or_for_no_time_are_not_signed() {
        let authority = CertificateAuthority::generate("users").unwrap();
        let nobody = UserCertificate { principals: vec![], ..wish() };
        assert!(matches!(authority.sign_user(&nobody), Err(SignError::NoName)));
        let now = Utc::now();
        let never = UserCertificate { validity: Validity { after: now, before: Some(now) }, ..wish() };
        assert!(matches!(authority.sign_user(&never), Err(SignError::NeverValid)));
    }

    #[test]
    fn an_authority_survives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca");
        let authority = CertificateAuthority::generate("users").unwrap();
        authority.save(&path).unwrap();
        let read = CertificateAuthority::load(&path, None).unwrap();
        assert_eq!(read.public_key(), authority.public_key());
        assert!(!format!("{read:?}").contains("PRIVATE"));
    }

    #[test]
    fn networks_begin_at_their_first_address() {
        let network = |text: &str, bits| Network::new(text.parse().unwrap(), bits).map(|network| network.to_string());
        assert_eq!(network("10.1.2.3", 24), Ok("10.1.2.0/24".to_owned()));
        assert_eq!(network("10.1.2.3", 32), Ok("10.1.2.3/32".to_owned()));
        assert_eq!(network("10.1.2.3", 0), Ok("0.0.0.0/0".to_owned()));
        assert_eq!(network("fd00::1", 64), Ok("fd00::/64".to_owned()));
        assert_eq!(network("10.1.2.3", 33), Err(PrefixTooLong(33)));
    }
}
