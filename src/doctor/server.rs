//! The way between a worker and its server, both directions, tried as the worker would go it.

use super::port::{self, Port};
use crate::config::WorkerConfig;
use crate::worker::{Examiner, JoinError, existing_uuid};
use api::{
    Check, ClockSample, CredentialKind, ExaminationAnswer, HostReason, Reason, Seen, Severity, WayBackAddress,
    WorkerUuid,
};
use chrono::Utc;
use std::net::IpAddr;
use tokio::time::Instant;
use uuid::Uuid;

/// Looks at the server, the credential, the clock, the worker's port and the way back to it.
pub(super) async fn look(config: &WorkerConfig) -> Vec<Check> {
    // a host that has not joined yet is somebody for as long as the doctor looks
    let uuid = existing_uuid(&config.data_dir).unwrap_or_else(|| WorkerUuid(Uuid::new_v4()));
    let port = port::look(config.identity.port, uuid).await;
    let mut checks = match Examiner::new(config) {
        Ok(examiner) => ask(config, &examiner, &port).await,
        Err(error) => {
            let seen = server_seen(config, None, None);
            vec![Check::bad(seen, Severity::Error, HostReason::ServerRefuses { message: error.to_string() })]
        }
    };
    // after the server, before the way back to it
    let place = checks.len().saturating_sub(1);
    checks.insert(place, port.check);
    checks
}

async fn ask(config: &WorkerConfig, examiner: &Examiner, port: &Port) -> Vec<Check> {
    let ip = examiner.address().await;
    let way_back = port.answering.map(|_| WayBackAddress { ip, port: config.identity.port });
    let kind = examiner.credential();
    if kind == CredentialKind::Nothing {
        return without_credential(config, examiner).await;
    }
    let uuid = port.answering.unwrap_or_else(|| WorkerUuid(Uuid::new_v4()));
    let (begun, sent_ms) = (Instant::now(), Utc::now().timestamp_millis());
    let answer = examiner.ask(uuid, way_back.clone()).await;
    let answered_ms = Utc::now().timestamp_millis();
    match answer {
        Ok(answer) => {
            let took_ms = u64::try_from(begun.elapsed().as_millis()).ok();
            let ExaminationAnswer { received_ms, returned_ms, .. } = answer;
            let sample = ClockSample { sent_ms, received_ms, returned_ms, answered_ms };
            vec![
                Check::good(server_seen(config, Some(answer.server_version), took_ms)),
                Check::good(Seen::Credential { kind, known_as: answer.known_as }),
                clock(sample),
                way_back_check(config, way_back.map(|address| address.ip), answer.way_back),
            ]
        }
        Err(error) => failed(config, kind, error),
    }
}

fn clock(sample: ClockSample) -> Check {
    let Some(measured) = sample.measure() else {
        return Check::bad(Seen::ServerClock { measured: None }, Severity::Ok, Reason::ClockNotMeasured {});
    };
    let seen = Seen::ServerClock { measured: Some(measured) };
    match measured.verdict().severity {
        Severity::Ok => Check::good(seen),
        severity => Check::bad(seen, severity, measured.reason()),
    }
}

/// A worker that the server cannot reach at its port works over its link, so this is never a failure.
fn way_back_check(config: &WorkerConfig, ip: Option<IpAddr>, found: Option<Reason>) -> Check {
    let url = way_back_url(config, ip);
    match found {
        Some(Reason::DirectAnswered { url, round_trip_ms }) => {
            Check::good(Seen::WayBack { url, round_trip_ms: Some(round_trip_ms) })
        }
        Some(reason) => Check::bad(Seen::WayBack { url, round_trip_ms: None }, Severity::Warning, reason),
        None => {
            let seen = Seen::WayBack { url, round_trip_ms: None };
            Check::bad(seen, Severity::Ok, HostReason::WayBackNotTried {})
        }
    }
}

