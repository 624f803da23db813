//! The way to a session: connect, greet, agree on keys, log in.

use crate::address::HopName;
use crate::end::SessionEnd;
use crate::error::{ChannelError, ConnectError, ConnectFault, Step};
use crate::identity::{self, Passphrases};
use crate::io::BoxedIo;
use crate::known_hosts::{Book, HostKeyError, KnownHosts};
use crate::route::{Hop, Route};
use crate::session::client::{self, Client, Verdict};
use crate::session::shared::Shared;
use crate::session::{Inner, Session, authenticate};
use crate::transport::Transport;
use crate::tuning::{CHANNEL_BUFFER_PIECES, Compression, Tuning};
use crate::wire::{Greeting, Wire};
use russh::client::Handle;
use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use russh::{Preferred, cipher, client as russh_client, compression};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{self, Instant};

/// The protocol library takes no larger pieces.
const MAX_PACKET_BYTES: u32 = 65_535;

/// AES-GCM first, which processors of servers have in hardware.
const CIPHERS: &[cipher::Name] = &[
    cipher::AES_256_GCM,
    cipher::AES_128_GCM,
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];

/// What all sessions of a program have in common.
#[derive(Clone)]
pub struct Connector {
    /// Opens the connection to the first server of a route, [`TcpTransport`](crate::TcpTransport) outside of tests.
    pub transport: Arc<dyn Transport>,
    /// Which keys servers have.
    pub known_hosts: KnownHosts,
    /// What opens encrypted keys.
    pub passphrases: Arc<dyn Passphrases>,
    /// Sizes and times.
    pub tuning: Tuning,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("known_hosts", &self.known_hosts).finish_non_exhaustive()
    }
}

impl Connector {
    /// Makes a session with each server on the route, each over the one before; gives the last one, which keeps the
    /// others. Dropping the future ends what stands so far.
    pub async fn connect(&self, route: &Route) -> Result<Session, ConnectError> {
        let mut session = self.connect_hop(route.first(), None).await?;
        for hop in route.further() {
            session = self.connect_hop(hop, Some(&session)).await?;
        }
        Ok(session)
    }

    /// Makes a session with one server, over the session with the one before it where there is one.
    pub async fn connect_hop(&self, hop: &Hop, via: Option<&Session>) -> Result<Session, ConnectError> {
        Box::pin(self.attempt(hop, via)).await.map_err(|fault| {
            let refuses = matches!(
                fault,
                ConnectFault::Channel(ChannelError::Prohibited { .. } | ChannelError::ResourceShortage { .. })
            );
            // what a bastion may not or cannot do is its own matter, not that of the server behind it
            let at_fault = via.filter(|_| refuses).map_or(&hop.name, |via| via.name());
            ConnectError { hop: at_fault.clone(), fault }
        })
    }

    async fn attempt(&self, hop: &Hop, via: Option<&Session>) -> Result<Session, ConnectFault> {
        // what is wrong on this side is found before anybody else hears of it
        let offers = identity::offers(&hop.identities, &*self.passphrases).await?;
        let book = self.known_hosts.read().map_err(HostKeyError::from)?;

        let io = self.open(&hop.name, via).await?;
        let shared = Shared::new(hop.name.clone(), via.map(|via| Arc::clone(&via.inner.shared)));
        let unfinished = shared.cut.clone().drop_guard();
        let mut handle = self.handshake(&shared, book, io).await?;
        let deadline = self.tuning.authentication_deadline;
        let let_in = authenticate::authenticate(&mut handle, &shared, offers);
        match time::timeout(deadline, let_in).await {
            Ok(decided) => decided?,
            Err(_) => return Err(ConnectFault::Deadline { step: Step::LetIn, deadline }),
        }
        unfinished.disarm();
        tokio::spawn(watch(Arc::clone(&shared), self.tuning.clone()));
        let (via, tuning) = (via.cloned(), self.tuning.clone());
        Ok(Session { inner: Arc::new(Inner { handle, shared, via, tuning }) })
    }

    async fn open(&self, hop: &HopName, via: Option<&Session>) -> Result<BoxedIo, ConnectFault> {
        let deadline = self.tuning.connect_deadline;
        if let Some(via) = via {
            let here = crate::Endpoint::new("127.0.0.1", 0);
            return Ok(Box::new(via.open(&hop.server, &here, deadline).await?));
        }
        match time::timeout(deadline, self.transport.open(&hop.server)).await {
            Ok(opened) => Ok(opened?),
            Err(_) => Err(ConnectFault::Deadline { step: Step::Connect, deadline }),
        }
    }

    async fn handshake(&self, shared: &Arc<Shared>, book: Book, io: BoxedIo) -> Result<Handle<Client>, ConnectFault> {
        let config = Arc::new(self.config(shared, &book));
        let verdict = Verdict::default();
        let client = Client::new(Arc::clone(shared), book, verdict.clone());
        let wire = Wire::new(io, Arc::clone(&shared.pulse), &shared.cut);
        let deadline = self.tuning.handshake_deadline;
        match time::timeout(deadline, russh_client::connect_stream(config, wire, client)).await {
            Ok(Ok(handle)) => Ok(handle),
            Ok(Err(error)) => Err(handshake_fault(error, shared, &verdict)),
            Err(_) => {
                let greeted = matches!(shared.pulse.greeting(), Greeting::Ssh(_));
                let step = if greeted { Step::AgreeOnKeys } else { Step::Greet };
                Err(ConnectFault::Deadline { step, deadline })
            }
        }
    }

