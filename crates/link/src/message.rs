//! The messages of the handshake, spoken after TLS and before HTTP/2.
//!
//! Each is a byte for its kind, four for the length of what follows, and what follows: fields of fixed size, then opaque
//! bytes. A side reads at most what the kind it waits for may have, so nobody can make it hold more. Five messages of a
//! handful of numbers are easier to read, and to be sure about, than a general encoding would be; what is not for the
//! link to know is opaque to it. Bytes after the fields of a hello are left for later versions, and not looked at.

use crate::refusal::Refusal;
use crate::token::PROOF_BYTES;
use bytes::{Buf, BufMut, Bytes};
use std::io;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The versions of the handshake that this program speaks.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u16> = 1..=1;

/// The most that what uses the link may say in a join request or in the answer to it, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;

/// The hello messages are shorter; later versions may say more.
const MAX_HELLO_BYTES: usize = 1024;
const MAX_REFUSAL_BYTES: usize = Refusal::MAX_DETAIL_BYTES + 64;

/// Counts a worker's attempts, so that an attempt which arrives late is known to be old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Made up by the worker's process when it starts.
    pub process: u64,
    /// Counts up with every attempt of that process.
    pub attempt: u64,
}

impl Generation {
    /// Whether this one is an earlier attempt of the same process. Of two processes nobody can tell which is newer.
    pub fn is_older_than(self, other: Self) -> bool {
        self.process == other.process && self.attempt < other.attempt
    }
}