fn way_back_url(config: &WorkerConfig, ip: Option<IpAddr>) -> String {
    ip.map(|ip| crate::server::dial::health_url(&ip.to_string(), config.identity.port)).unwrap_or_default()
}

fn server_seen(config: &WorkerConfig, version: Option<String>, took_ms: Option<u64>) -> Seen {
    Seen::Server { url: config.server_url.to_string(), version, took_ms }
}

/// The server is asked all the same, with a token that cannot be right: whether it refuses that is what can be known
/// without one.
async fn without_credential(config: &WorkerConfig, examiner: &Examiner) -> Vec<Check> {
    let server = match examiner.try_without_credential().await {
        JoinError::WrongToken { .. } => Check::good(server_seen(config, None, None)),
        error => Check::bad(server_seen(config, None, None), Severity::Error, reason(error)),
    };
    let seen = Seen::Credential { kind: CredentialKind::Nothing, known_as: None };
    // who leaves it out has it looked at without
    let credential = Check::bad(seen, Severity::Ok, HostReason::TokenMissing {});
    vec![server, credential, unknown_clock(HostReason::TokenNeeded {}), unknown_way(config, HostReason::TokenNeeded {})]
}

/// What stands in the way is told where it belongs, and what depends on it is not looked at.
fn failed(config: &WorkerConfig, kind: CredentialKind, error: JoinError) -> Vec<Check> {
    let reason = reason(error);
    let credential = Seen::Credential { kind, known_as: None };
    let server = server_seen(config, None, None);
    let is_refused = is_about_credential(&reason);
    let (server, credential) = if is_refused {
        (Check::good(server), Check::bad(credential, Severity::Error, reason))
    } else {
        let not_reached = HostReason::ServerNotReached {};
        (Check::bad(server, Severity::Error, reason), Check::bad(credential, Severity::Ok, not_reached))
    };
    let why = if is_refused { HostReason::TokenNeeded {} } else { HostReason::ServerNotReached {} };
    vec![server, credential, unknown_clock(why.clone()), unknown_way(config, why)]
}

fn unknown_clock(why: HostReason) -> Check {
    Check::bad(Seen::ServerClock { measured: None }, Severity::Ok, why)
}

fn unknown_way(config: &WorkerConfig, why: HostReason) -> Check {
    Check::bad(Seen::WayBack { url: way_back_url(config, config.identity.ip), round_trip_ms: None }, Severity::Ok, why)
}

fn is_about_credential(reason: &HostReason) -> bool {
    matches!(
        reason,
        HostReason::TokenMissing {}
            | HostReason::TokenWrong { .. }
            | HostReason::WorkerNotKnown { .. }
            | HostReason::ServerKeyChanged { .. }
            | HostReason::ServerNotProven { .. }
    )
}

