use super::*;
use ssh::Certificate;
use ssh::ca::CertificateFacts;
use std::process::Command;

struct Host {
    dir: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> DataDir {
        DataDir::open(self.dir.path()).unwrap()
    }

    fn grant(&self, name: &str) -> Grant {
        let path = self.dir.path().join(name);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
            .arg(&path)
            .status()
            .expect("ssh-keygen, of the package openssh-client");
        assert!(made.success());
        Grant {
            public_key: std::fs::read_to_string(path.with_extension("pub")).unwrap(),
            key_id: name.to_owned(),
            principals: vec!["tunnel".to_owned()],
            source_addresses: vec!["10.0.0.0/8".to_owned()],
            lifetime_s: 7 * 24 * 3600,
            is_renewed: true,
        }
    }

    /// Whether OpenSSH takes this certificate for revoked.
    fn is_revoked(&self, authority: &Authority, certificate: &str) -> bool {
        let file = self.dir.path().join("tried-cert.pub");
        std::fs::write(&file, certificate).unwrap();
        let asked = Command::new("ssh-keygen").arg("-Qf").arg(authority.revoked_file()).arg(&file).output().unwrap();
        !asked.status.success()
    }
}

fn facts(certificate: &str) -> CertificateFacts {
    CertificateFacts::of(&certificate.parse::<Certificate>().unwrap())
}

fn held(certificate: &str) -> Held {
    let facts = facts(certificate);
    Held { serial: facts.serial, valid_before_ms: facts.validity.before.map(|before| before.timestamp_millis()) }
}

#[test]
fn an_authority_is_made_once() {
    let host = Host::new();
    assert!(matches!(Authority::open(&host.data()), Err(AuthorityError::None)));
    let authority = Authority::init(&host.data()).unwrap();
    assert!(matches!(Authority::init(&host.data()), Err(AuthorityError::Exists)));
    let again = Authority::open(&host.data()).unwrap();
    assert_eq!(again.public_key().unwrap(), authority.public_key().unwrap());
    let line = std::fs::read_to_string(authority.public_key_file()).unwrap();
    assert_eq!(line.trim(), authority.public_key().unwrap().trim());
}

#[test]
fn a_certificate_holds_what_was_granted() {
    let host = Host::new();
    let authority = Authority::init(&host.data()).unwrap();
    let now = Utc::now();
    let facts = facts(&authority.sign(&host.grant("bastion-01"), now).unwrap());
    assert_eq!((facts.key_id.as_str(), facts.serial, facts.principals), ("bastion-01", 1, vec!["tunnel".to_owned()]));
    assert_eq!(facts.source_address.as_deref(), Some("10.0.0.0/8"));
    assert_eq!(facts.extensions, ["permit-port-forwarding"]);
    let days = (facts.validity.before.unwrap() - now).num_hours() as f64 / 24.0;
    assert!((6.9..7.1).contains(&days), "{days}");
}

#[test]
fn a_certificate_is_renewed_after_two_thirds_of_its_life_with_the_same_rights() {
    let host = Host::new();
    let authority = Authority::init(&host.data()).unwrap();
    let (grant, now) = (host.grant("bastion-01"), Utc::now());
    let first = authority.sign(&grant, now).unwrap();
    let renew = |certificate: &str, hours| {
        authority.renew(&grant.public_key, Some(&held(certificate)), now + TimeDelta::hours(hours)).unwrap()
    };
    assert_eq!(renew(&first, 7 * 16 - 1), None);
    let second = renew(&first, 7 * 16).unwrap();
    assert_eq!((facts(&second).serial, facts(&second).key_id.as_str()), (2, "bastion-01"));
    assert_eq!(renew(&second, 7 * 16), None);
    let stranger = host.grant("stranger");
    assert!(authority.renew(&stranger.public_key, None, now).unwrap().is_none());
}

