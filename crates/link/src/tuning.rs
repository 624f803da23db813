//! Sizes and times that both sides use.

use std::time::Duration;

/// Sizes and times. The defaults are meant to be kept; tests shorten the times.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// How long it may take from the upgrade to the link, however little arrives at a time.
    pub handshake_deadline: Duration,
    /// How often the server asks for a sign of life.
    pub ping_interval: Duration,
    /// How long it waits for one.
    pub ping_timeout: Duration,
    /// How often each side takes new keys for what it sends.
    pub key_rotation: Duration,
    /// How much one stream may send before the other side has read it, in bytes.
    ///
    /// With the next one it bounds the throughput to `window / round trip time`, and what a slow reader can pin.
    pub stream_window_bytes: u32,
    /// The same for all streams together.
    pub connection_window_bytes: u32,
    /// How many requests may run at a time on one link; more wait.
    pub max_streams: u32,
    /// How long running requests may take to end when the link is to end.
    pub drain_deadline: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            handshake_deadline: Duration::from_secs(10),
            ping_interval: Duration::from_secs(10),
            ping_timeout: Duration::from_secs(10),
            key_rotation: Duration::from_hours(24),
            stream_window_bytes: 4 * 1024 * 1024,
            connection_window_bytes: 16 * 1024 * 1024,
            max_streams: 1024,
            drain_deadline: Duration::from_secs(10),
        }
    }
}

/// HTTP/2 frames: larger ones cost fewer wake-ups, and let a small answer wait longer behind a big one.
pub(crate) const MAX_FRAME_BYTES: u32 = 64 * 1024;
/// All headers of one message together.
pub(crate) const MAX_HEADER_BYTES: u32 = 64 * 1024;
/// What one stream may have waiting to be sent.
pub(crate) const MAX_SEND_BUFFER_BYTES: usize = 1024 * 1024;
/// `h2` closes the whole connection when more streams than these were cancelled and not yet cleaned up; its own limits
/// of 20 and 1,024 are against strangers, and both sides know each other here.
pub(crate) const MAX_RESET_STREAMS: usize = 10_000;
