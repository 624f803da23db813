//! Sizes and times of a session.

use std::time::Duration;

/// Sizes and times. The defaults are meant to be kept; tests shorten the times.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// How long it may take until the byte stream stands, names and bastions included.
    pub connect_deadline: Duration,
    /// How long the server may take to greet and to agree on keys.
    pub handshake_deadline: Duration,
    /// How long it may take until the server lets the user in. Some ask a directory on another continent.
    pub authentication_deadline: Duration,
    /// How long the server may be silent before it is asked for a sign of life, and how long it has for each answer.
    /// Longer than nothing.
    ///
    /// `ServerAliveInterval` of `ssh_config(5)`.
    pub keep_alive_interval: Duration,
    /// How many such questions may stay unanswered. The session is given up `(this + 1) × interval` after the last sign
    /// of life. `ServerAliveCountMax` of `ssh_config(5)`.
    pub keep_alives_unanswered: u32,
    /// How long one connection may hold up all others of its session because its reader takes nothing. Then it is reset.
    pub longest_hold_up: Duration,
    /// How long the server may take to answer a request, such as that for a forward.
    pub request_deadline: Duration,
    /// How much the server may send on one connection before this side has read it, in bytes.
    ///
    /// It bounds the throughput to `window / round trip time`, and what a slow reader can pin here. What goes the other
    /// way the server bounds: OpenSSH's window is 2 MiB.
    pub window_bytes: u32,
    /// The largest piece that the server may send, in bytes; at most 65,535.
    pub max_packet_bytes: u32,
    /// Whether what goes over the session is compressed.
    pub compression: Compression,
}

/// Whether a session compresses (`zlib@openssh.com`, which begins after the login).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Nothing is. On anything but a very slow path it costs more time than it saves.
    #[default]
    Off,
    /// All is, where the server does it too. `ssh -C`.
    On,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            connect_deadline: Duration::from_secs(10),
            handshake_deadline: Duration::from_secs(15),
            authentication_deadline: Duration::from_secs(30),
            keep_alive_interval: Duration::from_secs(10),
            keep_alives_unanswered: 1,
            longest_hold_up: Duration::from_secs(5),
            request_deadline: Duration::from_secs(10),
            window_bytes: 8 * 1024 * 1024,
            max_packet_bytes: 65_535,
            compression: Compression::Off,
        }
    }
}

impl Tuning {
    /// The longest silence of a server that is alive.
    pub fn longest_silence(&self) -> Duration {
        self.keep_alive_interval.saturating_mul(self.keep_alives_unanswered.saturating_add(1))
    }
}

/// Pieces of a connection that may wait here for their reader, of at most 32 KiB from OpenSSH. When there is no place for
/// one more, the whole session waits.
pub(crate) const CHANNEL_BUFFER_PIECES: usize = 1024;
/// What is read and written at a time between a socket and a session, in bytes.
pub(crate) const RELAY_BUFFER_BYTES: usize = 64 * 1024;
