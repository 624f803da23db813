//! Links that are replaced, ended, and dialled again.

use crate::support::{PATIENCE, Server, Worker, ask, hello, soon, text};
use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use link::{CloseReason, DialError, Drain, Drained, LinkEnd, LinkUser, Next, RequestError, Tuning, Welcome};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// `/wait` says that it began, and answers when it may.
struct Slow {
    began: Arc<Notify>,
    may_end: Arc<Notify>,
}

impl Slow {
    fn new() -> (Self, Router) {
        let slow = Self { began: Arc::new(Notify::new()), may_end: Arc::new(Notify::new()) };
        let (began, may_end) = (Arc::clone(&slow.began), Arc::clone(&slow.may_end));
        let wait = get(move || async move {
            began.notify_one();
            may_end.notified().await;
            "done"
        });
        (slow, hello().route("/wait", wait))
    }
}

#[tokio::test]
async fn a_newer_link_takes_over_and_who_waits_for_the_older_is_told() {
    let server = Server::start().await;
    let worker = Worker::of(&server);
    let (slow, router) = Slow::new();
    let old_serving = worker.serve(router).await;
    let old = server.opened(1).await;
    let waiting = {
        let old = old.clone();
        tokio::spawn(async move { ask(&old, "/wait").await.map(|_| ()) })
    };
    soon(slow.began.notified()).await;

    let _new_serving = worker.serve(hello()).await;
    let new = server.opened(2).await;
    assert_eq!(soon(waiting).await.unwrap(), Err(RequestError::Closed(CloseReason::Replaced)));
    assert_eq!(old_serving.end().await, LinkEnd::Replaced);
    assert_eq!(server.closed(1).await, [CloseReason::Replaced]);
    // the end of the older one leaves the newer one in its place
    let standing = server.registry().get("worker").unwrap();
    assert!(standing.is_same_link(&new) && !standing.is_same_link(&old));
    assert_eq!(text(ask(&standing, "/hello").await.unwrap()).await, "hello");
    assert_eq!(ask(&old, "/hello").await.unwrap_err(), RequestError::Closed(CloseReason::Replaced));
}

