//! One English sentence of plain text about a worker's state, for programs of GPUStack 0.7 that know no conditions.
//! People read the conditions, in their own language.

use api::{Condition, ConditionKind, ConditionStatus, LinkLoss, Maintenance, Reason, WorkerState};
use chrono::{DateTime, SecondsFormat};

/// The sentence; None when the worker is ready.
pub fn state_message(state: WorkerState, conditions: &[Condition], maintenance: &Maintenance) -> Option<String> {
    match state {
        WorkerState::Ready => None,
        WorkerState::Maintenance => {
            Some(maintenance.message.clone().unwrap_or_else(|| "Taken out of service by an operator.".to_owned()))
        }
        WorkerState::Pending => Some("Waiting for the first heartbeat since the server started.".to_owned()),
        WorkerState::NotReady => first_reason(conditions, ConditionKind::Heartbeat).map(sentence),
        WorkerState::Unreachable => {
            let direct = first_reason(conditions, ConditionKind::Direct).map(sentence);
            let link = first_reason(conditions, ConditionKind::Link).map(sentence);
            let mut told: Vec<String> = direct.into_iter().chain(link).collect();
            // both fail for one tunnel
            told.dedup();
            (!told.is_empty()).then(|| told.join(" "))
        }
    }
}

/// A moment as GPUStack 0.7 writes it: UTC, whole seconds.
pub fn rfc3339(ms: i64) -> Option<String> {
    DateTime::from_timestamp_millis(ms).map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

fn first_reason(conditions: &[Condition], kind: ConditionKind) -> Option<&Reason> {
    let found =
        conditions.iter().find(|condition| condition.kind == kind && condition.status == ConditionStatus::False);
    found.map(|condition| &condition.reason)
}

fn sentence(reason: &Reason) -> String {
    match reason {
        Reason::HeartbeatLost { last_ms, timeout_s } => match last_ms.and_then(rfc3339) {
            Some(last) => format!(
                "Heartbeat lost: none since {last}, and the offline timeout is {timeout_s} s. Check that the worker runs and can reach the server."
            ),
            None => {
                "Heartbeat lost: there never was one. Check that the worker runs and can reach the server.".to_owned()
            }
        },
        Reason::WorkerStopped { at_ms } => match rfc3339(*at_ms) {
            Some(at) => format!("The worker was stopped at {at}."),
            None => "The worker was stopped.".to_owned(),
        },
        Reason::TunnelDown { forward, agent, since_ms } => {
            let what = match forward {
                Some(forward) => format!("The tunnel {forward} of the tunnel agent {agent} does not work"),
                None => format!("The tunnel agent {agent} is not connected"),
            };
            let since = rfc3339(*since_ms).map(|since| format!(" since {since}")).unwrap_or_default();
            format!("{what}{since}. The server's page of tunnels says why.")
        }
        Reason::DirectRefused { url } => unreachable(url, "the connection was refused"),
        Reason::DirectTimedOut { url, timeout_s } => unreachable(url, &format!("no answer within {timeout_s} s")),
        Reason::DirectNotResolved { url, host } => unreachable(url, &format!("the name {host} has no address")),
        Reason::DirectNoRoute { url } => unreachable(url, "the server has no route to that network"),
        Reason::DirectClosed { url } => unreachable(url, "the connection was closed without an answer"),
        Reason::DirectWrongAnswer { url, status: Some(status) } => {
            unreachable(url, &format!("something else than this worker answered, with HTTP status {status}"))
        }
        Reason::DirectWrongAnswer { url, status: None } => unreachable(url, "something else than a worker answered"),
        Reason::DirectWrongWorker { url, name } => unreachable(url, &format!("another worker answered: {name}")),
        Reason::LinkDown { loss } => {
            let how = match loss {
                LinkLoss::Closed => "it was closed",
                LinkLoss::Silent => "no sign of life came over it",
                LinkLoss::Broken => "its connection broke",
                LinkLoss::NotSinceStart => "the worker has dialled none since the server started",
            };
            format!("Nor over the worker's link: {how}.")
        }
        Reason::LinkUnanswered { status: Some(status), .. } => {
            format!("Nor over the worker's link: it answered with HTTP status {status}.")
        }
        Reason::LinkUnanswered { timeout_s, status: None } => {
            format!("Nor over the worker's link: no answer within {timeout_s} s.")
        }
        _ => "The worker's conditions tell more.".to_owned(),
    }
}

fn unreachable(url: &str, cause: &str) -> String {
    format!("The server cannot reach the worker at {url}: {cause}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Severity;

    fn condition(kind: ConditionKind, reason: Reason) -> Condition {
        Condition { kind, status: ConditionStatus::False, severity: Severity::Error, reason, since_ms: None }
    }

    #[test]
    fn the_sentence_tells_the_direction_that_fails() {
        let conditions = [
            condition(ConditionKind::Heartbeat, Reason::HeartbeatLost { last_ms: Some(0), timeout_s: 60 }),
            condition(ConditionKind::Direct, Reason::DirectRefused { url: "http://h:1/healthz".into() }),
        ];
        let told = |state| state_message(state, &conditions, &Maintenance::default());
        assert_eq!(told(WorkerState::Ready), None);
        assert!(told(WorkerState::NotReady).unwrap().starts_with("Heartbeat lost: none since 1970-01-01T00:00:00Z,"));
        assert_eq!(
            told(WorkerState::Unreachable).unwrap(),
            "The server cannot reach the worker at http://h:1/healthz: the connection was refused."
        );
        let link = condition(ConditionKind::Link, Reason::LinkDown { loss: LinkLoss::Silent });
        let both = [conditions[1].clone(), link];
        assert_eq!(
            state_message(WorkerState::Unreachable, &both, &Maintenance::default()).unwrap(),
            "The server cannot reach the worker at http://h:1/healthz: the connection was refused. Nor over the worker's \
             link: no sign of life came over it."
        );
    }
}
