//! The worker's sign of life. Waits for nothing but its own exchange with the server.

use super::backoff::Backoff;
use super::clock::ClockFilter;
use super::session::Session;
use super::transport::{JoinError, Transport};
use api::HeartbeatRequest;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The second beat carries what the first has measured, so that the clock's offset is known at once.
const SECOND_BEAT_AFTER: Duration = Duration::from_secs(1);
/// A slow link must not lose beats: as long as fits between two.
const LONGEST_DEADLINE: Duration = Duration::from_secs(10);
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// A session without a beat for this long is begun anew. Shorter than the server's shortest useful offline timeout.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
const LEAVE_DEADLINE: Duration = Duration::from_secs(2);

/// Beats until the session is over, and tells why it is. `status_wanted` is notified when the server has no status of
/// this worker.
pub async fn run(transport: Arc<dyn Transport>, session: Arc<Session>, status_wanted: Arc<Notify>) -> JoinError {
    let interval = session.heartbeat_interval;
    let deadline = LONGEST_DEADLINE.min(interval.mul_f64(0.8));
    let mut clock = ClockFilter::default();
    let mut retries = Backoff::new(FIRST_RETRY, LONGEST_RETRY);
    let mut pause = SECOND_BEAT_AFTER.min(interval);
    let mut last_success = Instant::now();
    loop {
        let begun = Instant::now();
        let request = HeartbeatRequest { session_id: session.id, clock: clock.best(begun), leaving: false };
        match transport.heartbeat(&request, &session.credential, deadline).await {
            Ok(answer) => {
                last_success = Instant::now();
                clock.push(answer.clock_sample(), last_success, answer.took);
                retries.reset();
                if answer.response.status_wanted {
                    status_wanted.notify_one();
                }
                sleep_until(begun + pause).await;
                pause = interval;
            }
            Err(error) if error.ends_session() => return error,
            Err(error) if last_success.elapsed() >= GIVE_UP_AFTER => return error,
            Err(error) => {
                tracing::debug!(%error, "heartbeat failed");
                let pause = error.retry_after().unwrap_or_default() + retries.next_pause();
                // the last try before giving up comes in time, whatever pause the server wishes
                sleep_until((Instant::now() + pause).min(last_success + GIVE_UP_AFTER)).await;
            }
        }
    }
}

/// Tells the server that this worker goes on purpose.
pub async fn leave(transport: &dyn Transport, session: &Session) {
    let request = HeartbeatRequest { session_id: session.id, clock: None, leaving: true };
    if let Err(error) = transport.heartbeat(&request, &session.credential, LEAVE_DEADLINE).await {
        tracing::debug!(%error, "cannot tell the server that this worker stops");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;
    use crate::worker::transport::fake::{Call, FakeTransport, Reply, Said};
    use api::{ClockMeasurement, SessionId};
    use uuid::Uuid;

    fn session() -> Arc<Session> {
        Arc::new(Session {
            id: SessionId(Uuid::new_v4()),
            name: "npu-1".to_owned(),
            credential: Secret::new("credential"),
            heartbeat_interval: Duration::from_secs(10),
        })
    }

    fn beating(server: FakeTransport) -> (Arc<FakeTransport>, Arc<Notify>, tokio::task::JoinHandle<JoinError>) {
        let (server, wanted) = (Arc::new(server), Arc::new(Notify::new()));
        let transport: Arc<dyn Transport> = server.clone();
        let task = tokio::spawn(run(transport, session(), Arc::clone(&wanted)));
        (server, wanted, task)
    }

    fn seconds(calls: &[Call]) -> Vec<u64> {
        calls.iter().map(|call| call.at.as_secs()).collect()
    }

    fn lost() -> JoinError {
        JoinError::Closed { address: "h:1".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn beats_come_at_once_a_second_later_and_then_at_the_interval() {
        let (server, _, task) = beating(FakeTransport::default());
        let calls = server.until(|calls| calls.len() == 5).await;
        assert_eq!(seconds(&calls), [0, 1, 11, 21, 31]);
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn the_second_beat_carries_the_clocks_offset() {
        let (server, _, task) = beating(FakeTransport::default());
        let calls = server.until(|calls| calls.len() == 2).await;
        let clocks = calls.iter().map(|call| match &call.said {
            Said::Beat { request, .. } => request.clock,
            other => panic!("{other:?}"),
        });
        let measured =
            ClockMeasurement { offset_ms: FakeTransport::OFFSET_MS, error_ms: FakeTransport::ROUND_TRIP_MS / 2 + 1 };
        assert_eq!(clocks.collect::<Vec<_>>(), [None, Some(measured)]);
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_beat_is_tried_again_soon() {
        let mut server = FakeTransport::default();
        server.on_beat = Box::new(|number| if number == 2 { Reply::Fail(lost()) } else { Reply::Answer(false) });
        let (server, _, task) = beating(server);
        let calls = server.until(|calls| calls.len() == 5).await;
        assert!(calls[3].at <= calls[2].at + FIRST_RETRY);
        assert!(calls[4].at >= calls[3].at + Duration::from_secs(10));
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_without_beats_is_given_up_after_half_a_minute() {
        let mut server = FakeTransport::default();
        server.on_beat = Box::new(|number| if number == 0 { Reply::Answer(false) } else { Reply::Fail(lost()) });
        let (server, _, task) = beating(server);
        assert_eq!(task.await.unwrap(), lost());
        assert_eq!(server.calls().last().unwrap().at, GIVE_UP_AFTER);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_the_server_ends_is_over_at_once() {
        let mut server = FakeTransport::default();
        server.on_beat = Box::new(|_| Reply::Fail(JoinError::SessionReplaced));
        let (server, _, task) = beating(server);
        assert_eq!(task.await.unwrap(), JoinError::SessionReplaced);
        assert_eq!(server.calls().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_without_a_status_has_it_sent() {
        let mut server = FakeTransport::default();
        server.on_beat = Box::new(|_| Reply::Answer(true));
        let (_, wanted, task) = beating(server);
        wanted.notified().await;
        task.abort();
    }
}
