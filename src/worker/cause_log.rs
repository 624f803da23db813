//! Says why the worker is not joined, without filling the log.

use super::transport::JoinError;
use std::time::Duration;
use tokio::time::Instant;

const REPEAT_AFTER: Duration = Duration::from_mins(5);

/// Logs a cause when it changes, and while it stays the same now and then.
#[derive(Debug, Default)]
pub struct CauseLog {
    last: Option<Logged>,
    /// The log's last word is that the worker has joined.
    joined_is_known: bool,
}

#[derive(Debug)]
struct Logged {
    error: JoinError,
    at: Instant,
    unlogged_since: u32,
}

impl CauseLog {
    /// Notes a failure of `what`.
    pub fn log(&mut self, what: &str, error: &JoinError) {
        match self.due(error, Instant::now()) {
            None => return tracing::debug!("{what}: {error}"),
            Some(0) => tracing::warn!("{what}: {error}"),
            Some(unlogged) => tracing::warn!("{what} ({unlogged} more times since this was last said): {error}"),
        }
        self.joined_is_known = false;
    }

    /// Notes that the worker has joined.
    pub fn joined(&mut self, name: &str) {
        if self.joined_is_known {
            return tracing::debug!("the worker has a new session as {name}");
        }
        tracing::info!("the worker has joined the server as {name}");
        self.joined_is_known = true;
    }

    /// Whether to log this failure now, and how many of its kind went by unlogged before it.
    fn due(&mut self, error: &JoinError, now: Instant) -> Option<u32> {
        let mut unlogged = 0;
        if let Some(last) = &mut self.last
            && last.error.same_kind(error)
        {
            if now - last.at < REPEAT_AFTER {
                last.unlogged_since = last.unlogged_since.saturating_add(1);
                return None;
            }
            unlogged = last.unlogged_since;
        }
        self.last = Some(Logged { error: error.clone(), at: now, unlogged_since: 0 });
        Some(unlogged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_logged_when_it_changes_and_then_every_five_minutes_with_a_count() {
        let refused = JoinError::Refused { address: "h:1".to_owned() };
        let timed_out = JoinError::TimedOut { address: "h:1".to_owned(), timeout_s: 10 };
        let (mut causes, start) = (CauseLog::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(causes.due(&refused, at(0)), Some(0));
        assert_eq!(causes.due(&refused, at(10)), None);
        assert_eq!(causes.due(&refused, at(299)), None);
        assert_eq!(causes.due(&refused, at(300)), Some(2));
        assert_eq!(causes.due(&timed_out, at(310)), Some(0));
        assert_eq!(causes.due(&refused, at(320)), Some(0));
    }
}
