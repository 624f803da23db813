//! User certificates, signed here and judged by OpenSSH.

use crate::sshd::{Setup, Sshd, keygen, run};
use crate::support::{Agent, Manner, User, endpoint, exchange, local_spec, login, program, soon};
use chrono::{TimeDelta, Utc};
use ssh::ca::{self, CertificateAuthority, Network, RevocationList, RevokedByAuthority, UserCertificate};
use ssh::{
    AuthenticationError, Certificate, ConnectFault, Hop, LocalForward, PublicKey, Route, TriedKey, Validity,
    ValidityFault,
};
use std::num::NonZeroU64;
use std::process::Command;

/// A server that trusts an authority, and a user whose key it does not know.
struct Scene {
    user: User,
    authority: CertificateAuthority,
    sshd: Sshd,
}

impl Scene {
    async fn new() -> Self {
        let user = User::new();
        let authority = CertificateAuthority::generate("users").unwrap();
        let setup = Setup::new();
        std::fs::write(setup.path("authority.pub"), authority.public_key().to_openssh().unwrap()).unwrap();
        ca_list(&authority, &[]).write(&setup.path("revoked")).unwrap();
        let trusted = format!("TrustedUserCAKeys {}", setup.path("authority.pub").display());
        let revoked = format!("RevokedKeys {}", setup.path("revoked").display());
        let sshd = setup.line(trusted).line(revoked).start().await;
        user.trust(&sshd);
        Self { user, authority, sshd }
    }

    fn wish(&self) -> UserCertificate {
        let key = std::fs::read_to_string(self.user.path("key.pub")).unwrap();
        UserCertificate {
            key: PublicKey::from_openssh(&key).unwrap(),
            key_id: "a tunnel".to_owned(),
            serial: NonZeroU64::new(17).unwrap(),
            principals: vec![login()],
            validity: valid_h(-1, 1),
            source_addresses: Vec::new(),
        }
    }

    /// Puts a certificate beside the user's key.
    fn give(&self, wish: &UserCertificate) -> Certificate {
        let certificate = self.authority.sign_user(wish).unwrap();
        ca::write_certificate(&self.user.path("key-cert.pub"), &certificate).unwrap();
        certificate
    }

    async fn refusal(&self) -> TriedKey {
        match self.user.connect(&self.sshd).await {
            Err(ConnectFault::Authentication(AuthenticationError::Refused { tried, .. })) => tried[0].clone(),
            other => panic!("{other:?}"),
        }
    }
}

fn valid_h(from: i64, to: i64) -> Validity {
    Validity { after: Utc::now() + TimeDelta::hours(from), before: Some(Utc::now() + TimeDelta::hours(to)) }
}

fn ca_list(authority: &CertificateAuthority, serials: &[u64]) -> RevocationList {
    let serials = serials.iter().map(|serial| NonZeroU64::new(*serial).unwrap()).collect();
    let certificates = vec![RevokedByAuthority {
        authority: authority.public_key().clone(),
        serials,
        key_ids: ["gone".into()].into(),
    }];
    RevocationList { version: 1, made_at: Utc::now(), certificates, keys: Vec::new() }
}

