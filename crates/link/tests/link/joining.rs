//! Who comes in, and what those hear who do not.

use crate::support::{Gate, PATIENCE, Server, Worker, ask, hello, text};
use bytes::Bytes;
use link::{Carrier, DialError, JoinError, KeyPair, LinkEnd, Refusal, Tuning};
use std::time::Duration;

/// The refusal, and whether it certainly came from the server.
fn refused(dialled: Result<link::Link, DialError>) -> (Refusal, bool) {
    match dialled {
        Err(DialError::Join(JoinError::Refused { refusal, proven })) => (refusal, proven),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("let in"),
    }
}

#[tokio::test]
async fn a_worker_joins_with_the_token_and_needs_it_no_more() {
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    let first = worker.dial().await.unwrap();
    assert_eq!(first.welcome().server_key, server.keys.public());
    assert_eq!(first.welcome().answer, "welcome");
    assert_eq!(first.welcome().carrier, Carrier::Stream);
    worker.server_key = Some(first.welcome().server_key);
    worker.token = None;
    drop(first);
    let _second = worker.serve(hello()).await;
    let link = server.opened(2).await;
    assert_eq!((link.id(), link.worker_key()), ("worker", worker.keys.public()));
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_nothing_is_kept() {
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.token = Some("ffffffffffffffffffffffffffffffff");
    assert_eq!(refused(worker.dial().await), (Refusal::WrongToken, false));
    assert!(server.gate.join_requests.lock().unwrap().is_empty());
    assert!(server.registry().is_empty());
}

#[tokio::test]
async fn an_unknown_key_without_a_token_is_refused() {
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.token = None;
    worker.server_key = Some(server.keys.public());
    assert_eq!(refused(worker.dial().await), (Refusal::UnknownKey, true));
}

#[tokio::test]
async fn neither_token_nor_server_key_is_said_at_once() {
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.token = None;
    assert!(matches!(worker.dial().await, Err(DialError::Join(JoinError::NothingToJoinWith))));
}

#[tokio::test]
async fn a_removed_worker_hears_it_and_joins_as_new_with_the_token() {
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    let serving = worker.serve(hello()).await;
    let link = server.opened(1).await;
    server.gate.known.lock().unwrap().remove(&worker.keys.public());
    server.gate.revoked.lock().unwrap().insert(worker.keys.public());
    link.revoke();
    assert_eq!(serving.end().await, LinkEnd::Revoked);

    worker.server_key = Some(server.keys.public());
    worker.token = None;
    assert_eq!(refused(worker.dial().await), (Refusal::Revoked, true));
    worker.token = Some(crate::support::TOKEN);
    worker.dial().await.unwrap();
}

#[tokio::test]
async fn reasons_of_the_program_itself_arrive_with_their_parameters() {
    let server = Server::start().await;
    let reasons = [
        Refusal::Declined { detail: Bytes::from_static(b"name taken") },
        Refusal::Busy { retry_after: Duration::from_millis(2500) },
    ];
    for reason in reasons {
        *server.gate.declines.lock().unwrap() = Some(reason.clone());
        let dialled = Worker::of(&server).dial().await;
        let retry_after = dialled.as_ref().err().and_then(DialError::retry_after);
        assert_eq!(retry_after.is_some(), matches!(reason, Refusal::Busy { .. }));
        // the server has proved the token by then
        assert_eq!(refused(dialled), (reason, true));
    }
    assert!(server.registry().is_empty());
}

#[tokio::test]
async fn any_of_several_tokens_is_good() {
    let gate = Gate::with_token();
    gate.tokens.lock().unwrap().push(link::JoinToken::new("the new token"));
    let server = Server::start_with(gate, KeyPair::generate().unwrap(), Tuning::default()).await;
    let mut worker = Worker::of(&server);
    worker.dial().await.unwrap();
    worker.keys = KeyPair::generate().unwrap();
    worker.token = Some("the new token");
    worker.dial().await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_or_not_one_is_told_apart() {
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.url = format!("{}/elsewhere", server.url());
    let error = worker.dial().await.unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    worker.url = format!("http://{free}");
    let error = worker.dial().await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot connect to {free}")), "{error}");
    assert!(tokio::time::timeout(PATIENCE, server.acceptor.registry().drain(link::Drain::default())).await.is_ok());
}