/// A message of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    WorkerHello(WorkerHello),
    ServerHello(ServerHello),
    /// What the worker says to what uses the link on the server.
    Join(Bytes),
    /// The answer to it; the link stands.
    Welcome(Bytes),
    Refused(Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerHello {
    pub min_version: u16,
    pub max_version: u16,
    pub generation: Generation,
    /// Whether the worker has the server's key from an earlier link, and can do without its proof.
    pub knows_server: bool,
    pub token_proof: Option<[u8; PROOF_BYTES]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerHello {
    pub version: u16,
    /// There when the worker was let on for its token.
    pub token_proof: Option<[u8; PROOF_BYTES]>,
}

/// What the other side sent is no message, or not one that may come now.
#[derive(Debug, Error)]
pub enum MessageError {
    /// The connection broke or ended.
    #[error("the connection ended in the handshake: {0}")]
    Io(#[from] io::Error),
    /// A message of this kind does not come here.
    #[error("the other side sent something that does not belong here (kind {0})")]
    Unexpected(u8),
    /// The message is longer than one of its kind may be.
    #[error("the other side announced a message of {bytes} bytes, {max} are allowed")]
    TooLong {
        /// The announced length.
        bytes: u32,
        /// The limit.
        max: usize,
    },
    /// Its fields do not make sense.
    #[error("the other side sent a message that makes no sense")]
    Malformed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    WorkerHello = 1,
    ServerHello = 2,
    Join = 3,
    Welcome = 4,
    Refused = 5,
}

impl Kind {
    fn max_bytes(self) -> usize {
        match self {
            Self::WorkerHello | Self::ServerHello => MAX_HELLO_BYTES,
            Self::Join | Self::Welcome => MAX_PAYLOAD_BYTES,
            Self::Refused => MAX_REFUSAL_BYTES,
        }
    }
}

/// How a refusal is written down.
mod code {
    pub const WRONG_TOKEN: u16 = 1;
    pub const UNKNOWN_KEY: u16 = 2;
    pub const REVOKED: u16 = 3;
    pub const VERSION_UNSUPPORTED: u16 = 4;
    pub const BUSY: u16 = 5;
    pub const MALFORMED: u16 = 6;
    pub const DECLINED: u16 = 7;
}

/// Sends one message.
pub(crate) async fn write<W: AsyncWrite + Unpin>(io: &mut W, message: &Message) -> io::Result<()> {
    io.write_all(&message.encode()?).await?;
    io.flush().await
}

/// Receives one message of a kind that may come now.
pub(crate) async fn read<R: AsyncRead + Unpin>(io: &mut R, allowed: &[Kind]) -> Result<Message, MessageError> {
    let kind_byte = io.read_u8().await?;
    let kind = allowed.iter().copied().find(|kind| *kind as u8 == kind_byte);
    let kind = kind.ok_or(MessageError::Unexpected(kind_byte))?;
    let announced = io.read_u32().await?;
    let max = kind.max_bytes();
    let length = usize::try_from(announced).ok().filter(|length| *length <= max);
    let length = length.ok_or(MessageError::TooLong { bytes: announced, max })?;
    let mut body = Vec::new();
    // grows with what arrives, not with what was announced
    io.take(length as u64).read_to_end(&mut body).await?;
    if body.len() < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Message::decode(kind, body.into()).ok_or(MessageError::Malformed)
}

impl Message {
    fn kind(&self) -> Kind {
        match self {
            Self::WorkerHello(_) => Kind::WorkerHello,
            Self::ServerHello(_) => Kind::ServerHello,
            Self::Join(_) => Kind::Join,
            Self::Welcome(_) => Kind::Welcome,
            Self::Refused(_) => Kind::Refused,
        }
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        match self {
            Self::WorkerHello(hello) => {
                body.put_u16(hello.min_version);
                body.put_u16(hello.max_version);
                body.put_u64(hello.generation.process);
                body.put_u64(hello.generation.attempt);
                body.put_u8(u8::from(hello.knows_server));
                put_proof(&mut body, hello.token_proof.as_ref());
            }
            Self::ServerHello(hello) => {
                body.put_u16(hello.version);
                put_proof(&mut body, hello.token_proof.as_ref());
            }
            Self::Join(payload) | Self::Welcome(payload) => body.put_slice(payload),
            Self::Refused(refusal) => put_refusal(&mut body, refusal),
        }
        let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "a handshake message is too long");
        if body.len() > self.kind().max_bytes() {
            return Err(too_long());
        }
        let mut framed = Vec::with_capacity(5 + body.len());
        framed.put_u8(self.kind() as u8);
        framed.put_u32(u32::try_from(body.len()).map_err(|_| too_long())?);
        framed.put_slice(&body);
        Ok(framed)
    }

    fn decode(kind: Kind, mut body: Bytes) -> Option<Self> {
        match kind {
            Kind::WorkerHello => Some(Self::WorkerHello(WorkerHello {
                min_version: body.try_get_u16().ok()?,
                max_version: body.try_get_u16().ok()?,
                generation: Generation { process: body.try_get_u64().ok()?, attempt: body.try_get_u64().ok()? },
                knows_server: body.try_get_u8().ok()? != 0,
                token_proof: take_proof(&mut body)?,
            })),
            Kind::ServerHello => Some(Self::ServerHello(ServerHello {
                version: body.try_get_u16().ok()?,
                token_proof: take_proof(&mut body)?,
            })),
            Kind::Join => Some(Self::Join(body)),
            Kind::Welcome => Some(Self::Welcome(body)),
            Kind::Refused => take_refusal(body).map(Self::Refused),
        }
    }
}

fn put_proof(body: &mut Vec<u8>, proof: Option<&[u8; PROOF_BYTES]>) {
    body.put_u8(u8::from(proof.is_some()));
    if let Some(proof) = proof {
        body.put_slice(proof);
    }
}

/// The outer `None` is a message that makes no sense.
#[expect(clippy::option_option, reason = "there is a proof, there is none, or the bytes are neither")]
fn take_proof(body: &mut Bytes) -> Option<Option<[u8; PROOF_BYTES]>> {
    match body.try_get_u8().ok()? {
        0 => Some(None),
        1 => {
            let mut proof = [0; PROOF_BYTES];
            body.try_copy_to_slice(&mut proof).ok()?;
            Some(Some(proof))
        }
        _ => None,
    }
}

fn put_refusal(body: &mut Vec<u8>, refusal: &Refusal) {
    match refusal {
        Refusal::WrongToken => body.put_u16(code::WRONG_TOKEN),
        Refusal::UnknownKey => body.put_u16(code::UNKNOWN_KEY),
        Refusal::Revoked => body.put_u16(code::REVOKED),
        Refusal::VersionUnsupported { min, max } => {
            body.put_u16(code::VERSION_UNSUPPORTED);
            body.put_u16(*min);
            body.put_u16(*max);
        }
        Refusal::Busy { retry_after } => {
            body.put_u16(code::BUSY);
            body.put_u32(u32::try_from(retry_after.as_millis()).unwrap_or(u32::MAX));
        }
        Refusal::Malformed => body.put_u16(code::MALFORMED),
        Refusal::Declined { detail } => {
            body.put_u16(code::DECLINED);
            body.put_slice(detail.get(..Refusal::MAX_DETAIL_BYTES).unwrap_or(detail));
        }
    }
}

fn take_refusal(mut body: Bytes) -> Option<Refusal> {
    match body.try_get_u16().ok()? {
        code::WRONG_TOKEN => Some(Refusal::WrongToken),
        code::UNKNOWN_KEY => Some(Refusal::UnknownKey),
        code::REVOKED => Some(Refusal::Revoked),
        code::VERSION_UNSUPPORTED => {
            Some(Refusal::VersionUnsupported { min: body.try_get_u16().ok()?, max: body.try_get_u16().ok()? })
        }
        code::BUSY => Some(Refusal::Busy { retry_after: Duration::from_millis(u64::from(body.try_get_u32().ok()?)) }),
        code::MALFORMED => Some(Refusal::Malformed),
        code::DECLINED => Some(Refusal::Declined { detail: body }),
        // a reason that a later version has
        _ => Some(Refusal::Declined { detail: Bytes::new() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Kind; 5] = [Kind::WorkerHello, Kind::ServerHello, Kind::Join, Kind::Welcome, Kind::Refused];

    fn proof() -> impl Strategy<Value = Option<[u8; PROOF_BYTES]>> {
        proptest::option::of(any::<[u8; PROOF_BYTES]>())
    }

    fn payload() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..2000).prop_map(Bytes::from)
    }

    fn refusal() -> impl Strategy<Value = Refusal> {
        prop_oneof![
            Just(Refusal::WrongToken),
            Just(Refusal::UnknownKey),
            Just(Refusal::Revoked),
            Just(Refusal::Malformed),
            any::<(u16, u16)>().prop_map(|(min, max)| Refusal::VersionUnsupported { min, max }),
            any::<u32>().prop_map(|ms| Refusal::Busy { retry_after: Duration::from_millis(u64::from(ms)) }),
            payload().prop_map(|detail| Refusal::Declined { detail }),
        ]
    }

    fn message() -> impl Strategy<Value = Message> {
        prop_oneof![
            (any::<(u16, u16, u64, u64, bool)>(), proof()).prop_map(|(numbers, token_proof)| {
                let (min, max, process, attempt, knows_server) = numbers;
                Message::WorkerHello(WorkerHello {
                    min_version: min,
                    max_version: max,
                    generation: Generation { process, attempt },
                    knows_server,
                    token_proof,
                })
            }),
            (any::<u16>(), proof())
                .prop_map(|(version, token_proof)| Message::ServerHello(ServerHello { version, token_proof })),
            payload().prop_map(Message::Join),
            payload().prop_map(Message::Welcome),
            refusal().prop_map(Message::Refused),
        ]
    }

    fn read_now(mut bytes: &[u8]) -> Result<(Message, usize), MessageError> {
        let before = bytes.len();
        let polled = futures_util::FutureExt::now_or_never(read(&mut bytes, &ALL));
        polled.expect("a slice never waits").map(|message| (message, before - bytes.len()))
    }

    proptest! {
        #[test]
        fn a_message_arrives_as_it_was_sent_and_takes_no_byte_more(message in message(), rest in payload()) {
            let framed = message.encode().unwrap();
            let sent = [framed.as_slice(), &rest].concat();
            prop_assert_eq!(read_now(&sent).unwrap(), (message, framed.len()));
        }

        #[test]
        fn a_message_that_is_cut_off_is_an_error(message in message(), cut in any::<prop::sample::Index>()) {
            let framed = message.encode().unwrap();
            let kept = cut.index(framed.len());
            prop_assert!(matches!(read_now(&framed[..kept]), Err(MessageError::Io(_))));
        }

        #[test]
        fn any_bytes_at_all_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_now(&bytes);
        }

        #[test]
        fn a_hello_may_say_more_than_this_version_knows(more in proptest::collection::vec(any::<u8>(), 0..100)) {
            let hello = ServerHello { version: 1, token_proof: None };
            let mut body = vec![0, 1, 0];
            body.extend(more);
            prop_assert_eq!(Message::decode(Kind::ServerHello, body.into()), Some(Message::ServerHello(hello)));
        }
    }

    #[test]
    fn a_long_message_is_refused_before_it_is_read() {
        let announced = [&[Kind::Join as u8][..], &u32::MAX.to_be_bytes()].concat();
        assert!(matches!(read_now(&announced), Err(MessageError::TooLong { bytes: u32::MAX, max: MAX_PAYLOAD_BYTES })));
    }

    #[test]
    fn a_message_out_of_turn_is_refused() {
        let bytes = Message::Join(Bytes::new()).encode().unwrap();
        let read = futures_util::FutureExt::now_or_never(read(&mut bytes.as_slice(), &[Kind::Welcome]));
        assert!(matches!(read.unwrap(), Err(MessageError::Unexpected(3))));
    }

    #[test]
    fn a_payload_that_is_too_long_is_not_sent() {
        assert!(Message::Join(vec![0; MAX_PAYLOAD_BYTES + 1].into()).encode().is_err());
    }

    #[test]
    fn only_attempts_of_one_process_have_an_order() {
        let first = Generation { process: 7, attempt: 1 };
        assert!(first.is_older_than(Generation { process: 7, attempt: 2 }));
        assert!(!first.is_older_than(first));
        assert!(!first.is_older_than(Generation { process: 8, attempt: 2 }));
    }
}
