//! Whether a server is the one that it should be.

use crate::sshd::{Setup, keygen, run};
use crate::support::{User, endpoint, host_key};
use chrono::{TimeDelta, Utc};
use ssh::ca::{self, CertificateAuthority};
use ssh::{ConnectFault, HostCertificateFault, HostKeyError, PublicKey, Validity, ValidityFault};
use std::process::Command;

fn host_key_error(fault: ConnectFault) -> HostKeyError {
    let ConnectFault::HostKey(error) = fault else { panic!("{fault}") };
    error
}

#[tokio::test]
async fn an_unknown_server_is_asked_about_and_trusted_by_decision() {
    let user = User::new();
    let sshd = user.server(Setup::new()).await;
    std::fs::remove_file(user.path("known_hosts")).unwrap();
    let HostKeyError::Unknown { host, key } = host_key_error(user.connect(&sshd).await.unwrap_err()) else { panic!() };
    assert_eq!(host, endpoint(sshd.address()));
    assert_eq!((key.algorithm().as_str(), key.fingerprint()), ("ssh-ed25519", host_key(&sshd)));
    assert!(!user.path("known_hosts").exists(), "nothing is trusted by itself");

    user.known_hosts().trust(&host, &key).unwrap();
    user.session(&sshd).await;
    // OpenSSH reads what was written
    let found = run(Command::new("ssh-keygen")
        .arg("-F")
        .arg(format!("[{}]:{}", host.host, host.port))
        .arg("-f")
        .arg(user.path("known_hosts")));
    assert!(found.contains("ssh-ed25519"), "{found}");
}

#[tokio::test]
async fn a_server_with_another_key_is_refused() {
    let user = User::new();
    let mut sshd = user.server(Setup::new()).await;
    user.session(&sshd).await;
    let known = host_key(&sshd);
    sshd.kill();
    std::fs::remove_file(sshd.path("host")).unwrap();
    keygen(&sshd.path("host"), &[]);
    sshd.start_again().await;
    let error = host_key_error(user.connect(&sshd).await.unwrap_err());
    let HostKeyError::Changed { key, known: files, .. } = &error else { panic!("{error}") };
    assert_eq!((key.fingerprint(), files[0].key.fingerprint(), files[0].line), (host_key(&sshd), known, 1));
    assert!(user.known_hosts().trust(&endpoint(sshd.address()), key).is_err(), "the old key has to go first");
}

#[tokio::test]
async fn a_server_is_known_by_a_hashed_name() {
    let user = User::new();
    let sshd = user.server(Setup::new()).await;
    run(Command::new("ssh-keygen").arg("-q").arg("-Hf").arg(user.path("known_hosts")));
    let hashed = std::fs::read_to_string(user.path("known_hosts")).unwrap();
    assert!(hashed.starts_with("|1|"), "{hashed}");
    user.session(&sshd).await;
}

#[tokio::test]
async fn a_server_with_several_keys_is_asked_for_the_known_one() {
    let user = User::new();
    let setup = Setup::new();
    keygen(&setup.path("rsa"), &["-t", "rsa", "-b", "2048"]);
    let line = format!("HostKey {}", setup.path("rsa").display());
    let sshd = user.server(setup.line(line)).await;
    let rsa = std::fs::read_to_string(sshd.path("rsa.pub")).unwrap();
    std::fs::write(user.path("known_hosts"), format!("[{}]:{} {rsa}", sshd.address().ip(), sshd.address().port()))
        .unwrap();
    user.session(&sshd).await;
}

#[tokio::test]
async fn a_revoked_host_key_is_refused() {
    let user = User::new();
    let sshd = user.server(Setup::new()).await;
    let key = std::fs::read_to_string(sshd.path("host.pub")).unwrap();
    let known = std::fs::read_to_string(user.path("known_hosts")).unwrap();
    std::fs::write(user.path("known_hosts"), format!("{known}@revoked * {key}")).unwrap();
    let error = host_key_error(user.connect(&sshd).await.unwrap_err());
    assert!(matches!(error, HostKeyError::Revoked { line: 2, .. }), "{error}");
}

/// What comes of a server with a certificate for its address or another name, valid for these hours from now.
async fn with_certificate(other_name: Option<&str>, valid_h: (i64, i64)) -> Result<(), HostKeyError> {
    let user = User::new();
    let authority = CertificateAuthority::generate("hosts").unwrap();
    let setup = Setup::new();
    let key = PublicKey::from_openssh(&std::fs::read_to_string(setup.path("host.pub")).unwrap()).unwrap();
    let hours = |hours| Utc::now() + TimeDelta::hours(hours);
    let validity = Validity { after: hours(valid_h.0), before: Some(hours(valid_h.1)) };
    let name = other_name.map_or_else(|| setup.ip().to_string(), str::to_owned);
    let certificate = authority.sign_host(&key, "the host", &[name], validity).unwrap();
    ca::write_certificate(&setup.path("host-cert.pub"), &certificate).unwrap();
    let line = format!("HostCertificate {}", setup.path("host-cert.pub").display());
    let sshd = user.server(setup.line(line)).await;
    std::fs::remove_file(user.path("known_hosts")).unwrap();
    user.known_hosts().trust_authority("127.*", authority.public_key()).unwrap();
    user.connect(&sshd).await.map(drop).map_err(host_key_error)
}

fn certificate_fault(result: Result<(), HostKeyError>) -> HostCertificateFault {
    match result {
        Err(HostKeyError::Certificate { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_is_known_by_whoever_vouches_for_it() {
    with_certificate(None, (-1, 1)).await.unwrap();
}

#[tokio::test]
async fn a_servers_certificate_at_the_wrong_time_is_refused_and_the_clock_is_named() {
    let fault = certificate_fault(with_certificate(None, (-2, -1)).await);
    assert!(matches!(fault, HostCertificateFault::Validity(ValidityFault::Expired { .. })), "{fault}");
    let fault = certificate_fault(with_certificate(None, (1, 2)).await);
    assert!(matches!(fault, HostCertificateFault::Validity(ValidityFault::NotYet { .. })), "{fault}");
    assert!(fault.to_string().contains("clock"), "{fault}");
}

#[tokio::test]
async fn a_servers_certificate_for_another_name_is_refused() {
    let fault = certificate_fault(with_certificate(Some("npu-1"), (-1, 1)).await);
    assert!(matches!(fault, HostCertificateFault::OtherName { .. }), "{fault}");
}
