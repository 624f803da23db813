//! Ports here, targets there.

use crate::sshd::{Setup, Sshd};
use crate::support::{
    Manner, User, bytes, endpoint, exchange, is_refused, local_spec, logged_in, program, soon, until, unused_address,
};
use ssh::{
    ChannelError, ConnectionFault, Endpoint, ForwardError, ForwardLimits, LocalForward, LocalForwardSpec, Session,
    Stopped,
};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn forward(session: &Session, target: SocketAddr) -> LocalForward {
    soon(LocalForward::start(session, local_spec(endpoint(target)))).await.unwrap()
}

#[tokio::test]
async fn bytes_go_both_ways_and_are_counted() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let forward = forward(&session, program(Manner::Echo).await).await;
    let sent = bytes(1024 * 1024);
    assert!(exchange(forward.address(), &sent).await.unwrap() == sent);
    until("the connection's end", async || forward.stats().open_connections == 0).await;
    let stats = forward.stats();
    let mib = 1024 * 1024;
    assert_eq!((stats.bytes_to_target, stats.bytes_from_target), (mib, mib));
    assert_eq!((stats.connections_total, stats.failed_total, stats.last_fault), (1, 0, None));
}

#[tokio::test]
async fn one_side_may_end_while_the_other_goes_on() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let forward = forward(&session, program(Manner::EchoAtTheEnd).await).await;
    let sent = bytes(1024 * 1024);
    assert!(exchange(forward.address(), &sent).await.unwrap() == sent);
}

#[tokio::test]
async fn many_connections_go_over_one_session() {
    let (_sshd, user, session) = logged_in(&["MaxSessions 1"]).await;
    let forward = forward(&session, program(Manner::EchoAtTheEnd).await).await;
    let sent = bytes(10_000);
    let all: Vec<_> = (0..32)
        .map(|_| {
            let (address, sent) = (forward.address(), sent.clone());
            tokio::spawn(async move { exchange(address, &sent).await.unwrap() == sent })
        })
        .collect();
    for one in all {
        assert!(soon(one).await.unwrap());
    }
    assert_eq!((forward.stats().connections_total, user.trouble.opened()), (32, 1));
}

/// A session on which nobody may hold up the others for long.
async fn strict() -> (Sshd, User, Session) {
    let mut user = User::new();
    user.tuning.longest_hold_up = Duration::from_millis(300);
    let sshd = user.server(Setup::new()).await;
    let session = user.session(&sshd).await;
    (sshd, user, session)
}

#[tokio::test]
async fn a_reader_that_has_stopped_does_not_hold_up_the_others_for_long() {
    let (_sshd, _user, session) = strict().await;
    let babbling = forward(&session, program(Manner::Babble).await).await;
    let echoing = forward(&session, program(Manner::EchoAtTheEnd).await).await;
    let mut asleep = TcpStream::connect(babbling.address()).await.unwrap();
    until("the sleeper's reset", async || babbling.stats().last_fault == Some(ConnectionFault::HeldUpOthers)).await;
    let sent = bytes(1024 * 1024);
    assert!(exchange(echoing.address(), &sent).await.unwrap() == sent);
    assert_eq!((session.end(), echoing.stats().last_fault), (None, None));
    assert_eq!(soon(asleep.read_to_end(&mut Vec::new())).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_reader_that_is_slow_only_slows_the_others_down() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let babbling = forward(&session, program(Manner::Babble).await).await;
    let echoing = forward(&session, program(Manner::EchoAtTheEnd).await).await;
    let mut slow = TcpStream::connect(babbling.address()).await.unwrap();
    let reading = tokio::spawn(async move {
        // in all, more than finds place on the way
        for _ in 0..80 {
            slow.read_exact(&mut vec![0; 512 * 1024]).await?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok::<_, std::io::Error>(())
    });
    let sent = bytes(100_000);
    assert!(exchange(echoing.address(), &sent).await.unwrap() == sent);
    soon(reading).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_target_that_does_not_read_does_not_hold_up_the_others() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let silent = forward(&session, program(Manner::Silent).await).await;
    let echoing = forward(&session, program(Manner::EchoAtTheEnd).await).await;
    let mut upload = TcpStream::connect(silent.address()).await.unwrap();
    let uploading = tokio::spawn(async move { upload.write_all(&vec![7; 64 * 1024 * 1024]).await });
    let mut before = 0;
    until("no more room for what nobody reads", async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = silent.stats().bytes_to_target;
        now > 0 && now == std::mem::replace(&mut before, now)
    })
    .await;
    let sent = bytes(1024 * 1024);
    assert!(exchange(echoing.address(), &sent).await.unwrap() == sent);
    uploading.abort();
}

#[tokio::test]
async fn a_port_that_is_taken_here_is_an_error() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let error =
        LocalForward::start(&session, LocalForwardSpec { listen: address, ..local_spec(endpoint(address)) }).await;
    assert!(matches!(error, Err(ForwardError::PortTaken { address: named }) if named == address), "{error:?}");
    // an address for documentation, so nobody's (RFC 5737)
    let nobodys = "192.0.2.1:0".parse().unwrap();
    let error =
        LocalForward::start(&session, LocalForwardSpec { listen: nobodys, ..local_spec(endpoint(address)) }).await;
    assert!(matches!(error, Err(ForwardError::NoSuchAddress { .. })), "{error:?}");
}

