//! From an upgraded stream to a link: TLS, then who are you, then may you come in. Both sides.
//!
//! The worker shows its proof of the token first: anybody may dial the server, and a server that showed its proof to
//! anybody would hand out something to guess weak tokens with. What the worker has to say goes out only after the server
//! is known, by its pinned key or by its proof.

use crate::encryption::{self, Rekeyed};
use crate::io::BoxedIo;
use crate::keys::{KeyPair, PublicKey};
use crate::message::{self, Generation, Kind, Message, MessageError, ServerHello, VERSIONS, WorkerHello};
use crate::meter::{Metered, Traffic};
use crate::refusal::Refusal;
use crate::token::{Bound, EXPORTER_LABEL, JoinToken, Prover, ShownToken};
use async_trait::async_trait;
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// How long the server waits for a refused worker to have read why.
const FAREWELL_DEADLINE: Duration = Duration::from_secs(1);

/// The stream of a link on the server.
pub(crate) type ServerStream = Rekeyed<tokio_rustls::server::TlsStream<Metered<BoxedIo>>>;
/// The stream of a link on the worker.
pub(crate) type WorkerStream = Rekeyed<tokio_rustls::client::TlsStream<Metered<BoxedIo>>>;

/// A worker at the door.
#[derive(Debug)]
pub struct Applicant {
    /// The key that it has proved to own.
    pub worker_key: PublicKey,
    /// What it has shown of the join token. A worker that has one shows it also when its key is known.
    pub token: ShownToken,
    /// Which of its attempts this is.
    pub generation: Generation,
    /// The other end of the connection, which may be a proxy or a bastion.
    pub peer: SocketAddr,
}

/// What comes of a worker's request.
#[derive(Clone, Debug)]
pub enum Admission {
    /// It gets a link.
    Link {
        /// The name under which the link is found; a newer link of the same name replaces an older one.
        id: Box<str>,
        /// The answer to the worker's join request.
        answer: Bytes,
    },
    /// It had a question and nothing else: this is the answer, and no link comes of it.
    Answer(Bytes),
}

/// Decides who may come in. All questions have to be answered before the deadline of the handshake.
#[async_trait]
pub trait Gatekeeper: Send + Sync {
    /// The join tokens that are valid now.
    async fn tokens(&self) -> Vec<JoinToken>;

    /// Whether this worker may ask to be let in, for its key or for its token.
    async fn recognise(&self, applicant: &Applicant) -> Result<(), Refusal>;

    /// Whether it may join with this request.
    ///
    /// The link does not stand yet. What is changed here must not harm when the worker vanishes the next moment.
    async fn admit(&self, applicant: &Applicant, join_request: Bytes) -> Result<Admission, Refusal>;
}

/// Why no link came of a connection, as the server sees it.
#[derive(Debug, Error)]
pub enum AcceptError {
    /// The HTTP connection ended before the upgrade.
    #[error("the connection ended before the upgrade: {0}")]
    Upgrade(hyper::Error),
    /// What came is not this program's TLS.
    #[error("no encryption could be agreed on: {0}")]
    Encryption(io::Error),
    /// The worker was refused, and told so.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// What came is no handshake.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// It took too long.
    #[error("the handshake took more than {0:?}")]
    Deadline(Duration),
    /// The worker asked something, was told, and wanted no link.
    #[error("a question was answered")]
    Answered,
    /// The attempt took so long that it no longer counts.
    #[error("a newer link of the same worker stands already, or the server is stopping")]
    TooLate,
    /// HTTP/2 could not begin.
    #[error("the connection ended as the link began: {0}")]
    Begin(#[from] h2::Error),
}

/// A handshake that succeeded, on the server.
pub(crate) struct Accepted {
    pub stream: ServerStream,
    pub applicant: Applicant,
    pub id: Box<str>,
}

/// What the server needs for handshakes.
pub(crate) struct ServerSide {
    pub tls: TlsAcceptor,
    pub key: PublicKey,
    pub gatekeeper: Arc<dyn Gatekeeper>,
    pub key_rotation: Duration,
}

impl ServerSide {
    /// Receives a worker. Who calls this sets the deadline.
    pub async fn receive(
        &self,
        io: BoxedIo,
        peer: SocketAddr,
        traffic: &Arc<Traffic>,
    ) -> Result<Accepted, AcceptError> {
        let metered = Metered::new(io, Arc::clone(traffic));
        let mut tls = self.tls.accept(metered).await.map_err(AcceptError::Encryption)?;
        match self.converse(&mut tls, peer).await {
            Ok((applicant, id)) => {
                let stream = Rekeyed::new(tls, self.key_rotation, Arc::clone(traffic));
                Ok(Accepted { stream, applicant, id })
            }
            Err(AcceptError::Answered) => {
                say_farewell(&mut tls, None).await;
                Err(AcceptError::Answered)
            }
            Err(error) => {
                turn_away(&mut tls, &error).await;
                Err(error)
            }
        }
    }

