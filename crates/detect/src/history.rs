//! What a vendor's devices were before, so that a tool that fails today does not take them away.

use crate::vendor::Outcome;
use api::{GpuDevice, Reason};
use tokio::time::Instant;

/// The last good reading of one vendor and the most devices it ever gave in this process.
#[derive(Default)]
pub(crate) struct History {
    last: Option<Reading>,
    most_seen: usize,
}

struct Reading {
    devices: Vec<GpuDevice>,
    read_at: Instant,
}

/// The devices to report now.
pub(crate) struct Standing {
    pub devices: Vec<GpuDevice>,
    /// When they were read, if that was not now.
    pub stale_since: Option<Instant>,
    /// Set when there were more before.
    pub missing: Option<Reason>,
}

impl History {
    /// Takes in the outcome of one survey made at `now`.
    pub(crate) fn settle(&mut self, outcome: Outcome, now: Instant) -> Standing {
        match outcome {
            Outcome::Read(devices) => self.settle_reading(devices, now),
            Outcome::Failed { partial } => self.keep_last_or(partial),
            // The tool and every node are gone, as when a container loses its devices: nothing was unplugged.
            Outcome::Nothing => Standing { missing: self.missing(0), ..self.keep_last_or(Vec::new()) },
        }
    }

    fn settle_reading(&mut self, devices: Vec<GpuDevice>, now: Instant) -> Standing {
        self.most_seen = self.most_seen.max(devices.len());
        let missing = self.missing(devices.len());
        self.last = Some(Reading { devices: devices.clone(), read_at: now });
        Standing { devices, stale_since: None, missing }
    }

    fn keep_last_or(&self, partial: Vec<GpuDevice>) -> Standing {
        let last = self.last.as_ref().filter(|last| !last.devices.is_empty());
        let devices = last.map_or(partial, |last| last.devices.clone());
        let missing = self.missing(devices.len());
        Standing { devices, stale_since: last.map(|last| last.read_at), missing }
    }

    fn missing(&self, found: usize) -> Option<Reason> {
        if found >= self.most_seen {
            return None;
        }
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Some(Reason::DevicesMissing { expected: count(self.most_seen), found: count(found) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn devices(count: u32) -> Vec<GpuDevice> {
        (0..count).map(|index| GpuDevice { index, ..GpuDevice::default() }).collect()
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn a_failing_tool_leaves_the_last_devices_with_the_time_they_were_read() {
        let (mut history, start) = (History::default(), Instant::now());
        history.settle(Outcome::Read(devices(8)), start);
        for seconds in [10, 20, 3_600] {
            let standing = history.settle(Outcome::Failed { partial: devices(3) }, after(start, seconds));
            assert_eq!(standing.devices, devices(8));
            assert_eq!(standing.stale_since, Some(start));
            assert_eq!(standing.missing, None);
        }
    }

    #[test]
    fn a_tool_that_recovers_makes_the_devices_current_again() {
        let (mut history, start) = (History::default(), Instant::now());
        history.settle(Outcome::Read(devices(8)), start);
        history.settle(Outcome::Failed { partial: Vec::new() }, after(start, 10));
        let standing = history.settle(Outcome::Read(devices(8)), after(start, 20));
        assert_eq!((standing.devices.len(), standing.stale_since, standing.missing), (8, None, None));
    }

    #[test]
    fn a_tool_that_fails_from_the_start_gives_what_little_it_printed() {
        let standing = History::default().settle(Outcome::Failed { partial: devices(2) }, Instant::now());
        assert_eq!((standing.devices.len(), standing.stale_since), (2, None));
    }

    #[test]
    fn fewer_devices_than_ever_before_are_missing_until_they_return() {
        let (mut history, start) = (History::default(), Instant::now());
        let counts = [(4, None), (8, None), (7, Some(7)), (0, Some(0)), (8, None), (9, None)];
        for (count, found) in counts {
            let standing = history.settle(Outcome::Read(devices(count)), start);
            let missing = found.map(|found| Reason::DevicesMissing { expected: 8, found });
            assert_eq!((standing.devices.len(), standing.missing), (count as usize, missing));
        }
    }

    #[test]
    fn devices_that_were_missing_are_so_while_the_tool_fails() {
        let (mut history, start) = (History::default(), Instant::now());
        history.settle(Outcome::Read(devices(8)), start);
        history.settle(Outcome::Read(devices(7)), after(start, 10));
        let standing = history.settle(Outcome::Failed { partial: Vec::new() }, after(start, 20));
        assert_eq!(standing.missing, Some(Reason::DevicesMissing { expected: 8, found: 7 }));
    }

    #[test]
    fn a_host_whose_nodes_and_tool_vanish_keeps_its_devices_as_stale() {
        let (mut history, start) = (History::default(), Instant::now());
        history.settle(Outcome::Read(devices(8)), start);
        let standing = history.settle(Outcome::Nothing, after(start, 10));
        assert_eq!((standing.devices.len(), standing.stale_since), (8, Some(start)));
        assert_eq!(standing.missing, Some(Reason::DevicesMissing { expected: 8, found: 0 }));
    }

    #[test]
    fn a_host_without_accelerators_is_fine() {
        let standing = History::default().settle(Outcome::Nothing, Instant::now());
        assert_eq!((standing.devices.len(), standing.stale_since, standing.missing), (0, None, None));
    }
}
