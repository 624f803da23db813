use crate::{Reason, Severity};
use serde::{Deserialize, Serialize};

/// Beyond this the clocks differ.
const CLOCK_WARNING_MS: i64 = 1_000;
/// Beyond this certificates, logs and schedules go wrong.
const CLOCK_ERROR_MS: i64 = 30_000;
const HALF_HOUR_MS: i64 = 30 * 60 * 1_000;
/// A time zone fault is at least half an hour, with a minute left for the drift that comes with it.
const ZONE_LEAST_MS: i64 = 29 * 60 * 1_000;
/// The zone farthest from UTC is 14 hours away.
const ZONE_MOST_MS: i64 = (14 * 60 + 1) * 60 * 1_000;
/// How far from a whole number of half hours a zone fault may be, for the drift that comes with it.
const ZONE_NEAR_MS: i64 = 90 * 1_000;

/// The four times of one exchange, in milliseconds since 1970: `sent` and `answered` by the worker's clock,
/// `received` and `returned` by the server's (RFC 5905, section 8: T1, T4 and T2, T3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSample {
    /// The worker's clock when it sent the request.
    pub sent_ms: i64,
    /// The server's clock when it had received it.
    pub received_ms: i64,
    /// The server's clock when it answered.
    pub returned_ms: i64,
    /// The worker's clock when it had the answer.
    pub answered_ms: i64,
}

/// How far a worker's clock is from the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClockMeasurement {
    /// Worker minus server, in milliseconds: positive when the worker is ahead.
    pub offset_ms: i64,
    /// The true offset lies within plus or minus this, in milliseconds: half the round trip.
    pub error_ms: i64,
}

/// What a clock's measurement means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockVerdict {
    /// How much it matters.
    pub severity: Severity,
    /// The half hours that it is off by, when it is off as by a wrong time zone.
    pub half_hours: Option<i32>,
}

impl ClockMeasurement {
    /// Judges the clock. Only what lies beyond the error bar is held against it.
    pub fn verdict(self) -> ClockVerdict {
        let distance_ms = self.offset_ms.saturating_abs();
        let certain_ms = distance_ms.saturating_sub(self.error_ms.max(0));
        let severity = if certain_ms <= CLOCK_WARNING_MS {
            Severity::Ok
        } else if certain_ms <= CLOCK_ERROR_MS {
            Severity::Warning
        } else {
            Severity::Error
        };
        let half_hours = if severity == Severity::Ok { None } else { zone_fault(self.offset_ms) };
        ClockVerdict { severity, half_hours }
    }

    /// The verdict as a reason.
    pub fn reason(self) -> Reason {
        let Self { offset_ms, error_ms } = self;
        match self.verdict() {
            ClockVerdict { severity: Severity::Ok, .. } => Reason::ClockInSync { offset_ms, error_ms },
            ClockVerdict { half_hours: Some(half_hours), .. } => {
                Reason::ClockOffsetZone { offset_ms, error_ms, half_hours }
            }
            ClockVerdict { half_hours: None, .. } => Reason::ClockOffset { offset_ms, error_ms },
        }
    }
}

fn zone_fault(offset_ms: i64) -> Option<i32> {
    let distance_ms = offset_ms.saturating_abs();
    if !(ZONE_LEAST_MS..=ZONE_MOST_MS).contains(&distance_ms) {
        return None;
    }
    let half_hours = distance_ms.saturating_add(HALF_HOUR_MS / 2) / HALF_HOUR_MS;
    if (distance_ms - half_hours * HALF_HOUR_MS).abs() > ZONE_NEAR_MS {
        return None;
    }
    i32::try_from(half_hours * offset_ms.signum()).ok()
}

impl ClockSample {
    /// RFC 5905's offset and half its delay. None when the round trip comes out negative, which a clock that was
    /// set during the exchange does; the next exchange then measures.
    pub fn measure(self) -> Option<ClockMeasurement> {
        let there = self.sent_ms.checked_sub(self.received_ms)?;
        let back = self.answered_ms.checked_sub(self.returned_ms)?;
        let delay_ms = back.checked_sub(there)?;
        if delay_ms < 0 {
            return None;
        }
        Some(ClockMeasurement { offset_ms: i64::midpoint(there, back), error_ms: delay_ms.div_euclid(2) + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_ahead_has_a_positive_offset_and_half_the_round_trip_as_error() {
        let sample = ClockSample { sent_ms: 188_000, received_ms: 1_020, returned_ms: 1_030, answered_ms: 188_050 };
        let measured = sample.measure();
        assert_eq!(measured, Some(ClockMeasurement { offset_ms: 187_000, error_ms: 21 }));
    }

    #[test]
    fn a_clock_set_back_during_the_exchange_measures_nothing() {
        let sample = ClockSample { sent_ms: 10_000, received_ms: 10_000, returned_ms: 10_001, answered_ms: 2_000 };
        assert_eq!(sample.measure(), None);
    }

    #[test]
    fn a_clock_is_judged_beyond_its_error_bar() {
        let minute = 60_000;
        let table = [
            (0, 10, Severity::Ok, None),
            (1_009, 10, Severity::Ok, None),
            (-1_011, 10, Severity::Warning, None),
            (5_000, 4_500, Severity::Ok, None),
            (187_000, 20, Severity::Error, None),
            (30_020, 20, Severity::Warning, None),
            (30_021, 20, Severity::Error, None),
            (480 * minute + 3_000, 20, Severity::Error, Some(16)),
            (-480 * minute - 89_000, 20, Severity::Error, Some(-16)),
            (-480 * minute - 91_000, 20, Severity::Error, None),
            (330 * minute, 20, Severity::Error, Some(11)),
            (345 * minute, 20, Severity::Error, None),
            (29 * minute, 20, Severity::Error, Some(1)),
            (29 * minute - 1, 20, Severity::Error, None),
            (14 * 60 * minute + minute, 20, Severity::Error, Some(28)),
            (14 * 60 * minute + minute + 1, 20, Severity::Error, None),
            (-1_790_000_000_000, 20, Severity::Error, None),
            (i64::MIN, i64::MIN, Severity::Error, None),
            (i64::MAX, i64::MAX, Severity::Ok, None),
        ];
        for (offset_ms, error_ms, severity, half_hours) in table {
            let verdict = ClockMeasurement { offset_ms, error_ms }.verdict();
            assert_eq!(verdict, ClockVerdict { severity, half_hours }, "{offset_ms} ± {error_ms}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_true_offset_lies_within_the_error_bar(offset in -1_000_000_000i64..1_000_000_000, there in 0i64..5_000, work in 0i64..1_000, back in 0i64..5_000) {
            let received_ms = 1_700_000_000_000 + there;
            let returned_ms = received_ms + work;
            let sample = ClockSample { sent_ms: 1_700_000_000_000 + offset, received_ms, returned_ms, answered_ms: returned_ms + back + offset };
            let measured = sample.measure();
            proptest::prop_assert!(measured.is_some_and(|m| (m.offset_ms - offset).abs() <= m.error_ms));
        }
    }
}
