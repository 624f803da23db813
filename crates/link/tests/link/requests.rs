//! Requests through a link.

use crate::support::{PATIENCE, Server, Worker, ask, hello, soon, text};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::routing::{any, get};
use http_body_util::{BodyExt, Full};
use link::RequestError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

#[tokio::test]
async fn a_request_arrives_as_it_was_sent_and_its_answer_comes_back() {
    let server = Server::start().await;
    let echo = Router::new().fallback(any(|request: Request| async move {
        let head = format!("{} {} {:?}", request.method(), request.uri(), request.headers().get("x-word"));
        (http::StatusCode::IM_A_TEAPOT, [("x-seen", head)], request.into_body())
    }));
    let _worker = Worker::of(&server).serve(echo).await;
    let link = server.opened(1).await;
    let request = http::Request::put("http://ignored:1/a/b?c=d")
        .header("x-word", "value")
        .header("host", "ignored")
        .header("connection", "close, keep-alive")
        .header("keep-alive", "timeout=5")
        .header("te", "gzip")
        .header("transfer-encoding", "chunked")
        .body(Full::new(Bytes::from_static(b"the body")))
        .unwrap();
    let response = link.request(request, PATIENCE).await.unwrap();
    assert_eq!(response.status(), http::StatusCode::IM_A_TEAPOT);
    assert_eq!(response.headers()["x-seen"], "PUT http://worker/a/b?c=d Some(\"value\")");
    assert_eq!(text(response).await, "the body");
}

#[tokio::test]
async fn megabytes_go_both_ways_unchanged() {
    let server = Server::start().await;
    let echo = Router::new().route("/echo", any(|request: Request| async move { request.into_body() }));
    let _worker = Worker::of(&server).serve(echo).await;
    let link = server.opened(1).await;
    let sent: Bytes = (0..8_000_000_u32).flat_map(|n| (n ^ (n >> 7)).to_le_bytes()).collect::<Vec<u8>>().into();
    let request = http::Request::post("/echo").body(Full::new(sent.clone())).unwrap();
    let response = link.request(request, PATIENCE).await.unwrap();
    let received = soon(response.into_body().collect()).await.unwrap().to_bytes();
    assert!(received == sent);
}

#[tokio::test]
async fn more_requests_than_run_at_a_time_wait_and_are_answered() {
    let server = Server::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let waiting = Arc::clone(&gate);
    let router = Router::new().route(
        "/wait",
        get(move || {
            let waiting = Arc::clone(&waiting);
            async move {
                waiting.acquire().await.unwrap().forget();
                "done"
            }
        }),
    );
    let _worker = Worker::of(&server).serve(router).await;
    let link = server.opened(1).await;
    let mut requests = JoinSet::new();
    for _ in 0..3000 {
        let link = link.clone();
        requests.spawn(async move { text(ask(&link, "/wait").await.unwrap()).await });
    }
    gate.add_permits(3000);
    let answers = soon(requests.join_all()).await;
    assert_eq!(answers.len(), 3000);
    assert!(answers.iter().all(|answer| answer == "done"));
}

/// Tells when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// `/never` does not answer, `/trickle` does not end; both tell when they are given up.
fn endless(given_up: &Arc<Notify>) -> Router {
    let never = Arc::clone(given_up);
    let trickle = Arc::clone(given_up);
    Router::new()
        .route(
            "/never",
            get(move || async move {
                let _dropped = Dropped(never);
                std::future::pending::<()>().await;
            }),
        )
        .route(
            "/trickle",
            get(move || async move {
                let dropped = Dropped(trickle);
                let first = futures_util::stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"first")) });
                let rest = futures_util::stream::once(async move {
                    let _dropped = dropped;
                    std::future::pending().await
                });
                Body::from_stream(futures_util::StreamExt::chain(first, rest)).into_response()
            }),
        )
        .merge(hello())
}

#[tokio::test]
async fn a_request_that_is_given_up_stops_at_the_worker() {
    let server = Server::start().await;
    let given_up = Arc::new(Notify::new());
    let _worker = Worker::of(&server).serve(endless(&given_up)).await;
    let link = server.opened(1).await;
    let never = http::Request::get("/never").body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let error = link.request(never, Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error, RequestError::Deadline(Duration::from_millis(50)));
    soon(given_up.notified()).await;
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
}

