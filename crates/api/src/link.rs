use serde::{Deserialize, Serialize};

/// What carries a link's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkCarrier {
    /// The connection itself, upgraded.
    Stream,
    /// Binary messages of a WebSocket, since something in between lets nothing else through.
    #[serde(rename = "websocket")]
    WebSocket,
}

/// How a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkLoss {
    /// The connection was closed at the worker's end, or at a proxy's or a tunnel's in between.
    Closed,
    /// No sign of life came over it.
    Silent,
    /// The connection broke.
    Broken,
    /// It is from before the server's start, and the worker has dialled no new one since.
    NotSinceStart,
}

/// The link that stands, as seen by the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LinkView {
    /// Since when it stands, in milliseconds since 1970 by the server's clock.
    pub since_ms: i64,
    /// What carries it.
    pub carrier: LinkCarrier,
    /// The other end of the connection, `address:port`, which may be a proxy's or a bastion's.
    pub peer: String,
    /// What changes all the time: round trip in milliseconds, bytes received from the worker, bytes sent to it.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Option<f64>>))]
    pub readings: LinkReadings,
}

/// What changes all the time about a link. On the wire an array of three, since it is sent often: round trip, bytes
/// received, bytes sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "LinkReadingsWire", into = "LinkReadingsWire")]
pub struct LinkReadings {
    /// Of the last sign of life, in milliseconds; absent before the first.
    pub round_trip_ms: Option<f64>,
    /// Bytes that the server received from the worker since the link stands.
    pub received_bytes: u64,
    /// Bytes that it sent, likewise.
    pub sent_bytes: u64,
}

type LinkReadingsWire = (Option<f64>, u64, u64);

impl From<LinkReadingsWire> for LinkReadings {
    fn from((round_trip_ms, received_bytes, sent_bytes): LinkReadingsWire) -> Self {
        Self { round_trip_ms, received_bytes, sent_bytes }
    }
}

impl From<LinkReadings> for LinkReadingsWire {
    fn from(readings: LinkReadings) -> Self {
        (readings.round_trip_ms, readings.received_bytes, readings.sent_bytes)
    }
}
