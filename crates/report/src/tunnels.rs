//! What a tunnel agent tells its server: a [`TunnelReport`] whenever something has changed, on one stream.
//!
//! Each is JSON packed with zstd, with its length in four bytes (big endian) before it.

use api::TunnelReport;
use bytes::{Buf, Bytes, BytesMut};
use std::io::{self, Read};
use thiserror::Error;

/// A packed report is at most this long; a longer one is refused before it has arrived. A forward takes some 60 bytes
/// packed, and a cut some 15.
pub const MAX_PACKED_BYTES: usize = 256 * 1024;
/// A report is at most this long before it is packed.
pub const MAX_REPORT_BYTES: usize = 4 * 1024 * 1024;
/// Before each packed report.
const LENGTH_BYTES: usize = size_of::<u32>();
/// Reports are packed every few seconds at most.
const ZSTD_LEVEL: i32 = 9;

/// Why a report cannot be told, or what arrived is none.
#[derive(Debug, Error)]
pub enum TunnelsError {
    /// The packed report is too long.
    #[error("a report of {0} bytes, packed, is too long; at most {MAX_PACKED_BYTES} are allowed")]
    PackedTooLong(usize),
    /// The report is too long before it is packed.
    #[error("the report is too long: at most {MAX_REPORT_BYTES} bytes are allowed before it is packed")]
    TooLong,
    /// It cannot be packed or unpacked.
    #[error("the report cannot be packed or unpacked: {0}")]
    Packing(#[from] io::Error),
    /// It is no report.
    #[error("the report is not understood: {0}")]
    Json(#[from] serde_json::Error),
}

/// A report as it goes onto the stream, its length before it.
pub fn pack(report: &TunnelReport) -> Result<Bytes, TunnelsError> {
    let json = serde_json::to_vec(report)?;
    if json.len() > MAX_REPORT_BYTES {
        return Err(TunnelsError::TooLong);
    }
    let packed = zstd::bulk::compress(&json, ZSTD_LEVEL)?;
    let length = u32::try_from(packed.len()).ok().filter(|_| packed.len() <= MAX_PACKED_BYTES);
    let length = length.ok_or(TunnelsError::PackedTooLong(packed.len()))?;
    Ok([length.to_be_bytes().as_slice(), &packed].concat().into())
}

/// Takes reports off a stream, whatever pieces it arrives in.
#[derive(Debug, Default)]
pub struct TunnelFrames {
    arrived: BytesMut,
}

impl TunnelFrames {
    /// Something arrived.
    pub fn push(&mut self, piece: &[u8]) {
        self.arrived.extend_from_slice(piece);
    }

    /// The next report; None until all of it has arrived. After an error nothing more can be read.
    pub fn take(&mut self) -> Result<Option<TunnelReport>, TunnelsError> {
        let Some(length) = self.arrived.first_chunk().map(|length| u32::from_be_bytes(*length)) else {
            return Ok(None);
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_PACKED_BYTES {
            return Err(TunnelsError::PackedTooLong(length));
        }
        let Some(packed) = self.arrived.get(LENGTH_BYTES..LENGTH_BYTES + length) else { return Ok(None) };
        let report = unpack(packed)?;
        self.arrived.advance(LENGTH_BYTES + length);
        if self.arrived.is_empty() {
            // between two reports an idle stream holds nothing
            self.arrived = BytesMut::new();
        }
        Ok(Some(report))
    }
}

/// Whatever it claims, no more than [`MAX_REPORT_BYTES`] are unpacked.
fn unpack(packed: &[u8]) -> Result<TunnelReport, TunnelsError> {
    let limit = u64::try_from(MAX_REPORT_BYTES).unwrap_or(u64::MAX);
    let mut json = Vec::new();
    zstd::Decoder::new(packed)?.take(limit + 1).read_to_end(&mut json)?;
    if json.len() > MAX_REPORT_BYTES {
        return Err(TunnelsError::TooLong);
    }
    Ok(serde_json::from_slice(&json)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn report(refused_config: &str) -> TunnelReport {
        TunnelReport { refused_config: Some(refused_config.to_owned()), ..TunnelReport::default() }
    }

    fn framed(packed: &[u8]) -> Vec<u8> {
        [u32::try_from(packed.len()).unwrap().to_be_bytes().as_slice(), packed].concat()
    }

    fn taken(bytes: &[u8]) -> Result<Option<TunnelReport>, TunnelsError> {
        let mut frames = TunnelFrames::default();
        frames.push(bytes);
        frames.take()
    }

    #[test]
    fn a_report_that_is_too_long_is_refused_before_it_has_arrived() {
        assert!(matches!(taken(&[0xff; 4]), Err(TunnelsError::PackedTooLong(_))));
    }

    #[test]
    fn a_report_that_unpacks_to_very_much_is_refused_before_it_is_unpacked() {
        let endless = zstd::bulk::compress(&vec![b' '; 64 * 1024 * 1024], 1).unwrap();
        assert!(matches!(taken(&framed(&endless)), Err(TunnelsError::TooLong)));
    }

    #[test]
    fn a_report_that_nobody_would_take_is_not_packed() {
        assert!(matches!(pack(&report(&"x".repeat(MAX_REPORT_BYTES))), Err(TunnelsError::TooLong)));
    }

    #[test]
    fn what_is_no_report_is_told() {
        assert!(matches!(taken(&framed(b"no zstd")), Err(TunnelsError::Packing(_))));
        let html = zstd::bulk::compress(b"<html>", 1).unwrap();
        assert!(matches!(taken(&framed(&html)), Err(TunnelsError::Json(_))));
    }

    proptest! {
        #[test]
        fn reports_come_out_as_they_went_in_whatever_the_pieces(texts in prop::collection::vec(".{0,40}", 1..8), piece in 1usize..60) {
            let sent: Vec<TunnelReport> = texts.iter().map(|text| report(text)).collect();
            let bytes: Vec<u8> = sent.iter().flat_map(|report| pack(report).unwrap().to_vec()).collect();
            let (mut frames, mut received) = (TunnelFrames::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                frames.push(piece);
                while let Some(report) = frames.take().unwrap() {
                    received.push(report);
                }
            }
            prop_assert_eq!(sent, received);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut frames = TunnelFrames::default();
            frames.push(&bytes);
            while let Ok(Some(_)) = frames.take() {}
        }
    }
}