#[tokio::test]
async fn a_certificate_lets_in_and_permits_forwards_and_no_commands() {
    let scene = Scene::new().await;
    let wish =
        UserCertificate { source_addresses: vec![Network::new([127, 0, 0, 1].into(), 32).unwrap()], ..scene.wish() };
    scene.give(&wish);
    let session = scene.user.session(&scene.sshd).await;
    let spec = local_spec(endpoint(program(Manner::Echo).await));
    let forward = LocalForward::start(&session, spec).await.unwrap();
    assert_eq!(exchange(forward.address(), b"through").await.unwrap(), b"through");

    let ssh = Command::new("ssh")
        .args(["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "IdentitiesOnly=yes"])
        .args(["-o", "UserKnownHostsFile=/dev/null", "-p", &scene.sshd.address().port().to_string(), "-i"])
        .arg(scene.user.path("key"))
        .args([&format!("{}@{}", login(), scene.sshd.address().ip()), "echo", "a command"])
        .output()
        .unwrap();
    assert_eq!((ssh.status.success(), ssh.stdout.as_slice()), (false, b"".as_slice()));
}

#[tokio::test]
async fn openssh_reads_a_certificate_as_it_was_wished() {
    let scene = Scene::new().await;
    let wish =
        UserCertificate { source_addresses: vec![Network::new([10, 0, 0, 0].into(), 8).unwrap()], ..scene.wish() };
    let certificate = scene.give(&wish);
    let shown = run(Command::new("ssh-keygen").arg("-Lf").arg(scene.user.path("key-cert.pub")));
    for words in
        ["a tunnel", "Serial: 17", "source-address 10.0.0.0/8", "force-command /bin/false", "permit-port-forwarding"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(ca::read_certificate(&scene.user.path("key-cert.pub")).unwrap(), certificate);
}

#[tokio::test]
async fn a_certificate_of_openssh_lets_in_too() {
    let scene = Scene::new().await;
    scene.authority.save(&scene.user.path("authority")).unwrap();
    let mut keygen = Command::new("ssh-keygen");
    keygen.arg("-q").arg("-s").arg(scene.user.path("authority")).args(["-I", "by hand", "-n", &login(), "-z", "5"]);
    run(keygen.arg(scene.user.path("key.pub")));
    scene.user.session(&scene.sshd).await;
}

#[tokio::test]
async fn a_certificate_for_an_rsa_key_lets_in() {
    let scene = Scene::new().await;
    for file in ["key", "key.pub"] {
        std::fs::remove_file(scene.user.path(file)).unwrap();
    }
    keygen(&scene.user.path("key"), &["-t", "rsa", "-b", "2048"]);
    scene.give(&scene.wish());
    scene.user.session(&scene.sshd).await;
}

#[tokio::test]
async fn a_certificate_in_ssh_agent_lets_in() {
    let scene = Scene::new().await;
    let agent = Agent::start(&scene.user).await;
    scene.give(&scene.wish());
    agent.add(&scene.user.path("key"));
    let name = scene.user.hop(&scene.sshd).name;
    let route = Route::new(vec![Hop { name, identities: vec![agent.identity()] }]).unwrap();
    soon(scene.user.connector().connect(&route)).await.unwrap();
}

#[tokio::test]
async fn certificates_at_the_wrong_time_are_refused_and_the_time_is_named() {
    let scene = Scene::new().await;
    scene.give(&UserCertificate { validity: valid_h(-2, -1), ..scene.wish() });
    let validity = scene.refusal().await.certificate.unwrap().validity;
    assert!(matches!(validity, Some(ValidityFault::Expired { .. })), "{validity:?}");
    scene.give(&UserCertificate { validity: valid_h(1, 2), ..scene.wish() });
    let validity = scene.refusal().await.certificate.unwrap().validity;
    assert!(matches!(validity, Some(ValidityFault::NotYet { .. })), "{validity:?}");
}

#[tokio::test]
async fn a_certificate_for_somebody_else_is_refused() {
    let scene = Scene::new().await;
    scene.give(&UserCertificate { principals: vec!["somebody-else".to_owned()], ..scene.wish() });
    let certificate = scene.refusal().await.certificate.unwrap();
    assert_eq!((certificate.principals, certificate.validity), (vec!["somebody-else".to_owned()], None));
}

#[tokio::test]
async fn a_certificate_from_elsewhere_is_refused() {
    let scene = Scene::new().await;
    // a range for documentation, so nobody's (RFC 5737)
    let elsewhere = vec![Network::new([203, 0, 113, 0].into(), 24).unwrap()];
    scene.give(&UserCertificate { source_addresses: elsewhere, ..scene.wish() });
    scene.refusal().await;
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let mut scene = Scene::new().await;
    scene.authority = CertificateAuthority::generate("stranger").unwrap();
    scene.give(&scene.wish());
    scene.refusal().await;
}

#[tokio::test]
async fn a_revoked_certificate_is_refused_from_the_next_login_on() {
    let scene = Scene::new().await;
    scene.give(&scene.wish());
    let session = scene.user.session(&scene.sshd).await;
    ca_list(&scene.authority, &[3, 17]).write(&scene.sshd.path("revoked")).unwrap();
    scene.refusal().await;
    assert!(session.end().is_none(), "a session that stands goes on");

    scene.give(&UserCertificate { serial: NonZeroU64::new(18).unwrap(), ..scene.wish() });
    scene.user.session(&scene.sshd).await;
    scene.give(&UserCertificate { serial: NonZeroU64::new(19).unwrap(), key_id: "gone".to_owned(), ..scene.wish() });
    scene.refusal().await;
}

#[tokio::test]
async fn openssh_finds_in_a_list_what_is_revoked_and_nothing_else() {
    let scene = Scene::new().await;
    let key = scene.wish().key;
    let is_revoked = |list: &RevocationList, file: &str| {
        list.write(&scene.user.path("list")).unwrap();
        let mut keygen = Command::new("ssh-keygen");
        let asked = keygen.arg("-Qf").arg(scene.user.path("list")).arg(scene.user.path(file)).output().unwrap();
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        match (asked.status.code(), said.contains("REVOKED")) {
            (Some(0), false) => false,
            (Some(_), true) => true,
            other => panic!("{other:?} {said} {}", String::from_utf8_lossy(&asked.stderr)),
        }
    };
    scene.give(&scene.wish());
    assert!(is_revoked(&ca_list(&scene.authority, &[17]), "key-cert.pub"));
    assert!(!is_revoked(&ca_list(&scene.authority, &[16, 18]), "key-cert.pub"));
    assert!(!is_revoked(&ca_list(&scene.authority, &[17]), "key.pub"));
    let keys = RevocationList { keys: vec![key], ..ca_list(&scene.authority, &[]) };
    assert!(is_revoked(&keys, "key.pub"));
}
