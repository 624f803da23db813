//! What a worker tells over its link: signs of life, everything once, then what moved. The server asks once for each
//! link, and the answer goes on for as long as the link stands.

use crate::server::error::ApiError;
use crate::server::membership::check;
use crate::server::registry::time::system_ms;
use crate::server::registry::{Registry, Worker};
use crate::server::watching::{Follower, Watching};
use api::{LinkReadings, STATUS_PATH};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use link::{LinkBody, LinkHandle, LinkSender, LinkStats, RequestError};
use report::message::{Answer, Heard, Heartbeat, Pace, ServerMessage, Told, WorkerMessage};
use report::{FactsError, FrameError, Frames, Misfit, frame};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::time::sleep;

/// For the head of the answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// After a stream that ended although its link stands.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Why a worker tells no more although its link stands.
#[derive(Debug, Error)]
enum StatusError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("the worker answers with {0}")]
    Status(StatusCode),
    #[error("the worker has ended its answer")]
    Ended,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Facts(#[from] FactsError),
    #[error(transparent)]
    Readings(#[from] Misfit),
    #[error("the report is refused: {}", .0.message())]
    Refused(ApiError),
    #[error("the report's devices are not in the order of their numbers, in which readings are told")]
    Unordered,
}

/// Listens to the worker for as long as its link stands.
pub async fn listen(link: LinkHandle, worker: Arc<Worker>, registry: Registry, watching: Watching) {
    loop {
        let listening = Listening { worker: &worker, registry: &registry, watching: &watching };
        let Err(error) = listening.run(&link).await;
        if link.close_reason().is_some() {
            return;
        }
        tracing::warn!(worker = worker.id().0, %error, "a worker's reports have ended; asking for them again");
        tokio::select! {
            _ = link.closed() => return,
            () = sleep(RETRY_AFTER) => {}
        }
    }
}

struct Listening<'a> {
    worker: &'a Arc<Worker>,
    registry: &'a Registry,
    watching: &'a Watching,
}

impl Listening<'_> {
    async fn run(&self, link: &LinkHandle) -> Result<Infallible, StatusError> {
        // in a box, or every worker's task would keep the room for it as long as it listens
        let (mut answers, mut body) = Box::pin(ask(link)).await?;
        let mut pace = PaceTold { follower: self.watching.follow(self.worker.id()), told: false };
        let (mut frames, mut facts_number) = (Frames::default(), None);
        loop {
            pace.tell(&mut answers);
            let arrived = tokio::select! {
                arrived = body.frame() => arrived,
                () = pace.follower.changed() => continue,
            };
            let arrived = arrived.ok_or(StatusError::Ended)??;
            let Ok(piece) = arrived.into_data() else { return Err(StatusError::Ended) };
            frames.push(&piece);
            while let Some(message) = frames.take::<WorkerMessage>()? {
                let Some(told) = message.told else { continue };
                self.hear(link, told, &mut facts_number, &mut answers)?;
            }
        }
    }

    fn hear(
        &self,
        link: &LinkHandle,
        told: Told,
        facts_number: &mut Option<u32>,
        answers: &mut LinkSender,
    ) -> Result<(), StatusError> {
        match told {
            Told::Heartbeat(beat) => self.hear_beat(link, beat, answers),
            Told::Facts(told) => {
                let status = told.unpack()?;
                check::status(&status).map_err(StatusError::Refused)?;
                if !status.gpu_devices.iter().flatten().is_sorted_by_key(|device| device.index) {
                    return Err(StatusError::Unordered);
                }
                *facts_number = Some(told.number);
                self.worker.facts().report(status, self.registry.clock().now());
            }
            Told::Readings(readings) => {
                if *facts_number != Some(readings.facts) {
                    return Err(Misfit.into());
                }
                self.worker.facts().report_readings(&readings, self.registry.clock().now())?;
            }
            Told::Leaving(_) => self.worker.facts().leave(self.registry.clock().now()),
        }
        Ok(())
    }

    fn hear_beat(&self, link: &LinkHandle, beat: Heartbeat, answers: &mut LinkSender) {
        let received_ms = system_ms();
        let now = self.registry.clock().now();
        {
            let mut facts = self.worker.facts();
            if let Some(measured) = beat.clock() {
                facts.measure_clock(measured, now);
            }
            facts.hear(now, self.registry.policy().offline_timeout);
            facts.measure_link(readings(&link.stats()));
        }
        let heard = Heard { number: beat.number, received_ms, returned_ms: system_ms() };
        // a worker that does not read misses it; that it lives is known
        let _ = answers.try_send(frame(&ServerMessage::from(Answer::Heard(heard))));
    }
}

/// What the worker was told of how often to look.
struct PaceTold {
    follower: Follower,
    told: bool,
}

impl PaceTold {
    /// Tells what is wished now, unless the worker knows. Where there is no room it is told with the next sign of life.
    fn tell(&mut self, answers: &mut LinkSender) {
        let watched = self.follower.is_watched();
        let pace = ServerMessage::from(Answer::Pace(Pace { watched }));
        if watched != self.told && answers.try_send(frame(&pace)) {
            self.told = watched;
        }
    }
}

async fn ask(link: &LinkHandle) -> Result<(LinkSender, LinkBody), StatusError> {
    let request = Request::post(STATUS_PATH).body(());
    let request = request.map_err(|error| RequestError::Invalid(error.to_string()))?;
    let (sender, response) = link.converse(request, ANSWER_DEADLINE).await?;
    if response.status() != StatusCode::OK {
        return Err(StatusError::Status(response.status()));
    }
    Ok((sender, response.into_body()))
}

fn readings(stats: &LinkStats) -> LinkReadings {
    LinkReadings {
        round_trip_ms: stats.round_trip.map(|round_trip| round_trip.as_secs_f64() * 1000.0),
        received_bytes: stats.received_bytes,
        sent_bytes: stats.sent_bytes,
    }
}
