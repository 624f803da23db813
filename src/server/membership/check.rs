//! What workers and administrators may write into a row. Everything else is answered 422 and changes nothing. No
//! message repeats what was sent: reports hold addresses and serial numbers, and messages end up in logs.

use crate::server::error::ApiError;
use api::{Maintenance, RegisterRequest, WorkerReport, WorkerStatus};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// A worker's name.
pub const NAME_MAX_CHARS: usize = 128;
/// A host name's limit (RFC 1035, section 2.3.4), ample for the other short texts too.
const TEXT_MAX_BYTES: usize = 253;
/// No host has more; a report with more is a mistake or worse.
const DEVICES_MAX: usize = 1_024;
/// One of each device, and some.
const PROBLEMS_MAX: usize = 2_048;
const LABELS_MAX: usize = 64;
const LABEL_MAX_CHARS: usize = 256;
const MAINTENANCE_MESSAGE_MAX_CHARS: usize = 1_000;

/// What a worker of ours registers with.
pub fn register_request(request: &RegisterRequest) -> Result<(), ApiError> {
    address(&request.ip, request.port)?;
    short_text("hostname", &request.hostname)?;
    short_text("version", &request.version)?;
    short_text("host_key", &request.host_key)?;
    labels(&request.labels)
}

/// What a GPUStack 0.7 worker sends.
pub fn worker_report(report: &WorkerReport) -> Result<(), ApiError> {
    address(&report.ip, report.port)?;
    short_text("hostname", &report.hostname)?;
    status(&report.status)?;
    report.labels.as_ref().map_or(Ok(()), labels)
}

/// What a worker reports of its host.
pub fn status(status: &WorkerStatus) -> Result<(), ApiError> {
    if status.gpu_devices.as_ref().is_some_and(|devices| devices.len() > DEVICES_MAX) {
        return Err(ApiError::invalid(format!("status.gpu_devices: are more than {DEVICES_MAX}")));
    }
    if status.problems.len() > PROBLEMS_MAX {
        return Err(ApiError::invalid(format!("status.problems: are more than {PROBLEMS_MAX}")));
    }
    Ok(())
}

/// A worker's name, trimmed.
pub fn name(name: &str) -> Result<String, ApiError> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > NAME_MAX_CHARS {
        return Err(ApiError::invalid(format!("name: must be 1 to {NAME_MAX_CHARS} characters long")));
    }
    if name.chars().any(char::is_control) {
        return Err(ApiError::invalid("name: holds a control character"));
    }
    Ok(name.to_owned())
}

/// All labels of a worker.
pub fn labels(labels: &BTreeMap<String, String>) -> Result<(), ApiError> {
    if labels.len() > LABELS_MAX {
        return Err(ApiError::invalid(format!("labels: are more than {LABELS_MAX}")));
    }
    if labels.keys().any(|key| key.trim().is_empty()) {
        return Err(ApiError::invalid("labels: a key is empty"));
    }
    let is_bad = |text: &String| text.chars().count() > LABEL_MAX_CHARS || text.chars().any(char::is_control);
    if labels.iter().any(|(key, value)| is_bad(key) || is_bad(value)) {
        let message = format!("labels: keys and values must be at most {LABEL_MAX_CHARS} characters, on one line");
        return Err(ApiError::invalid(message));
    }
    Ok(())
}

/// What an operator says about maintenance, trimmed.
pub fn maintenance(maintenance: &Maintenance) -> Result<Maintenance, ApiError> {
    let message = maintenance.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
    if message.is_some_and(|message| message.chars().count() > MAINTENANCE_MESSAGE_MAX_CHARS) {
        let message = format!("maintenance.message: is longer than {MAINTENANCE_MESSAGE_MAX_CHARS} characters");
        return Err(ApiError::invalid(message));
    }
    Ok(Maintenance { enabled: maintenance.enabled, message: message.map(str::to_owned) })
}

fn address(ip: &str, port: u16) -> Result<(), ApiError> {
    if port == 0 {
        return Err(ApiError::invalid("port: must be from 1 to 65535"));
    }
    let ip = ip.trim();
    if ip.is_empty() {
        return Err(ApiError::invalid("ip: is empty; start the worker with --worker-ip"));
    }
    // a zone such as %eth0 is not part of the address proper
    let bare = ip.split('%').next().unwrap_or(ip);
    match ip.parse::<IpAddr>().or_else(|_| bare.parse::<Ipv6Addr>().map(IpAddr::V6)) {
        Ok(address) if address.is_unspecified() || address.is_multicast() => {
            Err(ApiError::invalid("ip: is no address of a host; start the worker with --worker-ip"))
        }
        Ok(_) => Ok(()),
        Err(_) if is_host_name(ip) => Ok(()),
        Err(_) => Err(ApiError::invalid("ip: is neither an address nor a host name")),
    }
}

/// Digits and dots alone are a mistyped address, not a name.
fn is_host_name(text: &str) -> bool {
    text.len() <= TEXT_MAX_BYTES
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'))
        && text.chars().any(char::is_alphabetic)
}

/// A line of text.
pub fn short_text(field: &str, text: &str) -> Result<(), ApiError> {
    if text.len() > TEXT_MAX_BYTES || text.chars().any(char::is_control) {
        return Err(ApiError::invalid(format!("{field}: must be at most {TEXT_MAX_BYTES} bytes, on one line")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_a_host_can_have_are_taken() {
        let good =
            ["10.0.0.1", " 10.0.0.1 ", "127.0.0.1", "169.254.1.1", "fd00::1", "fe80::1%eth0", "npu-01", "节点一"];
        for ip in good {
            assert!(address(ip, 10150).is_ok(), "{ip}");
        }
        let bad =
            ["", " ", "0.0.0.0", "::", "224.0.0.1", "300.1.1.1", "10.0.0", "a b", "http://h", "h:1", "h/x", "h\ni"];
        for ip in bad {
            assert_eq!(address(ip, 10150).err().map(|error| error.status().as_u16()), Some(422), "{ip:?}");
        }
        assert!(address("10.0.0.1", 0).is_err());
    }

    #[test]
    fn names_are_trimmed_short_and_on_one_line() {
        assert_eq!(name("  节点 1 ").unwrap(), "节点 1");
        for bad in ["", "  ", "a\nb", "a\u{7}", &"x".repeat(129)] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
        assert!(name(&"节".repeat(128)).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic_and_what_is_taken_is_printable(text in "\\PC{0,40}|.{0,40}", port: u16) {
            let _ = address(&text, port);
            if let Ok(name) = name(&text) {
                proptest::prop_assert!(!name.chars().any(char::is_control));
            }
        }
    }
}