/// What a worker would log, as a reason that has words in every language.
fn reason(error: JoinError) -> HostReason {
    match error {
        JoinError::NotResolved { host } => HostReason::ServerNotResolved { host },
        JoinError::Refused { address } => HostReason::ServerRefused { address },
        JoinError::NoRoute { address } => HostReason::ServerNoRoute { address },
        JoinError::TimedOut { address, timeout_s } => HostReason::ServerTimedOut { address, timeout_s },
        JoinError::Closed { address } => HostReason::ServerClosed { address },
        JoinError::Network { address, detail } => HostReason::ServerNetwork { address, detail },
        JoinError::UnknownAuthority { address } => HostReason::CertificateUnknown { address },
        JoinError::OtherCertificate { address, expected, presented } => {
            HostReason::CertificateOther { address, expected, presented }
        }
        JoinError::CertificateName { address, names } => HostReason::CertificateName { address, names },
        JoinError::TlsNotSpoken { address } => HostReason::TlsNotSpoken { address },
        JoinError::Tls { address, detail } => HostReason::TlsFailed { address, detail },
        JoinError::HttpNotSpoken { address } => HostReason::HttpNotSpoken { address },
        JoinError::OtherService { url, status, .. } => HostReason::ServerIsAnother { url, status },
        JoinError::Redirected { url, location } => HostReason::ServerRedirects { url, location },
        JoinError::Gateway { address, status } => HostReason::GatewayFailed { address, status },
        JoinError::UpgradeTakenAway { address } => HostReason::UpgradeTakenAway { address },
        JoinError::NoToken => HostReason::TokenMissing {},
        JoinError::ServerKeyChanged { address, file } => {
            HostReason::ServerKeyChanged { address, file: file.display().to_string() }
        }
        JoinError::ServerNotProven { address } => HostReason::ServerNotProven { address },
        JoinError::WrongToken { address } => HostReason::TokenWrong { address },
        JoinError::WorkerUnknown { address } => HostReason::WorkerNotKnown { address },
        JoinError::Unavailable { .. } | JoinError::ServerStopping { .. } => HostReason::ServerBusy {},
        // a server that does not know the question takes it for a request to join, and finds it wanting
        JoinError::Rejected { .. } | JoinError::AnswerNotUnderstood { .. } => HostReason::ServerTooOld {},
        error @ (JoinError::NameTaken { .. }
        | JoinError::ReplacementNeeded { .. }
        | JoinError::IdentityDuplicated { .. }
        | JoinError::TakenOver
        | JoinError::Deleted
        | JoinError::ProtocolUnsupported { .. }
        | JoinError::Silent
        | JoinError::Broken { .. }) => HostReason::ServerRefuses { message: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Role};
    use api::Verdict;

    fn config() -> WorkerConfig {
        let pairs = [("GPUSTACK_SERVER_URL", "http://10.0.0.1:8090"), ("GPUSTACK_TOKEN", "t")];
        let config =
            crate::config::Config::load(std::collections::BTreeMap::default(), None, &Environment::of_pairs(pairs));
        let Role::Worker(worker) = config.unwrap().role else { panic!() };
        worker
    }

    fn verdicts(checks: &[Check]) -> Vec<Verdict> {
        checks.iter().map(Check::verdict).collect()
    }

    #[test]
    fn a_wrong_token_is_the_tokens_fault_and_a_refused_connection_the_servers() {
        let address = || "10.0.0.1:8090".to_owned();
        let of = |error| verdicts(&failed(&config(), CredentialKind::Token, error));
        let (ok, failed, skipped) = (Verdict::Ok, Verdict::Failed, Verdict::NotChecked);
        assert_eq!(of(JoinError::WrongToken { address: address() }), [ok, failed, skipped, skipped]);
        assert_eq!(of(JoinError::Refused { address: address() }), [failed, skipped, skipped, skipped]);
    }

    #[test]
    fn a_clock_is_held_against_the_servers_beyond_the_error_bar() {
        let sample = |offset_ms: i64| ClockSample {
            sent_ms: 1_000_000 + offset_ms,
            received_ms: 1_000_010,
            returned_ms: 1_003_000,
            answered_ms: 1_003_010 + offset_ms,
        };
        for (offset_ms, verdict) in [(0, Verdict::Ok), (-5_000, Verdict::Warning), (187_000, Verdict::Failed)] {
            assert_eq!(clock(sample(offset_ms)).verdict(), verdict, "{offset_ms}");
        }
    }

    #[test]
    fn a_way_back_that_fails_is_a_warning_since_the_link_does_without_it() {
        let ip = Some("10.0.0.7".parse().unwrap());
        let url = || "http://10.0.0.7:10150/healthz".to_owned();
        let answered = Reason::DirectAnswered { url: url(), round_trip_ms: 0.4 };
        let dropped = Reason::DirectTimedOut { url: url(), timeout_s: 5 };
        let table = [(Some(answered), Verdict::Ok), (Some(dropped), Verdict::Warning), (None, Verdict::NotChecked)];
        for (found, verdict) in table {
            assert_eq!(way_back_check(&config(), ip, found.clone()).verdict(), verdict, "{found:?}");
        }
    }
}
