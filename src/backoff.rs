//! How long to wait between attempts.

use std::time::Duration;

/// Full jitter: each pause is drawn evenly from nothing up to a bound that doubles with every failure. Many workers
/// that lose one server at one moment come back spread out.
/// (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.)
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    failures: u32,
}

impl Backoff {
    /// The first pause is at most `first`, none is longer than `cap`.
    pub fn new(first: Duration, cap: Duration) -> Self {
        Self { first, cap, failures: 0 }
    }

    /// Counts a failure and gives the pause after it.
    pub fn next_pause(&mut self) -> Duration {
        let bound = self.first.saturating_mul(2u32.saturating_pow(self.failures)).min(self.cap);
        self.failures = self.failures.saturating_add(1);
        bound.mul_f64(random_fraction())
    }

    /// Forgets the failures.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// A pause drawn evenly from `shortest` to `longest`.
pub fn random_pause(shortest: Duration, longest: Duration) -> Duration {
    shortest + longest.saturating_sub(shortest).mul_f64(random_fraction())
}

/// From 0 up to, but not, 1.
fn random_fraction() -> f64 {
    const STEPS: u32 = 1 << 20;
    // without a random source the pauses are merely less spread
    let random = getrandom::u32().unwrap_or(STEPS / 2);
    f64::from(random % STEPS) / f64::from(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_stay_under_a_bound_that_doubles_up_to_the_cap() {
        let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
        for bound_ms in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            assert!(backoff.next_pause() < Duration::from_millis(bound_ms));
        }
        for _ in 0..100 {
            assert!(backoff.next_pause() < Duration::from_secs(30));
        }
        backoff.reset();
        assert!(backoff.next_pause() < Duration::from_millis(500));
    }

    #[test]
    fn a_random_pause_lies_between_its_ends() {
        let (shortest, longest) = (Duration::from_secs(10), Duration::from_secs(30));
        for _ in 0..100 {
            let pause = random_pause(shortest, longest);
            assert!(pause >= shortest && pause <= longest);
        }
    }
}
