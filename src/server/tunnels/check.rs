//! What a tunnel agent may tell. Everything else ends the exchange and changes nothing. No message repeats what was told:
//! reports hold addresses, and messages end up in logs.

use crate::server::error::ApiError;
use crate::server::membership::check::{name, short_text};
use api::{
    Availability, CUTS_REPORTED, CertificateReport, ForwardReport, TunnelAgentRequest, TunnelFault, TunnelReport,
};
use serde_json::Value;
use std::collections::HashSet;

const FORWARDS_MAX: usize = 10_000;
const CERTIFICATES_MAX: usize = 1_000;
/// Of one forward: more SSH servers in a row than anybody has.
const ROUTE_MAX: usize = 32;
/// Ids, names, addresses.
const TEXT_MAX_BYTES: usize = 300;
/// What programs said, keys, and the like.
const WORDS_MAX_BYTES: usize = 8 * 1024;
/// A hundred years: no age is longer, and no sum of it with a time overflows.
const AGE_MAX_MS: u64 = 100 * 366 * 86_400_000;
/// The end of the year 9999.
const TIME_MAX_MS: i64 = 253_402_300_799_999;

/// What an agent joins with. Gives its name, trimmed.
pub fn request(request: &TunnelAgentRequest) -> Result<String, ApiError> {
    short_text("hostname", &request.hostname)?;
    short_text("version", &request.version)?;
    name(&request.name)
}

/// What it tells.
pub fn report(report: &TunnelReport) -> Result<(), ApiError> {
    at_most("forwards", report.forwards.len(), FORWARDS_MAX)?;
    at_most("certificates", report.certificates.len(), CERTIFICATES_MAX)?;
    if let api::AgentPlace::Worker { worker } = &report.place {
        text("place", worker)?;
    }
    words("refused_config", report.refused_config.as_deref().unwrap_or_default())?;
    words("refused_config_zh", report.refused_config_zh.as_deref().unwrap_or_default())?;
    let mut ids = HashSet::with_capacity(report.forwards.len());
    for told in &report.forwards {
        forward(told)?;
        if !ids.insert(told.id.as_str()) {
            return Err(ApiError::invalid("forwards: an id is told twice"));
        }
    }
    report.certificates.iter().try_for_each(certificate)
}

fn forward(forward: &ForwardReport) -> Result<(), ApiError> {
    if forward.id.is_empty() {
        return Err(ApiError::invalid("forwards: an id is empty"));
    }
    at_most("route", forward.route.len(), ROUTE_MAX)?;
    at_most("workers", forward.workers.len(), FORWARDS_MAX)?;
    let own = [&forward.id, &forward.listen, &forward.target].into_iter();
    own.chain(&forward.workers).chain(&forward.route).try_for_each(|told| text("forwards", told))?;
    age("state_age_ms", forward.state_age_ms)?;
    if forward.round_trip_ms.is_some_and(|ms| !(0.0..=AGE_MAX_MS as f64).contains(&ms)) {
        return Err(ApiError::invalid("round_trip_ms: is no length of time"));
    }
    let Availability { day, week, month } = forward.availability;
    if [day, week, month].into_iter().flatten().any(|part| !(0.0..=1.0).contains(&part)) {
        return Err(ApiError::invalid("availability: must be from 0 to 1"));
    }
    at_most("cuts", forward.cuts.len(), CUTS_REPORTED)?;
    for cut in &forward.cuts {
        age("began_ago_ms", cut.began_ago_ms)?;
        age("lasted_ms", cut.lasted_ms.unwrap_or(0))?;
        fault(&cut.fault)?;
    }
    forward.fault.as_ref().map_or(Ok(()), fault)
}

/// Whatever its cause says, texts and times alike.
fn fault(fault: &TunnelFault) -> Result<(), ApiError> {
    let told = serde_json::to_value(fault).map_err(ApiError::internal)?;
    values(&told)
}

