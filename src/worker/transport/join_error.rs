//! Why a worker is not connected to its server: one line each, what happened and what to do.

use chrono::{DateTime, SecondsFormat};
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// Why a worker could not join, or lost its session. No variant holds a token or a credential.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JoinError {
    /// The host name of the server has no address.
    #[error("the server's name `{host}` has no address; check its spelling in --server-url and this host's DNS")]
    NotResolved {
        /// The name.
        host: String,
    },
    /// Nothing listens there.
    #[error(
        "nothing listens at {address}: the server is not running, or the tunnel to it is down; start it or correct --server-url"
    )]
    Refused {
        /// Host and port.
        address: String,
    },
    /// This host cannot reach that network.
    #[error("this host has no route to {address}; check its network, or reach the server through a tunnel")]
    NoRoute {
        /// Host and port.
        address: String,
    },
    /// No answer in time.
    #[error(
        "{address} did not answer within {timeout_s} s; check that the server runs and that no firewall drops the packets"
    )]
    TimedOut {
        /// Host and port.
        address: String,
        /// The deadline, in seconds.
        timeout_s: u64,
    },
    /// Connected, then closed without an answer.
    #[error(
        "{address} closed the connection without an answer, as a tunnel does whose far end is down; check the tunnel and the server"
    )]
    Closed {
        /// Host and port.
        address: String,
    },
    /// Any other fault of the network.
    #[error("cannot talk to {address}: {detail}; check the network between this host and the server")]
    Network {
        /// Host and port.
        address: String,
        /// The operating system's or the library's words.
        detail: String,
    },

    /// The certificate's issuer is not trusted here.
    #[error(
        "the certificate of {address} is from an authority that this host does not know; give its CA certificate with --ca-file, or, for a certificate that signed itself, the fingerprint that the server prints when it starts with --server-fingerprint"
    )]
    UnknownAuthority {
        /// Host and port.
        address: String,
    },
    /// It is not the certificate that was pinned.
    #[error(
        "the certificate of {address} has the fingerprint {presented}, and --server-fingerprint says {expected}; give the new one if the server's certificate was renewed, else find out who answers there"
    )]
    OtherCertificate {
        /// Host and port.
        address: String,
        /// What was given.
        expected: String,
        /// What the server shows.
        presented: String,
    },
    /// The certificate is for other names.
    #[error(
        "the certificate of {address} is for {names} only; use such a name in --server-url, or get a certificate for this one"
    )]
    CertificateName {
        /// Host and port.
        address: String,
        /// The names in it.
        names: String,
    },
    /// The certificate's time is over, or this host's clock is ahead.
    #[error("the certificate of {address} expired at {clocks}; renew it, or set the clock that is wrong")]
    CertificateExpired {
        /// Host and port.
        address: String,
        /// What the clocks say.
        clocks: CertificateClocks,
    },
    /// The certificate's time has not begun, or this host's clock is behind.
    #[error("the certificate of {address} is not valid before {clocks}; set the clock that is wrong")]
    CertificateNotYetValid {
        /// Host and port.
        address: String,
        /// What the clocks say.
        clocks: CertificateClocks,
    },
    /// `https` was asked and something else answered.
    #[error("{address} does not speak TLS; write http:// instead of https:// in --server-url")]
    TlsNotSpoken {
        /// Host and port.
        address: String,
    },
    /// Any other failure of TLS.
    #[error("TLS with {address} failed: {detail}; check the server's certificate and TLS settings")]
    Tls {
        /// Host and port.
        address: String,
        /// The library's words.
        detail: String,
    },
    /// `http` was asked and something else answered.
    #[error(
        "{address} does not speak plain HTTP; write https:// in --server-url if it is the server, else correct the port"
    )]
    HttpNotSpoken {
        /// Host and port.
        address: String,
    },

    /// HTTP, but not from our server.
    #[error("another service answers at {url} ({status}, {what}); correct --server-url or the tunnel's far end")]
    OtherService {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
        /// What was answered.
        what: String,
    },
    /// The URL is answered by a redirect, which is not followed: it would carry the token elsewhere.
    #[error("{url} redirects to {location}; use the address of the server itself in --server-url")]
    Redirected {
        /// What was asked.
        url: String,
        /// Where it points.
        location: String,
    },
    /// A proxy in between answers for a server that it cannot reach.
    #[error(
        "a proxy at {address} answers {status}: it does not reach the server; check that the server runs and where the proxy points"
    )]
    Gateway {
        /// Host and port.
        address: String,
        /// HTTP status.
        status: u16,
    },

    /// There is nothing to join with.
    #[error(
        "no join token, and no credential of an earlier run: give the token with --token or GPUSTACK_TOKEN; `gpustack token` on the server's host prints it"
    )]
    NoToken,
    /// The join token is not the server's.
    #[error(
        "the server at {address} refuses the join token; give the one that `gpustack token` prints on the server's host with --token"
    )]
    WrongToken {
        /// Host and port.
        address: String,
    },
    /// The worker's own credential is not valid (any more).
    #[error(
        "the server at {address} no longer accepts this worker, which was deleted there or belongs to another server; give the join token with --token to join as new"
    )]
    CredentialRefused {
        /// Host and port.
        address: String,
    },
    /// A live worker has the name.
    #[error("the server refuses this worker: {message}")]
    NameTaken {
        /// The server's sentence.
        message: String,
    },
    /// A worker that is gone has the name.
    #[error("the server refuses this worker until its name is free: {message}")]
    ReplacementNeeded {
        /// The server's sentence.
        message: String,
    },
    /// A live worker on another host has this identity.
    #[error("the server refuses this worker: {message}")]
    IdentityDuplicated {
        /// The server's sentence.
        message: String,
    },
    /// A newer session has taken over.
    #[error("a newer session of this worker has replaced this one")]
    SessionReplaced,
    /// Server and worker are of versions that do not fit.
    #[error("the server does not speak this worker's protocol: {message}; bring both to the same version")]
    ProtocolUnsupported {
        /// The server's sentence.
        message: String,
    },
    /// The server let the worker join, but gave it nothing to go on with.
    #[error("the server gave this worker no usable credential; bring both to the same version")]
    NoCredentialGiven,
    /// The server does not accept what the worker says of itself.
    #[error("the server refuses this worker ({status}): {message}")]
    Rejected {
        /// HTTP status.
        status: u16,
        /// The server's sentence.
        message: String,
    },
    /// The server is starting or busy.
    #[error("the server is not ready ({status}): {message}; the worker tries again by itself")]
    Unavailable {
        /// HTTP status.
        status: u16,
        /// The server's sentence.
        message: String,
        /// When to try again, in seconds, when the server says it.
        retry_after_s: Option<u64>,
    },
    /// The server failed.
    #[error("the server failed ({status}): {message}; its log has the cause under request id {request_id}")]
    ServerFailed {
        /// HTTP status.
        status: u16,
        /// The server's sentence.
        message: String,
        /// Names the request in the server's log.
        request_id: String,
    },
}

