//! This side of the protocol, as `russh` asks it.

use crate::address::Endpoint;
use crate::end::{DisconnectCode, SessionEnd};
use crate::known_hosts::{Book, HostKeyError};
use crate::session::incoming::Incoming;
use crate::session::shared::Shared;
use chrono::Utc;
use russh::client::{ChannelOpenHandle, DisconnectReason, Handler, Msg, Session};
use russh::keys::PublicKeyOrCertificate;
use russh::{Channel, ChannelId, ChannelOpenFailure, Error};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};

/// Answers the protocol's questions, and tells the rest of the session what happens.
pub(crate) struct Client {
    shared: Arc<Shared>,
    host: Endpoint,
    book: Book,
    verdict: Verdict,
}

/// What is wrong with the server's key. The protocol library knows only that something is.
#[derive(Clone, Default)]
pub(crate) struct Verdict(Arc<Mutex<Option<HostKeyError>>>);

impl Verdict {
    pub fn take(&self) -> Option<HostKeyError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: HostKeyError) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

impl Client {
    pub fn new(shared: Arc<Shared>, book: Book, verdict: Verdict) -> Self {
        let host = shared.hop.server.clone();
        Self { shared, host, book, verdict }
    }
}

/// However the protocol task ended, nobody is to wait for what it does no more.
impl Drop for Client {
    fn drop(&mut self) {
        self.shared.end_with(SessionEnd::Closed);
        self.shared.over.cancel();
    }
}

impl Handler for Client {
    type Error = Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Error> {
        match self.book.judge(&self.host, shown, Utc::now()) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.verdict.set(error);
                Ok(false)
            }
        }
    }

    async fn channel_close(&mut self, channel: ChannelId, _session: &mut Session) -> Result<(), Error> {
        self.shared.closings.close(channel);
        Ok(())
    }

    async fn channel_open_failure(
        &mut self,
        _channel: ChannelId,
        reason: ChannelOpenFailure,
        description: &str,
        _language: &str,
        _session: &mut Session,
    ) -> Result<(), Error> {
        self.shared.open_failures.server_says(reason, description);
        Ok(())
    }

    async fn server_channel_open_forwarded_tcpip(
        &mut self,
        channel: Channel<Msg>,
        connected_address: &str,
        connected_port: u32,
        originator_address: &str,
        originator_port: u32,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Error> {
        let originator = Endpoint::new(originator_address, u16::try_from(originator_port).unwrap_or_default());
        self.shared.incoming.deliver(connected_address, connected_port, Incoming { channel, reply, originator });
        Ok(())
    }

    // Nothing else was asked for, so nothing else may come. A reply that is dropped refuses.

    async fn server_channel_open_forwarded_streamlocal(
        &mut self,
        _channel: Channel<Msg>,
        _socket_path: &str,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Error> {
        drop(reply);
        Ok(())
    }

    async fn server_channel_open_agent_forward(
        &mut self,
        _channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Error> {
        drop(reply);
        Ok(())
    }

    async fn server_channel_open_session(
        &mut self,
        _channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Error> {
        drop(reply);
        Ok(())
    }

    async fn server_channel_open_direct_tcpip(
        &mut self,
        _channel: Channel<Msg>,
        _host_to_connect: &str,
        _port_to_connect: u32,
        _originator_address: &str,
        _originator_port: u32,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Error> {
        drop(reply);
        Ok(())
    }

    async fn server_channel_open_direct_streamlocal(
        &mut self,
        _channel: Channel<Msg>,
        _socket_path: &str,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Error> {
        drop(reply);
        Ok(())
    }

    async fn server_channel_open_x11(
        &mut self,
        _channel: Channel<Msg>,
        _originator_address: &str,
        _originator_port: u32,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Error> {
        drop(reply);
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Error>) -> Result<(), Error> {
        self.shared.end_with(match reason {
            DisconnectReason::ReceivedDisconnect(info) => {
                SessionEnd::Disconnected { reason: DisconnectCode(info.reason_code as u32), message: info.message }
            }
            DisconnectReason::Error(error) => end_of(&error),
        });
        self.shared.over.cancel();
        Ok(())
    }
}

/// What an error of the protocol library means for the session.
pub(crate) fn end_of(error: &Error) -> SessionEnd {
    match error {
        Error::Disconnect | Error::HUP | Error::SendError | Error::RecvError => SessionEnd::Closed,
        Error::IO(error) => match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => SessionEnd::Closed,
            _ => SessionEnd::Broken { what: error.to_string() },
        },
        other => SessionEnd::Broken { what: other.to_string() },
    }
}
