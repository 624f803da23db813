//! How a worker gets a byte stream to its server, before any HTTP: TCP, and TLS around it for `https`.

use crate::io::{self, BoxedIo};
use crate::outer_tls::OuterTls;
use async_trait::async_trait;
use http::Uri;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{self, Instant};

/// Opens a byte stream to the server. Tests put trouble in between here.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Opens one. Who calls this sets the deadline.
    async fn open(&self) -> Result<BoxedIo, TransportError>;
}

/// Why no byte stream came about.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The name has no address.
    #[error("cannot find an address for {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The cause.
        source: std::io::Error,
    },
    /// Nobody takes the connection.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address that was tried last.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The TLS outside failed.
    #[error("cannot speak https with {host}: {source}")]
    Tls {
        /// The name in the address.
        host: String,
        /// The cause.
        source: std::io::Error,
    },
}

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    https: bool,
    host: String,
    port: u16,
    /// What stands before [`LINK_PATH`](crate::LINK_PATH); empty, or begins with a slash and does not end with one.
    base_path: String,
}

/// The address cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// It is neither `http` nor `https`.
    #[error("{0} is no address of a server: it begins with http:// or https://")]
    Scheme(Uri),
    /// It names nobody.
    #[error("{0} is no address of a server: the host is missing")]
    Host(Uri),
}

impl TryFrom<&Uri> for ServerAddress {
    type Error = AddressError;

    fn try_from(uri: &Uri) -> Result<Self, AddressError> {
        let https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(AddressError::Scheme(uri.clone())),
        };
        let host = uri.host().map(|host| host.trim_start_matches('[').trim_end_matches(']'));
        let host = host.filter(|host| !host.is_empty()).ok_or_else(|| AddressError::Host(uri.clone()))?;
        Ok(Self {
            https,
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if https { 443 } else { 80 }),
            base_path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl ServerAddress {
    /// The `Host` header.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.https { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }

    pub(crate) fn base_path(&self) -> &str {
        &self.base_path
    }
}

/// A direct connection. It never asks the environment for a proxy.
#[derive(Clone, Debug)]
pub struct DirectTransport {
    address: ServerAddress,
    outer_tls: OuterTls,
    connect_timeout: Duration,
}

impl DirectTransport {
    /// Connects to `address`; tries each of its IP addresses for at most `connect_timeout`.
    pub fn new(address: ServerAddress, outer_tls: OuterTls, connect_timeout: Duration) -> Self {
        Self { address, outer_tls, connect_timeout }
    }

    async fn connect(&self) -> Result<TcpStream, TransportError> {
        let host = self.address.host.as_str();
        let resolve = |source| TransportError::Resolve { host: host.to_owned(), source };
        let found = time::timeout(self.connect_timeout, tokio::net::lookup_host((host, self.address.port))).await;
        let addresses = found.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())).map_err(resolve)?;
        let mut last = resolve(std::io::ErrorKind::NotFound.into());
        for address in addresses {
            let deadline = Instant::now() + self.connect_timeout;
            let connected = time::timeout_at(deadline, TcpStream::connect(address)).await;
            match connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
                Ok(stream) => return Ok(stream),
                Err(source) => last = TransportError::Connect { address, source },
            }
        }
        Err(last)
    }
}

#[async_trait]
impl Transport for DirectTransport {
    async fn open(&self) -> Result<BoxedIo, TransportError> {
        let stream = self.connect().await?;
        io::tune_socket(&stream);
        if !self.address.https {
            return Ok(Box::new(stream));
        }
        let failed = |source| TransportError::Tls { host: self.address.host.clone(), source };
        Ok(Box::new(self.outer_tls.connect(&self.address.host, stream).await.map_err(failed)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<ServerAddress, AddressError> {
        ServerAddress::try_from(&text.parse::<Uri>().unwrap())
    }

    #[test]
    fn addresses_and_what_becomes_of_them() {
        let table = [
            ("http://server:8090", "server:8090", ""),
            ("http://server:8090/", "server:8090", ""),
            ("http://server", "server", ""),
            ("https://server/gpu/", "server", "/gpu"),
            ("https://server:80", "server:80", ""),
            ("http://[::1]:8090", "[::1]:8090", ""),
        ];
        for (text, authority, base_path) in table {
            let address = address(text).unwrap();
            assert_eq!((address.authority().as_str(), address.base_path()), (authority, base_path), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_server() {
        assert!(matches!(address("ftp://server"), Err(AddressError::Scheme(_))));
        assert!(matches!(address("/path"), Err(AddressError::Scheme(_))));
    }
}
