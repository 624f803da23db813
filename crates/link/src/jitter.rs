//! Chance in waiting times, so that many who were cut off together do not come back together.

use std::time::Duration;

/// A time from zero to `most`, all equally likely.
pub(crate) fn up_to(most: Duration) -> Duration {
    most.mul_f64(fraction())
}

/// From 0 to below 1. Without randomness from the system, everybody waits half of the time.
fn fraction() -> f64 {
    let mut bytes = [0; 4];
    if aws_lc_rs::rand::fill(&mut bytes).is_err() {
        return 0.5;
    }
    f64::from(u32::from_ne_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}

/// A number that no other process has.
pub(crate) fn process_number() -> u64 {
    let mut bytes = [0; 8];
    match aws_lc_rs::rand::fill(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        // pids are reused, but hardly within the life of a link
        Err(_) => u64::from(std::process::id()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_spread_and_bounded() {
        let most = Duration::from_secs(30);
        let waits: Vec<Duration> = (0..200).map(|_| up_to(most)).collect();
        assert!(waits.iter().all(|wait| *wait < most));
        // the chance that 200 waits all lie in one half is 2^-199
        assert!(waits.iter().any(|wait| *wait < most / 2) && waits.iter().any(|wait| *wait >= most / 2));
    }
}
