//! Servers behind bastions.

use crate::sshd::{Setup, Sshd};
use crate::support::{Manner, User, bytes, endpoint, exchange, is_refused, local_spec, program, soon, until};
use ssh::{ChannelError, ConnectFault, HostKeyError, LocalForward, Route, SessionEnd, Sessions};

/// Servers that all know the user's key, and the way through all of them.
async fn chain(user: &User, length: usize) -> (Vec<Sshd>, Route) {
    let mut servers = Vec::new();
    for _ in 0..length {
        servers.push(user.server(Setup::new()).await);
    }
    let hops = servers.iter().map(|sshd| user.hop(sshd)).collect();
    (servers, Route::new(hops).unwrap())
}

#[tokio::test]
async fn a_forward_goes_through_two_and_three_servers() {
    for length in [2, 3] {
        let user = User::new();
        let (servers, route) = chain(&user, length).await;
        let session = soon(user.connector().connect(&route)).await.unwrap();
        assert_eq!(session.name().server, endpoint(servers.last().unwrap().address()));
        assert_eq!(user.trouble.opened(), 1, "this host reaches the first one only");
        let spec = local_spec(endpoint(program(Manner::EchoAtTheEnd).await));
        let forward = LocalForward::start(&session, spec).await.unwrap();
        let sent = bytes(1024 * 1024);
        assert!(exchange(forward.address(), &sent).await.unwrap() == sent);
    }
}

#[tokio::test]
async fn the_server_with_which_it_goes_wrong_is_named() {
    let user = User::new();
    let (mut servers, route) = chain(&user, 3).await;
    servers[1].kill();
    let error = soon(user.connector().connect(&route)).await.unwrap_err();
    assert_eq!(error.hop.server, endpoint(servers[1].address()));
    let ConnectFault::Channel(ChannelError::ConnectFailed { detail, .. }) = &error.fault else { panic!("{error}") };
    assert_eq!(detail.as_deref(), Some("Connection refused"));
}

#[tokio::test]
async fn every_server_on_the_way_has_to_be_known() {
    let user = User::new();
    let (servers, route) = chain(&user, 2).await;
    std::fs::remove_file(user.path("known_hosts")).unwrap();
    user.trust(&servers[0]);
    let error = soon(user.connector().connect(&route)).await.unwrap_err();
    assert_eq!(error.hop.server, endpoint(servers[1].address()));
    assert!(matches!(error.fault, ConnectFault::HostKey(HostKeyError::Unknown { .. })), "{error}");
}

#[tokio::test]
async fn a_bastion_that_may_not_forward_is_named_with_the_line_to_change() {
    let user = User::new();
    let bastion = user.server(Setup::new().line("AllowTcpForwarding no")).await;
    let server = user.server(Setup::new()).await;
    let route = Route::new(vec![user.hop(&bastion), user.hop(&server)]).unwrap();
    let error = soon(user.connector().connect(&route)).await.unwrap_err();
    assert!(matches!(error.fault, ConnectFault::Channel(ChannelError::Prohibited { .. })), "{error}");
    assert!(error.to_string().contains("AllowTcpForwarding yes"), "{error}");
    assert_eq!(error.hop.server, endpoint(bastion.address()), "its sshd_config is the one to change");
}

#[tokio::test]
async fn a_session_ends_with_the_bastion_below_it_and_names_it() {
    let user = User::new();
    let (mut servers, route) = chain(&user, 3).await;
    let session = soon(user.connector().connect(&route)).await.unwrap();
    servers[0].kill();
    let SessionEnd::Via { hop, end } = soon(session.ended()).await else { panic!("{:?}", session.end()) };
    assert_eq!(hop.server, endpoint(servers[1].address()));
    assert!(matches!(&*end, SessionEnd::Via { hop, .. } if hop.server == endpoint(servers[0].address())), "{end}");
}

#[tokio::test]
async fn routes_share_the_sessions_that_they_have_in_common() {
    let user = User::new();
    let (servers, route) = chain(&user, 2).await;
    let sessions = Sessions::new(user.connector());
    let (first, second) = soon(async { tokio::join!(sessions.get(&route), sessions.get(&route)) }).await;
    let (first, second) = (first.unwrap(), second.unwrap());
    let bastion = soon(sessions.get(&user.route(&servers[0]))).await.unwrap();
    assert_eq!(user.trouble.opened(), 1);

    first.stop().await;
    assert_eq!(soon(second.ended()).await, SessionEnd::Stopped, "it is the same session");
    assert_eq!(bastion.end(), None, "what is below goes on");
    let third = soon(sessions.get(&route)).await.unwrap();
    assert_eq!((third.end(), user.trouble.opened()), (None, 1));
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends() {
    let user = User::new();
    let (servers, route) = chain(&user, 2).await;
    let sessions = Sessions::new(user.connector());
    let session = soon(sessions.get(&route)).await.unwrap();
    let spec = local_spec(endpoint(servers[0].address()));
    let forward = LocalForward::start(&session, spec).await.unwrap();
    let address = forward.address();
    drop(session);
    assert!(!is_refused(address).await, "the forward uses it");
    drop(forward);
    until("the forward's end", async || is_refused(address).await).await;
    drop(soon(sessions.get(&route)).await.unwrap());
    assert_eq!(user.trouble.opened(), 2, "a new one was needed");
}
