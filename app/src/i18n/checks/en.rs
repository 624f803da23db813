//! The doctor's words in English.

use super::{gib, utc_offset};
use crate::format;
use crate::i18n::Language;
use api::{CredentialKind, HostReason, NodeAccess, NodeState, PortHolder, Seen};

/// What a point is called.
pub fn title(seen: &Seen) -> String {
    match seen {
        Seen::System { .. } => "System".to_owned(),
        Seen::Container { .. } => "Container".to_owned(),
        Seen::DataDir { .. } => "Data directory".to_owned(),
        Seen::OpenFiles { .. } => "Open files".to_owned(),
        Seen::Accelerators { .. } => "Accelerators".to_owned(),
        Seen::Devices { vendor, .. } => format!("{vendor} devices"),
        Seen::Tool { tool, .. } => tool.clone(),
        Seen::Node { path, .. } => path.clone(),
        Seen::Driver { vendor, .. } => format!("{vendor} driver"),
        Seen::Firmware { vendor, .. } => format!("{vendor} firmware"),
        Seen::Runtime { vendor, .. } if vendor == "Huawei" => "CANN".to_owned(),
        Seen::Runtime { vendor, .. } => format!("{vendor} software"),
        Seen::Variable { name, .. } => name.clone(),
        Seen::PersistenceMode { .. } => "NVIDIA persistence mode".to_owned(),
        Seen::TimeService { .. } => "Time service".to_owned(),
        Seen::HardwareClock { .. } => "Hardware clock".to_owned(),
        Seen::TimeZone { .. } => "Time zone".to_owned(),
        Seen::Proxies { .. } => "Proxies".to_owned(),
        Seen::Server { .. } => "Server".to_owned(),
        Seen::Credential { .. } => "Credential".to_owned(),
        Seen::ServerClock { .. } => "Clock".to_owned(),
        Seen::WorkerPort { port, .. } => format!("Port {port}"),
        Seen::WayBack { .. } => "Way back".to_owned(),
    }
}