#[tokio::test]
async fn a_server_that_may_not_forward_is_an_error_at_once() {
    for line in
        ["AllowTcpForwarding no", "AllowTcpForwarding remote", "PermitOpen 192.0.2.1:1", "DisableForwarding yes"]
    {
        let (_sshd, _user, session) = logged_in(&[line]).await;
        let started = soon(LocalForward::start(&session, local_spec(endpoint(unused_address())))).await;
        assert!(matches!(started, Err(ForwardError::Target(ChannelError::Prohibited { .. }))), "{line}: {started:?}");
    }
}

#[tokio::test]
async fn a_key_that_may_not_forward_is_an_error_at_once() {
    let user = User::new();
    let sshd = Setup::new().start().await;
    sshd.authorise(&user.path("key.pub"), "restrict");
    user.trust(&sshd);
    let session = user.session(&sshd).await;
    let started = soon(LocalForward::start(&session, local_spec(endpoint(unused_address())))).await;
    assert!(matches!(started, Err(ForwardError::Target(ChannelError::Prohibited { .. }))), "{started:?}");
}

#[tokio::test]
async fn a_permitted_target_is_reached() {
    let target = program(Manner::Echo).await;
    let (_sshd, _user, session) = logged_in(&[&format!("PermitOpen {target}")]).await;
    let forward = forward(&session, target).await;
    assert_eq!(exchange(forward.address(), b"hello").await.unwrap(), b"hello");
}

#[tokio::test]
async fn a_target_that_is_not_there_yet_is_told_and_found_later() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let target = unused_address();
    let forward = forward(&session, target).await;
    let Some(ConnectionFault::Channel(ChannelError::ConnectFailed { detail, .. })) = forward.stats().last_fault else {
        panic!("{:?}", forward.stats())
    };
    assert_eq!(detail.as_deref(), Some("Connection refused"));
    assert!(exchange(forward.address(), b"hello").await.is_err());
    assert_eq!(forward.stats().failed_total, 1);

    let listener = TcpListener::bind(target).await.unwrap();
    let connecting = TcpStream::connect(forward.address()).await.unwrap();
    assert!(soon(listener.accept()).await.is_ok());
    drop(connecting);
}

#[tokio::test]
async fn a_name_that_the_server_does_not_know_is_told() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let forward =
        soon(LocalForward::start(&session, local_spec(Endpoint::new("no-such-host.invalid", 80)))).await.unwrap();
    let fault = forward.stats().last_fault;
    assert!(matches!(fault, Some(ConnectionFault::Channel(ChannelError::ConnectFailed { .. }))), "{fault:?}");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_and_counted() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let limits = ForwardLimits { max_connections: 1, ..ForwardLimits::default() };
    let target = endpoint(program(Manner::Echo).await);
    let forward = soon(LocalForward::start(&session, LocalForwardSpec { limits, ..local_spec(target) })).await.unwrap();
    let mut first = TcpStream::connect(forward.address()).await.unwrap();
    first.write_all(b"1").await.unwrap();
    first.read_exact(&mut [0]).await.unwrap();

    let mut second = TcpStream::connect(forward.address()).await.unwrap();
    assert!(matches!(soon(second.read(&mut [0])).await, Ok(0) | Err(_)));
    assert_eq!(forward.stats().last_fault, Some(ConnectionFault::TooMany { max_connections: 1 }));
    drop(first);
    until("a free place", async || exchange(forward.address(), b"3").await.is_ok_and(|answer| answer == b"3")).await;
}

#[tokio::test]
async fn a_forward_that_is_stopped_lets_its_connections_end() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let forward = forward(&session, program(Manner::Echo).await).await;
    let address = forward.address();
    let mut open = TcpStream::connect(address).await.unwrap();
    open.write_all(b"1").await.unwrap();
    open.read_exact(&mut [0]).await.unwrap();
    let stopping = tokio::spawn(forward.stop(Duration::from_secs(20)));
    until("no new connections", async || is_refused(address).await).await;
    open.write_all(b"2").await.unwrap();
    open.read_exact(&mut [0]).await.unwrap();
    drop(open);
    assert_eq!(soon(stopping).await.unwrap(), Stopped::Drained);
    assert_eq!(session.end(), None);
}

#[tokio::test]
async fn a_forward_that_is_stopped_resets_connections_that_do_not_end() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let forward = forward(&session, program(Manner::Echo).await).await;
    let mut open = TcpStream::connect(forward.address()).await.unwrap();
    open.write_all(b"1").await.unwrap();
    open.read_exact(&mut [0]).await.unwrap();
    assert_eq!(soon(forward.stop(Duration::from_millis(50))).await, Stopped::Aborted { connections: 1 });
    assert_eq!(soon(open.read(&mut [0])).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn connections_of_a_session_that_broke_are_reset_not_ended() {
    let (mut sshd, _user, session) = logged_in(&[]).await;
    let forward = forward(&session, program(Manner::Echo).await).await;
    let mut open = TcpStream::connect(forward.address()).await.unwrap();
    open.write_all(b"1").await.unwrap();
    open.read_exact(&mut [0]).await.unwrap();
    sshd.kill();
    assert_eq!(soon(open.read(&mut [0])).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}
