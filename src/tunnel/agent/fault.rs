//! What an SSH error means for a forward, in the words that the server and the status show.

use super::other_agent;
use api::{FaultCause, SshStep, TunnelFault};
use ssh::{
    AuthenticationError, ChannelError, ConnectError, ConnectFault, Denial, ForwardError, HostKeyError, IdentityError,
    KeyFileError, SessionEnd, Step, TransportError, TriedKey, ValidityFault,
};
use std::io;
use std::time::Duration;

/// A fault of none of the SSH servers on the way.
pub fn here(cause: FaultCause) -> TunnelFault {
    TunnelFault { hop: None, cause }
}

/// No session came about.
pub fn of_connect(error: &ConnectError) -> TunnelFault {
    TunnelFault { hop: Some(error.hop.to_string()), cause: connect_cause(&error.fault) }
}

/// A session with `hop` ended.
pub fn of_end(hop: &impl ToString, end: &SessionEnd) -> TunnelFault {
    match end {
        SessionEnd::Via { hop, end } => of_end(hop, end),
        end => TunnelFault { hop: Some(hop.to_string()), cause: end_cause(end) },
    }
}

/// No forward came about on a session with `hop`.
pub fn of_forward(hop: &impl ToString, error: &ForwardError) -> TunnelFault {
    let cause = match error {
        ForwardError::SessionEnded(end) => return of_end(hop, end),
        ForwardError::Target(error) => return of_channel(hop, error),
        ForwardError::PortTaken { address } => {
            let other = other_agent::at(address.port());
            let (agent, pid) = other.map(|other| (other.name, other.pid)).unzip();
            return here(FaultCause::PortTakenHere { address: address.to_string(), agent, pid });
        }
        ForwardError::PortNotAllowed { address } | ForwardError::NoSuchAddress { address } => {
            return here(FaultCause::ListenHere { address: address.to_string(), detail: error.to_string() });
        }
        ForwardError::Listen { address, source } => {
            return here(FaultCause::ListenHere { address: address.to_string(), detail: source.to_string() });
        }
        ForwardError::Denied { listen, denial } => {
            let address = listen.to_string();
            match denial {
                Denial::PortTaken => FaultCause::PortTakenThere { address },
                Denial::NotAllowed => FaultCause::ListenForbidden { address },
                Denial::PrivilegedPort => FaultCause::PrivilegedPort { address },
                Denial::Unknown => FaultCause::ListenDenied { address },
            }
        }
        ForwardError::LoopbackOnly { listen } => FaultCause::LoopbackOnly { address: listen.to_string() },
    };
    TunnelFault { hop: Some(hop.to_string()), cause }
}

/// A session with `hop` does not lead to a target.
pub fn of_channel(hop: &impl ToString, error: &ChannelError) -> TunnelFault {
    if let ChannelError::SessionEnded(end) = error {
        return of_end(hop, end);
    }
    TunnelFault { hop: Some(hop.to_string()), cause: channel_cause(error) }
}

fn connect_cause(fault: &ConnectFault) -> FaultCause {
    match fault {
        ConnectFault::Transport(error) => transport_cause(error),
        ConnectFault::Channel(error) => behind_bastion_cause(error),
        ConnectFault::Deadline { step, deadline } => {
            FaultCause::TooSlow { step: ssh_step(*step), deadline_s: deadline.as_secs() }
        }
        ConnectFault::NotSsh { first_line } => FaultCause::NotSsh { first_line: first_line.clone() },
        ConnectFault::ClosedBeforeGreeting { said } => FaultCause::ClosedBeforeGreeting { said: said.clone() },
        ConnectFault::OldProtocol { .. } | ConnectFault::NoCommonAlgorithm { .. } => {
            FaultCause::NoCommonProtocol { detail: fault.to_string() }
        }
        ConnectFault::HostKey(error) => host_key_cause(error),
        ConnectFault::Identity(error) => identity_cause(error),
        ConnectFault::Authentication(error) => login_cause(error),
        ConnectFault::Ended(end) => end_cause(end),
    }
}

/// A bastion does not get through to the next SSH server, which is said as if this host did not.
fn behind_bastion_cause(error: &ChannelError) -> FaultCause {
    match error {
        ChannelError::ConnectFailed { target, detail } => {
            let (address, detail) = (target.to_string(), detail.clone().unwrap_or_default());
            if detail.contains("refused") {
                FaultCause::SshRefused { address }
            } else {
                FaultCause::SshConnect { address, detail }
            }
        }
        ChannelError::Deadline { target, .. } => FaultCause::SshNoAnswer { address: target.to_string() },
        error => channel_cause(error),
    }
}

fn ssh_step(step: Step) -> SshStep {
    match step {
        Step::Connect => SshStep::Connect,
        Step::Greet => SshStep::Greet,
        Step::AgreeOnKeys => SshStep::AgreeOnKeys,
        Step::LetIn => SshStep::LetIn,
    }
}

fn transport_cause(error: &TransportError) -> FaultCause {
    match error {
        TransportError::Resolve { host, .. } => FaultCause::NameUnknown { host: host.clone() },
        TransportError::Refused { address } => FaultCause::SshRefused { address: address.to_string() },
        TransportError::TimedOut { address } => FaultCause::SshNoAnswer { address: address.to_string() },
        TransportError::NoRoute { address, .. } => FaultCause::NoRoute { address: address.to_string() },
        TransportError::Connect { address, source } => {
            FaultCause::SshConnect { address: address.to_string(), detail: source.to_string() }
        }
    }
}