    async fn converse<IO: AsyncRead + AsyncWrite + Unpin>(
        &self,
        tls: &mut tokio_rustls::server::TlsStream<IO>,
        peer: SocketAddr,
    ) -> Result<(Applicant, Box<str>), AcceptError> {
        let connection = tls.get_ref().1;
        let worker = encryption::peer_key(connection).ok_or(MessageError::Malformed)?;
        let exporter = connection.export_keying_material([0; 32], EXPORTER_LABEL, None).map_err(unusable)?;
        let bound = Bound { exporter, worker, server: self.key };
        let Message::WorkerHello(hello) = message::read(tls, &[Kind::WorkerHello]).await? else {
            return Err(MessageError::Malformed.into());
        };
        let version = common_version(&hello).map_err(AcceptError::Refused)?;
        let token = ShownToken::check(hello.token_proof.as_ref(), &bound, &self.gatekeeper.tokens().await);
        let token_proof = match &token {
            ShownToken::Valid(token) => Some(token.prove(Prover::Server, &bound)),
            // it would not believe a server that cannot prove the same token, and would be told less
            _ if !hello.knows_server => return Err(AcceptError::Refused(Refusal::WrongToken)),
            _ => None,
        };
        let applicant = Applicant { worker_key: bound.worker, token, generation: hello.generation, peer };
        self.gatekeeper.recognise(&applicant).await.map_err(AcceptError::Refused)?;
        let answer = Message::ServerHello(ServerHello { version, token_proof });
        message::write(tls, &answer).await.map_err(MessageError::Io)?;
        let Message::Join(request) = message::read(tls, &[Kind::Join]).await? else {
            return Err(MessageError::Malformed.into());
        };
        let admission = self.gatekeeper.admit(&applicant, request).await.map_err(AcceptError::Refused)?;
        let (id, answer) = match admission {
            Admission::Link { id, answer } => (Some(id), answer),
            Admission::Answer(answer) => (None, answer),
        };
        message::write(tls, &Message::Welcome(answer)).await.map_err(MessageError::Io)?;
        Ok((applicant, id.ok_or(AcceptError::Answered)?))
    }
}

/// Tells the worker why.
async fn turn_away<IO: AsyncRead + AsyncWrite + Unpin>(io: &mut IO, error: &AcceptError) {
    let refusal = match error {
        AcceptError::Refused(refusal) => refusal.clone(),
        AcceptError::Message(MessageError::Io(_)) => return,
        _ => Refusal::Malformed,
    };
    say_farewell(io, Some(Message::Refused(refusal))).await;
}

/// Ends the connection and waits until the worker has read the last word: closing with its bytes unread would reset the
/// connection, and the last word might never arrive.
async fn say_farewell<IO: AsyncRead + AsyncWrite + Unpin>(io: &mut IO, last_word: Option<Message>) {
    let farewell = async {
        if let Some(message) = last_word {
            message::write(io, &message).await?;
        }
        io.shutdown().await?;
        let mut unread = [0; 1024];
        while io.read(&mut unread).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    // whether it arrives is up to the other side
    let _ = tokio::time::timeout(FAREWELL_DEADLINE, farewell).await;
}

fn common_version(hello: &WorkerHello) -> Result<u16, Refusal> {
    let newest = hello.max_version.min(*VERSIONS.end());
    if newest < hello.min_version.max(*VERSIONS.start()) {
        return Err(Refusal::VersionUnsupported { min: *VERSIONS.start(), max: *VERSIONS.end() });
    }
    Ok(newest)
}

/// Cannot happen after a handshake.
fn unusable(error: rustls::Error) -> MessageError {
    MessageError::Io(io::Error::other(error))
}

/// Why the handshake failed, as the worker sees it.
#[derive(Debug, Error)]
pub enum JoinError {
    /// What answers does not speak this program's TLS.
    #[error("no encryption could be agreed on with the server: {0}")]
    Encryption(io::Error),
    /// The server shows another key than the one it had when this worker joined.
    #[error(
        "the server is not the one this worker joined: its key is {found}, expected was {expected}; if the server was \
         set up anew, remove the worker's stored server key, else somebody is in between"
    )]
    ServerKeyChanged {
        /// The key that was pinned.
        expected: PublicKey,
        /// The key that was shown.
        found: PublicKey,
    },
    /// The server took the proof of the token and did not prove to know it itself.
    #[error("the server does not prove to know the join token; somebody may be in between")]
    ServerNotProven,
    /// Neither is a server key known nor a token there to get to know one.
    #[error("this worker has neither a join token nor a stored server key; start it with the server's join token")]
    NothingToJoinWith,
    /// The server refuses.
    #[error("{refusal}")]
    Refused {
        /// Why.
        refusal: Refusal,
        /// Whether it is certain that the server says so. Before a first join it is not: anybody in between can say it.
        proven: bool,
    },
    /// What the server sent is no handshake.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// A handshake that succeeded, on the worker.
pub(crate) struct Joined {
    pub stream: WorkerStream,
    pub server_key: PublicKey,
    pub answer: Bytes,
}

/// What the worker needs for a handshake.
pub(crate) struct WorkerSide<'a> {
    pub keys: &'a KeyPair,
    pub server_key: Option<PublicKey>,
    pub token: Option<&'a JoinToken>,
    pub generation: Generation,
    pub join_request: Bytes,
    pub key_rotation: Duration,
}

