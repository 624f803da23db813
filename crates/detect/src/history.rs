//! What a vendor's devices were before, so that a tool that fails today does not take them away.

use crate::vendor::{Finding, Outcome, Reading};
use api::{GpuDevice, Reason};
use tokio::time::Instant;

/// The last good reading of one vendor and the most devices it ever gave in this process.
#[derive(Default)]
pub(crate) struct History {
    last: Option<(Reading, Instant)>,
    most_seen: usize,
}

/// The devices to report now.
#[derive(Debug, PartialEq)]
pub(crate) struct Standing {
    pub devices: Vec<GpuDevice>,
    /// When they were read, if that was not now.
    pub stale_since: Option<Instant>,
    /// What is wrong with them, and whether there were more before.
    pub findings: Vec<Finding>,
}

impl History {
    /// Takes in the outcome of one survey made at `now`.
    pub(crate) fn settle(&mut self, outcome: Outcome, now: Instant) -> Standing {
        match outcome {
            Outcome::Read(reading) => {
                self.most_seen = self.most_seen.max(reading.devices.len());
                self.last = Some((reading.clone(), now));
                self.standing(reading.devices.len(), reading, None)
            }
            Outcome::Failed { partial } => {
                let (reading, stale_since) = self.last_or(partial);
                self.standing(reading.devices.len(), reading, stale_since)
            }
            // The tool and every node are gone, as when a container loses its devices: nothing was unplugged.
            Outcome::Nothing => {
                let (reading, stale_since) = self.last_or(Reading::default());
                self.standing(0, reading, stale_since)
            }
        }
    }

    fn last_or(&self, partial: Reading) -> (Reading, Option<Instant>) {
        match &self.last {
            Some((reading, read_at)) if !reading.devices.is_empty() => (reading.clone(), Some(*read_at)),
            _ => (partial, None),
        }
    }

    fn standing(&self, found: usize, reading: Reading, stale_since: Option<Instant>) -> Standing {
        let mut findings = reading.unhealthy;
        findings.extend(self.missing(found).map(Finding::error));
        Standing { devices: reading.devices, stale_since, findings }
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

    fn reading(count: u32) -> Reading {
        let devices = (0..count).map(|index| GpuDevice { index, ..GpuDevice::default() }).collect();
        Reading { devices, unhealthy: Vec::new() }
    }

    fn read(count: u32) -> Outcome {
        Outcome::Read(reading(count))
    }

    fn failed(count: u32) -> Outcome {
        Outcome::Failed { partial: reading(count) }
    }

    fn standing(count: u32, stale_since: Option<Instant>, findings: Vec<Finding>) -> Standing {
        Standing { devices: reading(count).devices, stale_since, findings }
    }

    fn missing(expected: u32, found: u32) -> Finding {
        Finding::error(Reason::DevicesMissing { expected, found })
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn a_failing_tool_leaves_the_last_devices_with_the_time_they_were_read() {
        let (mut history, start) = (History::default(), Instant::now());
        history.settle(read(8), start);
        for seconds in [10, 20, 3_600] {
            assert_eq!(history.settle(failed(3), after(start, seconds)), standing(8, Some(start), vec![]));
        }
    }

    #[test]
    fn a_tool_that_recovers_makes_the_devices_current_again() {
        let (mut history, start) = (History::default(), Instant::now());
        history.settle(read(8), start);
        history.settle(failed(0), after(start, 10));
        assert_eq!(history.settle(read(8), after(start, 20)), standing(8, None, vec![]));
    }

    #[test]
    fn a_tool_that_fails_from_the_start_gives_what_little_it_printed() {
        assert_eq!(History::default().settle(failed(2), Instant::now()), standing(2, None, vec![]));
    }

    #[test]
    fn fewer_devices_than_ever_before_are_missing_until_they_return() {
        let (mut history, start) = (History::default(), Instant::now());
        for (count, expected) in
            [(4, vec![]), (8, vec![]), (7, vec![missing(8, 7)]), (0, vec![missing(8, 0)]), (8, vec![]), (9, vec![])]
        {
            assert_eq!(history.settle(read(count), start), standing(count, None, expected));
        }
    }

    #[test]
    fn devices_that_were_missing_are_so_while_the_tool_fails() {
        let (mut history, start) = (History::default(), Instant::now());
        history.settle(read(8), start);
        let read_at = after(start, 10);
        history.settle(read(7), read_at);
        assert_eq!(history.settle(failed(0), after(start, 20)), standing(7, Some(read_at), vec![missing(8, 7)]));
    }

    #[test]
    fn a_sick_device_is_so_while_the_tool_fails() {
        let (mut history, start) = (History::default(), Instant::now());
        let sick = Finding::error(Reason::DeviceUnhealthy { index: 0, name: "910B".into(), health: "Alarm".into() });
        history.settle(Outcome::Read(Reading { unhealthy: vec![sick.clone()], ..reading(1) }), start);
        assert_eq!(history.settle(failed(0), after(start, 10)), standing(1, Some(start), vec![sick]));
        assert_eq!(history.settle(read(1), after(start, 20)), standing(1, None, vec![]));
    }

    #[test]
    fn a_host_whose_nodes_and_tool_vanish_keeps_its_devices_as_stale() {
        let (mut history, start) = (History::default(), Instant::now());
        history.settle(read(8), start);
        let expected = standing(8, Some(start), vec![missing(8, 0)]);
        assert_eq!(history.settle(Outcome::Nothing, after(start, 10)), expected);
    }

    #[test]
    fn a_host_without_accelerators_is_fine() {
        assert_eq!(History::default().settle(Outcome::Nothing, Instant::now()), standing(0, None, vec![]));
    }
}
