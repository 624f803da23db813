//! Makes one forward, proves that it works, and makes it again when it does not stand any more, for ever.

use super::board::Board;
use super::fault;
use super::probe::{self, Expected, Occupant, Outcome};
use crate::backoff::{Backoff, random_pause};
use crate::tunnel::plan::{PlannedForward, label};
use api::{FaultCause, ForwardDirection, ForwardState, TunnelFault};
use app::i18n::Language;
use app::i18n::tunnels::{FaultText, fault_text};
use chrono::Utc;
use ssh::{
    ForwardError, ForwardLimits, ForwardStats, LocalForward, LocalForwardSpec, RemoteForward, RemoteForwardSpec, Route,
    RouteError, Session, SessionEnd, Sessions,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

/// Between two probes of a forward that works.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// Between two probes of one that does not.
const PROBE_INTERVAL_DEGRADED: Duration = Duration::from_secs(2);
/// Between two looks at what went over it.
const TRAFFIC_INTERVAL: Duration = Duration::from_secs(1);
/// Paths heal by themselves, and one attempt is cheap: all forwards of a chain share it.
const FIRST_PAUSE: Duration = Duration::from_millis(300);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Somebody has to do something before these attempts succeed.
const SLOW_PAUSES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(20));
/// After the first questions to the listener of a session that broke, until the next one.
///
/// A question makes sshd write to the dead connection, whose other end may then say that it is dead. But sshd looks whether
/// its client lives (`ClientAliveInterval`, four times with `ClientAliveCountMax 3`) only after a time in which nothing
/// else happened, so whoever asks all the time keeps the dead session alive.
const STALE_PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// After each further one: time enough for sshd's four looks with the settings that the agent advises.
const LATER_STALE_PAUSE: Duration = Duration::from_secs(80);
/// Between two trials whether such a port is free, which do not touch the dead session.
const STALE_TRIAL_INTERVAL: Duration = Duration::from_secs(2);
/// A forward that stood for so long was no failed attempt.
const HEALTHY_AFTER: Duration = Duration::from_secs(20);
/// Connections may end for so long when the forward is given up on purpose. Links of workers never do by themselves.
const DRAIN_DEADLINE: Duration = Duration::from_secs(1);

/// What all keepers of an agent have in common.
#[derive(Clone)]
pub struct Shared {
    /// Sessions, which forwards with the same way share.
    pub sessions: Arc<Sessions>,
    /// Where it is noted how the forwards are.
    pub board: Board,
    /// Who should answer.
    pub expected: watch::Receiver<Expected>,
    /// What cuts pauses short.
    pub signals: Signals,
}

/// What cuts the pauses of keepers short. Cloning it clones a handle.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// A forward came about: those that wait for a path may be next.
    pub came_about: Arc<Notify>,
    /// All are to try again, also those for which somebody had to do something first.
    pub retry: Arc<Notify>,
}

/// Keeps one forward.
pub struct Keeper {
    forward: PlannedForward,
    route: Route,
    shared: Shared,
}

enum Standing {
    Local(LocalForward),
    Remote(RemoteForward),
}

impl Keeper {
    /// For this forward.
    pub fn new(forward: PlannedForward, shared: Shared) -> Result<Self, RouteError> {
        let route = forward.route()?;
        Ok(Self { forward, route, shared })
    }

