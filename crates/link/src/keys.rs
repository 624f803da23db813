//! Who is who: Ed25519 key pairs, and the public keys that name workers and servers.
//!
//! A key never expires. Whether it is still good is for whoever keeps the list of keys to say, not for a date in it,
//! since the clocks of workers cannot be relied on.

use crate::encryption;
use aws_lc_rs::digest;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::encoding::Pkcs8V1Der;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::SignatureAlgorithm;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// A `SubjectPublicKeyInfo` of an Ed25519 key is this and the 32 bytes of the key (RFC 8410, section 4).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A key file has some 120 bytes.
const KEY_FILE_MAX_BYTES: u64 = 16 * 1024;

/// A PEM line (RFC 7468, section 2).
const PEM_LINE_CHARS: usize = 64;

/// The public half of a key pair. Shown and parsed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

/// A text or file holds no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("is no public key: 64 hexadecimal digits belong there")]
pub struct NoPublicKey;

impl PublicKey {
    /// The key with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Writes the key to a new file of mode 0600, or over the one that is there.
    ///
    /// The key itself is no secret; that nobody else can change the file is what matters.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        write_private(path, format!("{self}\n").as_bytes())
    }

    /// Reads a key that [`save`](Self::save) wrote; `None` where there is no file.
    pub fn load(path: &Path) -> Result<Option<Self>, KeyError> {
        let Some(text) = read_small(path)? else { return Ok(None) };
        let key = text.trim().parse().map_err(|NoPublicKey| KeyError::NoPublicKey { path: path.to_owned() })?;
        Ok(Some(key))
    }

    /// What whoever has the key may say of itself to anybody, so that a probe can tell it from others: the first 16
    /// bytes of the key's SHA-256, as 32 hexadecimal digits. The key itself is not to be had from it.
    pub fn fingerprint(&self) -> String {
        let hash = digest::digest(&digest::SHA256, &self.0);
        // a SHA-256 has twice as many bytes
        let beginning = hash.as_ref().first_chunk().copied().unwrap_or_default();
        format!("{:032x}", u128::from_be_bytes(beginning))
    }

    pub(crate) fn from_spki(spki: &[u8]) -> Option<Self> {
        let key = spki.strip_prefix(SPKI_PREFIX.as_slice())?;
        key.try_into().ok().map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = NoPublicKey;

    fn from_str(text: &str) -> Result<Self, NoPublicKey> {
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NoPublicKey);
        }
        let mut key = [0; 32];
        for (byte, start) in key.iter_mut().zip((0..64).step_by(2)) {
            let digits = text.get(start..start + 2).ok_or(NoPublicKey)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| NoPublicKey)?;
        }
        Ok(Self(key))
    }
}

/// Both halves of a key. Cloning it clones a handle.
#[derive(Clone)]
pub struct KeyPair {
    public: PublicKey,
    certified: Arc<CertifiedKey>,
}

/// Why there is no key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Others than the owner may read or change it.
    #[error("{path} is open to other users (mode {mode:o}); make it private with `chmod 600 {path}`")]
    NotPrivate {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file holds something else.
    #[error(
        "{path} holds no Ed25519 private key in PEM (PKCS#8); put the right file back, or remove it to get a new key"
    )]
    NoPrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something else.
    #[error("{path} holds no public key (64 hexadecimal digits); put the right file back, or remove it")]
    NoPublicKey {
        /// The file.
        path: PathBuf,
    },
    /// The cryptography library cannot make one: it got no randomness.
    #[error("cannot make a key: the system gives no random numbers")]
    Generate,
}

impl KeyPair {
    /// A new key that is kept nowhere.
    pub fn generate() -> Result<Self, KeyError> {
        Self::from_pkcs8(generate_pkcs8()?.as_ref()).ok_or(KeyError::Generate)
    }

    /// Reads the key in the file at `path`, and makes one where there is none.
    ///
    /// A file that others may read is refused: whoever has read it can pass for its owner.
    pub fn load_or_make(path: &Path) -> Result<Self, KeyError> {
        if let Some(pair) = Self::load(path)? {
            return Ok(pair);
        }
        let pkcs8 = generate_pkcs8()?;
        write_private(path, pem(pkcs8.as_ref()).as_bytes())?;
        Self::from_pkcs8(pkcs8.as_ref()).ok_or(KeyError::Generate)
    }

    /// The half that others may know.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }

