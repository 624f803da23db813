//! New traffic keys while the link is in use.

use crate::support::{Server, Worker, ask, hello, soon, text};
use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use link::Tuning;
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_notices_that_the_keys_change() {
    let restless = Tuning { key_rotation: Duration::from_millis(2), ..Tuning::default() };
    let server = Server::start_tuned(restless.clone()).await;
    let mut worker = Worker::of(&server);
    worker.tuning = restless;
    let echo = Router::new().route("/echo", any(|request: Request| async move { request.into_body() })).merge(hello());
    let _serving = worker.serve(echo).await;
    let link = server.opened(1).await;
    let mut load = JoinSet::new();
    for client in 0..8_u8 {
        let link = link.clone();
        load.spawn(async move {
            for _ in 0..30 {
                assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
                let sent = Bytes::from(vec![client; 300_000]);
                let request = http::Request::post("/echo").body(Full::new(sent.clone())).unwrap();
                let answer = link.request(request, crate::support::PATIENCE).await.unwrap();
                assert!(answer.into_body().collect().await.unwrap().to_bytes() == sent);
            }
        });
    }
    soon(load.join_all()).await;
    assert!(link.stats().key_refreshes >= 5, "{:?}", link.stats());
    assert_eq!(link.close_reason(), None);
}
