//! How long things took.

use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Times of the same kind of request.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// One more.
    pub fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Many more.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// None when there are none.
    pub fn summary(mut self) -> Option<Summary> {
        self.0.sort_unstable();
        let at = |percent: usize| {
            let last = self.0.len().checked_sub(1)?;
            self.0.get((self.0.len() * percent / 100).min(last)).copied().map(milliseconds)
        };
        Some(Summary { count: self.0.len(), p50_ms: at(50)?, p99_ms: at(99)?, max_ms: at(100)? })
    }
}

/// Many times in few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub count: usize,
    /// Half took no longer.
    pub p50_ms: f64,
    /// All but one in a hundred took no longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, p50_ms, p99_ms, max_ms } = self;
        write!(f, "p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms, longest {max_ms:.1} ms ({count})")
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_hundred_are_its_members() {
        let all = Latencies((1..=100).rev().map(Duration::from_millis).collect());
        let summary = all.summary();
        assert_eq!(summary, Some(Summary { count: 100, p50_ms: 51.0, p99_ms: 100.0, max_ms: 100.0 }));
    }

    #[test]
    fn of_nothing_there_is_no_summary() {
        assert_eq!(Latencies::default().summary(), None);
    }
}
