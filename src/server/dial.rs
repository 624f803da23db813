//! Dial worker: the one function by which the server reaches a worker. Whatever wants something of a worker goes
//! through here, so that a way round a firewall that works for one thing works for everything.

pub use crate::http_once::Answer;

use crate::http_once::{self, BODY_LIMIT_BYTES, GetError};
use crate::server::links::Links;
use crate::server::registry::Worker;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use link::{LinkHandle, RequestError};
use std::error::Error;
use std::io;
use std::net::Ipv6Addr;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// A way from the server to a worker.
#[derive(Clone, Debug)]
pub enum Way {
    /// The connection that the worker dialled, which stands.
    Link(LinkHandle),
    /// A new connection to the worker's own port.
    Direct {
        /// The worker's address or name.
        ip: String,
        /// Its port.
        port: u16,
    },
}

/// The ways to a worker that there are now, the best first.
pub fn ways(worker: &Worker, links: &Links) -> Vec<Way> {
    let direct = {
        let facts = worker.facts();
        Way::Direct { ip: facts.row.ip.clone(), port: facts.row.port }
    };
    links.get(worker.id()).map(Way::Link).into_iter().chain([direct]).collect()
}

/// Why a worker did not answer.
#[derive(Debug, Error)]
pub enum DialError {
    /// The host name has no address.
    #[error("the name has no address: {0}")]
    NotResolved(io::Error),
    /// Nothing listens there.
    #[error("the connection was refused")]
    Refused,
    /// There is no route to that network.
    #[error("no route: {0}")]
    NoRoute(io::Error),
    /// The deadline passed.
    #[error("no answer in time")]
    TimedOut,
    /// The connection was made and closed without an answer.
    #[error("the connection was closed without an answer: {0}")]
    Closed(Box<dyn Error + Send + Sync>),
    /// What came back is no HTTP answer, or a far too long one.
    #[error("no HTTP answer: {0}")]
    NotHttp(Box<dyn Error + Send + Sync>),
}

/// The URL of a worker's health check.
pub fn health_url(ip: &str, port: u16) -> String {
    format!("http://{}/healthz", authority(ip, port))
}

