//! Keeps strangers from filling the server's log: anybody may connect, and each attempt that fails would be a line.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_mins(1);
/// Enough to see what is wrong, and with whom.
const LINES_A_WINDOW: u32 = 20;

/// Counts lines.
#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<Option<Window>>);

#[derive(Clone, Copy, Debug)]
struct Window {
    begun: Instant,
    lines: u32,
}

/// Whether to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Yes, and so many before it were not.
    Log { unlogged: u32 },
    /// No.
    Skip,
}

impl LogLimit {
    /// One more line is wanted.
    pub fn take(&self, now: Instant) -> Turn {
        // each change is one assignment, so a panic elsewhere leaves nothing half done here
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *window {
            Some(window) if now - window.begun < WINDOW => {
                window.lines = window.lines.saturating_add(1);
                if window.lines <= LINES_A_WINDOW { Turn::Log { unlogged: 0 } } else { Turn::Skip }
            }
            before => {
                let unlogged = before.map_or(0, |window| window.lines.saturating_sub(LINES_A_WINDOW));
                *before = Some(Window { begun: now, lines: 1 });
                Turn::Log { unlogged }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_leaves_some_lines_a_minute_and_a_count_of_the_others() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let logged = (0..2_000).filter(|_| limit.take(start) != Turn::Skip).count();
        assert_eq!(logged, 20);
        assert_eq!(limit.take(start + WINDOW), Turn::Log { unlogged: 1_980 });
        assert_eq!(limit.take(start + WINDOW), Turn::Log { unlogged: 0 });
        assert_eq!(limit.take(start + 2 * WINDOW), Turn::Log { unlogged: 0 });
    }
}
