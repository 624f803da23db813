//! Messages on a stream: each with its length before it (protobuf's own length-delimited form).

use bytes::{Buf, Bytes, BytesMut};
use prost::{DecodeError, Message};
use thiserror::Error;

/// A longer message is refused before it has arrived. A packed report of 64 devices has some 3 KB.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// Of a length: ten bytes hold any 64 bits, seven in each.
const MAX_LENGTH_BYTES: usize = 10;

/// Why a stream is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Longer than allowed.
    #[error("a message of {0} bytes is announced, and at most {MAX_MESSAGE_BYTES} are allowed")]
    TooLong(usize),
    /// No message.
    #[error("what arrived is no message: {0}")]
    Malformed(#[from] DecodeError),
}

/// A message as it goes onto the stream.
pub fn frame(message: &impl Message) -> Bytes {
    message.encode_length_delimited_to_vec().into()
}

/// Takes messages off a stream, whatever pieces it arrives in.
#[derive(Debug, Default)]
pub struct Frames {
    arrived: BytesMut,
}

impl Frames {
    /// Something arrived.
    pub fn push(&mut self, piece: &[u8]) {
        self.arrived.extend_from_slice(piece);
    }

    /// The next message; None until all of it has arrived. After an error nothing more can be read.
    pub fn take<M: Message + Default>(&mut self) -> Result<Option<M>, FrameError> {
        let mut rest = self.arrived.as_ref();
        let length = match prost::decode_length_delimiter(&mut rest) {
            Ok(length) => length,
            Err(_) if self.arrived.len() < MAX_LENGTH_BYTES && self.arrived.iter().all(|byte| *byte >= 0x80) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if length > MAX_MESSAGE_BYTES {
            return Err(FrameError::TooLong(length));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = M::decode(body)?;
        let taken = self.arrived.len() - rest.len() + length;
        self.arrived.advance(taken);
        if self.arrived.is_empty() {
            // between two messages an idle stream holds nothing
            self.arrived = BytesMut::new();
        }
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Heartbeat, Told, WorkerMessage};
    use proptest::prelude::*;

    fn beat(number: u32) -> WorkerMessage {
        Told::Heartbeat(Heartbeat { number, clock_offset_ms: Some(-5), clock_error_ms: Some(i64::MAX) }).into()
    }

    #[test]
    fn a_message_that_is_too_long_is_refused_before_it_has_arrived() {
        let mut frames = Frames::default();
        frames.push(&[0xff, 0xff, 0xff, 0x7f]);
        assert!(matches!(frames.take::<WorkerMessage>(), Err(FrameError::TooLong(_))));
    }

    #[test]
    fn a_length_without_end_is_refused() {
        let mut frames = Frames::default();
        frames.push(&[0xff; MAX_LENGTH_BYTES - 1]);
        assert_eq!(frames.take::<WorkerMessage>(), Ok(None));
        frames.push(&[0xff]);
        assert!(matches!(frames.take::<WorkerMessage>(), Err(FrameError::Malformed(_))));
    }

    #[test]
    fn a_message_of_an_unknown_kind_is_an_empty_one() {
        let mut frames = Frames::default();
        // field 15, a varint
        frames.push(&[2, 0x78, 1]);
        assert_eq!(frames.take::<WorkerMessage>(), Ok(Some(WorkerMessage { told: None })));
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_whatever_the_pieces(count in 1u32..20, piece in 1usize..40) {
            let sent: Vec<WorkerMessage> = (0..count).map(|number| beat(number * 40_000)).collect();
            let bytes: Vec<u8> = sent.iter().flat_map(|message| frame(message).to_vec()).collect();
            let (mut frames, mut received) = (Frames::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                frames.push(piece);
                while let Some(message) = frames.take::<WorkerMessage>().unwrap() {
                    received.push(message);
                }
            }
            prop_assert_eq!(sent, received);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut frames = Frames::default();
            frames.push(&bytes);
            while let Ok(Some(_)) = frames.take::<WorkerMessage>() {}
        }
    }
}
