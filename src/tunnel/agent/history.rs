//! When a forward worked and when it did not, hour by hour, and each time that it did not.

use super::clock::AgentTime;
use api::{Availability, CUTS_REPORTED, ForwardCut, ForwardState, TunnelFault};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

const HOUR_MS: u64 = 3_600_000;
const DAY_HOURS: u64 = 24;
const WEEK_HOURS: u64 = 7 * DAY_HOURS;
const MONTH_HOURS: u64 = 30 * DAY_HOURS;
/// Those before are forgotten.
const CUTS_KEPT: usize = 500;

/// What is remembered of a forward.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// By the hour of the agent's time.
    hours: BTreeMap<u64, Hour>,
    /// Oldest first.
    cuts: VecDeque<Cut>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Hour {
    /// How long the agent ran and had tried the forward, in milliseconds.
    observed_ms: u64,
    /// How long of that it worked.
    available_ms: u64,
}

/// A time in which a forward did not work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Cut {
    began: AgentTime,
    ended: Option<AgentTime>,
    fault: TunnelFault,
}

impl History {
    /// Adds the time from `from` to `to`, in which the forward was in `state`.
    pub fn add(&mut self, state: ForwardState, from: AgentTime, to: AgentTime) {
        if state == ForwardState::Starting {
            return;
        }
        let mut at = from.ms();
        while at < to.ms() {
            let hour = at / HOUR_MS;
            let end = to.ms().min((hour + 1) * HOUR_MS);
            let of_hour = self.hours.entry(hour).or_default();
            of_hour.observed_ms += end - at;
            if state.is_available() {
                of_hour.available_ms += end - at;
            }
            at = end;
        }
        let oldest = (to.ms() / HOUR_MS).saturating_sub(MONTH_HOURS);
        self.hours = self.hours.split_off(&oldest);
    }

    /// Notes that it does not work any more, unless that is known.
    pub fn begin_cut(&mut self, now: AgentTime, fault: &TunnelFault) {
        if self.open_cut().is_some() {
            return;
        }
        if self.cuts.len() == CUTS_KEPT {
            self.cuts.pop_front();
        }
        self.cuts.push_back(Cut { began: now, ended: None, fault: fault.clone() });
    }

    /// Notes that it works again, or that nobody looks any more.
    pub fn end_cut(&mut self, now: AgentTime) {
        if let Some(cut) = self.open_cut() {
            cut.ended = Some(now);
        }
    }

    /// Whether it worked in the last 30 days.
    pub fn ever_worked(&self) -> bool {
        self.hours.values().any(|hour| hour.available_ms > 0)
    }

    /// How much of the time it worked.
    pub fn availability(&self, now: AgentTime) -> Availability {
        let of_last = |hours| {
            let first = (now.ms() / HOUR_MS).saturating_sub(hours - 1);
            let (observed, available) = self.hours.range(first..).fold((0, 0), |(observed, available), (_, hour)| {
                (observed + hour.observed_ms, available + hour.available_ms)
            });
            (observed > 0).then(|| available as f64 / observed as f64)
        };
        Availability { day: of_last(DAY_HOURS), week: of_last(WEEK_HOURS), month: of_last(MONTH_HOURS) }
    }

    /// The last cuts, newest first.
    pub fn cuts(&self, now: AgentTime) -> Vec<ForwardCut> {
        let of = |cut: &Cut| ForwardCut {
            began_ago_ms: now.since_ms(cut.began),
            lasted_ms: cut.ended.map(|ended| ended.since_ms(cut.began)),
            fault: cut.fault.clone(),
        };
        self.cuts.iter().rev().take(CUTS_REPORTED).map(of).collect()
    }

    fn open_cut(&mut self) -> Option<&mut Cut> {
        self.cuts.back_mut().filter(|cut| cut.ended.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::FaultCause;
    use proptest::prelude::*;

    const MINUTE_MS: u64 = 60_000;

    fn at(minutes: u64) -> AgentTime {
        AgentTime::from_ms(minutes * MINUTE_MS)
    }

    fn fault() -> TunnelFault {
        TunnelFault { hop: None, cause: FaultCause::SessionClosed {} }
    }

    #[test]
    fn what_was_not_looked_at_counts_for_nothing() {
        let mut history = History::default();
        assert_eq!(history.availability(at(5)), Availability::default());
        history.add(ForwardState::Starting, at(0), at(10));
        assert_eq!(history.availability(at(10)).day, None);
        history.add(ForwardState::Up, at(10), at(100));
        history.add(ForwardState::Degraded, at(100), at(110));
        assert_eq!(history.availability(at(110)).day, Some(0.9));
    }

    #[test]
    fn each_span_counts_its_own_hours() {
        let mut history = History::default();
        history.add(ForwardState::Down, at(0), at(24 * 60));
        history.add(ForwardState::Up, at(24 * 60), at(48 * 60));
        let now = AgentTime::from_ms(48 * HOUR_MS - 1);
        assert_eq!(history.availability(now), Availability { day: Some(1.0), week: Some(0.5), month: Some(0.5) });
    }

    #[test]
    fn a_cut_lasts_until_the_forward_works_again_and_keeps_its_first_cause() {
        let mut history = History::default();
        history.begin_cut(at(1), &fault());
        history.begin_cut(at(2), &TunnelFault { hop: Some("u@h:22".into()), cause: FaultCause::SessionClosed {} });
        assert_eq!(history.cuts(at(3)), [ForwardCut { began_ago_ms: 2 * MINUTE_MS, lasted_ms: None, fault: fault() }]);
        history.end_cut(at(4));
        history.end_cut(at(5));
        history.begin_cut(at(6), &fault());
        let lasted: Vec<_> = history.cuts(at(7)).into_iter().map(|cut| cut.lasted_ms).collect();
        assert_eq!(lasted, [None, Some(3 * MINUTE_MS)]);
    }

    proptest! {
        #[test]
        fn availability_is_a_share_and_the_history_bounded(
            pieces in prop::collection::vec((0_u8..5, 0_u64..20 * HOUR_MS), 0..200)
        ) {
            let states = [
                ForwardState::Starting, ForwardState::Up, ForwardState::Unproved, ForwardState::Degraded, ForwardState::Down,
            ];
            let (mut history, mut now) = (History::default(), 0);
            for (state, length) in pieces {
                let state = states[usize::from(state)];
                history.add(state, AgentTime::from_ms(now), AgentTime::from_ms(now + length));
                now += length;
                if state.is_available() { history.end_cut(AgentTime::from_ms(now)) }
                else { history.begin_cut(AgentTime::from_ms(now), &fault()) }
            }
            let Availability { day, week, month } = history.availability(AgentTime::from_ms(now));
            for share in [day, week, month].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&share));
            }
            prop_assert!(history.hours.len() as u64 <= MONTH_HOURS + 1);
            prop_assert!(history.hours.values().all(|hour| hour.available_ms <= hour.observed_ms && hour.observed_ms <= HOUR_MS));
        }
    }
}
