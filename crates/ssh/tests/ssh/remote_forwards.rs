//! Ports there, targets here.

use crate::sshd::Setup;
use crate::support::{
    Manner, User, bytes, endpoint, exchange, is_refused, local_spec, logged_in, program, soon, until, unused_address,
};
use ssh::{
    ConnectionFault, Denial, Endpoint, ForwardError, ForwardLimits, LocalForward, RemoteForward, RemoteForwardSpec,
    Session, Stopped,
};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

fn spec(host: &str, port: u16, target: SocketAddr) -> RemoteForwardSpec {
    RemoteForwardSpec { listen: Endpoint::new(host, port), target: endpoint(target), limits: ForwardLimits::default() }
}

async fn start(session: &Session, spec: RemoteForwardSpec) -> Result<RemoteForward, ForwardError> {
    soon(RemoteForward::start(session, spec)).await
}

fn address(forward: &RemoteForward) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], forward.address().port))
}

fn denial(started: Result<RemoteForward, ForwardError>) -> Denial {
    match started {
        Err(ForwardError::Denied { denial, .. }) => denial,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn bytes_go_both_ways_and_are_counted() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let mut port = 0;
    for host in ["localhost", "127.0.0.1"] {
        // at a port of the server's choice, and at the same one again
        for _ in 0..2 {
            let forward = start(&session, spec(host, port, program(Manner::EchoAtTheEnd).await)).await.unwrap();
            assert!(port == 0 || forward.address().port == port);
            port = forward.address().port;
            let sent = bytes(1024 * 1024);
            assert!(exchange(address(&forward), &sent).await.unwrap() == sent, "{host} {port}");
            until("the connection's end", async || forward.stats().open_connections == 0).await;
            let stats = forward.stats();
            assert_eq!((stats.bytes_to_target, stats.bytes_from_target), (1024 * 1024, 1024 * 1024));
            assert_eq!((stats.connections_total, stats.failed_total), (1, 0));
            soon(forward.stop(Duration::from_secs(20))).await;
        }
    }
}

#[tokio::test]
async fn whether_a_port_is_free_is_told_without_a_connection_to_whoever_has_it() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = endpoint(taken.local_addr().unwrap());
    assert!(!soon(session.can_listen(&there)).await.unwrap());
    assert!(tokio::time::timeout(Duration::from_millis(100), taken.accept()).await.is_err());
    drop(taken);
    for _ in 0..2 {
        assert!(soon(session.can_listen(&there)).await.unwrap());
    }
    assert!(is_refused(SocketAddr::from(([127, 0, 0, 1], there.port))).await);
}

#[tokio::test]
async fn a_port_that_is_open_to_everybody_is_told() {
    for (setting, is_open) in
        [("GatewayPorts yes", true), ("GatewayPorts clientspecified", false), ("GatewayPorts no", false)]
    {
        let (_sshd, _user, session) = logged_in(&[setting]).await;
        for host in ["localhost", "127.0.0.1"] {
            let forward = start(&session, spec(host, 0, program(Manner::Echo).await)).await.unwrap();
            assert_eq!(forward.is_open_to_others(), is_open, "{setting} {host}");
            assert!(exchange(address(&forward), b"hello").await.unwrap() == b"hello");
        }
    }
}

#[tokio::test]
async fn several_forwards_of_a_session_keep_their_connections_apart() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let silent = start(&session, spec("localhost", 0, program(Manner::Silent).await)).await.unwrap();
    let echoing = start(&session, spec("localhost", 0, program(Manner::Echo).await)).await.unwrap();
    let _waiting = TcpStream::connect(address(&silent)).await.unwrap();
    assert_eq!(exchange(address(&echoing), b"hello").await.unwrap(), b"hello");
    until("the silent one's connection", async || silent.stats().connections_total == 1).await;
}

#[tokio::test]
async fn a_port_that_is_taken_there_is_told_apart() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    // at 127.0.0.1 sshd says no; at `localhost` it is content with ::1, where there is one
    let limits = ForwardLimits { connect_deadline: Duration::from_secs(1), ..ForwardLimits::default() };
    for host in ["127.0.0.1", "localhost"] {
        let spec = RemoteForwardSpec { limits: limits.clone(), ..spec(host, port, unused_address()) };
        assert_eq!(denial(start(&session, spec).await), Denial::PortTaken, "{host}");
    }
}

