//! Time as workers are judged by it: the server's own monotonic clock. The wall clock only turns moments into what
//! people read.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How often the server looks at itself.
pub const TICK: Duration = Duration::from_secs(1);
/// Without a look for so long, the server stood still. Half a heartbeat: shorter pauses, as of a busy machine, delay a
/// sign of life but hide none, and must not put off every verdict.
const STALL: Duration = Duration::from_secs(5);
/// A wall clock that moved by more than this against the monotonic one was set, not slewed.
const WALL_STEP_MS: i64 = 500;

/// A moment on the server's monotonic clock, in milliseconds since the process began; negative for moments before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Monotonic(i64);

impl Monotonic {
    /// So many milliseconds after the process began.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the process began.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// Later by `duration`.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// Earlier by `duration`.
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// How long `earlier` is ago; zero when it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The time of one look at the fleet. Everything judged in that look is judged by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Now.
    pub now: Monotonic,
    /// What makes a monotonic moment one of the wall clock.
    pub wall_offset_ms: i64,
    /// Whom nobody judges, and until when.
    pub grace: Grace,
}

impl Moment {
    /// A moment in milliseconds since 1970, as the server's wall clock has it now.
    pub fn wall_ms(&self, at: Monotonic) -> i64 {
        at.ms().saturating_add(self.wall_offset_ms)
    }
}

/// The server could hear nobody from `began` on, so who was alive then is not judged before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// The last moment at which the server is known to have run.
    pub began: Monotonic,
    /// When judging begins again.
    pub until: Monotonic,
}

/// The server did not run for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// For how long.
    pub length: Duration,
    /// The last moment at which it ran.
    pub began: Monotonic,
}

/// The server's clocks, and its knowledge of its own stalls.
///
/// A stall is noticed by whoever asks first for the time, not only by the ticker: a request that is served between a
/// `SIGCONT` and the next tick must not see a fleet that has been silent for minutes.
#[derive(Debug)]
pub struct ServerClock {
    began: Instant,
    wall_offset_ms: AtomicI64,
    pulse: Mutex<Pulse>,
    grace_length: Duration,
    /// The wall clock; tests that let the monotonic clock jump hold it still against that.
    system_ms: fn(&Self) -> i64,
}

impl ServerClock {
    /// Begins now. For `grace_length` nobody is judged, and again after each stall.
    pub fn start(grace_length: Duration) -> Self {
        let clock = Self {
            began: Instant::now(),
            wall_offset_ms: AtomicI64::new(0),
            pulse: Mutex::new(Pulse::new(boot_ms(), grace_length)),
            grace_length,
            system_ms: |_| system_ms(),
        };
        clock.follow_wall(system_ms());
        clock
    }

    /// A clock whose wall clock keeps step with the monotonic one, also when a test moves that.
    #[cfg(test)]
    pub(crate) fn in_step(grace_length: Duration) -> Self {
        let system_ms = |clock: &Self| clock.wall_offset_ms.load(Ordering::Relaxed).saturating_add(clock.now().ms());
        Self { system_ms, ..Self::start(grace_length) }
    }

    /// Now, without a look at the stalls.
    pub fn now(&self) -> Monotonic {
        Monotonic(millis(self.began.elapsed()))
    }

    /// The time for one look at the fleet.
    pub fn moment(&self) -> Moment {
        let now = self.now();
        let mut pulse = self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        pulse.observe(now, boot_ms(), self.grace_length);
        Moment { now, wall_offset_ms: self.wall_offset_ms.load(Ordering::Relaxed), grace: pulse.grace }
    }

    /// To be called every [`TICK`]; tells of a stall once.
    pub fn tick(&self) -> Option<Gap> {
        self.follow_wall((self.system_ms)(self));
        let now = self.now();
        let boot_ms = boot_ms();
        let mut pulse = self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        pulse.observe(now, boot_ms, self.grace_length);
        pulse.last_tick = now;
        pulse.last_boot_ms = boot_ms;
        pulse.unreported.take()
    }

    fn follow_wall(&self, system_ms: i64) {
        let offset_ms = system_ms.saturating_sub(self.now().ms());
        let known_ms = self.wall_offset_ms.load(Ordering::Relaxed);
        // a stable offset keeps `since` of unchanged conditions unchanged to the millisecond
        if offset_ms.saturating_sub(known_ms).abs() > WALL_STEP_MS {
            self.wall_offset_ms.store(offset_ms, Ordering::Relaxed);
        }
    }
}

