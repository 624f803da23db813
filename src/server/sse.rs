//! Server-sent events, written once for all browsers, and compressed once for all of them: each event by itself.
//!
//! A browser's stream is then a gzip file (RFC 1952) that is put together from ready parts. It costs no processor time
//! and no window of its own, and what a browser has of an event it can read at once.

use axum::body::Bytes;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use std::io::Write;
use std::mem;
use std::sync::OnceLock;

/// RFC 1952, section 2.3.1: deflate; no name, no time, no system.
const GZIP_HEAD: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// RFC 1951, section 3.2.3: the last block, in fixed codes, and nothing in it.
const LAST_BLOCK: &[u8] = &[0x03, 0x00];

/// One event.
#[derive(Debug)]
pub struct Event {
    text: Bytes,
    packed: OnceLock<Packed>,
}

/// Blocks of a deflate stream that refer to nothing before them and end on a whole byte.
#[derive(Debug)]
struct Packed {
    blocks: Bytes,
    /// Of the text.
    sum: Crc,
}

impl Event {
    /// With data of one line.
    pub fn new(name: &str, data: &str) -> Self {
        Self { text: format!("event: {name}\ndata: {data}\n\n").into(), packed: OnceLock::new() }
    }

    /// As it is read.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    fn packed(&self) -> &Packed {
        self.packed.get_or_init(|| pack(&self.text))
    }
}

fn pack(text: &[u8]) -> Packed {
    let mut sum = Crc::new();
    sum.update(text);
    // the fastest: figures compress well, and a slow tunnel is still faster than a busy core
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    // writing to memory cannot fail
    let _ = encoder.write_all(text).and_then(|()| encoder.flush());
    Packed { blocks: mem::take(encoder.get_mut()).into(), sum }
}

/// One browser's stream.
#[derive(Debug)]
pub enum EventStream {
    /// Events as they are read.
    Plain,
    /// A gzip file.
    Gzip {
        /// Of all text so far.
        sum: Crc,
    },
}

impl EventStream {
    /// Compressed for those who take that.
    pub fn new(takes_gzip: bool) -> Self {
        if takes_gzip { Self::Gzip { sum: Crc::new() } } else { Self::Plain }
    }

    /// What is sent before all events.
    pub fn begin(&self) -> Option<Bytes> {
        match self {
            Self::Plain => None,
            Self::Gzip { .. } => Some(Bytes::from_static(GZIP_HEAD)),
        }
    }

    /// What is sent for the next event.
    pub fn write(&mut self, event: &Event) -> Bytes {
        match self {
            Self::Plain => event.text.clone(),
            Self::Gzip { sum } => {
                let packed = event.packed();
                sum.combine(&packed.sum);
                packed.blocks.clone()
            }
        }
    }

    /// What is sent after all events.
    pub fn end(&self) -> Option<Bytes> {
        match self {
            Self::Plain => None,
            Self::Gzip { sum } => {
                let tail = [LAST_BLOCK, &sum.sum().to_le_bytes(), &sum.amount().to_le_bytes()];
                Some(tail.concat().into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use proptest::prelude::*;
    use std::io::Read;

    proptest! {
        #[test]
        fn a_compressed_stream_is_a_gzip_file_of_the_plain_one(data in proptest::collection::vec("[ -~é]{0,300}", 0..6)) {
            let (mut plain, mut compressed) = (EventStream::new(false), EventStream::new(true));
            let (mut expected, mut file) = (Vec::new(), compressed.begin().unwrap().to_vec());
            for data in &data {
                // two streams share an event that began at different places
                let event = Event::new("update", data);
                expected.extend_from_slice(&plain.write(&event));
                file.extend_from_slice(&compressed.write(&event));
            }
            file.extend_from_slice(&compressed.end().unwrap());
            let mut decoder = GzDecoder::new(file.as_slice());
            let mut read = Vec::new();
            decoder.read_to_end(&mut read).unwrap();
            prop_assert_eq!(read, expected);
        }
    }

    #[test]
    fn an_event_can_be_read_before_the_next_one_comes() {
        let mut stream = EventStream::new(true);
        let event = Event::new("hello", "{}");
        let mut decoder = flate2::write::GzDecoder::new(Vec::new());
        decoder.write_all(&stream.begin().unwrap()).unwrap();
        decoder.write_all(&stream.write(&event)).unwrap();
        decoder.flush().unwrap();
        assert_eq!(decoder.get_ref(), event.text());
    }

    #[test]
    fn figures_are_sent_in_a_third_of_the_bytes() {
        let reading =
            |n: u32| format!("{{\"id\":{n},\"devices\":[[{n}.5,{},46.0,91.3]],\"host\":null}}", n * 1_048_576);
        let data = (0..100).map(reading).collect::<Vec<_>>().join(",");
        let event = Event::new("update", &data);
        assert!(EventStream::new(true).write(&event).len() * 3 < event.text().len());
    }
}
