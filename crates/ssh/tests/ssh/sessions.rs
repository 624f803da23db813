//! Sessions that stand, and how they end.

use crate::sshd::{Setup, Sshd};
use crate::support::{
    Manner, User, bytes, endpoint, exchange, is_refused, local_spec, logged_in, program, soon, until, unused_address,
};
use ssh::{
    ChannelError, Endpoint, ForwardLimits, LocalForward, RemoteForward, RemoteForwardSpec, Session, SessionEnd,
    Sessions,
};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

async fn local(session: &Session, target: SocketAddr) -> LocalForward {
    soon(LocalForward::start(session, local_spec(endpoint(target)))).await.unwrap()
}

async fn remote(session: &Session, target: SocketAddr) -> RemoteForward {
    let spec = RemoteForwardSpec {
        listen: Endpoint::new("localhost", 0),
        target: endpoint(target),
        limits: ForwardLimits::default(),
    };
    soon(RemoteForward::start(session, spec)).await.unwrap()
}

/// A session that is asked for a sign of life often.
async fn impatient() -> (Sshd, User, Session) {
    let mut user = User::new();
    user.tuning.keep_alive_interval = Duration::from_millis(300);
    let sshd = user.server(Setup::new()).await;
    let session = user.session(&sshd).await;
    (sshd, user, session)
}

#[tokio::test]
async fn all_forwards_hear_that_the_server_was_killed() {
    let (mut sshd, _user, session) = logged_in(&[]).await;
    let target = program(Manner::Echo).await;
    let (local, remote) = (local(&session, target).await, remote(&session, target).await);
    sshd.kill();
    assert_eq!(soon(local.ended()).await, SessionEnd::Closed);
    assert_eq!(soon(remote.ended()).await, SessionEnd::Closed);
    let address = local.address();
    until("nobody listens here any more", async || is_refused(address).await).await;
}

#[tokio::test]
async fn a_server_that_was_started_again_gets_a_new_session() {
    let user = User::new();
    let mut sshd = user.server(Setup::new()).await;
    let sessions = Sessions::new(user.connector());
    let first = soon(sessions.get(&user.route(&sshd))).await.unwrap();
    sshd.kill();
    soon(first.ended()).await;
    assert!(soon(sessions.get(&user.route(&sshd))).await.is_err());
    sshd.start_again().await;
    let second = soon(sessions.get(&user.route(&sshd))).await.unwrap();
    let forward = local(&second, program(Manner::Echo).await).await;
    assert_eq!(exchange(forward.address(), b"again").await.unwrap(), b"again");
}

#[tokio::test]
async fn a_server_that_goes_silent_is_found_by_keep_alives() {
    let (_sshd, user, session) = impatient().await;
    let forward = local(&session, program(Manner::Echo).await).await;
    user.trouble.black_hole.store(true, Ordering::SeqCst);
    let end = soon(forward.ended()).await;
    assert!(matches!(end, SessionEnd::KeepAliveLost { .. }), "{end}");
}

#[tokio::test]
async fn a_path_that_takes_nothing_more_is_found_in_the_middle_of_an_upload() {
    let (_sshd, user, session) = impatient().await;
    let forward = local(&session, program(Manner::Silent).await).await;
    let mut upload = TcpStream::connect(forward.address()).await.unwrap();
    upload.write_all(&bytes(64 * 1024)).await.unwrap();
    user.trouble.clogged.store(true, Ordering::SeqCst);
    let uploading = tokio::spawn(async move { upload.write_all(&vec![7; 64 * 1024 * 1024]).await });
    let end = soon(session.ended()).await;
    assert!(matches!(end, SessionEnd::KeepAliveLost { .. }), "{end}");
    assert!(soon(uploading).await.unwrap().is_err());
}

/// The whole takes several times as long as a server may be silent, and nothing is read while a write waits.
#[tokio::test]
async fn a_slow_upload_is_not_taken_for_a_dead_server() {
    let (_sshd, user, session) = impatient().await;
    let forward = local(&session, program(Manner::EchoAtTheEnd).await).await;
    user.trouble.piece_bytes.store(2048, Ordering::SeqCst);
    user.trouble.delay_ms.store(10, Ordering::SeqCst);
    let sent = bytes(400 * 1024);
    let mut upload = TcpStream::connect(forward.address()).await.unwrap();
    upload.write_all(&sent).await.unwrap();
    upload.shutdown().await.unwrap();
    until("all of it sent", async || {
        assert_eq!(session.end(), None);
        session.traffic().sent_bytes > 400 * 1024
    })
    .await;
    assert_eq!(session.end(), None);
}

#[tokio::test]
async fn an_idle_session_stays() {
    let (_sshd, user, session) = impatient().await;
    let before = session.traffic().received_bytes;
    // more answers than may be missing
    until("answers to keep-alives", async || session.traffic().received_bytes > before + 4 * 32).await;
    assert_eq!((session.end(), user.trouble.opened()), (None, 1));
}

#[tokio::test]
async fn a_session_over_a_slow_path_works() {
    let (_sshd, user, session) = logged_in(&[]).await;
    user.trouble.delay_ms.store(5, Ordering::SeqCst);
    let forward = local(&session, program(Manner::EchoAtTheEnd).await).await;
    let sent = bytes(100_000);
    assert!(exchange(forward.address(), &sent).await.unwrap() == sent);
}

#[tokio::test]
async fn a_session_that_is_stopped_ends_everywhere() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let forward = local(&session, program(Manner::Echo).await).await;
    soon(session.stop()).await;
    assert_eq!(soon(forward.ended()).await, SessionEnd::Stopped);
    let error = soon(session.check_target(&Endpoint::new("127.0.0.1", 1), Duration::from_secs(1))).await.unwrap_err();
    assert_eq!(error, ChannelError::SessionEnded(SessionEnd::Stopped));
}

#[tokio::test]
async fn a_server_that_opens_no_sessions_still_forwards() {
    let (_sshd, _user, session) = logged_in(&["MaxSessions 0"]).await;
    let forward = local(&session, program(Manner::Echo).await).await;
    assert_eq!(exchange(forward.address(), b"hello").await.unwrap(), b"hello");
}

#[tokio::test]
async fn a_target_behind_the_server_can_be_tried() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let deadline = Duration::from_secs(10);
    soon(session.check_target(&endpoint(program(Manner::Echo).await), deadline)).await.unwrap();
    let error = soon(session.check_target(&endpoint(unused_address()), deadline)).await.unwrap_err();
    let ChannelError::ConnectFailed { detail, .. } = error else { panic!("{error}") };
    assert_eq!(detail.as_deref(), Some("Connection refused"));
}
