//! Who gets in with what.

use crate::sshd::{Setup, keygen, run};
use crate::support::{Agent, Manner, User, endpoint, exchange, local_spec, login, program, soon};
use async_trait::async_trait;
use ssh::{
    AuthenticationError, ConnectFault, Hop, Identity, IdentityError, KeyFileError, LocalForward, Passphrase,
    Passphrases, Route,
};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

fn refused(fault: &ConnectFault) -> &AuthenticationError {
    let ConnectFault::Authentication(error) = fault else { panic!("{fault}") };
    error
}

#[tokio::test]
async fn a_key_without_a_passphrase_lets_in() {
    let user = User::new();
    let sshd = user.server(Setup::new()).await;
    let session = user.session(&sshd).await;
    assert!(session.server_version().unwrap().starts_with("SSH-2.0-OpenSSH"));
    assert!(soon(session.ping()).await.is_ok());
}

#[tokio::test]
async fn keys_of_every_usual_kind_let_in() {
    for (kind, bits) in [("rsa", "2048"), ("ecdsa", "256"), ("ecdsa", "384"), ("ecdsa", "521")] {
        let mut user = User::new();
        user.folder = tempfile::tempdir().unwrap();
        keygen(&user.path("key"), &["-t", kind, "-b", bits]);
        let setup = Setup::new();
        std::fs::remove_file(setup.path("host")).unwrap();
        keygen(&setup.path("host"), &["-t", kind, "-b", bits]);
        let sshd = user.server(setup).await;
        user.session(&sshd).await;
    }
}

#[tokio::test]
async fn another_key_does_not_let_in_and_the_error_says_what_was_tried() {
    let user = User::new();
    let sshd = user.server(Setup::new()).await;
    keygen(&user.path("other"), &[]);
    std::fs::rename(user.path("other"), user.path("key")).unwrap();
    let fault = user.connect(&sshd).await.unwrap_err();
    let AuthenticationError::Refused { user: name, offered, tried } = refused(&fault) else { panic!("{fault}") };
    assert_eq!((name, offered), (&login(), &vec!["publickey".to_owned()]));
    let shown = run(Command::new("ssh-keygen").arg("-lf").arg(user.path("other.pub")));
    assert!(shown.contains(&tried[0].fingerprint), "{shown} {tried:?}");
}

struct Knows(&'static str);

#[async_trait]
impl Passphrases for Knows {
    async fn passphrase(&self, _file: &Path) -> Option<Passphrase> {
        Some(Passphrase::new(self.0.to_owned()))
    }
}

#[tokio::test]
async fn an_encrypted_key_lets_in_whoever_knows_its_passphrase() {
    let mut user = User::new();
    user.folder = tempfile::tempdir().unwrap();
    keygen(&user.path("key"), &["-N", "open sesame", "-a", "1"]);
    let sshd = user.server(Setup::new()).await;
    let with = |passphrase| {
        let mut connector = user.connector();
        connector.passphrases = Arc::new(Knows(passphrase));
        connector
    };
    soon(with("open sesame").connect(&user.route(&sshd))).await.unwrap();

    let wrong = soon(with("open barley").connect(&user.route(&sshd))).await.unwrap_err().fault;
    assert!(
        matches!(wrong, ConnectFault::Identity(IdentityError::File(KeyFileError::WrongPassphrase { .. }))),
        "{wrong}"
    );
    let none = user.connect(&sshd).await.unwrap_err();
    assert!(
        matches!(none, ConnectFault::Identity(IdentityError::File(KeyFileError::PassphraseNeeded { .. }))),
        "{none}"
    );
}

#[tokio::test]
async fn a_key_that_others_can_read_is_not_used() {
    let user = User::new();
    let sshd = user.server(Setup::new()).await;
    std::fs::set_permissions(user.path("key"), PermissionsExt::from_mode(0o644)).unwrap();
    let fault = user.connect(&sshd).await.unwrap_err();
    assert!(matches!(fault, ConnectFault::Identity(IdentityError::File(KeyFileError::NotPrivate { .. }))), "{fault}");
    assert_eq!(user.trouble.opened(), 0, "nothing was dialled");
}

#[tokio::test]
async fn a_key_in_ssh_agent_lets_in() {
    let user = User::new();
    let sshd = user.server(Setup::new()).await;
    let agent = Agent::start(&user).await;
    keygen(&user.path("other"), &[]);
    agent.add(&user.path("other"));
    agent.add(&user.path("key"));
    let name = user.hop(&sshd).name;
    let route = Route::new(vec![Hop { name, identities: vec![agent.identity()] }]).unwrap();
    soon(user.connector().connect(&route)).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_named() {
    let user = User::new();
    let sshd = user.server(Setup::new()).await;
    let identity = Identity::Agent { socket: user.path("nobody") };
    let name = user.hop(&sshd).name;
    let route = Route::new(vec![Hop { name, identities: vec![identity] }]).unwrap();
    let fault = soon(user.connector().connect(&route)).await.unwrap_err().fault;
    assert!(matches!(fault, ConnectFault::Identity(IdentityError::Agent { .. })), "{fault}");
}

#[tokio::test]
async fn a_server_that_takes_no_keys_is_told_apart() {
    let user = User::new();
    let sshd = user.server(Setup::new().line("PubkeyAuthentication no").line("PasswordAuthentication yes")).await;
    let fault = user.connect(&sshd).await.unwrap_err();
    let AuthenticationError::KeysNotTaken { offered, .. } = refused(&fault) else { panic!("{fault}") };
    assert_eq!(offered, &["password"]);
}

#[tokio::test]
async fn a_server_that_wants_more_than_a_key_is_told_apart() {
    let user = User::new();
    let more = Setup::new().line("AuthenticationMethods publickey,password").line("PasswordAuthentication yes");
    let sshd = user.server(more).await;
    let fault = user.connect(&sshd).await.unwrap_err();
    let AuthenticationError::MoreWanted { offered, .. } = refused(&fault) else { panic!("{fault}") };
    assert_eq!(offered, &["password"]);
}

#[tokio::test]
async fn a_server_that_was_offered_too_many_keys_is_told_apart() {
    let user = User::new();
    let sshd = Setup::new().line("MaxAuthTries 2").start().await;
    user.trust(&sshd);
    let mut hop = user.hop(&sshd);
    for name in ["second", "third"] {
        keygen(&user.path(name), &[]);
        hop.identities.push(Identity::key_file(user.path(name)));
    }
    let fault = soon(user.connector().connect(&Route::new(vec![hop]).unwrap())).await.unwrap_err().fault;
    let AuthenticationError::TooManyFailures { tried, .. } = refused(&fault) else { panic!("{fault}") };
    assert_eq!(tried.len(), 2);
}

#[tokio::test]
async fn a_compressed_session_works() {
    let mut user = User::new();
    user.tuning.compression = ssh::Compression::On;
    let sshd = user.server(Setup::new()).await;
    let session = user.session(&sshd).await;
    let spec = local_spec(endpoint(program(Manner::EchoAtTheEnd).await));
    let forward = soon(LocalForward::start(&session, spec)).await.unwrap();
    let sent = vec![7; 1024 * 1024];
    assert!(exchange(forward.address(), &sent).await.unwrap() == sent);
    let traffic = session.traffic();
    assert!(traffic.sent_bytes < 100_000 && traffic.received_bytes < 100_000, "{traffic:?}");
}
