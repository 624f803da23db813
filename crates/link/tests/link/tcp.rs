//! TCP through a link.

use crate::support::{PATIENCE, Server, Worker, hello, soon};
use link::{AllowedTargets, ConnectError, LinkHandle, LinkTcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

async fn connect(link: &LinkHandle, target: &str) -> Result<LinkTcpStream, ConnectError> {
    link.connect_tcp(&target.parse().unwrap(), PATIENCE).await
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_end_closes_on_its_own() {
    let server = Server::start().await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = target.local_addr().unwrap().port();
    let mut worker = Worker::of(&server);
    worker.targets = AllowedTargets::none().and("127.0.0.1", port..=port);
    let _serving = worker.serve(hello()).await;
    let link = server.opened(1).await;
    let mut near = connect(&link, &format!("127.0.0.1:{port}")).await.unwrap();
    let (mut far, _) = soon(target.accept()).await.unwrap();

    let sent: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let all = sent.clone();
    let echo = tokio::spawn(async move {
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.unwrap();
        // this direction is still open after the other one ended
        far.write_all(&received).await.unwrap();
    });
    let mut back = Vec::new();
    soon(async {
        near.write_all(&all).await.unwrap();
        near.shutdown().await.unwrap();
        near.read_to_end(&mut back).await.unwrap();
    })
    .await;
    echo.await.unwrap();
    assert!(back == sent);
}

#[tokio::test]
async fn a_target_that_is_not_allowed_is_refused() {
    let server = Server::start().await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = target.local_addr().unwrap().to_string();
    let _serving = Worker::of(&server).serve(hello()).await;
    let link = server.opened(1).await;
    let error = connect(&link, &address).await.unwrap_err();
    assert_eq!(error, ConnectError::NotAllowed(address.parse().unwrap()));
}

#[tokio::test]
async fn a_target_that_does_not_answer_is_told_apart() {
    let server = Server::start().await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut worker = Worker::of(&server);
    worker.targets = AllowedTargets::none().and("127.0.0.1", 0..=u16::MAX);
    let _serving = worker.serve(hello()).await;
    let link = server.opened(1).await;
    let error = connect(&link, &free.to_string()).await.unwrap_err();
    assert_eq!(error, ConnectError::Unreachable(free.to_string().parse().unwrap()));
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection_and_so_does_the_target() {
    let server = Server::start().await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = target.local_addr().unwrap().port();
    let mut worker = Worker::of(&server);
    worker.targets = AllowedTargets::none().and("127.0.0.1", port..=port);
    let _serving = worker.serve(hello()).await;
    let link = server.opened(1).await;

    let near = connect(&link, &format!("127.0.0.1:{port}")).await.unwrap();
    let (mut far, _) = soon(target.accept()).await.unwrap();
    drop(near);
    assert!(matches!(soon(far.read(&mut [0; 8])).await, Ok(0) | Err(_)));

    let mut near = connect(&link, &format!("127.0.0.1:{port}")).await.unwrap();
    let (far, _) = soon(target.accept()).await.unwrap();
    drop(far);
    assert_eq!(soon(near.read(&mut [0; 8])).await.unwrap(), 0);
}
