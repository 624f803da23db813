//! Since when each problem has been there, by the monotonic clock.

use crate::vendor::Finding;
use api::{Problem, Reason};
use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use tokio::time::Instant;

/// Remembers when each problem that is there now began.
#[derive(Default)]
pub(crate) struct ProblemAges {
    began: HashMap<ProblemKey, Instant>,
}

/// What makes two findings the same problem: the kind and the thing it is about. The other parameters (a tool's
/// output, a count) may change while the problem goes on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ProblemKey {
    kind: Discriminant<Reason>,
    subject: String,
}

impl ProblemAges {
    /// Gives each finding its age at `now` and forgets the problems that are over. Logs what began and what ended,
    /// and nothing in between.
    pub(crate) fn date(&mut self, findings: Vec<Finding>, now: Instant) -> Vec<Problem> {
        let mut present = HashMap::with_capacity(findings.len());
        let mut problems = Vec::with_capacity(findings.len());
        for Finding { severity, reason } in findings {
            let key = ProblemKey::of(&reason);
            if present.contains_key(&key) {
                continue;
            }
            let began = self.began.remove(&key).unwrap_or_else(|| {
                tracing::warn!(?severity, ?reason, "a problem of this host began");
                now
            });
            present.insert(key, began);
            problems.push(Problem { severity, reason, age_s: now.saturating_duration_since(began).as_secs() });
        }
        for (key, began) in std::mem::replace(&mut self.began, present) {
            let lasted_s = now.saturating_duration_since(began).as_secs();
            tracing::info!(kind = ?key.kind, subject = key.subject, lasted_s, "a problem of this host is over");
        }
        problems
    }
}

impl ProblemKey {
    fn of(reason: &Reason) -> Self {
        let subject = match reason {
            Reason::ToolTimedOut { tool, .. }
            | Reason::ToolFailed { tool, .. }
            | Reason::ToolNotStarted { tool, .. }
            | Reason::ToolMissing { tool }
            | Reason::ReadingsForbidden { tool }
            | Reason::ToolOutputUnknown { tool, .. }
            | Reason::DriverInitFailed { tool, .. }
            | Reason::DriverLibraryMissing { tool, .. }
            | Reason::DeviceInUseElsewhere { tool, .. } => tool.clone(),
            Reason::DeviceNodeMissing { node } | Reason::DeviceNodeUnreadable { node } => node.clone(),
            Reason::DeviceUnhealthy { index, .. } => index.to_string(),
            Reason::DriverNotLoaded { vendor, .. } | Reason::DriverMismatch { vendor, .. } => vendor.clone(),
            Reason::DeviceLost { device, .. } => device.clone(),
            Reason::VisibleDevicesWrong { variable, .. } => variable.clone(),
            _ => String::new(),
        };
        Self { kind: discriminant(reason), subject }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn failed(output: &str) -> Finding {
        Finding::error(Reason::ToolFailed { tool: "npu-smi".into(), exit_code: Some(1), output: output.into() })
    }

    fn ages(problems: &[Problem]) -> Vec<u64> {
        problems.iter().map(|problem| problem.age_s).collect()
    }

    #[test]
    fn an_age_counts_from_the_beginning_though_the_details_change() {
        let (mut problem_ages, start) = (ProblemAges::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(ages(&problem_ages.date(vec![failed("pid 17")], at(0))), [0]);
        assert_eq!(ages(&problem_ages.date(vec![failed("pid 18")], at(10))), [10]);
        assert_eq!(ages(&problem_ages.date(vec![failed("pid 19")], at(25))), [25]);
    }

    #[test]
    fn a_problem_that_was_over_begins_anew() {
        let (mut problem_ages, start) = (ProblemAges::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        problem_ages.date(vec![failed("")], at(0));
        assert!(problem_ages.date(Vec::new(), at(10)).is_empty());
        assert_eq!(ages(&problem_ages.date(vec![failed("")], at(20))), [0]);
    }

    #[test]
    fn problems_of_two_devices_have_ages_of_their_own() {
        let (mut problem_ages, start) = (ProblemAges::default(), Instant::now());
        let sick =
            |index| Finding::warning(Reason::DeviceUnhealthy { index, name: String::new(), health: "Alarm".into() });
        problem_ages.date(vec![sick(3)], start);
        let problems = problem_ages.date(vec![sick(3), sick(5)], start + Duration::from_mins(1));
        assert_eq!(ages(&problems), [60, 0]);
    }

    #[test]
    fn the_same_problem_found_twice_is_told_once() {
        let problems = ProblemAges::default().date(vec![failed("a"), failed("b")], Instant::now());
        assert_eq!(problems.len(), 1);
    }
}
