//! Why there is no session, before anybody could log in.

use crate::sshd::{Setup, own_ip};
use crate::support::{User, endpoint, soon, unused_address};
use async_trait::async_trait;
use ssh::{BoxedIo, ConnectFault, Connector, Endpoint, Hop, Route, Step, Transport, TransportError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn fault(user: &User, connector: Connector, server: Endpoint) -> ConnectFault {
    let route = Route::new(vec![Hop::new("somebody", server, user.identity())]).unwrap();
    soon(connector.connect(&route)).await.unwrap_err().fault
}

/// What comes of a server that sends this and closes, once it has read something.
async fn fault_after(words: &'static [u8]) -> ConnectFault {
    let user = User::new();
    let listener = TcpListener::bind((own_ip(), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(words).await.unwrap();
        let _ = stream.read(&mut [0; 1024]).await;
    });
    fault(&user, user.connector(), endpoint(address)).await
}

#[tokio::test]
async fn a_port_where_nobody_listens_refuses() {
    let user = User::new();
    let address = unused_address();
    let fault = fault(&user, user.connector(), endpoint(address)).await;
    assert!(matches!(fault, ConnectFault::Transport(TransportError::Refused { address: named }) if named == address));
}

#[tokio::test]
async fn a_name_without_an_address_is_told() {
    let user = User::new();
    let fault = fault(&user, user.connector(), Endpoint::new("no-such-host.invalid", 22)).await;
    assert!(matches!(fault, ConnectFault::Transport(TransportError::Resolve { .. })), "{fault}");
}

struct Never;

#[async_trait]
impl Transport for Never {
    async fn open(&self, _server: &Endpoint) -> Result<BoxedIo, TransportError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let mut user = User::new();
    user.tuning.connect_deadline = Duration::from_millis(20);
    let mut connector = user.connector();
    connector.transport = Arc::new(Never);
    let fault = fault(&user, connector, Endpoint::new("far-away", 22)).await;
    assert!(matches!(fault, ConnectFault::Deadline { step: Step::Connect, .. }), "{fault}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let mut user = User::new();
    user.tuning.handshake_deadline = Duration::from_millis(100);
    let listener = TcpListener::bind((own_ip(), 0)).await.unwrap();
    let fault = fault(&user, user.connector(), endpoint(listener.local_addr().unwrap())).await;
    assert!(matches!(fault, ConnectFault::Deadline { step: Step::Greet, .. }), "{fault}");
}

#[tokio::test]
async fn a_server_that_greets_and_then_says_nothing_is_given_up() {
    let mut user = User::new();
    user.tuning.handshake_deadline = Duration::from_millis(300);
    let listener = TcpListener::bind((own_ip(), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let _server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-slow\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let fault = fault(&user, user.connector(), endpoint(address)).await;
    assert!(matches!(fault, ConnectFault::Deadline { step: Step::AgreeOnKeys, .. }), "{fault}");
}

#[tokio::test]
async fn something_else_than_ssh_is_told_with_its_first_line() {
    let fault = fault_after(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
    assert!(
        matches!(&fault, ConnectFault::NotSsh { first_line } if first_line == "HTTP/1.1 400 Bad Request"),
        "{fault}"
    );
}

#[tokio::test]
async fn a_version_of_ssh_that_nobody_speaks_any_more_is_told() {
    let fault = fault_after(b"SSH-1.5-ancient\r\n").await;
    assert!(matches!(&fault, ConnectFault::OldProtocol { greeting } if greeting == "SSH-1.5-ancient"), "{fault}");
}

#[tokio::test]
async fn a_server_that_closes_at_once_may_have_too_many_logins() {
    let fault = fault_after(b"").await;
    assert!(matches!(fault, ConnectFault::ClosedBeforeGreeting { said: None }), "{fault}");
    let fault = fault_after(b"Not allowed at this time\r\n").await;
    assert!(matches!(fault, ConnectFault::ClosedBeforeGreeting { said: Some(_) }), "{fault}");
}

/// Holds a place among those that have not logged in yet.
async fn hold_a_place(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    soon(stream.read_exact(&mut [0; 8])).await.unwrap();
    stream
}

#[tokio::test]
async fn a_server_with_too_many_logins_is_told_with_the_line_to_change() {
    let user = User::new();
    let sshd = user.server(Setup::new().line("MaxStartups 1")).await;
    let _held = hold_a_place(sshd.address()).await;
    let fault = user.connect(&sshd).await.unwrap_err();
    assert!(matches!(fault, ConnectFault::ClosedBeforeGreeting { .. }), "{fault}");
    assert!(fault.to_string().contains("MaxStartups"), "{fault}");
}

#[tokio::test]
async fn a_server_that_knows_nothing_in_common_is_told_with_what_it_knows() {
    let user = User::new();
    let sshd = user.server(Setup::new().line("Ciphers aes128-cbc")).await;
    let fault = user.connect(&sshd).await.unwrap_err();
    let ConnectFault::NoCommonAlgorithm { theirs, .. } = &fault else { panic!("{fault}") };
    assert_eq!(theirs, &["aes128-cbc"]);
}
