//! How far this host's clock is from the server's: the best of the last few exchanges. It is measured and shown;
//! nothing depends on it.

use api::{ClockMeasurement, ClockSample};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// An older measurement says little of the clock now.
const OLDEST: Duration = Duration::from_mins(1);
/// So many fit into that time at the usual interval.
const KEPT: usize = 8;
/// The wall clock and the monotonic one drift apart by far less in a minute, even while the wall clock is slewed
/// (at most 500 ppm, `adjtimex(2)`).
const JUMP: Duration = Duration::from_millis(500);

/// Chooses among the last exchanges.
#[derive(Debug, Default)]
pub struct ClockFilter {
    exchanges: VecDeque<Exchange>,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    answered_at: Instant,
    answered_ms: i64,
    measured: ClockMeasurement,
}

impl ClockFilter {
    /// Takes the exchange in whose answer arrived at `answered_at` and which took `took`, both by the monotonic clock.
    pub fn push(&mut self, sample: ClockSample, answered_at: Instant, took: Duration) {
        let jumped_before = self
            .exchanges
            .back()
            .is_some_and(|last| differ(sample.answered_ms - last.answered_ms, answered_at - last.answered_at));
        let jumped_during = differ(sample.answered_ms - sample.sent_ms, took);
        if jumped_before || jumped_during {
            self.exchanges.clear();
        }
        if jumped_during {
            return;
        }
        let Some(measured) = sample.measure() else {
            return;
        };
        if self.exchanges.back().is_some_and(|last| contradict(last.measured, measured)) {
            self.exchanges.clear();
        }
        if self.exchanges.len() == KEPT {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(Exchange { answered_at, answered_ms: sample.answered_ms, measured });
    }

    /// The measurement with the smallest error, of those that are young enough and were made since the clock was last
    /// set.
    pub fn best(&self, now: Instant) -> Option<ClockMeasurement> {
        self.exchanges
            .iter()
            .filter(|exchange| now - exchange.answered_at <= OLDEST)
            .map(|exchange| exchange.measured)
            .min_by_key(|measured| measured.error_ms)
    }
}

/// Whether the two cannot both be true: then the server's clock was set in between, which this host's does not show.
fn contradict(earlier: ClockMeasurement, later: ClockMeasurement) -> bool {
    let apart_ms = i128::from(earlier.offset_ms) - i128::from(later.offset_ms);
    let errors_ms = i128::from(earlier.error_ms) + i128::from(later.error_ms);
    apart_ms.abs() > errors_ms + i128::try_from(JUMP.as_millis()).unwrap_or(i128::MAX)
}

/// Whether the wall clock moved otherwise than the monotonic one.
fn differ(wall_ms: i64, monotonic: Duration) -> bool {
    let monotonic_ms = i64::try_from(monotonic.as_millis()).unwrap_or(i64::MAX);
    wall_ms.abs_diff(monotonic_ms) > u64::try_from(JUMP.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An exchange at `at_s` seconds, by a clock that is `offset_ms` ahead, with `round_trip_ms` on the wire.
    fn push(filter: &mut ClockFilter, start: Instant, at_s: u64, offset_ms: i64, round_trip_ms: i64) {
        let took = Duration::from_millis(u64::try_from(round_trip_ms).unwrap());
        let server_ms = i64::try_from(at_s * 1000).unwrap();
        let sample = ClockSample {
            sent_ms: server_ms + offset_ms,
            received_ms: server_ms + round_trip_ms / 2,
            returned_ms: server_ms + round_trip_ms / 2,
            answered_ms: server_ms + round_trip_ms + offset_ms,
        };
        filter.push(sample, start + Duration::from_secs(at_s) + took, took);
    }

    fn best(filter: &ClockFilter, start: Instant, at_s: u64) -> Option<(i64, i64)> {
        filter.best(start + Duration::from_secs(at_s)).map(|measured| (measured.offset_ms, measured.error_ms))
    }

    #[test]
    fn the_exchange_with_the_smallest_error_wins() {
        let (mut filter, start) = (ClockFilter::default(), Instant::now());
        assert_eq!(best(&filter, start, 0), None);
        push(&mut filter, start, 1, 187_000, 400);
        push(&mut filter, start, 2, 187_000, 20);
        push(&mut filter, start, 12, 187_000, 900);
        assert_eq!(best(&filter, start, 13), Some((187_000, 11)));
    }

    #[test]
    fn an_exchange_older_than_a_minute_no_longer_counts() {
        let (mut filter, start) = (ClockFilter::default(), Instant::now());
        push(&mut filter, start, 1, 50, 20);
        push(&mut filter, start, 50, 80, 200);
        assert_eq!(best(&filter, start, 55), Some((50, 11)));
        assert_eq!(best(&filter, start, 62), Some((80, 101)));
        assert_eq!(best(&filter, start, 200), None);
    }

    #[test]
    fn a_clock_that_was_set_forgets_what_was_measured_before() {
        let (mut filter, start) = (ClockFilter::default(), Instant::now());
        push(&mut filter, start, 1, 187_000, 20);
        push(&mut filter, start, 11, 3, 300);
        assert_eq!(best(&filter, start, 12), Some((3, 151)));
    }

    #[test]
    fn a_server_whose_clock_was_set_is_measured_anew_at_once() {
        let (mut filter, start) = (ClockFilter::default(), Instant::now());
        push(&mut filter, start, 1, 50, 20);
        let took = Duration::from_millis(600);
        // the worker's clock goes on steadily; the server's is eight hours ahead all of a sudden
        let server_ms = 11_300 + 8 * 3_600_000;
        let sample =
            ClockSample { sent_ms: 11_050, received_ms: server_ms, returned_ms: server_ms, answered_ms: 11_650 };
        filter.push(sample, start + Duration::from_millis(11_600), took);
        assert_eq!(best(&filter, start, 12), Some((50 - 8 * 3_600_000, 301)));
    }

    #[test]
    fn a_clock_set_during_the_exchange_measures_nothing() {
        let (mut filter, start) = (ClockFilter::default(), Instant::now());
        let sample = ClockSample { sent_ms: 0, received_ms: 10, returned_ms: 10, answered_ms: 3_600_000 };
        filter.push(sample, start, Duration::from_millis(20));
        assert_eq!(filter.best(start), None);
    }
}
