//! The task that keeps a link going on the server: HTTP/2 as the client, pings, and an end with a reason.

use crate::control::Goodbye;
use crate::handle::{CloseReason, Closing, Inner, LinkHandle};
use crate::handshake::{Accepted, ServerStream};
use crate::meter::Traffic;
use crate::tuning::{MAX_FRAME_BYTES, MAX_HEADER_BYTES, MAX_RESET_STREAMS, MAX_SEND_BUFFER_BYTES, Tuning};
use crate::upgrade::Carrier;
use bytes::Bytes;
use h2::client::Connection;
use h2::{Ping, PingPong};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{self, Instant};

/// How long a link that is to end goes on so that the worker hears why.
const GOODBYE_DEADLINE: Duration = Duration::from_secs(1);

/// A link whose task is not running yet.
pub(crate) struct Begun {
    pub handle: LinkHandle,
    /// Boxed: kilobytes that would be in every future that hands it on.
    connection: Box<Connection<ServerStream, Bytes>>,
    traffic: Arc<Traffic>,
    closing: Arc<Closing>,
    ping_interval: Duration,
    ping_timeout: Duration,
}

/// Turns the roles round: the server becomes the client.
pub(crate) async fn begin(
    accepted: Accepted,
    carrier: Carrier,
    traffic: Arc<Traffic>,
    tuning: &Tuning,
) -> Result<Begun, h2::Error> {
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(tuning.stream_window_bytes)
        .initial_connection_window_size(tuning.connection_window_bytes)
        .max_frame_size(MAX_FRAME_BYTES)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_send_buffer_size(MAX_SEND_BUFFER_BYTES)
        .max_concurrent_reset_streams(MAX_RESET_STREAMS)
        .max_local_error_reset_streams(Some(MAX_RESET_STREAMS))
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .enable_push(false);
    let (requests, connection) = builder.handshake(accepted.stream).await?;
    let closing = Arc::new(Closing::default());
    let handle = LinkHandle::new(Inner {
        id: accepted.id,
        worker_key: accepted.applicant.worker_key,
        generation: accepted.applicant.generation,
        peer: accepted.applicant.peer,
        carrier,
        requests,
        traffic: Arc::clone(&traffic),
        closing: Arc::clone(&closing),
    });
    Ok(Begun {
        handle,
        connection: Box::new(connection),
        traffic,
        closing,
        ping_interval: tuning.ping_interval,
        ping_timeout: tuning.ping_timeout,
    })
}

impl Begun {
    /// Runs until the link is no more, and says why. Everybody who waits for something of the link is told.
    pub async fn run(mut self) -> CloseReason {
        let ping_pong = self.connection.ping_pong();
        let reason = {
            let silence = watch(ping_pong, &self.traffic, self.ping_interval, self.ping_timeout);
            tokio::select! {
                biased;
                reason = self.closing.closed() => Err(reason),
                ended = &mut self.connection => Ok(self.closing.end_of_connection(ended.as_ref().copied())),
                () = silence => Ok(CloseReason::Silent),
            }
        };
        match reason {
            Ok(reason) => {
                self.closing.close(reason.clone());
                reason
            }
            Err(reason) => {
                // in a box, or every link would keep the room for it as long as it stands
                Box::pin(self.say_goodbye(&reason)).await;
                reason
            }
        }
    }

    /// The worker may be gone already, and may not listen: it gets a moment, not more.
    async fn say_goodbye(&mut self, reason: &CloseReason) {
        let goodbye = match reason {
            CloseReason::Replaced => Goodbye::Replaced,
            CloseReason::Revoked => Goodbye::Revoked,
            _ => return,
        };
        let handle = self.handle.clone();
        tokio::select! {
            _ = &mut self.connection => {}
            _ = handle.say(goodbye, GOODBYE_DEADLINE) => {}
        }
    }
}

/// Pings, measures, and returns when no sign of life comes. The first ping goes out at once, so that the round-trip
/// time is known from the start.
async fn watch(ping_pong: Option<PingPong>, traffic: &Traffic, interval: Duration, timeout: Duration) {
    let Some(mut ping_pong) = ping_pong else { return std::future::pending().await };
    loop {
        let sent = Instant::now();
        if ping_pong.send_ping(Ping::opaque()).is_err() {
            // the connection is ending, and says so itself
            return std::future::pending().await;
        }
        if !answered(&mut ping_pong, traffic, timeout).await {
            return;
        }
        traffic.measured(sent.elapsed());
        time::sleep(interval).await;
    }
}

/// Whether the ping is answered. Whatever else the worker sends shows that it is there as well, and it gets more time
/// then: its answer may have to wait behind something big on a slow path.
async fn answered(ping_pong: &mut PingPong, traffic: &Traffic, timeout: Duration) -> bool {
    let mut heard = Instant::now();
    loop {
        match time::timeout_at(heard + timeout, poll_fn(|cx| ping_pong.poll_pong(cx))).await {
            Ok(Ok(_)) => return true,
            Ok(Err(_)) => return std::future::pending().await,
            Err(_) if traffic.last_life() > heard => heard = traffic.last_life(),
            Err(_) => return false,
        }
    }
}