    /// Runs until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        while !stop.is_cancelled() {
            let begun = Instant::now();
            let Some(fault) = self.once(&stop).await else { break };
            if begun.elapsed() >= HEALTHY_AFTER {
                backoff.reset();
            }
            let pause = pause(&fault.cause, &mut backoff);
            let passes = fault::passes(&fault.cause);
            self.note(ForwardState::Down, Some(fault));
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(pause) => {}
                () = self.shared.signals.came_about.notified(), if passes => {}
                () = self.shared.signals.retry.notified() => {}
            }
        }
        self.shared.board.note_left(&self.forward.id);
    }

    /// Makes the forward once and stays with it. Gives why it does not stand; None when it was stopped.
    async fn once(&self, stop: &CancellationToken) -> Option<TunnelFault> {
        let connected = tokio::select! {
            () = stop.cancelled() => return None,
            connected = self.shared.sessions.get(&self.route) => connected,
        };
        let session = match connected {
            Ok(session) => session,
            Err(error) => return Some(fault::of_connect(&error)),
        };
        let started = tokio::select! {
            () = stop.cancelled() => return None,
            started = self.start_when_free(&session) => started,
        };
        let standing = match started {
            Ok(standing) => standing,
            Err(fault) => return Some(fault),
        };
        self.shared.board.note_made(&self.forward.id);
        if matches!(&standing, Standing::Remote(forward) if forward.is_open_to_others()) {
            let (tunnel, hop, listen) = (label(&self.forward.id), session.name(), &self.forward.listen);
            tracing::warn!(
                %tunnel,
                "{hop} listens at all its addresses and not only at {listen}: whoever reaches that host reaches what is behind \
                 the forward. Set `GatewayPorts no` or `GatewayPorts clientspecified` in its sshd_config"
            );
        }
        self.shared.signals.came_about.notify_waiters();
        let end = self.stay(&session, &standing, stop).await;
        self.shared.board.note_ended(&self.forward.id, &standing.stats());
        let Some(end) = end else {
            standing.stop().await;
            return None;
        };
        Some(fault::of_end(session.name(), &end))
    }

    async fn start(&self, session: &Session) -> Result<Standing, ForwardError> {
        let (target, limits) = (self.forward.target.clone(), ForwardLimits::default());
        match self.forward.direction {
            ForwardDirection::Local => {
                let listen = SocketAddr::new(self.listen_address(), self.forward.listen.port);
                LocalForward::start(session, LocalForwardSpec { listen, target, limits }).await.map(Standing::Local)
            }
            ForwardDirection::Remote => {
                let listen = self.forward.listen.clone();
                RemoteForward::start(session, RemoteForwardSpec { listen, target, limits }).await.map(Standing::Remote)
            }
        }
    }

    /// A plan's local forwards listen at addresses; `localhost` and nothing are the two words that stand for one.
    fn listen_address(&self) -> IpAddr {
        match self.forward.listen.host.as_str() {
            "*" => Ipv6Addr::UNSPECIFIED.into(),
            host => host.parse().unwrap_or(Ipv4Addr::LOCALHOST.into()),
        }
    }

    /// Makes the forward as soon as its own former session does not listen any more.
    async fn start_when_free(&self, session: &Session) -> Result<Standing, TunnelFault> {
        let mut pauses = STALE_PAUSES.into_iter();
        let mut stale_since = None;
        loop {
            let fault = match self.start(session).await {
                Ok(standing) => return Ok(standing),
                Err(error) => fault::of_forward(session.name(), &error),
            };
            let Some(address) = self.own_stale_listener(session, &fault.cause).await else { return Err(fault) };
            let waited_s = stale_since.get_or_insert_with(Instant::now).elapsed().as_secs();
            let cause = FaultCause::StaleListener { address, waited_s };
            self.note(ForwardState::Down, Some(TunnelFault { hop: fault.hop, cause }));
            tokio::select! {
                // the next attempt tells how
                _ = session.ended() => {}
                () = sleep(pauses.next().unwrap_or(LATER_STALE_PAUSE)) => {}
                () = self.port_is_free(session) => {}
                () = self.shared.signals.retry.notified() => {}
            }
        }
    }

    /// A port that is taken at the far end may be the forward's own, of a session that broke: sshd keeps it until it
    /// misses the session. Gives the address then.
    async fn own_stale_listener(&self, session: &Session, cause: &FaultCause) -> Option<String> {
        let FaultCause::PortTakenThere { address } = cause else { return None };
        let is_stale = match probe::occupant(session, &self.forward.listen).await {
            Occupant::Stale => true,
            Occupant::Living => false,
            Occupant::Unknown => self.shared.board.was_made(&self.forward.id),
        };
        is_stale.then(|| address.clone())
    }

    async fn port_is_free(&self, session: &Session) {
        loop {
            sleep(STALE_TRIAL_INTERVAL).await;
            if session.can_listen(&self.forward.listen).await.is_ok_and(|can| can) {
                return;
            }
        }
    }

    /// Probes until the session ends; None when it was stopped before.
    async fn stay(&self, session: &Session, standing: &Standing, stop: &CancellationToken) -> Option<SessionEnd> {
        let mut look = interval(TRAFFIC_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let counting = async {
            loop {
                look.tick().await;
                self.shared.board.note_traffic(&self.forward.id, &standing.stats());
            }
        };
        tokio::select! {
            () = stop.cancelled() => None,
            end = session.ended() => Some(end),
            () = counting => None,
            () = self.keep_probing(session) => None,
        }
    }

    async fn keep_probing(&self, session: &Session) {
        loop {
            let expected = self.shared.expected.borrow().clone();
            let outcome = probe::probe(session, &self.forward, &expected).await;
            let works = matches!(outcome, Outcome::Proved { .. });
            self.hear(outcome);
            tokio::select! {
                () = sleep(if works { PROBE_INTERVAL } else { PROBE_INTERVAL_DEGRADED }) => {}
                () = self.way_changed() => {}
            }
        }
    }

    /// Waits until the forward through which this one goes works no more, or works again.
    async fn way_changed(&self) {
        let Some(behind) = &self.forward.behind else { return std::future::pending().await };
        let works = || self.shared.board.state(behind).is_some_and(ForwardState::is_available);
        let mut changes = self.shared.board.changes();
        let before = works();
        while works() == before {
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    fn hear(&self, outcome: Outcome) {
        match outcome {
            Outcome::Proved { round_trip } => {
                self.shared.board.note_round_trip(&self.forward.id, round_trip);
                self.note(ForwardState::Up, None);
            }
            Outcome::Unproved(fault) => self.note(ForwardState::Unproved, Some(fault)),
            Outcome::Failed(fault) => {
                let fault = self.blame(fault);
                if !self.awaits_its_way(&fault) {
                    self.note(ForwardState::Degraded, Some(fault));
                }
            }
        }
    }

    /// An agent begins with all forwards at once. One that leads through another has failed in nothing before that one
    /// stands.
    fn awaits_its_way(&self, fault: &TunnelFault) -> bool {
        let is_starting = |id| self.shared.board.state(id) == Some(ForwardState::Starting);
        matches!(fault.cause, FaultCause::DependsOn { .. })
            && is_starting(&self.forward.id)
            && self.forward.behind.as_ref().is_some_and(is_starting)
    }

    /// What fails because another forward does is that one's fault.
    fn blame(&self, fault: TunnelFault) -> TunnelFault {
        let Some(behind) = &self.forward.behind else { return fault };
        if self.shared.board.state(behind).is_some_and(ForwardState::is_available) {
            return fault;
        }
        fault::here(FaultCause::DependsOn { forward: behind.to_string() })
    }

    fn note(&self, state: ForwardState, fault: Option<TunnelFault>) {
        let id = &self.forward.id;
        let text = fault.as_ref().map(log_text).unwrap_or_default();
        if !self.shared.board.note(id, state, fault) {
            return;
        }
        let tunnel = label(id);
        match state {
            ForwardState::Up => tracing::info!(%tunnel, "works: {} answers through it", self.forward.target),
            ForwardState::Starting => {}
            ForwardState::Unproved => tracing::warn!(%tunnel, "stands, but cannot be tried: {text}"),
            ForwardState::Degraded => tracing::warn!(%tunnel, "stands, but does not work: {text}"),
            ForwardState::Down => tracing::warn!(%tunnel, "is down: {text}"),
        }
    }
}

impl Standing {
    fn stats(&self) -> ForwardStats {
        match self {
            Self::Local(forward) => forward.stats(),
            Self::Remote(forward) => forward.stats(),
        }
    }

    async fn stop(self) {
        match self {
            Self::Local(forward) => forward.stop(DRAIN_DEADLINE).await,
            Self::Remote(forward) => forward.stop(DRAIN_DEADLINE).await,
        };
    }
}

fn pause(cause: &FaultCause, backoff: &mut Backoff) -> Duration {
    match cause {
        cause if fault::passes(cause) => backoff.next_pause(),
        _ => random_pause(SLOW_PAUSES.0, SLOW_PAUSES.1),
    }
}

/// A log is read by people who run sshd, in English.
fn log_text(fault: &TunnelFault) -> String {
    let FaultText { what, next_step, lines } = fault_text(fault, Language::En, Utc::now().timestamp_millis());
    let lines = lines.into_iter().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("; ");
    if lines.is_empty() { format!("{what} {next_step}") } else { format!("{what} {next_step} [{lines}]") }
}
