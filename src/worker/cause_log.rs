//! Says why something that the worker keeps trying does not work, without filling the log.

use std::fmt::Display;
use std::time::Duration;
use tokio::time::Instant;

const REPEAT_AFTER: Duration = Duration::from_mins(5);

/// Logs a cause when its kind changes, and while it stays the same now and then.
#[derive(Debug)]
pub struct CauseLog<K> {
    last: Option<Logged<K>>,
    /// The log's last word is that all is well.
    good_is_known: bool,
}

#[derive(Debug)]
struct Logged<K> {
    kind: K,
    at: Instant,
    unlogged_since: u32,
}

impl<K> Default for CauseLog<K> {
    fn default() -> Self {
        Self { last: None, good_is_known: false }
    }
}

impl<K: PartialEq> CauseLog<K> {
    /// Notes a failure of `what`.
    pub fn log(&mut self, what: &str, kind: K, error: &dyn Display) {
        match self.due(kind, Instant::now()) {
            None => return tracing::debug!("{what}: {error}"),
            Some(0) => tracing::warn!("{what}: {error}"),
            Some(unlogged) => tracing::warn!("{what} ({unlogged} more times since this was last said): {error}"),
        }
        self.good_is_known = false;
    }

    /// Notes that it works. Said again only after a cause was.
    pub fn good_news(&mut self, news: &str) {
        if self.good_is_known {
            return tracing::debug!("{news}");
        }
        tracing::info!("{news}");
        self.good_is_known = true;
    }

    /// Whether to log this failure now, and how many of its kind went by unlogged before it.
    fn due(&mut self, kind: K, now: Instant) -> Option<u32> {
        let mut unlogged = 0;
        if let Some(last) = &mut self.last
            && last.kind == kind
        {
            if now - last.at < REPEAT_AFTER {
                last.unlogged_since = last.unlogged_since.saturating_add(1);
                return None;
            }
            unlogged = last.unlogged_since;
        }
        self.last = Some(Logged { kind, at: now, unlogged_since: 0 });
        Some(unlogged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_logged_when_it_changes_and_then_every_five_minutes_with_a_count() {
        let (refused, timed_out) = ("refused", "timed out");
        let (mut causes, start) = (CauseLog::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(causes.due(refused, at(0)), Some(0));
        assert_eq!(causes.due(refused, at(10)), None);
        assert_eq!(causes.due(refused, at(299)), None);
        assert_eq!(causes.due(refused, at(300)), Some(2));
        assert_eq!(causes.due(timed_out, at(310)), Some(0));
        assert_eq!(causes.due(refused, at(320)), Some(0));
    }
}