    /// Reads the key in the file at `path`; `None` where there is no file.
    pub fn load(path: &Path) -> Result<Option<Self>, KeyError> {
        let Some(text) = read_small(path)? else { return Ok(None) };
        let no_key = || KeyError::NoPrivateKey { path: path.to_owned() };
        let pkcs8 = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).map_err(|_| no_key())?;
        Self::from_pkcs8(pkcs8.secret_pkcs8_der()).ok_or_else(no_key).map(Some)
    }

    fn from_pkcs8(pkcs8: &[u8]) -> Option<Self> {
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8.to_vec()));
        let signing = encryption::provider().key_provider.load_private_key(der).ok()?;
        if signing.algorithm() != SignatureAlgorithm::ED25519 {
            return None;
        }
        let spki = signing.public_key()?.to_vec();
        let public = PublicKey::from_spki(&spki)?;
        let certified = CertifiedKey::new(vec![CertificateDer::from(spki)], signing);
        Some(Self { public, certified: Arc::new(certified) })
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("public", &self.public).finish_non_exhaustive()
    }
}

fn generate_pkcs8() -> Result<Pkcs8V1Der<'static>, KeyError> {
    let pair = Ed25519KeyPair::generate().map_err(|_| KeyError::Generate)?;
    pair.as_der().map_err(|_| KeyError::Generate)
}

fn pem(pkcs8: &[u8]) -> String {
    let mut text = String::from("-----BEGIN PRIVATE KEY-----\n");
    for (index, character) in STANDARD.encode(pkcs8).chars().enumerate() {
        if index > 0 && index % PEM_LINE_CHARS == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text.push_str("\n-----END PRIVATE KEY-----\n");
    text
}

/// The file's text; `None` where there is no file.
fn read_small(path: &Path) -> Result<Option<String>, KeyError> {
    let failed = |source| KeyError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyError::NotPrivate { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(KEY_FILE_MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

/// Writes a neighbour of the file and puts it in its place, so that a crash leaves the old file or the new one, and
/// nobody ever sees it with a wider mode.
fn write_private(path: &Path, content: &[u8]) -> Result<(), KeyError> {
    let failed = |source| KeyError::Write { path: path.to_owned(), source };
    let mut new_name = path.as_os_str().to_owned();
    new_name.push(".new");
    let new = PathBuf::from(new_name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&new, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_after_it_was_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link_key.pem");
        let made = KeyPair::load_or_make(&path).unwrap();
        assert_eq!(KeyPair::load_or_make(&path).unwrap().public(), made.public());
    }

    #[test]
    fn a_key_file_is_private_from_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link_key.pem");
        KeyPair::load_or_make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_key_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link_key.pem");
        KeyPair::load_or_make(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = KeyPair::load_or_make(&path).unwrap_err();
        assert!(matches!(error, KeyError::NotPrivate { mode: 0o640, .. }), "{error}");
    }

    #[test]
    fn a_file_with_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link_key.pem");
        write_private(&path, b"not a key").unwrap();
        assert!(matches!(KeyPair::load_or_make(&path), Err(KeyError::NoPrivateKey { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"not a key");
    }

    #[test]
    fn a_public_key_survives_its_text_and_its_file() {
        let key = KeyPair::generate().unwrap().public();
        assert_eq!(key.to_string().parse(), Ok(key));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server_key");
        assert_eq!(PublicKey::load(&path).unwrap(), None);
        key.save(&path).unwrap();
        assert_eq!(PublicKey::load(&path).unwrap(), Some(key));
    }

    #[test]
    fn a_fingerprint_is_the_beginning_of_the_keys_hash() {
        // `head -c 32 /dev/zero | sha256sum`
        assert_eq!(PublicKey::from_bytes([0; 32]).fingerprint(), "66687aadf862bd776c8fc18b8e9f8e20");
    }

    #[test]
    fn other_texts_are_no_public_keys() {
        for text in ["", "00", &"g".repeat(64), &"é".repeat(32), &"0".repeat(65)] {
            assert_eq!(text.parse::<PublicKey>(), Err(NoPublicKey), "{text}");
        }
    }

    #[test]
    fn a_key_pair_does_not_print_its_secret() {
        let pair = KeyPair::generate().unwrap();
        assert_eq!(format!("{pair:?}"), format!("KeyPair {{ public: PublicKey({}), .. }}", pair.public()));
    }
}
