//! Lists of what is revoked, in the form that sshd reads (`RevokedKeys` in `sshd_config`, PROTOCOL.krl of OpenSSH).

use crate::ca::SignError;
use crate::key_file::{self, KeyFileError};
use chrono::{DateTime, Utc};
use russh::keys::PublicKey;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::Path;

const MAGIC: &[u8; 8] = b"SSHKRL\n\0";
const FORMAT_VERSION: u32 = 1;
const SECTION_CERTIFICATES: u8 = 1;
const SECTION_EXPLICIT_KEY: u8 = 2;
const CERTIFICATES_SERIAL_LIST: u8 = 0x20;
const CERTIFICATES_KEY_ID: u8 = 0x23;

/// What is revoked.
///
/// sshd refuses *every* key while it cannot read its list, so the list is written in one piece, and cannot hold what
/// OpenSSH would stumble over, such as the serial number 0.
#[derive(Clone, Debug)]
pub struct RevocationList {
    /// Grows with each list. `ssh-keygen -Q -l` shows it.
    pub version: u64,
    /// When it was made.
    pub made_at: DateTime<Utc>,
    /// Certificates, by who signed them.
    pub certificates: Vec<RevokedByAuthority>,
    /// Keys, with or without certificates.
    pub keys: Vec<PublicKey>,
}

/// Revoked certificates of one authority.
#[derive(Clone, Debug)]
pub struct RevokedByAuthority {
    /// Who signed them.
    pub authority: PublicKey,
    /// By their numbers.
    pub serials: BTreeSet<NonZeroU64>,
    /// By their ids; all certificates with such an id.
    pub key_ids: BTreeSet<String>,
}

impl RevocationList {
    /// The list as sshd reads it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SignError> {
        let mut list = Vec::new();
        list.extend_from_slice(MAGIC);
        list.extend_from_slice(&FORMAT_VERSION.to_be_bytes());
        list.extend_from_slice(&self.version.to_be_bytes());
        list.extend_from_slice(&u64::try_from(self.made_at.timestamp()).unwrap_or(0).to_be_bytes());
        // flags, of which none is defined, a reserved field, and a comment
        list.extend_from_slice(&0_u64.to_be_bytes());
        put_string(&mut list, b"")?;
        put_string(&mut list, b"")?;
        for revoked in &self.certificates {
            put_section(&mut list, SECTION_CERTIFICATES, &revoked.to_bytes()?)?;
        }
        // in the order of their bytes
        let keys: BTreeSet<Vec<u8>> = self.keys.iter().map(key_blob).collect::<Result<_, _>>()?;
        if !keys.is_empty() {
            let mut section = Vec::new();
            for key in keys {
                put_string(&mut section, &key)?;
            }
            put_section(&mut list, SECTION_EXPLICIT_KEY, &section)?;
        }
        Ok(list)
    }

    /// Puts the list into the place of the one that sshd has, which looks at it with each login.
    pub fn write(&self, path: &Path) -> Result<(), WriteListError> {
        Ok(key_file::write(path, &self.to_bytes()?, 0o644)?)
    }
}

/// A list of what is revoked cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteListError {
    /// What it is to hold does not fit into one.
    #[error(transparent)]
    Format(#[from] SignError),
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] KeyFileError),
}

impl RevokedByAuthority {
    fn to_bytes(&self) -> Result<Vec<u8>, SignError> {
        let mut section = Vec::new();
        put_string(&mut section, &key_blob(&self.authority)?)?;
        // reserved
        put_string(&mut section, b"")?;
        if !self.serials.is_empty() {
            let serials: Vec<u8> = self.serials.iter().flat_map(|serial| serial.get().to_be_bytes()).collect();
            put_section(&mut section, CERTIFICATES_SERIAL_LIST, &serials)?;
        }
        if !self.key_ids.is_empty() {
            let mut ids = Vec::new();
            for id in &self.key_ids {
                put_string(&mut ids, id.as_bytes())?;
            }
            put_section(&mut section, CERTIFICATES_KEY_ID, &ids)?;
        }
        Ok(section)
    }
}

fn key_blob(key: &PublicKey) -> Result<Vec<u8>, SignError> {
    key.to_bytes().map_err(|error| SignError::Format(error.to_string()))
}

fn put_section(list: &mut Vec<u8>, kind: u8, content: &[u8]) -> Result<(), SignError> {
    list.push(kind);
    put_string(list, content)
}

/// A `string` of RFC 4251, section 5: its length, and its bytes.
fn put_string(list: &mut Vec<u8>, content: &[u8]) -> Result<(), SignError> {
    let length = u32::try_from(content.len()).map_err(|error| SignError::Format(error.to_string()))?;
    list.extend_from_slice(&length.to_be_bytes());
    list.extend_from_slice(content);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_a_header() {
        let list = RevocationList {
            version: 3,
            made_at: DateTime::from_timestamp(0x0102_0304, 0).unwrap(),
            certificates: vec![],
            keys: vec![],
        };
        let expected: &[u8] =
            b"SSHKRL\n\0\0\0\0\x01\0\0\0\0\0\0\0\x03\0\0\0\0\x01\x02\x03\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(list.to_bytes().unwrap(), expected);
    }
}