/// Notices that the process stood still. Pure: it is told the time.
#[derive(Debug)]
struct Pulse {
    last_tick: Monotonic,
    /// Counts while the host sleeps too, which the monotonic clock does not.
    last_boot_ms: i64,
    grace: Grace,
    unreported: Option<Gap>,
}

impl Pulse {
    fn new(boot_ms: i64, grace_length: Duration) -> Self {
        let began = Monotonic::default();
        Self {
            last_tick: began,
            last_boot_ms: boot_ms,
            grace: Grace { began, until: began.plus(grace_length) },
            unreported: None,
        }
    }

    fn observe(&mut self, now: Monotonic, boot_ms: i64, grace_length: Duration) {
        let awake = now.since(self.last_tick);
        let asleep_too = Duration::from_millis(u64::try_from(boot_ms.saturating_sub(self.last_boot_ms)).unwrap_or(0));
        let length = awake.max(asleep_too);
        if length <= STALL {
            return;
        }
        let protected_already = now < self.grace.until;
        let began = if protected_already { self.grace.began } else { self.last_tick };
        self.grace = Grace { began, until: self.grace.until.max(now.plus(grace_length)) };
        self.unreported = Some(Gap { length, began: self.last_tick });
    }
}

/// The server's wall clock, in milliseconds since 1970.
pub fn system_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

fn boot_ms() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_mins(1);

    fn at(seconds: i64) -> Monotonic {
        Monotonic::from_ms(seconds * 1000)
    }

    fn pulse_that_ran_until(seconds: i64) -> Pulse {
        let mut pulse = Pulse::new(0, GRACE);
        pulse.last_tick = at(seconds);
        pulse.last_boot_ms = seconds * 1000;
        pulse
    }

    #[test]
    fn a_late_tick_is_no_stall_until_it_is_half_a_heartbeat_late() {
        let mut pulse = pulse_that_ran_until(1000);
        pulse.observe(at(1005), 1_005_000, GRACE);
        assert_eq!((pulse.unreported, pulse.grace.until), (None, at(60)));
        pulse.observe(at(1006), 1_006_000, GRACE);
        assert_eq!(pulse.grace, Grace { began: at(1000), until: at(1066) });
    }

    #[test]
    fn a_stopped_process_gives_everybody_a_full_grace_period() {
        let mut pulse = pulse_that_ran_until(1000);
        pulse.observe(at(1180), 1_180_000, GRACE);
        assert_eq!(pulse.grace, Grace { began: at(1000), until: at(1240) });
        assert_eq!(pulse.unreported, Some(Gap { length: Duration::from_mins(3), began: at(1000) }));
    }

    #[test]
    fn a_sleeping_host_is_noticed_though_the_monotonic_clock_stood_still() {
        let mut pulse = pulse_that_ran_until(1000);
        pulse.observe(at(1001), 4_600_000, GRACE);
        assert_eq!(pulse.grace.until, at(1061));
    }

    #[test]
    fn a_second_stall_within_the_grace_protects_those_whom_the_first_protected() {
        let mut pulse = pulse_that_ran_until(1000);
        pulse.observe(at(1180), 1_180_000, GRACE);
        pulse.last_tick = at(1180);
        pulse.last_boot_ms = 1_180_000;
        pulse.observe(at(1200), 1_200_000, GRACE);
        assert_eq!(pulse.grace, Grace { began: at(1000), until: at(1260) });
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_is_set_moves_what_people_read_and_nothing_else() {
        let clock = ServerClock::start(GRACE);
        let before = clock.moment();
        clock.follow_wall(system_ms() + 3_600_000);
        let after = clock.moment();
        assert_eq!((after.now, after.grace), (before.now, before.grace));
        let moved_ms = after.wall_offset_ms - before.wall_offset_ms;
        assert!((3_599_000..=3_601_000).contains(&moved_ms), "{moved_ms}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stall_is_told_once() {
        let clock = ServerClock::start(GRACE);
        tokio::time::advance(Duration::from_mins(3)).await;
        let _ = clock.moment();
        assert_eq!(clock.tick().map(|gap| gap.length), Some(Duration::from_mins(3)));
        tokio::time::advance(TICK).await;
        assert_eq!(clock.tick(), None);
    }
}
