//! Progress of long work, one line at the begin and one at the end of each step.

use anyhow::Result;
use std::time::{Duration, Instant};

/// Numbered steps with their times.
pub struct Steps {
    started: Instant,
    total: usize,
    begun: usize,
}

impl Steps {
    /// So many steps lie ahead.
    pub fn new(total: usize) -> Self {
        Self { started: Instant::now(), total, begun: 0 }
    }

    /// Does the next one.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.begun += 1;
        let number = format!("[{}/{}]", self.begun, self.total);
        eprintln!("{number} {name} …");
        let begun = Instant::now();
        let result = work()?;
        eprintln!("{number} {name}: done in {}, {} since the start", time(begun), time(self.started));
        Ok(result)
    }
}

fn time(since: Instant) -> String {
    minutes_and_seconds(since.elapsed())
}

fn minutes_and_seconds(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds / 60 {
        0 => format!("{:.1} s", duration.as_secs_f64()),
        minutes => format!("{minutes} min {:02} s", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_to_read() {
        assert_eq!(minutes_and_seconds(Duration::from_millis(4_640)), "4.6 s");
        assert_eq!(minutes_and_seconds(Duration::from_secs(187)), "3 min 07 s");
    }
}
