use super::*;
use rcgen::{CertificateParams, CertifiedKey as Generated, DnType, Issuer, KeyPair, generate_simple_self_signed};
use tempfile::TempDir;

fn generated() -> Generated<rcgen::KeyPair> {
    generate_simple_self_signed(["gpu.example".to_owned()]).unwrap()
}

fn write_pair(dir: &TempDir, certificate: &[u8], key: &[u8]) -> TlsFiles {
    let files = TlsFiles { key: dir.path().join("key.pem"), certificate: dir.path().join("cert.pem") };
    std::fs::write(&files.certificate, certificate).unwrap();
    std::fs::write(&files.key, key).unwrap();
    files
}

fn failure(certificate: &[u8], key: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let files = write_pair(&dir, certificate, key);
    let Err(error) = Tls::load(&files) else { panic!("loaded") };
    error.to_string().replace(&dir.path().display().to_string(), "DIR")
}

#[test]
fn a_pair_that_belongs_together_loads() {
    let dir = tempfile::tempdir().unwrap();
    let pair = generated();
    let files = write_pair(&dir, pair.cert.pem().as_bytes(), pair.signing_key.serialize_pem().as_bytes());
    assert!(Tls::load(&files).is_ok());
}

#[test]
fn every_wrong_file_is_named_with_what_is_wrong() {
    let pair = generated();
    let other = generated();
    let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let (certificate, key) = (certificate.as_bytes(), key.as_bytes());
    let encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let damaged = &certificate[..certificate.len() / 2];
    let table: [(&[u8], &[u8], &str); 9] = [
        (b"", key, "certificate (--ssl-certfile) DIR/cert.pem is empty"),
        (certificate, b"", "private key (--ssl-keyfile) DIR/key.pem is empty"),
        (key, certificate, "DIR/cert.pem holds a private key and no certificate; the two files may be exchanged"),
        (certificate, certificate, "DIR/key.pem holds a certificate and no private key"),
        (pair.cert.der(), key, "DIR/cert.pem holds no certificate in PEM form"),
        (damaged, key, "DIR/cert.pem is damaged"),
        (certificate, encrypted, "DIR/key.pem is encrypted with a passphrase"),
        (certificate, b"hello", "DIR/key.pem holds no private key in PEM form"),
        (
            other.cert.pem().leak().as_bytes(),
            key,
            "the certificate DIR/cert.pem does not belong to the private key DIR/key.pem",
        ),
    ];
    for (certificate, key, expected) in table {
        let told = failure(certificate, key);
        assert!(told.contains(expected), "{told}\nshould say: {expected}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let files = TlsFiles { key: "/nonexistent/key.pem".into(), certificate: "/nonexistent/cert.pem".into() };
    let Err(error) = Tls::load(&files) else { panic!("loaded") };
    assert!(error.to_string().starts_with("cannot read the certificate (--ssl-certfile) /nonexistent/cert.pem"));
}

#[test]
fn a_renewed_pair_is_used_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (generated(), generated());
    let files = write_pair(&dir, old.cert.pem().as_bytes(), old.signing_key.serialize_pem().as_bytes());
    let mut tls = Tls::load(&files).unwrap();
    let in_use = |tls: &Tls| tls.current.get().cert[0].clone();

    std::fs::write(dir.path().join("new-key"), new.signing_key.serialize_pem()).unwrap();
    std::fs::rename(dir.path().join("new-key"), &files.key).unwrap();
    tls.reload_if_changed();
    assert_eq!(in_use(&tls), *old.cert.der());

    std::fs::write(dir.path().join("new-cert"), new.cert.pem()).unwrap();
    std::fs::rename(dir.path().join("new-cert"), &files.certificate).unwrap();
    tls.reload_if_changed();
    assert_eq!(in_use(&tls), *new.cert.der());
}

#[test]
fn a_certificate_that_signed_itself_is_told_from_one_that_was_issued() {
    let dir = tempfile::tempdir().unwrap();
    let own = generated();
    let files = write_pair(&dir, own.cert.pem().as_bytes(), own.signing_key.serialize_pem().as_bytes());
    let tls = Tls::load(&files).unwrap();
    assert!(tls.is_self_signed());
    assert_eq!(tls.fingerprint(), Some(Fingerprint::of(own.cert.der())));

    let mut authority = CertificateParams::new([]).unwrap();
    authority.distinguished_name.push(DnType::CommonName, "an authority");
    let authority_key = KeyPair::generate().unwrap();
    let key = KeyPair::generate().unwrap();
    let issued = CertificateParams::new(["gpu.example".to_owned()]).unwrap();
    let issued = issued.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
    let files = write_pair(&dir, issued.pem().as_bytes(), key.serialize_pem().as_bytes());
    assert!(!Tls::load(&files).unwrap().is_self_signed());
}