#[tokio::test]
async fn a_question_is_answered_and_no_link_comes_of_it_nor_goes() {
    let server = Server::start().await;
    let worker = Worker::of(&server);
    let _serving = worker.serve(hello()).await;
    let standing = server.opened(1).await;
    // the same worker asks beside its link
    let answer = soon(worker.dialer().ask(Bytes::from_static(b"?clocks"))).await.unwrap();
    assert_eq!(answer.answer, Bytes::from_static(b"about clocks"));
    assert_eq!((server.opened_count(), standing.close_reason()), (1, None));
    assert_eq!(text(ask(&standing, "/hello").await.unwrap()).await, "hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_exactly_one_stands_in_the_end() {
    let server = Server::start().await;
    let worker = Arc::new(Worker::of(&server));
    let mut dials = JoinSet::new();
    for _ in 0..20 {
        let worker = Arc::clone(&worker);
        dials.spawn(async move { worker.serve(hello()).await });
    }
    let servings = soon(dials.join_all()).await;
    assert_eq!(server.closed(19).await, vec![CloseReason::Replaced; 19]);
    assert_eq!(server.registry().len(), 1);
    let standing = server.registry().get("worker").unwrap();
    assert_eq!(text(ask(&standing, "/hello").await.unwrap()).await, "hello");
    drop(servings);
}

#[tokio::test]
async fn a_stopping_server_lets_requests_end_and_sends_workers_away_for_a_while() {
    let server = Server::start().await;
    let worker = Worker::of(&server);
    let (slow, router) = Slow::new();
    let serving = worker.serve(router).await;
    let link = server.opened(1).await;
    let waiting = {
        let link = link.clone();
        tokio::spawn(async move { text(ask(&link, "/wait").await.unwrap()).await })
    };
    soon(slow.began.notified()).await;
    let draining = {
        let registry = server.registry().clone();
        tokio::spawn(async move { registry.drain(Drain { deadline: PATIENCE, ..Drain::default() }).await })
    };
    // nothing new begins, on this link or another
    soon(async {
        while ask(&link, "/hello").await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(ask(&link, "/hello").await.unwrap_err(), RequestError::Closed(CloseReason::Stopping));
    let error = worker.dial().await.unwrap_err();
    assert!(error.retry_after().is_some(), "{error}");

    slow.may_end.notify_one();
    assert_eq!(soon(waiting).await.unwrap(), "done");
    assert_eq!(soon(draining).await.unwrap(), Drained { orderly: 1, cut_off: 0 });
    let LinkEnd::ServerStopping(retry_after) = serving.end().await else { panic!("another end") };
    assert!(retry_after <= Duration::from_secs(1));
    assert_eq!(server.closed(1).await, [CloseReason::Stopping]);
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut_off_when_the_server_stops() {
    let server = Server::start().await;
    let (slow, router) = Slow::new();
    let _serving = Worker::of(&server).serve(router).await;
    let link = server.opened(1).await;
    let waiting = tokio::spawn(async move { ask(&link, "/wait").await.map(|_| ()) });
    soon(slow.began.notified()).await;
    let deadline = Duration::from_millis(100);
    let drained = soon(server.registry().drain(Drain { deadline, ..Drain::default() })).await;
    assert_eq!(drained, Drained { orderly: 0, cut_off: 1 });
    assert_eq!(soon(waiting).await.unwrap(), Err(RequestError::Closed(CloseReason::Stopping)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_are_sent_away_to_different_times() {
    let server = Server::start().await;
    let mut workers = JoinSet::new();
    for n in 0..40 {
        let mut worker = Worker::of(&server);
        worker.name = format!("worker-{n}").leak();
        workers.spawn(async move { worker.serve(hello()).await });
    }
    let servings = soon(workers.join_all()).await;
    server.opened(40).await;
    let drained = server.registry().drain(Drain { returns_per_second: 1, deadline: PATIENCE }).await;
    assert_eq!(drained, Drained { orderly: 40, cut_off: 0 });
    let mut halves = [0, 0];
    for serving in servings {
        let LinkEnd::ServerStopping(retry_after) = serving.end().await else { panic!("another end") };
        assert!(retry_after < Duration::from_secs(40));
        halves[usize::from(retry_after >= Duration::from_secs(20))] += 1;
    }
    // the chance that all 40 come in one half is 2^-39
    assert!(halves.iter().all(|half| *half > 0), "{halves:?}");
}

#[tokio::test]
async fn a_worker_that_stops_lets_requests_end() {
    let server = Server::start().await;
    let (slow, router) = Slow::new();
    let serving = Worker::of(&server).serve(router).await;
    let link = server.opened(1).await;
    let waiting = tokio::spawn(async move { text(ask(&link, "/wait").await.unwrap()).await });
    soon(slow.began.notified()).await;
    serving.shutdown.cancel();
    slow.may_end.notify_one();
    assert_eq!(soon(waiting).await.unwrap(), "done");
    assert_eq!(serving.end().await, LinkEnd::Shutdown);
    assert_eq!(server.closed(1).await, [CloseReason::ClosedByWorker]);
}

/// Counts what happens to a worker that keeps its link.
#[derive(Default)]
struct Journal {
    joined: watch::Sender<usize>,
    failures: watch::Sender<Vec<Duration>>,
    ends: watch::Sender<Vec<LinkEnd>>,
}

impl LinkUser for Journal {
    fn join_request(&self) -> Bytes {
        Bytes::from_static(b"worker")
    }

    fn joined(&self, _welcome: &Welcome) {
        self.joined.send_modify(|joined| *joined += 1);
    }

    fn ended(&self, end: &LinkEnd, _retry_in: Duration) -> Next {
        self.ends.send_modify(|ends| ends.push(end.clone()));
        Next::Retry
    }

    fn failed(&self, _error: &DialError, retry_in: Duration) -> Next {
        self.failures.send_modify(|failures| failures.push(retry_in));
        if self.failures.borrow().len() < 3 { Next::Retry } else { Next::GiveUp }
    }
}

#[tokio::test]
async fn a_worker_dials_again_when_its_link_ends_until_it_is_stopped() {
    let server = Server::start_tuned(quick()).await;
    let mut worker = Worker::of(&server);
    worker.tuning = quick();
    let journal = Arc::new(Journal::default());
    let shutdown = CancellationToken::new();
    let running = {
        let (dialer, journal, shutdown) = (worker.dialer(), Arc::clone(&journal), shutdown.clone());
        tokio::spawn(async move { dialer.run(&*journal, hello(), shutdown).await })
    };
    soon(journal.joined.subscribe().wait_for(|joined| *joined == 1)).await.unwrap();
    worker.plan.black_hole.store(true, Ordering::SeqCst);
    soon(journal.ends.subscribe().wait_for(|ends| ends.as_slice() == [LinkEnd::Silent])).await.unwrap();
    worker.plan.black_hole.store(false, Ordering::SeqCst);
    soon(journal.joined.subscribe().wait_for(|joined| *joined == 2)).await.unwrap();
    let link = server.opened(2).await;
    assert_eq!(text(ask(&link, "/hello").await.unwrap()).await, "hello");
    shutdown.cancel();
    soon(running).await.unwrap();
}

fn quick() -> Tuning {
    Tuning {
        handshake_deadline: Duration::from_millis(500),
        ping_interval: Duration::from_millis(100),
        ping_timeout: Duration::from_millis(200),
        ..Tuning::default()
    }
}

#[tokio::test]
async fn a_worker_gives_up_when_it_is_told_to() {
    let server = Server::start().await;
    let mut worker = Worker::of(&server);
    worker.token = Some("wrong");
    let journal = Journal::default();
    soon(worker.dialer().run(&journal, hello(), CancellationToken::new())).await;
    assert_eq!(journal.failures.borrow().len(), 3);
    assert!(journal.failures.borrow().iter().all(|wait| *wait < Duration::from_secs(2)));
}