/// What was seen, as a sentence.
pub fn seen(seen: &Seen) -> String {
    match seen {
        Seen::System { os, kernel, architecture } if os.is_empty() => format!("Linux {kernel}, {architecture}."),
        Seen::System { os, kernel, architecture } => format!("{os}, Linux {kernel}, {architecture}."),
        Seen::Container { engine: None, .. } => "None: this is the host itself.".to_owned(),
        Seen::Container { engine: Some(engine), is_privileged, is_filtered } => {
            let rights = if *is_privileged { "with all privileges" } else { "without special privileges" };
            let filter = if *is_filtered { "a seccomp filter is in force" } else { "no seccomp filter" };
            format!("{engine}, {rights}; {filter}.")
        }
        Seen::DataDir { path, available_bytes: Some(available), total_bytes: Some(total) } => {
            format!("{}: {} of {} are free.", path, gib(*available), gib(*total))
        }
        Seen::DataDir { path, .. } => format!("{path}."),
        Seen::OpenFiles { limit: Some(limit) } => format!("Up to {limit} at a time."),
        Seen::OpenFiles { limit: None } => "No limit.".to_owned(),
        Seen::Accelerators { found: 0 } => "None. That is fine for a CPU worker.".to_owned(),
        Seen::Accelerators { found: 1 } => "1 device.".to_owned(),
        Seen::Accelerators { found } => format!("{found} devices."),
        Seen::Devices { on_bus: 0, listed, .. } => format!("{listed} listed; the PCI bus shows none."),
        Seen::Devices { on_bus, without_driver: 0, listed, .. } => {
            format!("{on_bus} cards on the PCI bus, {listed} devices listed.")
        }
        Seen::Devices { on_bus, without_driver, listed, .. } => {
            format!(
                "{on_bus} cards on the PCI bus, {without_driver} of them without a driver, {listed} devices listed."
            )
        }
        Seen::Tool { path: Some(path), .. } => format!("{path} works."),
        Seen::Tool { path: None, .. } => "Not there, and not needed.".to_owned(),
        Seen::Node { state: NodeState::Usable, access, .. } => format!("Can be opened{}.", owner(*access)),
        Seen::Node { state: NodeState::Forbidden, access, .. } => format!("May not be opened{}.", owner(*access)),
        Seen::Node { state: NodeState::Missing, .. } => "Not there, and not missed.".to_owned(),
        Seen::Driver { running: Some(running), installed: Some(installed), .. } if running != installed => {
            format!("{running} runs, {installed} is installed.")
        }
        Seen::Driver { running: Some(version), .. } => format!("{version} runs."),
        Seen::Driver { running: None, installed: Some(version), .. } => format!("{version} is installed."),
        Seen::Driver { running: None, installed: None, .. } => "Its version is not told.".to_owned(),
        Seen::Firmware { versions, .. } if versions.is_empty() => "Its version is not told.".to_owned(),
        Seen::Firmware { versions, .. } => format!("{}.", versions.join(", ")),
        Seen::Runtime { version: Some(version), .. } => format!("{version}."),
        Seen::Runtime { version: None, .. } => "Not installed here; programs may bring their own.".to_owned(),
        Seen::Variable { value, .. } if value.is_empty() => "Empty.".to_owned(),
        Seen::Variable { value, .. } => value.clone(),
        Seen::PersistenceMode { off } if off.is_empty() => "On.".to_owned(),
        Seen::PersistenceMode { off } => {
            let off: Vec<String> = off.iter().map(u32::to_string).collect();
            format!("Off for {}.", off.join(", "))
        }
        Seen::TimeService { service: Some(service), source: Some(source), .. } => {
            format!("{} follows {source}.", service.name())
        }
        Seen::TimeService { service: Some(service), .. } => format!("{} runs.", service.name()),
        Seen::TimeService { service: None, .. } => "None was found.".to_owned(),
        Seen::HardwareClock { is_local_time: false } => "Kept in UTC.".to_owned(),
        Seen::HardwareClock { is_local_time: true } => "Kept in local time.".to_owned(),
        Seen::TimeZone { name: Some(name), offset_s } => format!("{name}, UTC{}.", utc_offset(*offset_s)),
        Seen::TimeZone { name: None, offset_s } => format!("UTC{}.", utc_offset(*offset_s)),
        Seen::Proxies { variables } if variables.is_empty() => "No proxy variables are set.".to_owned(),
        Seen::Proxies { variables } => format!("{}.", variables.join(", ")),
        Seen::Server { url, version: Some(version), took_ms: Some(took_ms) } => {
            format!("{url} is a gpustack server, version {version}; it answered within {took_ms} ms.")
        }
        Seen::Server { url, .. } => format!("{url} is a gpustack server."),
        Seen::Credential { kind, known_as } => credential(*kind, known_as.as_deref()),
        Seen::ServerClock { measured: Some(measured) } => {
            let offset = Language::En.messages().clock_offset(measured.offset_ms);
            format!("Agrees with the server's ({offset}, give or take {} ms).", measured.error_ms)
        }
        Seen::ServerClock { measured: None } => "Not held against the server's.".to_owned(),
        Seen::WorkerPort { holder, .. } => match holder {
            PortHolder::Nobody => "Free for a worker.",
            PortHolder::ThisWorker => "This host's worker has it.",
            PortHolder::OtherWorker => "Another worker has it.",
            PortHolder::OtherProgram => "Another program has it.",
            PortHolder::Unknown => "Cannot be had.",
        }
        .to_owned(),
        Seen::WayBack { url, round_trip_ms: Some(round_trip_ms) } => {
            format!("The server reaches {url} in {} ms.", format::milliseconds(*round_trip_ms))
        }
        Seen::WayBack { url, round_trip_ms: None } => format!("{url}."),
    }
}

fn owner(access: Option<NodeAccess>) -> String {
    access.map(|access| format!(" ({:o}, user {}, group {})", access.mode, access.uid, access.gid)).unwrap_or_default()
}

fn credential(kind: CredentialKind, known_as: Option<&str>) -> String {
    match (kind, known_as) {
        (CredentialKind::Token, Some(name)) => format!("The token is right; the server knows this host as {name}."),
        (CredentialKind::Token, None) => "The token is right.".to_owned(),
        (CredentialKind::Key, Some(name)) => format!("The key of this host; the server knows it as {name}."),
        (CredentialKind::Key, None) => "The key of this host.".to_owned(),
        (CredentialKind::Nothing, _) => "None.".to_owned(),
    }
}

