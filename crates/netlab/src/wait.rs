//! Waiting for what must come.

use std::fmt::Debug;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Nothing that is waited for takes longer on the slowest machine.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks again and again until what is wished is there, and gives it. Otherwise `look` tells what is there instead.
///
/// # Panics
///
/// When it never comes; with what was there last.
#[expect(clippy::panic, reason = "a test or measurement that waits in vain cannot go on")]
pub fn until<T, Other: Debug>(what: &str, mut look: impl FnMut() -> Result<T, Other>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(other) if Instant::now() > deadline => panic!("never seen: {what}; instead: {other:?}"),
            Err(_) => sleep(LOOK_EVERY),
        }
    }
}