    fn config(&self, shared: &Shared, book: &Book) -> russh_client::Config {
        let host = &shared.hop.server;
        let mut preferred = Preferred::DEFAULT;
        preferred.compression = Cow::Borrowed(match self.tuning.compression {
            Compression::Off => &[compression::NONE],
            Compression::On => &[compression::ZLIB_LEGACY, compression::NONE],
        });
        preferred.cipher = Cow::Borrowed(CIPHERS);
        preferred.key = Cow::Owned(host_key_algorithms(&book.algorithms(host)));
        if book.has_authority_for(host) {
            preferred.host_key_certificates = Cow::Owned(host_key_algorithms(&[]));
        }
        russh_client::Config {
            preferred,
            window_size: self.tuning.window_bytes,
            maximum_packet_size: self.tuning.max_packet_bytes.min(MAX_PACKET_BYTES),
            channel_buffer_size: CHANNEL_BUFFER_PIECES,
            keepalive_interval: Some(self.tuning.keep_alive_interval),
            // never: a watch of our own also sees what happens while the protocol task waits for a write
            keepalive_max: 0,
            nodelay: true,
            ..russh_client::Config::default()
        }
    }
}

/// All kinds of host keys that are taken, the known ones first. Signatures with SHA-1 are not.
fn host_key_algorithms(known: &[Algorithm]) -> Vec<Algorithm> {
    let all = [
        Algorithm::Ed25519,
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
        Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
        Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
    ];
    let is_rsa = |algorithm: &Algorithm| matches!(algorithm, Algorithm::Rsa { .. });
    let is_known =
        |algorithm: &Algorithm| known.iter().any(|known| known == algorithm || is_rsa(known) && is_rsa(algorithm));
    let (mut first, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(is_known);
    first.extend(rest);
    first
}

/// Why there are no common keys.
fn handshake_fault(error: russh::Error, shared: &Shared, verdict: &Verdict) -> ConnectFault {
    if let Some(error) = verdict.take() {
        return error.into();
    }
    if shared.via.as_ref().is_some_and(|via| via.end.is_set()) {
        shared.end_with(SessionEnd::Closed);
        return shared.end.get().unwrap_or(SessionEnd::Closed).into();
    }
    match shared.pulse.greeting() {
        Greeting::None => return ConnectFault::ClosedBeforeGreeting { said: None },
        Greeting::Other(said) if is_refusal(&said) => return ConnectFault::ClosedBeforeGreeting { said: Some(said) },
        Greeting::Other(first_line) => return ConnectFault::NotSsh { first_line },
        // 1.99 means both (RFC 4253, section 5.1)
        Greeting::Ssh(greeting) if !greeting.starts_with("SSH-2.0-") && !greeting.starts_with("SSH-1.99-") => {
            return ConnectFault::OldProtocol { greeting };
        }
        Greeting::Ssh(_) => {}
    }
    match (error, shared.end.get()) {
        (russh::Error::NoCommonAlgo { kind, ours, theirs }, _) => {
            ConnectFault::NoCommonAlgorithm { kind: format!("{kind:?}"), ours, theirs }
        }
        (_, Some(end @ SessionEnd::Disconnected { .. })) => end.into(),
        (other, _) => client::end_of(&other).into(),
    }
}

/// What sshd says instead of a greeting to whom it does not want at the moment.
fn is_refusal(line: &str) -> bool {
    ["Exceeded MaxStartups", "Not allowed at this time"].iter().any(|words| line.starts_with(words))
}

/// Ends a session whose server gives no sign of life, and connections that hold up the session.
///
/// The sessions above one that goes silent are silent too. Each gives those below it a little more time, so that the
/// right one is named.
async fn watch(shared: Arc<Shared>, tuning: Tuning) {
    let interval = tuning.keep_alive_interval;
    let longest_silence = tuning.longest_silence() + interval / 2 * shared.depth();
    let pace = interval.min(tuning.longest_hold_up);
    let mut heard = shared.pulse.last_sign();
    loop {
        let begun = Instant::now();
        let wake = (heard + longest_silence).min(begun + pace);
        tokio::select! {
            () = shared.cut.cancelled() => return,
            () = time::sleep_until(wake) => {}
        }
        heard = heard.max(shared.pulse.last_sign());
        let now = Instant::now();
        let held_up_for = shared.pulse.held_up_for();
        let was_stopped = now - begun > pace * 2;
        if held_up_for >= tuning.longest_hold_up && !was_stopped {
            shared.slow_readers.show_the_door(tuning.longest_hold_up);
        }
        // this process was stopped for a while, or the protocol task is held up: what came meanwhile has not been read
        let held_up = !held_up_for.is_zero() && held_up_for < tuning.longest_hold_up * 4;
        if held_up || was_stopped {
            heard = now;
        }
        let silent_for = now - heard;
        if silent_for >= longest_silence {
            return shared.end_with(SessionEnd::KeepAliveLost { silent_for: round(silent_for) });
        }
    }
}

/// To a tenth of a second, which is what a person wants to know.
fn round(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX) / 100 * 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_kinds_of_keys_are_asked_for_first() {
        let algorithms = host_key_algorithms(&[Algorithm::Rsa { hash: None }]);
        assert_eq!(algorithms.first(), Some(&Algorithm::Rsa { hash: Some(HashAlg::Sha512) }));
        assert_eq!(algorithms.len(), 6);
        assert_eq!(host_key_algorithms(&[]).first(), Some(&Algorithm::Ed25519));
    }
}
