//! How long signs of life take, read off the two streams in which they and their answers pass.

use crate::latency::Latencies;
use crate::worker::Shared;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use futures_util::StreamExt;
use prost::Message;
use report::Frames;
use report::message::{Answer, ServerMessage, Told, WorkerMessage};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// All times so far.
#[derive(Debug, Default)]
pub struct BeatTimes(Mutex<Latencies>);

impl BeatTimes {
    /// Takes what has come so far.
    pub fn take(&self) -> Latencies {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// The routes, with the times of what passes.
pub fn timed(routes: Router, shared: Arc<Shared>) -> Router {
    routes.layer(from_fn(move |request: Request, next: Next| {
        let shared = Arc::clone(&shared);
        async move {
            let last = Arc::new(Mutex::new(None));
            let request = request.map(|body| listen_to_answers(body, Arc::clone(&last), shared));
            next.run(request).await.map(|body| listen_to_beats(body, last))
        }
    }))
}

/// The number of the last beat, and when it went.
type LastBeat = Arc<Mutex<Option<(u32, Instant)>>>;

fn listen_to_beats(body: Body, last: LastBeat) -> Body {
    let mut frames = Frames::default();
    Body::from_stream(body.into_data_stream().inspect(move |piece| {
        each::<WorkerMessage>(&mut frames, piece.as_deref().unwrap_or_default(), |message| {
            if let Some(Told::Heartbeat(beat)) = message.told {
                *lock(&last) = Some((beat.number, Instant::now()));
            }
        });
    }))
}

fn listen_to_answers(body: Body, last: LastBeat, shared: Arc<Shared>) -> Body {
    let mut frames = Frames::default();
    Body::from_stream(body.into_data_stream().inspect(move |piece| {
        each::<ServerMessage>(&mut frames, piece.as_deref().unwrap_or_default(), |message| {
            let Some(Answer::Heard(heard)) = message.answer else { return };
            if let Some((_, sent)) = lock(&last).filter(|(number, _)| *number == heard.number) {
                lock(&shared.beats.0).push(sent.elapsed());
            }
        });
    }))
}

fn each<M: Message + Default>(frames: &mut Frames, piece: &[u8], mut take: impl FnMut(M)) {
    frames.push(piece);
    while let Ok(Some(message)) = frames.take() {
        take(message);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
