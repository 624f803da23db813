//! The messages, in protobuf. A field that a peer does not know is passed over, so fields can be added.

use api::{ClockMeasurement, WorkerStatus};
use std::io::Read;
use thiserror::Error;

/// A report is smaller than this before it is packed: that of 64 devices has some 60 KB.
pub const MAX_STATUS_BYTES: u64 = 1024 * 1024;
/// Reports are packed once for each change of facts, so this may take its time.
const ZSTD_LEVEL: i32 = 9;

/// What a worker sends.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WorkerMessage {
    /// Absent when it is of a kind that this version does not know.
    #[prost(oneof = "Told", tags = "1, 2, 3, 4")]
    pub told: Option<Told>,
}

/// What a worker tells.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Told {
    /// A sign of life.
    #[prost(message, tag = "1")]
    Heartbeat(Heartbeat),
    /// Everything.
    #[prost(message, tag = "2")]
    Facts(Facts),
    /// What moved.
    #[prost(message, tag = "3")]
    Readings(Readings),
    /// It ends now, on purpose.
    #[prost(message, tag = "4")]
    Leaving(Leaving),
}

/// A sign of life.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Heartbeat {
    /// Counts; the answer repeats it.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Worker's clock minus the server's as earlier exchanges measured it, in milliseconds.
    #[prost(sint64, optional, tag = "2")]
    pub clock_offset_ms: Option<i64>,
    /// The true offset lies within plus or minus this.
    #[prost(int64, optional, tag = "3")]
    pub clock_error_ms: Option<i64>,
}

/// Everything that a worker sees of its host.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Facts {
    /// Counts; readings name the facts that they belong to.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// A [`WorkerStatus`] in JSON, packed with zstd. JSON, since its parts are the API's own words, which must have one
    /// definition; packed, it is hardly larger than any other form.
    #[prost(bytes = "vec", tag = "2")]
    pub status: Vec<u8>,
}

/// Readings that moved since they were told last. Positions count along one walk over a status, which
/// both sides share.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Readings {
    /// The facts that they belong to.
    #[prost(uint32, tag = "1")]
    pub facts: u32,
    /// Where the values go: how many readings are passed over, how many have values, and again, in turns. Mostly nearly
    /// all readings move, or nearly none.
    #[prost(uint32, repeated, tag = "2")]
    pub runs: Vec<u32>,
    /// The new values, in the reading's smallest unit.
    #[prost(sint64, repeated, tag = "3")]
    pub values: Vec<i64>,
    /// Positions of readings that are not there any more.
    #[prost(uint32, repeated, tag = "4")]
    pub absent: Vec<u32>,
}

/// The worker ends, on purpose.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Leaving {}

/// What a server sends.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ServerMessage {
    /// Absent when it is of a kind that this version does not know.
    #[prost(oneof = "Answer", tags = "1, 2")]
    pub answer: Option<Answer>,
}

/// What a server answers.
#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum Answer {
    /// A sign of life arrived.
    #[prost(message, tag = "1")]
    Heard(Heard),
    /// How often, and how exactly, to look.
    #[prost(message, tag = "2")]
    Pace(Pace),
}

/// A sign of life arrived; both times by the server's clock, in milliseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Heard {
    /// Its number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// When it arrived.
    #[prost(int64, tag = "2")]
    pub received_ms: i64,
    /// When this answer went.
    #[prost(int64, tag = "3")]
    pub returned_ms: i64,
}

/// How a server wants a worker to look at its host.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Pace {
    /// Somebody looks at this worker: look often, and tell every change.
    #[prost(bool, tag = "1")]
    pub watched: bool,
}

/// Why facts cannot be read.
#[derive(Debug, Error)]
pub enum FactsError {
    /// It cannot be unpacked.
    #[error("the report cannot be unpacked: {0}")]
    Packing(std::io::Error),
    /// It is too large.
    #[error("the report has more than {MAX_STATUS_BYTES} bytes")]
    TooLarge,
    /// It is no report.
    #[error("the report is not understood: {0}")]
    Json(serde_json::Error),
}

impl Facts {
    /// Packs a status.
    pub fn pack(number: u32, status: &WorkerStatus) -> Result<Self, FactsError> {
        let json = serde_json::to_vec(status).map_err(FactsError::Json)?;
        let status = zstd::bulk::compress(&json, ZSTD_LEVEL).map_err(FactsError::Packing)?;
        Ok(Self { number, status })
    }

    /// Unpacks it. Whatever it claims, no more than [`MAX_STATUS_BYTES`] are unpacked.
    pub fn unpack(&self) -> Result<WorkerStatus, FactsError> {
        let unpacking = zstd::Decoder::new(self.status.as_slice()).map_err(FactsError::Packing)?;
        let mut json = Vec::new();
        unpacking.take(MAX_STATUS_BYTES + 1).read_to_end(&mut json).map_err(FactsError::Packing)?;
        if json.len() as u64 > MAX_STATUS_BYTES {
            return Err(FactsError::TooLarge);
        }
        serde_json::from_slice(&json).map_err(FactsError::Json)
    }
}

impl Heartbeat {
    /// With what was measured so far.
    pub fn new(number: u32, clock: Option<ClockMeasurement>) -> Self {
        Self {
            number,
            clock_offset_ms: clock.map(|clock| clock.offset_ms),
            clock_error_ms: clock.map(|clock| clock.error_ms),
        }
    }

    /// What was measured.
    pub fn clock(&self) -> Option<ClockMeasurement> {
        Some(ClockMeasurement { offset_ms: self.clock_offset_ms?, error_ms: self.clock_error_ms? })
    }
}

impl From<Told> for WorkerMessage {
    fn from(told: Told) -> Self {
        Self { told: Some(told) }
    }
}

impl From<Answer> for ServerMessage {
    fn from(answer: Answer) -> Self {
        Self { answer: Some(answer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_report_that_unpacks_to_very_much_is_refused_before_it_is_unpacked() {
        let endless = zstd::bulk::compress(&vec![b' '; 64 * 1024 * 1024], 1).unwrap();
        assert!(endless.len() < 16 * 1024);
        let facts = Facts { number: 0, status: endless };
        assert!(matches!(facts.unpack(), Err(FactsError::TooLarge)));
    }

    #[test]
    fn what_is_no_report_is_told() {
        let facts = |status: &[u8]| Facts { number: 0, status: status.to_vec() };
        assert!(matches!(facts(b"no zstd").unpack(), Err(FactsError::Packing(_))));
        let html = zstd::bulk::compress(b"<html>", 1).unwrap();
        assert!(matches!(facts(&html).unpack(), Err(FactsError::Json(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = <WorkerMessage as prost::Message>::decode(bytes.as_slice());
            let _ = Facts { number: 0, status: bytes }.unpack();
        }
    }
}