fn channel_cause(error: &ChannelError) -> FaultCause {
    match error {
        ChannelError::Prohibited { target } => FaultCause::TargetForbidden { target: target.to_string() },
        ChannelError::ConnectFailed { target, detail } => {
            FaultCause::TargetRefused { target: target.to_string(), detail: detail.clone() }
        }
        ChannelError::Refused { target, what } => {
            FaultCause::TargetRefused { target: target.to_string(), detail: Some(what.clone()) }
        }
        ChannelError::ResourceShortage { target } => {
            FaultCause::TargetRefused { target: target.to_string(), detail: Some(error.to_string()) }
        }
        ChannelError::Deadline { target, deadline } => {
            FaultCause::TargetNoAnswer { target: target.to_string(), deadline_s: deadline.as_secs() }
        }
        ChannelError::SessionEnded(end) => end_cause(end),
    }
}

fn end_cause(end: &SessionEnd) -> FaultCause {
    match end {
        SessionEnd::KeepAliveLost { silent_for } => FaultCause::KeepAliveLost { silent_s: silent_for.as_secs() },
        SessionEnd::Disconnected { message, .. } => FaultCause::SessionEnded { message: message.clone() },
        SessionEnd::Closed | SessionEnd::Stopped => FaultCause::SessionClosed {},
        SessionEnd::Broken { what } => FaultCause::SessionBroken { detail: what.clone() },
        SessionEnd::Via { end, .. } => end_cause(end),
    }
}

fn host_key_cause(error: &HostKeyError) -> FaultCause {
    match error {
        HostKeyError::Unknown { key, .. } => {
            FaultCause::HostKeyUnknown { algorithm: key.algorithm(), fingerprint: key.fingerprint() }
        }
        HostKeyError::Changed { key, known, .. } => FaultCause::HostKeyChanged {
            fingerprint: key.fingerprint(),
            known: known.iter().map(|known| format!("{}:{}", known.file.display(), known.line)).collect(),
        },
        HostKeyError::Revoked { key, file, line, .. } => {
            FaultCause::HostKeyRevoked { fingerprint: key.fingerprint(), place: format!("{}:{line}", file.display()) }
        }
        HostKeyError::Certificate { key_id, fault, .. } => {
            FaultCause::HostCertificate { key_id: key_id.clone(), detail: fault.to_string() }
        }
        HostKeyError::Files(error) => FaultCause::KnownHosts { detail: error.to_string() },
    }
}

fn identity_cause(error: &IdentityError) -> FaultCause {
    match error {
        IdentityError::File(KeyFileError::Read { path, source }) if source.kind() == io::ErrorKind::NotFound => {
            FaultCause::KeyMissing { path: path.display().to_string() }
        }
        IdentityError::File(KeyFileError::NotPrivate { path, mode }) => {
            FaultCause::KeyNotPrivate { path: path.display().to_string(), mode: format!("{mode:o}") }
        }
        error => FaultCause::KeyUnusable { detail: error.to_string() },
    }
}

fn login_cause(error: &AuthenticationError) -> FaultCause {
    match error {
        AuthenticationError::Refused { user, tried, .. } => {
            tried.iter().find_map(certificate_cause).unwrap_or_else(|| FaultCause::LoginRefused {
                user: user.clone(),
                tried: tried.iter().map(ToString::to_string).collect(),
            })
        }
        AuthenticationError::KeysNotTaken { user, offered } | AuthenticationError::MoreWanted { user, offered } => {
            FaultCause::KeyNotEnough { user: user.clone(), offered: offered.clone() }
        }
        AuthenticationError::TooManyFailures { tried, .. } => {
            FaultCause::TooManyKeys { tried: u32::try_from(tried.len()).unwrap_or(u32::MAX) }
        }
    }
}

/// The likeliest cause of a refusal: the certificate that was offered is not valid by this host's clock.
fn certificate_cause(tried: &TriedKey) -> Option<FaultCause> {
    let certificate = tried.certificate.as_ref()?;
    let key_id = certificate.key_id.clone();
    Some(match certificate.validity? {
        ValidityFault::NotYet { after, now } => FaultCause::CertificateNotYetValid {
            key_id,
            valid_after_ms: after.0.timestamp_millis(),
            clock_ms: now.0.timestamp_millis(),
        },
        ValidityFault::Expired { before, now } => FaultCause::CertificateExpired {
            key_id,
            valid_before_ms: before.0.timestamp_millis(),
            clock_ms: now.0.timestamp_millis(),
        },
    })
}

/// Whether this passes by itself, or somebody has to do something first.
pub fn passes(cause: &FaultCause) -> bool {
    !matches!(
        cause,
        FaultCause::HostKeyUnknown { .. }
            | FaultCause::HostKeyChanged { .. }
            | FaultCause::HostKeyRevoked { .. }
            | FaultCause::HostCertificate { .. }
            | FaultCause::KnownHosts { .. }
            | FaultCause::KeyMissing { .. }
            | FaultCause::KeyNotPrivate { .. }
            | FaultCause::KeyUnusable { .. }
            | FaultCause::CertificateNotYetValid { .. }
            | FaultCause::CertificateExpired { .. }
            | FaultCause::LoginRefused { .. }
            | FaultCause::KeyNotEnough { .. }
            | FaultCause::TooManyKeys { .. }
            | FaultCause::ListenForbidden { .. }
            | FaultCause::PrivilegedPort { .. }
            | FaultCause::LoopbackOnly { .. }
            | FaultCause::TargetForbidden { .. }
            | FaultCause::NoCommonProtocol { .. }
    )
}

/// What is said when a deadline passed.
pub fn no_answer_within(deadline: Duration) -> String {
    format!("no answer within {} s", deadline.as_secs())
}