#[test]
fn a_certificate_that_did_not_arrive_is_handed_over_once_more() {
    let host = Host::new();
    let authority = Authority::init(&host.data()).unwrap();
    let (grant, now) = (host.grant("bastion-01"), Utc::now());
    let first = authority.sign(&grant, now).unwrap();
    assert_eq!(authority.renew(&grant.public_key, None, now).unwrap().as_ref(), Some(&first));
    let later = now + TimeDelta::days(5);
    let second = authority.renew(&grant.public_key, Some(&held(&first)), later).unwrap();
    assert_eq!(authority.renew(&grant.public_key, Some(&held(&first)), later).unwrap(), second);
}

#[test]
fn who_is_not_to_be_renewed_is_not() {
    let host = Host::new();
    let authority = Authority::init(&host.data()).unwrap();
    let grant = Grant { is_renewed: false, ..host.grant("guest") };
    authority.sign(&grant, Utc::now()).unwrap();
    assert!(authority.renew(&grant.public_key, None, Utc::now() + TimeDelta::days(6)).unwrap().is_none());
}

#[test]
fn a_revoked_key_gets_nothing_more_and_its_certificates_are_on_the_list() {
    let host = Host::new();
    let authority = Authority::init(&host.data()).unwrap();
    let (bad, good, now) = (host.grant("bad"), host.grant("good"), Utc::now());
    let [first, second] = [(); 2].map(|()| authority.sign(&bad, now).unwrap());
    let other = authority.sign(&good, now).unwrap();
    assert!(!host.is_revoked(&authority, &first));

    let revoked = authority.revoke(&Revocation::Serial(1), now).unwrap();
    assert_eq!(revoked.iter().map(|signed| signed.serial).collect::<Vec<_>>(), [1, 2]);
    let states = [&first, &second, &other].map(|certificate| host.is_revoked(&authority, certificate));
    assert_eq!(states, [true, true, false]);
    assert!(matches!(authority.sign(&bad, now), Err(AuthorityError::Revoked { .. })));
    assert!(authority.renew(&bad.public_key, None, now + TimeDelta::days(6)).unwrap().is_none());
    let known = authority.revoked_keys().unwrap();
    assert_eq!((known.at(&bad.public_key), known.at(&good.public_key)), (Some(now), None));
}

#[test]
fn what_was_never_signed_cannot_be_revoked_by_number_or_name() {
    let host = Host::new();
    let authority = Authority::init(&host.data()).unwrap();
    for what in [Revocation::Serial(7), Revocation::KeyId("nobody".to_owned())] {
        assert!(matches!(authority.revoke(&what, Utc::now()), Err(AuthorityError::NothingSigned(_))));
    }
    let grant = host.grant("stolen");
    let key = Revocation::Key(grant.key().unwrap());
    authority.revoke(&key, Utc::now()).unwrap();
    assert!(matches!(authority.sign(&grant, Utc::now()), Err(AuthorityError::Revoked { .. })));
}

#[test]
fn two_that_sign_at_once_give_different_numbers() {
    let host = Host::new();
    let authority = Authority::init(&host.data()).unwrap();
    let grant = host.grant("bastion");
    let mut serials: Vec<u64> = std::thread::scope(|scope| {
        let sign = || scope.spawn(|| facts(&authority.sign(&grant, Utc::now()).unwrap()).serial);
        let threads: Vec<_> = (0..8).map(|_| sign()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    serials.sort_unstable();
    assert_eq!(serials, (1..=8).collect::<Vec<_>>());
}

#[test]
fn a_damaged_register_is_not_begun_anew() {
    let host = Host::new();
    let authority = Authority::init(&host.data()).unwrap();
    authority.folder.write(REGISTER, "{").unwrap();
    assert!(matches!(authority.sign(&host.grant("a"), Utc::now()), Err(AuthorityError::Register { .. })));
}

#[test]
fn networks_are_read_and_others_refused() {
    for text in ["10.0.0.7", "10.0.0.0/8", "fd00::/8", "::1"] {
        assert!(network(text).is_ok(), "{text}");
    }
    for text in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "host"] {
        assert!(network(text).is_err(), "{text}");
    }
}