#[tokio::test]
async fn an_answer_that_is_dropped_half_way_stops_at_the_worker() {
    let server = Server::start().await;
    let given_up = Arc::new(Notify::new());
    let _worker = Worker::of(&server).serve(endless(&given_up)).await;
    let link = server.opened(1).await;
    let mut body = ask(&link, "/trickle").await.unwrap().into_body();
    assert_eq!(soon(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "first");
    drop(body);
    soon(given_up.notified()).await;
}

#[tokio::test]
async fn thousands_of_cancelled_requests_do_not_end_the_link() {
    let server = Server::start().await;
    let given_up = Arc::new(Notify::new());
    let _worker = Worker::of(&server).serve(endless(&given_up)).await;
    let link = server.opened(1).await;
    for _ in 0..5 {
        let mut bodies = JoinSet::new();
        for _ in 0..600 {
            let link = link.clone();
            bodies.spawn(async move { ask(&link, "/trickle").await.unwrap() });
        }
        // all dropped at once
        drop(soon(bodies.join_all()).await);
    }
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
    assert_eq!(link.close_reason(), None);
}

#[tokio::test]
async fn a_big_answer_that_nobody_reads_does_not_hold_up_a_small_one() {
    let server = Server::start().await;
    let big = Router::new().route("/big", get(|| async { vec![7_u8; 64 * 1024 * 1024] })).merge(hello());
    let _worker = Worker::of(&server).serve(big).await;
    let link = server.opened(1).await;
    let unread = ask(&link, "/big").await.unwrap();
    for _ in 0..20 {
        assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
    }
    drop(unread);
}

/// Four unread answers fill the window of the whole link; what is dropped gives its part back.
#[tokio::test]
async fn answers_that_are_dropped_unread_leave_room_for_others() {
    let server = Server::start().await;
    let big = Router::new().route("/big", get(|| async { vec![7_u8; 8 * 1024 * 1024] }));
    let _worker = Worker::of(&server).serve(big).await;
    let link = server.opened(1).await;
    for _ in 0..12 {
        let mut body = ask(&link, "/big").await.unwrap().into_body();
        soon(body.frame()).await.unwrap().unwrap();
        drop(body);
    }
    let whole = ask(&link, "/big").await.unwrap();
    assert_eq!(soon(whole.into_body().collect()).await.unwrap().to_bytes().len(), 8 * 1024 * 1024);
}

#[tokio::test]
async fn a_request_body_that_fails_does_not_pass_for_a_whole_one() {
    let server = Server::start().await;
    let (seen, mut saw) = tokio::sync::mpsc::channel(1);
    let router = Router::new().route(
        "/collect",
        any(move |request: Request| async move {
            let whole = request.into_body().collect().await.is_ok();
            seen.send(whole).await.unwrap();
        }),
    );
    let _worker = Worker::of(&server).serve(router).await;
    let link = server.opened(1).await;
    let parts = futures_util::stream::iter([Ok(Bytes::from_static(b"half")), Err(std::io::Error::other("lost"))]);
    let request = http::Request::post("/collect").body(Body::from_stream(parts)).unwrap();
    let error = link.request(request, PATIENCE).await.unwrap_err();
    assert!(matches!(error, RequestError::BrokenOff(_)), "{error}");
    assert_ne!(soon(saw.recv()).await, Some(true));
}

#[tokio::test]
async fn the_link_is_measured() {
    let server = Server::start().await;
    let worker = Worker::of(&server);
    let _serving = worker.serve(hello()).await;
    let link = server.opened(1).await;
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
    // the first ping goes out at once, and its answer came before that of the request or comes soon after
    while link.stats().round_trip.is_none() {
        tokio::task::yield_now().await;
    }
    let stats = link.stats();
    let on_the_wire = (worker.plan.received.lock().unwrap().len(), worker.plan.sent.lock().unwrap().len());
    // the worker's side heard the HTTP of the upgrade as well
    assert!(stats.sent_bytes > 500 && stats.sent_bytes < on_the_wire.0 as u64, "{stats:?} {on_the_wire:?}");
    assert!(stats.received_bytes > 500 && stats.received_bytes < on_the_wire.1 as u64, "{stats:?} {on_the_wire:?}");
}
