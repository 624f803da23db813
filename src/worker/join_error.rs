//! Why a worker is not connected to its server: one line each, what happened and what to do.

mod classify;

use std::path::PathBuf;
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

    /// A proxy in between lets no upgrade through.
    #[error(
        "a proxy between this worker and {address} takes the upgrade away; make it pass on the headers Upgrade and Connection (nginx: proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\")"
    )]
    UpgradeTakenAway {
        /// Host and port.
        address: String,
    },

    /// There is nothing to join with.
    #[error(
        "no join token, and no server that this worker has joined before: give the token with --token or GPUSTACK_TOKEN; `gpustack token` on the server's host prints it"
    )]
    NoToken,
    /// The server that answers is another one than before.
    #[error(
        "the server at {address} has another key than the one that this worker joined; if it was set up anew, give its join token with --token or remove {file}, else somebody is in between"
    )]
    ServerKeyChanged {
        /// Host and port.
        address: String,
        /// Where the key of before is kept.
        file: PathBuf,
    },
    /// The server cannot prove that it knows the join token.
    #[error(
        "what answers at {address} does not know the join token and is not the server; check --server-url and --token, else somebody is in between"
    )]
    ServerNotProven {
        /// Host and port.
        address: String,
    },
    /// The join token is not the server's.
    #[error(
        "the server at {address} refuses the join token; give the one that `gpustack token` prints on the server's host with --token"
    )]
    WrongToken {
        /// Host and port.
        address: String,
    },
    /// The server does not know this worker (any more).
    #[error(
        "the server at {address} does not know this worker, which was deleted there or belongs to another server; give the join token with --token to join as new"
    )]
    WorkerUnknown {
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
    /// Another process took over.
    #[error(
        "another process with this worker's identity took its place; is the data directory in use on another host, or a copy of it?"
    )]
    TakenOver,
    /// An administrator removed the worker.
    #[error("this worker was deleted on the server")]
    Deleted,
    /// Server and worker are of versions that do not fit.
    #[error("the server does not speak this worker's protocol: {message}; bring both to the same version")]
    ProtocolUnsupported {
        /// The server's sentence.
        message: String,
    },
    /// The server let the worker join, but what it said is not understood.
    #[error("the server's answer is not understood: {detail}; bring both to the same version")]
    AnswerNotUnderstood {
        /// The library's words.
        detail: String,
    },
    /// The server does not accept what the worker says of itself.
    #[error("the server refuses this worker: {message}")]
    Rejected {
        /// The server's sentence.
        message: String,
    },
    /// The server is starting, stopping or busy.
    #[error("the server is busy or not ready; the worker tries again by itself")]
    Unavailable {
        /// When to try again, when the server says it.
        retry_after: Option<Duration>,
    },
    /// The server ends in good order.
    #[error("the server stops; coming back in {} s", retry_after.as_secs())]
    ServerStopping {
        /// When to come back.
        retry_after: Duration,
    },
    /// Nothing has come from the server for too long.
    #[error("the server gave no sign of life over the link; it hangs, or the network between drops packets")]
    Silent,
    /// The link ended otherwise.
    #[error("the link to the server broke: {detail}")]
    Broken {
        /// What happened.
        detail: String,
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

impl JoinError {
    /// How soon to try again.
    pub fn pace(&self) -> Pace {
        match self {
            Self::NoToken
            | Self::ServerKeyChanged { .. }
            | Self::ServerNotProven { .. }
            | Self::WrongToken { .. }
            | Self::WorkerUnknown { .. }
            | Self::NameTaken { .. }
            | Self::ReplacementNeeded { .. }
            | Self::IdentityDuplicated { .. }
            | Self::TakenOver
            | Self::ProtocolUnsupported { .. }
            | Self::AnswerNotUnderstood { .. }
            | Self::Rejected { .. } => Pace::Slow,
            _ => Pace::Quick,
        }
    }

    /// When the server wishes the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after } => *retry_after,
            Self::ServerStopping { retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}