/// What is wrong, or why it was not looked at.
pub fn what(reason: &HostReason) -> String {
    match reason {
        HostReason::ServerNotGiven {} => "No server is named, so the way to it was not tried.".to_owned(),
        HostReason::ServerNotReached {} => "Not looked at: the server was not reached.".to_owned(),
        HostReason::TokenNeeded {} => {
            "Not looked at: the server tells it only to a host that has the token.".to_owned()
        }
        HostReason::WayBackNotTried {} => "Not looked at: a worker could not have its port.".to_owned(),
        HostReason::ServerTooOld {} => "The server answers, but its version knows no doctor.".to_owned(),
        HostReason::TimeServiceMissing {} => "No time service runs on this host, so its clock drifts.".to_owned(),
        HostReason::TimeServiceOfHost {} => {
            "Not looked at: a container has the clock of its host, where the time service runs.".to_owned()
        }
        HostReason::TimeServiceUnknown {} => "Whether the clock is synchronised could not be found out.".to_owned(),
        HostReason::SeccompFilter {} => "The filter may be what keeps the devices' driver from working.".to_owned(),
        HostReason::ProxyInTheWay { host } => {
            format!("curl, docker and others would ask the proxy for {host}. gpustack itself goes straight to it.")
        }
        HostReason::OpenFilesFew { limit } => format!("A worker may have only {limit} files open here."),
        HostReason::DataDirUnusable { path, error } => format!("{path} cannot be used: {error}."),
        HostReason::PortInUse { port } => format!("Another program listens on port {port}."),
        HostReason::PortOfOtherWorker { port, worker_uuid } => {
            format!("Another worker ({worker_uuid}) listens on port {port}.")
        }
        HostReason::PortUnusable { port, error } => format!("Port {port} cannot be listened on: {error}."),
        HostReason::PersistenceModeOff {} => {
            "The driver is unloaded whenever nobody uses the cards; the next program then waits seconds for it."
                .to_owned()
        }
        HostReason::ServerNotResolved { host } => format!("The name {host} has no address on this host."),
        HostReason::ServerRefused { address } => format!("Nothing listens at {address}."),
        HostReason::ServerNoRoute { address } => format!("This host has no route to {address}."),
        HostReason::ServerTimedOut { address, timeout_s } => {
            format!("{address} did not answer within {timeout_s} s.")
        }
        HostReason::ServerClosed { address } => format!("{address} closed the connection without an answer."),
        HostReason::ServerNetwork { address, detail } => format!("Cannot talk to {address}: {detail}."),
        HostReason::CertificateUnknown { address } => {
            format!("The certificate of {address} is from an authority that this host does not know.")
        }
        HostReason::CertificateOther { address, expected, presented } => {
            format!("{address} shows the certificate {presented}, and {expected} was given.")
        }
        HostReason::CertificateName { address, names } => {
            format!("The certificate of {address} is for {names} only.")
        }
        HostReason::TlsNotSpoken { address } => format!("{address} does not speak TLS."),
        HostReason::TlsFailed { address, detail } => format!("TLS with {address} failed: {detail}."),
        HostReason::HttpNotSpoken { address } => format!("{address} does not speak plain HTTP."),
        HostReason::ServerIsAnother { url, status } => {
            format!("Another service answers at {url}, with HTTP {status}.")
        }
        HostReason::ServerRedirects { url, location } => format!("{url} redirects to {location}."),
        HostReason::GatewayFailed { address, status } => {
            format!("A proxy at {address} answers {status}: it does not reach the server.")
        }
        HostReason::UpgradeTakenAway { address } => {
            format!("A proxy between this host and {address} takes the upgrade to a link away.")
        }
        HostReason::ServerBusy {} => "The server is busy, starting or stopping.".to_owned(),
        HostReason::TokenMissing {} => "No join token was given, and this host has not joined before.".to_owned(),
        HostReason::TokenWrong { address } => format!("The server at {address} refuses the join token."),
        HostReason::WorkerNotKnown { address } => {
            format!(
                "The server at {address} does not know this host, which was deleted there or belongs to another server."
            )
        }
        HostReason::ServerKeyChanged { address, .. } => {
            format!("The server at {address} has another key than the one that this host joined.")
        }
        HostReason::ServerNotProven { address } => {
            format!("What answers at {address} does not know the join token and is not the server.")
        }
        HostReason::ServerRefuses { message } => format!("The server cannot be asked: {message}."),
    }
}

