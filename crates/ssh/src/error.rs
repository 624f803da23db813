//! Why there is no session, and no connection over one.

use crate::address::{Endpoint, HopName};
use crate::end::SessionEnd;
use crate::identity::{IdentityError, TriedKey};
use crate::known_hosts::HostKeyError;
use crate::transport::TransportError;
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// There is no session with one of the servers of a route.
#[derive(Debug, Error)]
#[error("{hop}: {fault}")]
pub struct ConnectError {
    /// The server on the route with which it went wrong: the bastion when that may not or cannot connect to the next one.
    /// Those before it are well.
    pub hop: HopName,
    /// What went wrong.
    #[source]
    pub fault: ConnectFault,
}

/// Why there is no session with a server.
#[derive(Debug, Error)]
pub enum ConnectFault {
    /// This host does not get through to it.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The bastion before it does not get through to it, or does not want to.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// It took too long.
    #[error("the server did not {step} within {} s{}", deadline.as_secs_f64(), step.hint())]
    Deadline {
        /// What it did not do.
        step: Step,
        /// How long it had.
        deadline: Duration,
    },
    /// Something else listens there.
    #[error("what answers there is no SSH server; it says: {first_line}")]
    NotSsh {
        /// What it said first.
        first_line: String,
    },
    /// The connection was closed before the server said who it is.
    ///
    /// sshd does so, with or without a word, when too many are logging in at the moment, and to addresses that it
    /// punishes; TCP wrappers and firewalls do it to addresses that they do not like.
    #[error(
        "the server closed the connection before it greeted{}; too many may be logging in at the moment (raise \
         `MaxStartups`, 10:30:100 by default, in its sshd_config), or it does not want connections from this address \
         (`PerSourceMaxStartups`, `PerSourcePenalties`, /etc/hosts.deny)",
        said.as_ref().map(|said| format!(" and said: {said}")).unwrap_or_default()
    )]
    ClosedBeforeGreeting {
        /// Its last words.
        said: Option<String>,
    },
    /// It speaks a version of SSH that was given up in 2006.
    #[error("the server does not speak SSH 2.0: {greeting}")]
    OldProtocol {
        /// What it said first.
        greeting: String,
    },
    /// Both sides know nothing that the other one knows.
    #[error("no {kind} in common: this side offers {}, the server {}", ours.join(", "), theirs.join(", "))]
    NoCommonAlgorithm {
        /// What is to be agreed on.
        kind: String,
        /// What this side offers.
        ours: Vec<String>,
        /// What the server offers.
        theirs: Vec<String>,
    },
    /// The server is not known, or is not the one that it should be.
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    /// There is nothing to log in with.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The server does not let the user in.
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
    /// The connection ended in the middle of it.
    #[error(transparent)]
    Ended(#[from] SessionEnd),
}

/// A step on the way to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The connection stands.
    Connect,
    /// The server says that it speaks SSH.
    Greet,
    /// Both sides have keys for what follows, and the server has shown its own.
    AgreeOnKeys,
    /// The server knows the user.
    LetIn,
}

impl Step {
    /// What that may mean.
    fn hint(self) -> &'static str {
        match self {
            Self::Connect => ": a firewall drops the packets, or the host is down",
            Self::Greet => ": something listens there that is no SSH server, or it is overloaded",
            Self::AgreeOnKeys => ": the path loses large packets (a wrong MTU), or the server is overloaded",
            Self::LetIn => ": it may wait for a directory or for DNS (`UseDNS no` in its sshd_config)",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "take the connection",
            Self::Greet => "greet",
            Self::AgreeOnKeys => "complete the key exchange",
            Self::LetIn => "decide about the login",
        })
    }
}

/// A server does not let a user in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AuthenticationError {
    /// It takes none of the keys.
    #[error(
        "the server does not let {user} in with any of these keys: {}. It takes: {}. Is the key in the user's \
         authorized_keys there, or the certificate's authority in `TrustedUserCAKeys`? The server's log (`journalctl -u \
         ssh`) says why it refuses",
        keys(tried), offered.join(", ")
    )]
    Refused {
        /// Who wants in.
        user: String,
        /// The kinds of login that the server takes from this user.
        offered: Vec<String>,
        /// What it was offered.
        tried: Vec<TriedKey>,
    },
    /// It does not take keys at all.
    #[error(
        "the server takes no keys from {user}, only: {}; allow them with `PubkeyAuthentication yes` (and \
         `AuthenticationMethods`) in its sshd_config", offered.join(", ")
    )]
    KeysNotTaken {
        /// Who wants in.
        user: String,
        /// The kinds of login that the server takes from this user.
        offered: Vec<String>,
    },
    /// A key is right, and not enough.
    #[error(
        "the server wants more of {user} than a key: {}; set `AuthenticationMethods publickey` for this user in its \
         sshd_config", offered.join(", ")
    )]
    MoreWanted {
        /// Who wants in.
        user: String,
        /// What is still wanted.
        offered: Vec<String>,
    },
    /// It was offered more keys than it wants to hear of.
    #[error(
        "the server has had enough after {} keys for {user} (`MaxAuthTries`, 6 by default, in its sshd_config); name the \
         one right key instead of offering all of ssh-agent's", tried.len()
    )]
    TooManyFailures {
        /// Who wants in.
        user: String,
        /// What it was offered.
        tried: Vec<TriedKey>,
    },
}

fn keys(tried: &[TriedKey]) -> String {
    tried.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A server does not connect a session to a target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChannelError {
    /// It is not allowed to.
    ///
    /// The protocol does not tell which rule forbids it.
    #[error(
        "the server may not connect to {target}: allow it with `AllowTcpForwarding yes` (or `local`) and, where \
         `PermitOpen` is set, `PermitOpen {target}`, in its sshd_config; `DisableForwarding`, and `restrict`, \
         `no-port-forwarding` or `permitopen` beside the key in authorized_keys or in the certificate, forbid it too"
    )]
    Prohibited {
        /// Where it was to connect to.
        target: Endpoint,
    },
    /// It cannot.
    #[error("the server cannot connect to {target}{}; is something listening there?", detail_text(detail.as_deref()))]
    ConnectFailed {
        /// Where it was to connect to.
        target: Endpoint,
        /// The server's words, e.g. `Connection refused`.
        detail: Option<String>,
    },
    /// It has no room.
    #[error("the server has no resources left for a connection to {target}")]
    ResourceShortage {
        /// Where it was to connect to.
        target: Endpoint,
    },
    /// It refuses for a reason that makes no sense here.
    #[error("the server does not connect to {target}: {what}")]
    Refused {
        /// Where it was to connect to.
        target: Endpoint,
        /// What it said.
        what: String,
    },
    /// It takes too long.
    #[error("the server did not connect to {target} within {} s: something drops the packets behind it", deadline.as_secs_f64())]
    Deadline {
        /// Where it was to connect to.
        target: Endpoint,
        /// How long it had.
        deadline: Duration,
    },
    /// There is no session any more.
    #[error("the session ended: {0}")]
    SessionEnded(#[from] SessionEnd),
}

fn detail_text(detail: Option<&str>) -> String {
    detail.map(|detail| format!(": {detail}")).unwrap_or_default()
}