fn authority(ip: &str, port: u16) -> String {
    let bare = ip.split('%').next().unwrap_or(ip);
    if bare.parse::<Ipv6Addr>().is_ok() { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

/// Sends one GET to a worker over the first of these ways that brings an answer; gives the last one's error when none
/// does. `deadline` covers all that happens on one way.
pub async fn dial_worker(ways: &[Way], path: &str, deadline: Duration) -> Result<Answer, DialError> {
    let mut outcome = Err(DialError::NotResolved(io::Error::new(io::ErrorKind::NotFound, "no way to the worker")));
    for way in ways {
        let dialled = async {
            match way {
                Way::Link(link) => get_over_link(link, path, deadline).await,
                Way::Direct { ip, port } => get(ip, *port, path).await,
            }
        };
        outcome = timeout(deadline, dialled).await.unwrap_or(Err(DialError::TimedOut));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

async fn get_over_link(link: &LinkHandle, path: &str, deadline: Duration) -> Result<Answer, DialError> {
    let request = Request::get(path)
        .header(header::USER_AGENT, concat!("gpustack/", env!("CARGO_PKG_VERSION")))
        .body(Empty::<Bytes>::new())
        .map_err(|error| DialError::NotHttp(error.into()))?;
    let sent = Instant::now();
    let response = link.request(request, deadline).await.map_err(unanswered)?;
    let round_trip = sent.elapsed();
    let (head, body) = response.into_parts();
    let body = Limited::new(body, BODY_LIMIT_BYTES).collect().await.map_err(DialError::NotHttp)?;
    Ok(Answer { response: Response::from_parts(head, body.to_bytes()), round_trip })
}

fn unanswered(error: RequestError) -> DialError {
    match error {
        RequestError::Deadline(_) => DialError::TimedOut,
        RequestError::Closed(_) | RequestError::BrokenOff(_) => DialError::Closed(error.into()),
        RequestError::Invalid(_) => DialError::NotHttp(error.into()),
    }
}

/// Over a connection of its own: a kept one would hide that no new one can be made.
async fn get(ip: &str, port: u16, path: &str) -> Result<Answer, DialError> {
    let addresses = tokio::net::lookup_host((ip, port)).await.map_err(DialError::NotResolved)?;
    let stream = connect(addresses).await?;
    // no error of ours: it only costs a delay
    let _ = stream.set_nodelay(true);
    http_once::get(stream, &authority(ip, port), path).await.map_err(|error| match error {
        GetError::Closed(source) => DialError::Closed(source),
        GetError::NotHttp(source) => DialError::NotHttp(source),
    })
}

async fn connect(addresses: impl Iterator<Item = std::net::SocketAddr>) -> Result<TcpStream, DialError> {
    let mut last = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    Err(last
        .map_or_else(|| DialError::NotResolved(io::Error::new(io::ErrorKind::NotFound, "no address")), not_connected))
}

fn not_connected(error: io::Error) -> DialError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => DialError::Refused,
        io::ErrorKind::TimedOut => DialError::TimedOut,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => DialError::Closed(error.into()),
        _ => DialError::NoRoute(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const DEADLINE: Duration = Duration::from_secs(10);

    fn direct(ip: &str, port: u16) -> Way {
        Way::Direct { ip: ip.to_owned(), port }
    }

    async fn answering(bytes: &'static [u8]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(bytes).await;
        });
        port
    }

    async fn talking_first(bytes: &'static [u8]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(bytes).await;
            let mut request = [0; 1024];
            while stream.read(&mut request).await.is_ok_and(|count| count > 0) {}
        });
        port
    }

    #[tokio::test]
    async fn an_answer_comes_with_its_body() {
        let port = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\"ok\"").await;
        let answer = dial_worker(&[direct("127.0.0.1", port)], "/healthz", DEADLINE).await.unwrap();
        assert_eq!((answer.response.status().as_u16(), answer.response.body().as_ref()), (200, &b"\"ok\""[..]));
    }

    #[tokio::test]
    async fn a_way_that_fails_is_followed_by_the_next() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let port = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\"ok\"").await;
        let ways = [direct("127.0.0.1", free), direct("127.0.0.1", port)];
        let answer = dial_worker(&ways, "/healthz", DEADLINE).await.unwrap();
        assert_eq!(answer.response.status().as_u16(), 200);
        let none = dial_worker(&ways[..1], "/healthz", DEADLINE).await;
        assert!(matches!(none, Err(DialError::Refused)), "{none:?}");
    }

    #[tokio::test]
    async fn causes_are_told_apart() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let refused = dial_worker(&[direct("127.0.0.1", free)], "/healthz", DEADLINE).await;
        assert!(matches!(refused, Err(DialError::Refused)), "{refused:?}");

        let closed = dial_worker(&[direct("127.0.0.1", answering(b"").await)], "/healthz", DEADLINE).await;
        assert!(matches!(closed, Err(DialError::Closed(_))), "{closed:?}");

        let other =
            dial_worker(&[direct("127.0.0.1", answering(b"SSH-2.0-OpenSSH_9.2\r\n").await)], "/healthz", DEADLINE)
                .await;
        assert!(matches!(other, Err(DialError::NotHttp(_))), "{other:?}");

        let unasked =
            dial_worker(&[direct("127.0.0.1", talking_first(b"SSH-2.0-OpenSSH_9.2\r\n").await)], "/", DEADLINE).await;
        assert!(matches!(unasked, Err(DialError::NotHttp(_))), "{unasked:?}");

        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let timed_out = dial_worker(&[direct("127.0.0.1", port)], "/healthz", Duration::from_millis(50)).await;
        assert!(matches!(timed_out, Err(DialError::TimedOut)), "{timed_out:?}");

        let unresolved = dial_worker(&[direct("no-such-host.invalid", 80)], "/healthz", DEADLINE).await;
        assert!(matches!(unresolved, Err(DialError::NotResolved(_) | DialError::TimedOut)), "{unresolved:?}");
    }

    #[tokio::test]
    async fn an_endless_answer_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
        });
        let endless = dial_worker(&[direct("127.0.0.1", port)], "/healthz", DEADLINE).await;
        assert!(matches!(endless, Err(DialError::NotHttp(_))), "{endless:?}");
    }

    #[test]
    fn an_address_of_any_kind_makes_a_url() {
        for (ip, url) in [
            ("10.0.0.1", "http://10.0.0.1:1/healthz"),
            ("fd00::1", "http://[fd00::1]:1/healthz"),
            ("npu-01.example", "http://npu-01.example:1/healthz"),
        ] {
            assert_eq!(health_url(ip, 1), url);
        }
    }
}