fn values(told: &Value) -> Result<(), ApiError> {
    match told {
        Value::String(told) => words("fault", told),
        Value::Array(items) => {
            at_most("fault", items.len(), CERTIFICATES_MAX)?;
            items.iter().try_for_each(values)
        }
        Value::Object(fields) => fields.values().try_for_each(values),
        Value::Number(number) => match number.as_i64() {
            Some(number) if (-TIME_MAX_MS..=TIME_MAX_MS).contains(&number) => Ok(()),
            _ => Err(ApiError::invalid("fault: a number is out of range")),
        },
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

fn certificate(told: &CertificateReport) -> Result<(), ApiError> {
    words("key_file", &told.key_file)?;
    words("public_key", &told.public_key)?;
    let Some(certificate) = &told.certificate else { return Ok(()) };
    words("key_id", &certificate.key_id)?;
    text("authority", &certificate.authority)?;
    at_most("principals", certificate.principals.len(), CERTIFICATES_MAX)?;
    certificate.principals.iter().try_for_each(|principal| text("principals", principal))?;
    let times = [Some(certificate.valid_after_ms), certificate.valid_before_ms];
    if times.into_iter().flatten().any(|time| !(-TIME_MAX_MS..=TIME_MAX_MS).contains(&time)) {
        return Err(ApiError::invalid("certificate: a time is out of range"));
    }
    Ok(())
}

fn at_most(field: &str, count: usize, most: usize) -> Result<(), ApiError> {
    if count > most { Err(ApiError::invalid(format!("{field}: are more than {most}"))) } else { Ok(()) }
}

fn age(field: &str, age_ms: u64) -> Result<(), ApiError> {
    if age_ms > AGE_MAX_MS {
        Err(ApiError::invalid(format!("{field}: is longer than a hundred years")))
    } else {
        Ok(())
    }
}

fn text(field: &str, text: &str) -> Result<(), ApiError> {
    if text.len() > TEXT_MAX_BYTES || text.chars().any(char::is_control) {
        return Err(ApiError::invalid(format!("{field}: texts must be at most {TEXT_MAX_BYTES} bytes, on one line")));
    }
    Ok(())
}

fn words(field: &str, words: &str) -> Result<(), ApiError> {
    if words.len() > WORDS_MAX_BYTES {
        return Err(ApiError::invalid(format!("{field}: a text is longer than {WORDS_MAX_BYTES} bytes")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{AgentPlace, CertificateView, FaultCause, ForwardCut, ForwardState};

    fn reporting(change: impl FnOnce(&mut ForwardReport)) -> TunnelReport {
        let mut forward = ForwardReport::example("npu-1.server", ForwardState::Up);
        change(&mut forward);
        TunnelReport { forwards: vec![forward], ..TunnelReport::default() }
    }

    fn cut(began_ago_ms: u64) -> ForwardCut {
        let fault = TunnelFault { hop: None, cause: FaultCause::SessionClosed {} };
        ForwardCut { began_ago_ms, lasted_ms: Some(1), fault }
    }

    fn certified(valid_after_ms: i64) -> TunnelReport {
        let certificate = CertificateView {
            key_id: "a".to_owned(),
            serial: 1,
            principals: vec!["root".to_owned()],
            authority: "SHA256:".to_owned(),
            valid_after_ms,
            valid_before_ms: None,
        };
        let certificate = CertificateReport {
            key_file: "/key".to_owned(),
            public_key: "ssh-ed25519 A".to_owned(),
            certificate: Some(certificate),
            revoked_ms: None,
        };
        TunnelReport { certificates: vec![certificate], ..TunnelReport::default() }
    }

    #[test]
    fn what_an_agent_usually_tells_is_taken() {
        for told in [
            TunnelReport::default(),
            reporting(|_| ()),
            reporting(|forward| forward.cuts = (0..50).map(cut).collect()),
            certified(1_700_000_000_000),
            TunnelReport { place: AgentPlace::Worker { worker: "npu-1".to_owned() }, ..TunnelReport::default() },
        ] {
            assert!(report(&told).is_ok(), "{told:?}");
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        let long = "x".repeat(10_000);
        let fault = |cause| Some(TunnelFault { hop: None, cause });
        let table = [
            reporting(|forward| forward.id = String::new()),
            reporting(|forward| forward.id = "a\nb".to_owned()),
            reporting(|forward| forward.listen = long.clone()),
            reporting(|forward| forward.workers = vec![long.clone()]),
            reporting(|forward| forward.route = vec!["root@10.0.0.1:22".to_owned(); 33]),
            reporting(|forward| forward.state_age_ms = u64::MAX),
            reporting(|forward| forward.round_trip_ms = Some(f64::NAN)),
            reporting(|forward| forward.round_trip_ms = Some(-1.0)),
            reporting(|forward| forward.availability.week = Some(1.1)),
            reporting(|forward| forward.availability.day = Some(f64::INFINITY)),
            reporting(|forward| forward.cuts = (0..51).map(cut).collect()),
            reporting(|forward| forward.cuts = vec![cut(u64::MAX)]),
            reporting(|forward| forward.fault = fault(FaultCause::SessionBroken { detail: long.clone() })),
            reporting(|forward| forward.fault = fault(FaultCause::KeepAliveLost { silent_s: u64::MAX })),
            certified(i64::MAX),
            TunnelReport { refused_config: Some(long.clone()), ..TunnelReport::default() },
            TunnelReport { refused_config_zh: Some(long.clone()), ..TunnelReport::default() },
            TunnelReport {
                forwards: vec![ForwardReport::example("a", ForwardState::Up); 2],
                ..TunnelReport::default()
            },
            TunnelReport {
                forwards: vec![ForwardReport::example("a", ForwardState::Up); 10_001],
                ..TunnelReport::default()
            },
        ];
        for (number, told) in table.iter().enumerate() {
            assert_eq!(report(told).err().map(|error| error.status().as_u16()), Some(422), "number {number}");
        }
    }
}
