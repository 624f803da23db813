use serde::{Deserialize, Serialize};

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