/// How soon to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It can pass by itself at any moment.
    Quick,
    /// Somebody has to do something first.
    Slow,
}

/// What the clocks say about a certificate, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the unit belongs into each name")]
pub struct CertificateClocks {
    /// Where its validity begins or ends; absent when TLS did not tell.
    pub limit_ms: Option<i64>,
    /// This host's clock.
    pub ours_ms: i64,
    /// The server's clock, when it told.
    pub server_ms: Option<i64>,
}

impl JoinError {
    /// How soon to try again.
    pub fn pace(&self) -> Pace {
        match self {
            Self::NoToken
            | Self::WrongToken { .. }
            | Self::CredentialRefused { .. }
            | Self::NameTaken { .. }
            | Self::ReplacementNeeded { .. }
            | Self::IdentityDuplicated { .. }
            | Self::ProtocolUnsupported { .. }
            | Self::NoCredentialGiven
            | Self::Rejected { .. } => Pace::Slow,
            _ => Pace::Quick,
        }
    }

    /// When the server wishes the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after_s, .. } => retry_after_s.map(Duration::from_secs),
            _ => None,
        }
    }

    /// Whether the server has said that the session is over, so that only a new one helps.
    pub fn ends_session(&self) -> bool {
        matches!(
            self,
            Self::SessionReplaced
                | Self::CredentialRefused { .. }
                | Self::IdentityDuplicated { .. }
                | Self::NameTaken { .. }
                | Self::ReplacementNeeded { .. }
                | Self::ProtocolUnsupported { .. }
        )
    }
}

impl fmt::Display for CertificateClocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit_ms {
            Some(limit_ms) => f.write_str(&utc(limit_ms))?,
            None => f.write_str("a time that it does not tell")?,
        }
        write!(f, " (this host's clock says {}, ", utc(self.ours_ms))?;
        match self.server_ms {
            Some(server_ms) => write!(f, "the server's {})", utc(server_ms)),
            None => f.write_str("the server's is unknown)"),
        }
    }
}

fn utc(milliseconds: i64) -> String {
    DateTime::from_timestamp_millis(milliseconds)
        .map_or_else(|| format!("{milliseconds} ms"), |time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_of_the_future_shows_both_clocks() {
        let clocks =
            CertificateClocks { limit_ms: Some(1_760_000_000_000), ours_ms: 1_000, server_ms: Some(1_760_000_100_000) };
        let error = JoinError::CertificateNotYetValid { address: "h:443".into(), clocks };
        assert_eq!(
            error.to_string(),
            "the certificate of h:443 is not valid before 2025-10-09T08:53:20Z (this host's clock says \
             1970-01-01T00:00:01Z, the server's 2025-10-09T08:55:00Z); set the clock that is wrong"
        );
    }
}
