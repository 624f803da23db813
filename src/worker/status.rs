//! What the worker tells over its link when the server asks for it: signs of life, everything once, then what moved.
//! The answer goes on for as long as the link stands.

use super::clock::ClockFilter;
use api::{ClockSample, STATUS_PATH, WorkerStatus};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::post;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use report::message::{Answer, Heard, Heartbeat, Leaving, Pace, ServerMessage, Told, WorkerMessage};
use report::{Frames, Precision, Reporter, frame};
use std::convert::Infallible;
use std::future::{pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The second beat carries what the first has measured, so that the clock's offset is known at once.
const SECOND_BEAT_AFTER: Duration = Duration::from_secs(1);
/// Reports are no closer than this; the detection's own pace makes them rarer.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// Ages and other things that change by themselves are brought up to date this often on an idle host.
const LONGEST_INTERVAL: Duration = Duration::from_mins(5);
/// Messages that wait for room on the link.
const WAITING: usize = 4;

/// What the detection saw last; None before it has seen anything.
pub type LatestStatus = watch::Receiver<Option<Arc<WorkerStatus>>>;

/// What a link's status is made of.
#[derive(Clone, Debug)]
pub struct StatusSource {
    /// What to report. Devices in the order of their numbers.
    pub latest: LatestStatus,
    /// Whether somebody looks at this worker; the server says so.
    pub watched: watch::Sender<bool>,
    /// Between two signs of life.
    pub heartbeat_interval: Duration,
    /// Ends the answer.
    pub stop: CancellationToken,
    /// Whether the worker itself ends with it, which the server is told.
    pub leaving: CancellationToken,
}

/// The route that the server asks, for links alone.
pub fn routes(source: StatusSource) -> Router {
    Router::new().route(STATUS_PATH, post(tell)).with_state(source)
}

async fn tell(State(source): State<StatusSource>, body: Body) -> Body {
    let (sender, pieces) = mpsc::channel(WAITING);
    // what breaks the stream of answers ends it; heartbeats go on without them
    let arriving =
        body.into_data_stream().take_while(|piece| ready(piece.is_ok())).filter_map(async |piece| piece.ok());
    tokio::spawn(async move {
        let _reset = ResetPace(source.watched.clone());
        Teller::new(source, sender).run(arriving).await;
    });
    Body::from_stream(stream::unfold(pieces, async |mut pieces| {
        let piece: Bytes = pieces.recv().await?;
        Some((Ok::<_, Infallible>(piece), pieces))
    }))
}

/// Nobody looks through a link that has ended.
struct ResetPace(watch::Sender<bool>);

impl Drop for ResetPace {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

/// Writes one link's status.
struct Teller {
    source: StatusSource,
    sender: mpsc::Sender<Bytes>,
    reporter: Reporter,
    clock: ClockFilter,
    beats: Beats,
    /// When something was reported last.
    reported: Option<Instant>,
    /// When everything was reported last.
    reported_all: Option<Instant>,
    /// When the look that has not been reported may be.
    report_due: Option<Instant>,
}

/// The signs of life so far.
#[derive(Debug)]
struct Beats {
    number: u32,
    due: Instant,
    /// By both of this host's clocks.
    last: Option<(i64, Instant)>,
}

enum Step {
    Stop,
    Gone,
    Beat,
    Seen,
    Report,
    ReportAll,
    Arrived(Bytes),
}

impl Teller {
    fn new(source: StatusSource, sender: mpsc::Sender<Bytes>) -> Self {
        let now = Instant::now();
        let has_seen = source.latest.borrow().is_some();
        Self {
            report_due: has_seen.then_some(now),
            source,
            sender,
            reporter: Reporter::new(),
            clock: ClockFilter::default(),
            beats: Beats { number: 0, due: now, last: None },
            reported: None,
            reported_all: None,
        }
    }

    async fn run(mut self, arriving: impl Stream<Item = Bytes>) {
        let mut arriving = pin!(arriving.chain(stream::pending()));
        let mut frames = Frames::default();
        loop {
            let step = tokio::select! {
                biased;
                () = self.source.stop.cancelled() => Step::Stop,
                () = self.sender.closed() => Step::Gone,
                Some(piece) = arriving.next() => Step::Arrived(piece),
                // before a sign of life, which then goes along
                () = at(self.report_due) => Step::Report,
                () = seen(&mut self.source.latest) => Step::Seen,
                () = sleep_until(self.beats.due) => Step::Beat,
                () = at(self.reported_all.map(|at| at + LONGEST_INTERVAL)) => Step::ReportAll,
            };
            let told = match step {
                Step::Gone => return,
                Step::Stop => {
                    if self.source.leaving.is_cancelled() {
                        let _ = self.send([Told::Leaving(Leaving {})]).await;
                    }
                    return;
                }
                Step::Arrived(piece) => {
                    frames.push(&piece);
                    self.take_answers(&mut frames);
                    Some(())
                }
                Step::Seen => {
                    let earliest = self.reported.map(|at| at + SHORTEST_INTERVAL);
                    self.report_due = Some(earliest.map_or_else(Instant::now, |earliest| earliest.max(Instant::now())));
                    Some(())
                }
                Step::Beat => {
                    let beat = self.beat();
                    self.send([beat]).await
                }
                Step::Report => self.report(false).await,
                Step::ReportAll => self.report(true).await,
            };
            if told.is_none() {
                return;
            }
        }
    }

    /// None when the link is gone.
    async fn report(&mut self, everything: bool) -> Option<()> {
        self.report_due = None;
        let Some(status) = self.source.latest.borrow_and_update().clone() else { return Some(()) };
        let precision = if *self.source.watched.borrow() { Precision::Exact } else { Precision::Coarse };
        let told =
            if everything { self.reporter.tell_all(&status).map(Some) } else { self.reporter.tell(&status, precision) };
        let told = match told {
            Ok(Some(told)) => told,
            Ok(None) => return Some(()),
            Err(error) => {
                tracing::error!(%error, "what this worker sees of its host cannot be reported");
                return Some(());
            }
        };
        let now = Instant::now();
        self.reported = Some(now);
        if matches!(told, Told::Facts(_)) {
            self.reported_all = Some(now);
        }
        // a sign of life that is due soon shares the packet
        let goes_along = self.beats.last.is_none_or(|(_, at)| now - at >= self.source.heartbeat_interval / 2);
        if goes_along {
            let beat = self.beat();
            return self.send([told, beat]).await;
        }
        self.send([told]).await
    }

    fn beat(&mut self) -> Told {
        let now = Instant::now();
        let is_first = self.beats.last.is_none();
        let pause = if is_first { SECOND_BEAT_AFTER } else { self.source.heartbeat_interval };
        self.beats.number = self.beats.number.wrapping_add(1);
        self.beats.due = now + pause.min(self.source.heartbeat_interval);
        self.beats.last = Some((now_ms(), now));
        Told::Heartbeat(Heartbeat::new(self.beats.number, self.clock.best(now)))
    }

    /// Waits for room. None when the link is gone.
    async fn send(&self, told: impl IntoIterator<Item = Told>) -> Option<()> {
        let mut bytes = Vec::new();
        for told in told {
            bytes.extend_from_slice(&frame(&WorkerMessage::from(told)));
        }
        self.sender.send(bytes.into()).await.ok()
    }

    fn take_answers(&mut self, frames: &mut Frames) {
        loop {
            match frames.take::<ServerMessage>() {
                Ok(Some(message)) => match message.answer {
                    Some(Answer::Heard(heard)) => self.measure_clock(heard),
                    Some(Answer::Pace(Pace { watched })) => {
                        self.source.watched.send_replace(watched);
                    }
                    None => {}
                },
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(%error, "the server's answers are not understood");
                    return;
                }
            }
        }
    }

    fn measure_clock(&mut self, heard: Heard) {
        let Some((sent_ms, sent_at)) = self.beats.last.filter(|_| heard.number == self.beats.number) else { return };
        let answered_at = Instant::now();
        let sample = ClockSample {
            sent_ms,
            received_ms: heard.received_ms,
            returned_ms: heard.returned_ms,
            answered_ms: now_ms(),
        };
        self.clock.push(sample, answered_at, answered_at - sent_at);
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

/// Waits for the next look.
async fn seen(latest: &mut LatestStatus) {
    if latest.changed().await.is_err() {
        // the worker is stopping: nothing will come any more
        pending::<()>().await;
    }
}

fn now_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{CpuInfo, OsInfo};

    /// A server that listens to one status.
    struct Listener {
        latest: watch::Sender<Option<Arc<WorkerStatus>>>,
        watched: watch::Receiver<bool>,
        stop: CancellationToken,
        leaving: CancellationToken,
        answers: mpsc::Sender<Bytes>,
        pieces: mpsc::Receiver<Bytes>,
        begun: Instant,
    }

    impl Listener {
        fn start() -> Self {
            let (latest, seen) = watch::channel(None);
            let (watched, is_watched) = watch::channel(false);
            let (stop, leaving) = (CancellationToken::new(), CancellationToken::new());
            let source = StatusSource {
                latest: seen,
                watched,
                heartbeat_interval: Duration::from_secs(10),
                stop: stop.clone(),
                leaving: leaving.clone(),
            };
            let (sender, pieces) = mpsc::channel(WAITING);
            let (answers, arriving) = mpsc::channel::<Bytes>(4);
            let arriving = stream::unfold(arriving, async |mut arriving| Some((arriving.recv().await?, arriving)));
            tokio::spawn(Teller::new(source, sender).run(arriving));
            Self { latest, watched: is_watched, stop, leaving, answers, pieces, begun: Instant::now() }
        }

        /// What comes next, and when, in seconds.
        async fn next(&mut self) -> Option<(u64, Vec<Told>)> {
            let piece = self.pieces.recv().await?;
            let mut frames = Frames::default();
            frames.push(&piece);
            let mut told = Vec::new();
            while let Some(message) = frames.take::<WorkerMessage>().unwrap() {
                told.extend(message.told);
            }
            Some((self.begun.elapsed().as_secs(), told))
        }

        /// The times of the next beats.
        async fn beats(&mut self, count: usize) -> Vec<u64> {
            let mut times = Vec::new();
            while times.len() < count {
                let (at, told) = self.next().await.unwrap();
                times.extend(told.iter().filter(|told| matches!(told, Told::Heartbeat(_))).map(|_| at));
            }
            times
        }

        fn see(&self, cpu_percent: f64) {
            let cpu = Some(CpuInfo { total: Some(8.0), utilization_rate: Some(cpu_percent) });
            self.latest.send_replace(Some(Arc::new(WorkerStatus { cpu, ..WorkerStatus::default() })));
        }

        async fn answer(&self, answer: Answer) {
            self.answers.send(frame(&ServerMessage::from(answer))).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn beats_come_at_once_a_second_later_and_then_at_the_interval() {
        assert_eq!(Listener::start().beats(5).await, [0, 1, 11, 21, 31]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_second_beat_carries_the_clocks_offset() {
        let mut listener = Listener::start();
        let (_, told) = listener.next().await.unwrap();
        let [Told::Heartbeat(first)] = told[..] else { panic!("{told:?}") };
        assert_eq!(first.clock(), None);
        let eight_hours_ms = 8 * 3_600_000;
        let server_ms = now_ms() - eight_hours_ms;
        let heard = Heard { number: first.number, received_ms: server_ms, returned_ms: server_ms };
        listener.answer(Answer::Heard(heard)).await;
        let (_, told) = listener.next().await.unwrap();
        let [Told::Heartbeat(second)] = told[..] else { panic!("{told:?}") };
        let measured = second.clock().unwrap();
        assert!((measured.offset_ms - eight_hours_ms).abs() < 5_000, "{measured:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn everything_is_told_first_and_a_change_with_the_next_look() {
        let mut listener = Listener::start();
        listener.see(1.0);
        let (at, told) = listener.next().await.unwrap();
        assert!(matches!(told[..], [Told::Facts(_), Told::Heartbeat(_)]) && at == 0, "{at} {told:?}");
        assert_eq!(listener.beats(1).await, [1]);
        listener.see(2.0);
        assert_eq!(listener.beats(1).await, [11], "within the tolerance");
        listener.see(90.0);
        let (at, told) = listener.next().await.unwrap();
        assert!(matches!(told[..], [Told::Readings(_)]) && at == 11, "{at} {told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_that_is_due_soon_goes_along_with_a_report() {
        let mut listener = Listener::start();
        listener.see(1.0);
        listener.beats(2).await;
        tokio::time::sleep(Duration::from_secs(7)).await;
        listener.see(90.0);
        let (_, told) = listener.next().await.unwrap();
        assert!(matches!(told[..], [Told::Readings(_), Told::Heartbeat(_)]), "{told:?}");
        assert_eq!(listener.beats(1).await, [18]);
    }

    #[tokio::test(start_paused = true)]
    async fn everything_is_told_again_after_five_minutes() {
        let mut listener = Listener::start();
        listener.see(1.0);
        let mut times = Vec::new();
        while times.len() < 2 {
            let (at, told) = listener.next().await.unwrap();
            times.extend(told.iter().filter(|told| matches!(told, Told::Facts(_))).map(|_| at));
        }
        assert_eq!(times, [0, 300]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_looks_hears_every_change() {
        let mut listener = Listener::start();
        listener.see(1.0);
        listener.next().await;
        listener.answer(Answer::Pace(Pace { watched: true })).await;
        listener.watched.wait_for(|watched| *watched).await.unwrap();
        listener.see(1.5);
        let (at, told) = listener.next().await.unwrap();
        assert!(matches!(told[..], [Told::Readings(_)]) && at == 1, "{at} {told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_ends_says_so_and_a_link_that_ends_does_not() {
        for leaves in [true, false] {
            let mut listener = Listener::start();
            listener.next().await;
            if leaves {
                listener.leaving.cancel();
            }
            listener.stop.cancel();
            let told = listener.next().await.map(|(_, told)| told);
            assert_eq!(told, leaves.then(|| vec![Told::Leaving(Leaving {})]));
            assert_eq!(listener.next().await, None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_are_none_do_not_stop_the_beats() {
        let mut listener = Listener::start();
        listener.answers.send(Bytes::from_static(&[0xff; 64])).await.unwrap();
        assert_eq!(listener.beats(3).await, [0, 1, 11]);
        let os = Some(OsInfo { name: "openEuler".to_owned(), ..OsInfo::default() });
        listener.latest.send_replace(Some(Arc::new(WorkerStatus { os, ..WorkerStatus::default() })));
        let (_, told) = listener.next().await.unwrap();
        assert!(matches!(told[..], [Told::Facts(_)]), "{told:?}");
    }
}
