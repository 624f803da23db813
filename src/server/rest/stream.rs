//! Answers that do not end: changes of workers in GPUStack 0.7's format, and events for browsers.
//!
//! Each stream is fed by a task of its own through a short queue. A reader that does not keep up loses updates in the
//! announcer's ring, never memory, and is told so: a browser by `resync`, a program by the end of its stream, after
//! which it connects again and begins with all rows.

use super::onlookers::{Onlooker, Onlookers};
use super::workers::ListQuery;
use crate::server::ServerState;
use crate::server::announcer::{Announcement, Announcer, Watched};
use crate::server::assets::accepts;
use crate::server::auth::AdminUser;
use crate::server::error::ApiError;
use crate::server::registry::{Registry, Worker, view};
use crate::server::sse::{Event, EventStream};
use crate::server::watching::Watching;
use api::{FleetHello, WatchEvent, WatchEventType, WatchedUpdate, WorkerId, WorkerView};
use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

/// GPUStack 0.7 workers give a silent stream up after 45 s.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Messages between a stream's task and its connection.
const QUEUE: usize = 2;
/// A reader that takes nothing for so long is gone.
const STALLED: Duration = Duration::from_mins(1);
/// How often it is checked that a stream's session still holds.
const SESSION_CHECK: Duration = Duration::from_secs(20);
/// nginx holds answers back unless told not to.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Makes streams that end when the server does. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Streams {
    stop: CancellationToken,
    onlookers: Onlookers,
}

impl Streams {
    /// Streams end when `stop` is cancelled. What their browsers look at is told to `watching`.
    pub fn new(stop: CancellationToken, watching: Watching) -> Self {
        Self { stop, onlookers: Onlookers::new(watching) }
    }

    /// The browsers whose streams are open.
    pub fn onlookers(&self) -> &Onlookers {
        &self.onlookers
    }

    /// `watch=true` of a list that is always empty.
    pub fn watch_nothing(&self) -> Response {
        let (sender, answer) = watch_answer();
        let stop = self.stop.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            let mut keep_alive = keep_alive();
            loop {
                keep_alive.tick().await;
                if send(&sender, Bytes::from_static(b"\n\n")).await.is_err() {
                    return;
                }
            }
        }));
        answer
    }

    /// `watch=true` of workers.
    pub fn watch_workers(&self, registry: Registry, announcer: &Announcer, query: ListQuery) -> Response {
        let (sender, answer) = watch_answer();
        // before the rows are read: what happens in between is told twice rather than never
        let updates = announcer.subscribe();
        let watch = Watch { registry, query, sender, told: HashSet::new() };
        tokio::spawn(self.stop.clone().run_until_cancelled_owned(watch.run(updates)));
        answer
    }

    /// Server-sent events for a browser.
    pub fn events(&self, state: ServerState, parts: Parts) -> Result<Response, ApiError> {
        let onlooker = self.onlookers.come().map_err(ApiError::internal)?;
        let accepted = parts.headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        let takes_gzip = accepted.is_some_and(|accepted| accepts(accepted, "gzip"));
        let (sender, mut answer) = answer("text/event-stream");
        let headers = answer.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if takes_gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let updates = state.announcer.subscribe();
        let sequence = state.announcer.sequence();
        let stop = self.stop.clone();
        tokio::spawn(async move {
            let mut feeder = Feeder { stream: EventStream::new(takes_gzip), sender: sender.clone(), onlooker };
            tokio::select! {
                () = stop.cancelled() => {}
                () = session_ended(&state, parts) => {}
                () = sender.closed() => return,
                _ = feeder.feed(updates, sequence) => return,
            }
            // an error says that the reader is gone, too
            let _ = feeder.end().await;
        });
        Ok(answer)
    }
}

/// The reader is gone.
struct Gone;

