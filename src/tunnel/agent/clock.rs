//! The agent's own time, which no change of the host's clock moves.

use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Milliseconds since the agent's first start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentTime(u64);

impl AgentTime {
    /// From its number.
    #[cfg(test)]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Its number.
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// How long it is after `earlier`, in milliseconds; 0 when it is not.
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Tells the agent's time. While the agent runs it goes by the monotonic clock. How long the agent was away is all that
/// the host's clock is asked for, since no other one survives a restart of the host.
#[derive(Clone, Copy, Debug)]
pub struct AgentClock {
    began: Instant,
    began_at: AgentTime,
}

impl AgentClock {
    /// Goes on from a moment that was `stopped` by the agent's time and `stopped_at` by the host's clock.
    pub fn go_on(stopped: AgentTime, stopped_at: Option<SystemTime>) -> Self {
        let away = stopped_at.and_then(|then| SystemTime::now().duration_since(then).ok()).unwrap_or_default();
        Self { began: Instant::now(), began_at: AgentTime(stopped.0.saturating_add(milliseconds(away))) }
    }

    /// Now.
    pub fn now(&self) -> AgentTime {
        AgentTime(self.began_at.0.saturating_add(milliseconds(self.began.elapsed())))
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_goes_on_after_a_restart_and_never_back() {
        let an_hour_ago = SystemTime::now() - Duration::from_hours(1);
        let resumed = AgentClock::go_on(AgentTime(1_000), Some(an_hour_ago)).now();
        assert!(resumed.since_ms(AgentTime(1_000)) >= 3_600_000);

        // a host whose clock was set back
        let in_an_hour = SystemTime::now() + Duration::from_hours(1);
        let clock = AgentClock::go_on(AgentTime(1_000), Some(in_an_hour));
        assert_eq!(clock.now(), AgentTime(1_000));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(clock.now(), AgentTime(3_000));
    }
}