/// What to do.
pub fn next_step(reason: &HostReason) -> String {
    match reason {
        HostReason::ServerNotGiven {} => "Give --server-url to have it tried.",
        HostReason::ServerNotReached {} | HostReason::WayBackNotTried {} | HostReason::TimeServiceOfHost {} => "",
        HostReason::TokenNeeded {} => "Give --token to have it looked at.",
        HostReason::ServerTooOld {} => "Bring the server to this program's version.",
        HostReason::TimeServiceMissing {} => "Install chrony and give it a time server that this host reaches.",
        HostReason::TimeServiceUnknown {} => "Ask the service itself, as root.",
        HostReason::SeccompFilter {} => "Try the container without the filter, or with one that lets the driver's calls through.",
        HostReason::ProxyInTheWay { .. } => "Add the server to no_proxy.",
        HostReason::OpenFilesFew { .. } => "Raise the limit: LimitNOFILE= in the unit, --ulimit nofile= for a container.",
        HostReason::DataDirUnusable { .. } => "Run this as the worker's user, give that user the directory, or name another one with --data-dir.",
        HostReason::PortInUse { .. } | HostReason::PortOfOtherWorker { .. } => {
            "Stop the other one, or give this worker another port with --worker-port."
        }
        HostReason::PortUnusable { .. } => "Give the worker another port with --worker-port.",
        HostReason::PersistenceModeOff {} => "Switch it on, or start nvidia-persistenced.",
        HostReason::ServerNotResolved { .. } => "Check the spelling in --server-url and this host's DNS.",
        HostReason::ServerRefused { .. } => {
            "Start the server, or the tunnel that ends there, or correct --server-url."
        }
        HostReason::ServerNoRoute { .. } => "Check this host's network, or reach the server through a tunnel.",
        HostReason::ServerTimedOut { .. } => "Check that the server runs and that no firewall drops the packets.",
        HostReason::ServerClosed { .. } => {
            "A tunnel whose far end is down does this: check the tunnel and the server."
        }
        HostReason::ServerNetwork { .. } => "Check the network between this host and the server.",
        HostReason::CertificateUnknown { .. } => {
            "Give its CA certificate with --ca-file, or, for one that signed itself, the fingerprint that the server prints with --server-fingerprint."
        }
        HostReason::CertificateOther { .. } => {
            "Give the new fingerprint if the server's certificate was renewed, else find out who answers there."
        }
        HostReason::CertificateName { .. } => "Use such a name in --server-url, or get a certificate for this one.",
        HostReason::TlsNotSpoken { .. } => "Write http:// instead of https:// in --server-url.",
        HostReason::TlsFailed { .. } => "Check the server's certificate and TLS settings.",
        HostReason::HttpNotSpoken { .. } => {
            "Write https:// in --server-url if it is the server, else correct the port."
        }
        HostReason::ServerIsAnother { .. } => "Correct --server-url or the tunnel's far end.",
        HostReason::ServerRedirects { .. } => "Use the address of the server itself in --server-url.",
        HostReason::GatewayFailed { .. } => "Check that the server runs and where the proxy points.",
        HostReason::UpgradeTakenAway { .. } => {
            "Make it pass on the headers Upgrade and Connection for /v1/link."
        }
        HostReason::ServerBusy {} => "Try again in a minute.",
        HostReason::TokenMissing {} | HostReason::TokenWrong { .. } => {
            "Give the one that this prints on the server's host with --token."
        }
        HostReason::WorkerNotKnown { .. } => "Give the join token with --token to join as new.",
        HostReason::ServerKeyChanged { file, .. } => {
            return format!(
                "If it was set up anew, give its join token with --token or remove {file}; else somebody is in between."
            );
        }
        HostReason::ServerNotProven { .. } => {
            "Check --server-url and --token; if both are right, somebody is in between."
        }
        HostReason::ServerRefuses { .. } => "Mend that, and look again.",
    }
    .to_owned()
}