impl WorkerSide<'_> {
    /// Joins. Who calls this sets the deadline.
    pub async fn join(self, io: BoxedIo, traffic: &Arc<Traffic>) -> Result<Joined, JoinError> {
        if self.server_key.is_none() && self.token.is_none() {
            return Err(JoinError::NothingToJoinWith);
        }
        let key_rotation = self.key_rotation;
        let mut tls = self.encrypt(Metered::new(io, Arc::clone(traffic))).await?;
        let (server_key, answer) = self.converse(&mut tls).await?;
        Ok(Joined { stream: Rekeyed::new(tls, key_rotation, Arc::clone(traffic)), server_key, answer })
    }

    async fn encrypt<IO: AsyncRead + AsyncWrite + Unpin>(
        &self,
        io: IO,
    ) -> Result<tokio_rustls::client::TlsStream<IO>, JoinError> {
        let seen = Arc::new(OnceLock::new());
        let config = encryption::client_config(self.keys, self.server_key, Arc::clone(&seen))
            .map_err(|error| JoinError::Encryption(io::Error::other(error)))?;
        let connected = TlsConnector::from(Arc::new(config)).connect(encryption::no_name(), io).await;
        connected.map_err(|error| match (self.server_key, seen.get()) {
            (Some(expected), Some(&found)) if found != expected => JoinError::ServerKeyChanged { expected, found },
            _ => JoinError::Encryption(error),
        })
    }

    async fn converse<IO: AsyncRead + AsyncWrite + Unpin>(
        self,
        tls: &mut tokio_rustls::client::TlsStream<IO>,
    ) -> Result<(PublicKey, Bytes), JoinError> {
        let connection = tls.get_ref().1;
        let server = encryption::peer_key(connection).ok_or(MessageError::Malformed)?;
        let exporter = connection.export_keying_material([0; 32], EXPORTER_LABEL, None).map_err(unusable)?;
        let bound = Bound { exporter, worker: self.keys.public(), server };
        let hello = Message::WorkerHello(WorkerHello {
            min_version: *VERSIONS.start(),
            max_version: *VERSIONS.end(),
            generation: self.generation,
            knows_server: self.server_key.is_some(),
            token_proof: self.token.map(|token| token.prove(Prover::Worker, &bound)),
        });
        message::write(tls, &hello).await.map_err(MessageError::Io)?;
        let pinned = self.server_key.is_some();
        let server_hello = match message::read(tls, &[Kind::ServerHello, Kind::Refused]).await? {
            Message::ServerHello(hello) => hello,
            Message::Refused(refusal) => return Err(JoinError::Refused { refusal, proven: pinned }),
            _ => return Err(MessageError::Malformed.into()),
        };
        if !VERSIONS.contains(&server_hello.version) {
            return Err(MessageError::Malformed.into());
        }
        self.check_server(&server_hello, &bound)?;
        message::write(tls, &Message::Join(self.join_request)).await.map_err(MessageError::Io)?;
        match message::read(tls, &[Kind::Welcome, Kind::Refused]).await? {
            Message::Welcome(answer) => Ok((bound.server, answer)),
            Message::Refused(refusal) => Err(JoinError::Refused { refusal, proven: true }),
            _ => Err(MessageError::Malformed.into()),
        }
    }

    /// A pinned key was checked by TLS. A proof that is there must be right all the same.
    fn check_server(&self, hello: &ServerHello, bound: &Bound) -> Result<(), JoinError> {
        match (self.token, &hello.token_proof) {
            (Some(token), Some(proof)) if token.proves(Prover::Server, bound, proof) => Ok(()),
            (_, None) if self.server_key.is_some() => Ok(()),
            _ => Err(JoinError::ServerNotProven),
        }
    }
}

#[cfg(test)]
mod tests;
