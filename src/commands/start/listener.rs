//! The server's port.

use super::CommandError;
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket};

/// A thousand workers may come at once after a pause of the server.
const BACKLOG: u32 = 4096;

/// Listens on the first address of `host` that can be used.
pub async fn bind(host: &str, port: u16) -> Result<TcpListener, CommandError> {
    let addresses = tokio::net::lookup_host((host, port)).await;
    let addresses =
        addresses.map_err(|error| CommandError::usage(format!("--host {host} cannot be resolved: {error}")))?;
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match listen(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(explain(host, port, &failure))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // a port of connections that ended a moment ago is free
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn explain(host: &str, port: u16, error: &io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::AddrInUse => CommandError::failed(format!(
            "port {port} is in use by another program (`ss -ltnp 'sport = :{port}'` as root names it); stop that, or choose \
             another port with --port"
        )),
        io::ErrorKind::PermissionDenied => CommandError::failed(format!(
            "port {port} is for root only; run as root, give the program CAP_NET_BIND_SERVICE, or choose a port above 1023 \
             with --port"
        )),
        io::ErrorKind::AddrNotAvailable => {
            CommandError::usage(format!("--host {host} is no address of this host; use 0.0.0.0 for all of them"))
        }
        _ => CommandError::failed(format!("cannot listen on {host}, port {port}: {error}")),
    }
}
