//! What somebody in between, or with a stolen disk, can do. Each test holds a claim of docs/link-protocol.md.

use crate::support::{Gate, PATIENCE, Server, TOKEN, Worker, ask, soon, text};
use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use link::{DialError, JoinError, Refusal, Tuning};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const QUESTION: &str = "an-unmistakable-question";
const ANSWER: &str = "an-unmistakable-answer";

fn answering() -> Router {
    Router::new().fallback(any(|request: Request| async move {
        request.into_body().collect().await.map_or("the question was lost", |_| ANSWER)
    }))
}

fn question() -> http::Request<Full<Bytes>> {
    http::Request::post(format!("/{QUESTION}")).body(Full::new(Bytes::from_static(QUESTION.as_bytes()))).unwrap()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[tokio::test]
async fn a_passive_listener_hears_neither_the_token_nor_anything_said() {
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.name = "an-unmistakable-name";
    let serving = worker.serve(answering()).await;
    let link = server.opened(1).await;
    assert_eq!(text(link.request(question(), PATIENCE).await.unwrap()).await, ANSWER);
    serving.shutdown.cancel();
    serving.end().await;

    let heard = worker.plan.heard();
    assert!(contains(&heard, b"gpustack-link/1"), "the ear works");
    let worker_key = worker.keys.public();
    let server_key = server.keys.public();
    let secrets: [(&str, &[u8]); 7] = [
        ("token", TOKEN.as_bytes()),
        ("join request", b"an-unmistakable-name"),
        ("answer to it", b"welcome"),
        ("request", QUESTION.as_bytes()),
        ("answer", ANSWER.as_bytes()),
        ("worker's key", worker_key.as_bytes()),
        ("server's key", server_key.as_bytes()),
    ];
    for (name, secret) in secrets {
        assert!(!contains(&heard, secret), "the {name} was heard");
    }
}

/// With the token one can play the server to a worker that never joined, and to no other.
#[tokio::test]
async fn a_man_in_the_middle_with_the_token_is_not_taken_for_a_server_that_is_known() {
    let server = Server::start().await;
    let imposter = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.server_key = Some(worker.dial().await.unwrap().welcome().server_key);
    worker.url = imposter.url();
    let error = worker.dial().await.unwrap_err();
    assert!(matches!(error, DialError::Join(JoinError::ServerKeyChanged { .. })), "{error}");
    assert!(imposter.gate.join_requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_disk_of_a_worker_opens_no_door_once_that_worker_is_removed_and_never_another_workers() {
    let server = Server::start().await;
    let owner = Worker::of(&server);
    owner.dial().await.unwrap();
    let mut other = Worker::of(&server);
    other.name = "other";
    other.server_key = Some(other.dial().await.unwrap().welcome().server_key);

    let mut thief = Worker::of(&server);
    thief.keys = owner.keys.clone();
    thief.server_key = Some(server.keys.public());
    thief.token = None;
    thief.name = "other";
    let _link = thief.dial().await.unwrap();
    // whatever it calls itself, it is whose key it has
    assert_eq!(server.opened(3).await.id(), "worker");

    server.gate.known.lock().unwrap().remove(&owner.keys.public());
    server.gate.revoked.lock().unwrap().insert(owner.keys.public());
    let error = thief.dial().await.unwrap_err();
    assert!(matches!(error, DialError::Join(JoinError::Refused { refusal: Refusal::Revoked, proven: true })));

    // nor does that key make a server of the thief
    let imposter = Server::start_with(Gate::with_token(), owner.keys.clone(), Tuning::default()).await;
    other.url = imposter.url();
    let error = other.dial().await.unwrap_err();
    assert!(matches!(error, DialError::Join(JoinError::ServerKeyChanged { .. })), "{error}");
}

#[tokio::test]
async fn the_disk_of_a_server_does_not_make_a_worker_of_the_thief() {
    let server = Server::start().await;
    let worker = Worker::of(&server);
    worker.dial().await.unwrap();
    // what lies there: the server's key pair, and the public keys of workers
    let mut thief = Worker::of(&server);
    thief.keys = server.keys.clone();
    thief.server_key = Some(server.keys.public());
    thief.token = None;
    let error = thief.dial().await.unwrap_err();
    assert!(matches!(error, DialError::Join(JoinError::Refused { refusal: Refusal::UnknownKey, .. })), "{error}");
}

#[tokio::test]
async fn a_join_that_was_recorded_cannot_be_replayed() {
    let server = Server::start().await;
    let worker = Worker::of(&server);
    let serving = worker.serve(answering()).await;
    server.opened(1).await;
    serving.shutdown.cancel();
    serving.end().await;
    server.closed(1).await;
    let joins = server.gate.join_requests.lock().unwrap().len();

    let recorded = worker.plan.sent.lock().unwrap().clone();
    let mut replay = TcpStream::connect(server.address).await.unwrap();
    replay.write_all(&recorded).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon(replay.read_to_end(&mut answer)).await;
    assert!(answer.starts_with(b"HTTP/1.1 101"), "the replay got as far as the handshake");
    assert_eq!(server.gate.join_requests.lock().unwrap().len(), joins);
    assert_eq!(server.opened_count(), 1);
}

/// One bit anywhere: there is no link, or the link ends, and nothing wrong is ever heard.
#[tokio::test]
async fn what_is_changed_on_the_way_is_noticed() {
    let server = Server::start().await;
    // through hellos, proofs, the join and the first frames, in both directions
    for at in (160..3200).step_by(160) {
        for direction in 0..2 {
            let mut worker = Worker::of(&server);
            let mut plan = crate::chaos::Plan::default();
            match direction {
                0 => plan.corrupt_sent_at = Some(at),
                _ => plan.corrupt_received_at = Some(at),
            }
            worker.plan = std::sync::Arc::new(plan);
            // the worker waits for the rest of a record whose length was changed, until its deadline
            worker.tuning.handshake_deadline = std::time::Duration::from_millis(300);
            let Ok(link) = worker.dial().await else { continue };
            let serving = crate::support::Serving::start(link, answering());
            let Some(link) = server.registry().get("worker") else { continue };
            if let Ok(response) = link.request(question(), std::time::Duration::from_millis(300)).await
                && let Ok(body) = response.into_body().collect().await
            {
                assert_eq!(body.to_bytes(), ANSWER);
            }
            serving.shutdown.cancel();
        }
    }
    let worker = Worker::of(&server);
    let before = server.opened_count();
    let _serving = worker.serve(answering()).await;
    let link = server.opened(before + 1).await;
    assert_eq!(text(ask(&link, "/").await.unwrap()).await, ANSWER);
}