#[tokio::test]
async fn the_port_of_a_session_that_is_not_missed_yet_is_taken_and_free_when_it_is() {
    let (sshd, user, stale) = logged_in(&[]).await;
    let target = program(Manner::Echo).await;
    let old = start(&stale, spec("localhost", 0, target)).await.unwrap();
    let port = old.address().port;
    let session = user.session(&sshd).await;
    assert_eq!(denial(start(&session, spec("localhost", port, target)).await), Denial::PortTaken);
    stale.stop().await;
    until("a free port", async || start(&session, spec("localhost", port, target)).await.is_ok()).await;
}

#[tokio::test]
async fn a_server_that_may_not_listen_is_told_apart() {
    let lines = ["AllowTcpForwarding no", "AllowTcpForwarding local", "PermitListen none", "DisableForwarding yes"];
    for line in lines {
        let (_sshd, _user, session) = logged_in(&[line]).await;
        let started = start(&session, spec("localhost", unused_address().port(), unused_address())).await;
        assert_eq!(denial(started), Denial::NotAllowed, "{line}");
    }
}

#[tokio::test]
async fn a_server_that_listens_on_loopback_though_it_was_asked_for_more_is_an_error() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    for host in ["0.0.0.0", "", "*"] {
        let started = start(&session, spec(host, 0, program(Manner::Echo).await)).await;
        let Err(ForwardError::LoopbackOnly { listen }) = started else { panic!("{host}: {started:?}") };
        let unused = SocketAddr::from(([127, 0, 0, 1], listen.port));
        until("nobody listens any more", async || is_refused(unused).await).await;
    }
}

#[tokio::test]
async fn a_server_that_may_listen_for_others_does() {
    let (_sshd, _user, session) = logged_in(&["GatewayPorts clientspecified"]).await;
    let target = program(Manner::Echo).await;
    for (host, reached_at) in [("0.0.0.0", [127, 0, 0, 2]), ("127.0.0.3", [127, 0, 0, 3])] {
        let forward = start(&session, spec(host, 0, target)).await.unwrap();
        let address = SocketAddr::from((reached_at, forward.address().port));
        assert_eq!(exchange(address, b"hello").await.unwrap(), b"hello");
        // the trial whether it listens has not reached the target
        assert_eq!(forward.stats().connections_total, 1, "{host}");
    }
}

#[tokio::test]
async fn a_target_that_is_not_there_refuses_and_is_told() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let forward = start(&session, spec("localhost", 0, unused_address())).await.unwrap();
    let mut refused = TcpStream::connect(address(&forward)).await.unwrap();
    assert!(matches!(soon(refused.read(&mut [0])).await, Ok(0) | Err(_)));
    until("the fault", async || forward.stats().failed_total == 1).await;
    assert!(matches!(forward.stats().last_fault, Some(ConnectionFault::Target { .. })));
}

#[tokio::test]
async fn a_forward_that_is_stopped_frees_the_port() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let forward = start(&session, spec("localhost", 0, program(Manner::Echo).await)).await.unwrap();
    let address = address(&forward);
    assert_eq!(soon(forward.stop(Duration::from_secs(20))).await, Stopped::Drained);
    assert!(is_refused(address).await);
    assert_eq!(session.end(), None);
}

#[tokio::test]
async fn a_forward_that_is_dropped_frees_the_port_too() {
    let (_sshd, _user, session) = logged_in(&[]).await;
    let forward = start(&session, spec("localhost", 0, program(Manner::Echo).await)).await.unwrap();
    let address = address(&forward);
    drop(forward);
    until("a free port", async || is_refused(address).await).await;
    assert_eq!(session.end(), None);
}

#[tokio::test]
async fn the_articles_two_forwards_lead_from_a_worker_to_a_server() {
    // on the bastion: -L to the server, -R to the worker
    let user = User::new();
    let (server, worker) = (user.server(Setup::new()).await, user.server(Setup::new()).await);
    let (to_server, to_worker) = (user.session(&server).await, user.session(&worker).await);
    let local = local_spec(endpoint(program(Manner::Echo).await));
    let local = soon(LocalForward::start(&to_server, local)).await.unwrap();
    let remote = start(&to_worker, spec("localhost", 0, local.address())).await.unwrap();
    let sent = bytes(300_000);
    assert!(exchange(address(&remote), &sent).await.unwrap() == sent);
}