async fn send<T>(sender: &mpsc::Sender<T>, message: T) -> Result<(), Gone> {
    match timeout(STALLED, sender.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}

fn keep_alive() -> tokio::time::Interval {
    let mut keep_alive = interval(KEEP_ALIVE);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    keep_alive.reset();
    keep_alive
}

/// Not server-sent events, but what GPUStack 0.7 calls it.
fn watch_answer() -> (mpsc::Sender<Bytes>, Response) {
    answer("text/event-stream; charset=utf-8")
}

fn answer(content_type: &'static str) -> (mpsc::Sender<Bytes>, Response) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let body = Body::from_stream(ReceiverStream::new(receiver).map(Ok::<_, Infallible>));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (X_ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    (sender, (headers, body).into_response())
}

struct Watch {
    registry: Registry,
    query: ListQuery,
    sender: mpsc::Sender<Bytes>,
    told: HashSet<WorkerId>,
}

impl Watch {
    async fn run(mut self, updates: broadcast::Receiver<Arc<Announcement>>) {
        // whatever ends it, the reader sees the end of its stream and connects again
        let _: Result<(), Gone> = self.feed(updates).await;
    }

    async fn feed(&mut self, mut updates: broadcast::Receiver<Arc<Announcement>>) -> Result<(), Gone> {
        let all = self.registry.all();
        for worker in &all {
            self.tell(worker).await?;
        }
        drop(all);
        let mut keep_alive = keep_alive();
        loop {
            tokio::select! {
                _ = keep_alive.tick() => send(&self.sender, Bytes::from_static(b"\n\n")).await?,
                update = updates.recv() => {
                    let update = update.map_err(|_| Gone)?;
                    for worker in &update.removed {
                        self.tell_removed(worker).await?;
                    }
                    for worker in &update.touched {
                        self.tell(worker).await?;
                        keep_alive.reset();
                    }
                }
            }
        }
    }

    async fn tell(&mut self, worker: &Worker) -> Result<(), Gone> {
        if !self.query.matches(worker) {
            // renamed or not among those that were asked for
            return if self.told.contains(&worker.id()) { self.tell_removed(worker).await } else { Ok(()) };
        }
        let kind = if self.told.insert(worker.id()) { WatchEventType::Created } else { WatchEventType::Updated };
        self.write(kind, worker).await
    }

    async fn tell_removed(&mut self, worker: &Worker) -> Result<(), Gone> {
        if self.told.remove(&worker.id()) { self.write(WatchEventType::Deleted, worker).await } else { Ok(()) }
    }

    async fn write(&self, kind: WatchEventType, worker: &Worker) -> Result<(), Gone> {
        let data = view::worker(&worker.facts(), &self.registry.moment(), self.registry.policy());
        let mut line = serde_json::to_vec(&WatchEvent { kind, data }).map_err(|_| Gone)?;
        line.extend_from_slice(b"\n\n");
        send(&self.sender, line.into()).await
    }
}

/// Writes one browser's stream.
struct Feeder {
    stream: EventStream,
    sender: mpsc::Sender<Bytes>,
    onlooker: Onlooker,
}

impl Feeder {
    async fn feed(
        &mut self,
        mut updates: broadcast::Receiver<Arc<Announcement>>,
        sequence: u64,
    ) -> Result<Infallible, Gone> {
        if let Some(head) = self.stream.begin() {
            send(&self.sender, head).await?;
        }
        // updates with a higher number than this follow
        let hello = FleetHello { sequence, stream: self.onlooker.stream().to_owned() };
        let hello = serde_json::to_string(&hello).map_err(|_| Gone)?;
        self.tell(&Event::new("hello", &hello)).await?;
        loop {
            match updates.recv().await {
                Ok(update) => {
                    if let Some(event) = &update.event {
                        self.tell(event).await?;
                    }
                    self.tell_watched(&update).await?;
                }
                Err(broadcast::error::RecvError::Lagged(_)) => self.tell(&Event::new("resync", "{}")).await?,
                Err(broadcast::error::RecvError::Closed) => return Err(Gone),
            }
        }
    }

    async fn tell(&mut self, event: &Event) -> Result<(), Gone> {
        send(&self.sender, self.stream.write(event)).await
    }

    /// What concerns the workers at which this browser looks, and no other browser as it is.
    async fn tell_watched(&mut self, announcement: &Announcement) -> Result<(), Gone> {
        let mut update = WatchedUpdate { server_time_ms: announcement.server_time_ms, ..WatchedUpdate::default() };
        let own = announcement.watched.iter().filter(|watched| self.onlooker.looks_at(watched.worker()));
        for watched in own {
            match watched {
                Watched::Changed(view) => update.changed.push(WorkerView::clone(view)),
                Watched::Readings(readings) => update.readings.push(readings.clone()),
                Watched::Heartbeat(worker, at_ms) => update.heartbeats.push((*worker, *at_ms)),
            }
        }
        if update.changed.is_empty() && update.readings.is_empty() && update.heartbeats.is_empty() {
            return Ok(());
        }
        let json = serde_json::to_string(&update).map_err(|_| Gone)?;
        self.tell(&Event::new("watched", &json)).await
    }

    async fn end(self) -> Result<(), Gone> {
        match self.stream.end() {
            Some(tail) => send(&self.sender, tail).await,
            None => Ok(()),
        }
    }
}

/// Returns when the request that opened a stream would not be let in any more.
async fn session_ended(state: &ServerState, mut parts: Parts) {
    loop {
        sleep(SESSION_CHECK).await;
        match AdminUser::from_request_parts(&mut parts, state).await {
            Err(error) if error.status().is_client_error() => return,
            // a database that is busy logs nobody out
            Ok(_) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(data: &str) -> Arc<Announcement> {
        Arc::new(Announcement { event: Some(Event::new("update", data)), ..Announcement::default() })
    }

    fn feeder(sender: mpsc::Sender<Bytes>) -> Feeder {
        let onlooker = Onlookers::new(Watching::new()).come().unwrap();
        Feeder { stream: EventStream::new(false), sender, onlooker }
    }

    #[tokio::test]
    async fn a_reader_that_lost_updates_is_told_and_goes_on_with_the_next() {
        let (updates, reader) = broadcast::channel(2);
        for number in ["1", "2", "3"] {
            updates.send(announcement(number)).unwrap();
        }
        let (sender, mut messages) = mpsc::channel(QUEUE);
        let mut feeder = feeder(sender);
        let hello = format!("event: hello\ndata: {{\"sequence\":7,\"stream\":\"{}\"}}\n\n", feeder.onlooker.stream());
        let feeding = tokio::spawn(async move { feeder.feed(reader, 7).await });
        let mut told = Vec::new();
        for _ in 0..4 {
            told.push(messages.recv().await.unwrap());
        }
        let expected =
            [hello.as_str(), "event: resync\ndata: {}\n\n", "event: update\ndata: 2\n\n", "event: update\ndata: 3\n\n"];
        assert_eq!(told, expected);
        feeding.abort();
    }

    #[tokio::test]
    async fn a_reader_is_told_of_the_workers_at_which_it_looks_and_of_no_other() {
        let onlookers = Onlookers::new(Watching::new());
        let onlooker = onlookers.come().unwrap();
        onlookers.look(onlooker.stream(), &[WorkerId(2)]);
        let (updates, reader) = broadcast::channel(2);
        let watched = [1, 2, 3].map(|id| Watched::Heartbeat(WorkerId(id), 7));
        updates
            .send(Arc::new(Announcement { watched: watched.into(), server_time_ms: 8, ..Announcement::default() }))
            .unwrap();
        let (sender, mut messages) = mpsc::channel(QUEUE);
        let mut feeder = Feeder { stream: EventStream::new(false), sender, onlooker };
        let feeding = tokio::spawn(async move { feeder.feed(reader, 0).await });
        messages.recv().await.unwrap();
        let expected = "event: watched\ndata: {\"server_time_ms\":8,\"heartbeats\":[[2,7]]}\n\n";
        assert_eq!(messages.recv().await.unwrap(), expected);
        feeding.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_dropped() {
        let (updates, reader) = broadcast::channel(QUEUE * 4);
        for _ in 0..QUEUE * 2 {
            updates.send(announcement("{}")).unwrap();
        }
        let (sender, _messages) = mpsc::channel(QUEUE);
        assert!(feeder(sender).feed(reader, 0).await.is_err());
        assert_eq!(updates.receiver_count(), 0);
    }

    #[tokio::test]
    async fn a_reader_that_went_away_is_dropped() {
        let (updates, reader) = broadcast::channel(QUEUE);
        let (sender, messages) = mpsc::channel(QUEUE);
        drop(messages);
        assert!(feeder(sender).feed(reader, 0).await.is_err());
        assert_eq!(updates.receiver_count(), 0);
    }
}
