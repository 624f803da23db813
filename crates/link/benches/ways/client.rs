//! One client for all ways to the worker.

use axum::body::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use link::LinkHandle;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

const DEADLINE: Duration = Duration::from_mins(1);

/// A way to ask the worker.
pub struct Way {
    pub name: &'static str,
    pub road: Road,
}

pub enum Road {
    /// HTTP/1.1 at this address, whatever stands behind it.
    Http1(SocketAddr),
    /// HTTP/2 on a connection that the worker dialled, without encryption.
    Http2(h2::client::SendRequest<Bytes>),
    Link(LinkHandle),
}

/// A way as one client uses it, on one connection.
pub enum Client {
    Http1(hyper::client::conn::http1::SendRequest<Empty<Bytes>>),
    Http2(h2::client::SendRequest<Bytes>),
    Link(LinkHandle),
}

impl Way {
    pub async fn client(&self) -> Client {
        match &self.road {
            Road::Http1(address) => {
                let stream = TcpStream::connect(address).await.unwrap();
                link::tune_socket(&stream);
                let (requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                Client::Http1(requests)
            }
            Road::Http2(requests) => Client::Http2(requests.clone()),
            Road::Link(link) => Client::Link(link.clone()),
        }
    }
}

impl Client {
    /// Asks, reads the answer to its end, and tells its length in bytes.
    pub async fn ask(&mut self, path: &str) -> usize {
        let request = http::Request::get(format!("http://worker{path}"));
        match self {
            Self::Http1(requests) => {
                let request = request.header("host", "worker").uri(path).body(Empty::new()).unwrap();
                requests.ready().await.unwrap();
                length(requests.send_request(request).await.unwrap().into_body()).await
            }
            Self::Http2(requests) => {
                let mut requests = requests.clone().ready().await.unwrap();
                let (answer, _) = requests.send_request(request.body(()).unwrap(), true).unwrap();
                let mut body = answer.await.unwrap().into_body();
                let mut bytes = 0;
                while let Some(data) = body.data().await {
                    let data = data.unwrap();
                    body.flow_control().release_capacity(data.len()).unwrap();
                    bytes += data.len();
                }
                bytes
            }
            Self::Link(link) => {
                let request = request.body(Empty::<Bytes>::new()).unwrap();
                length(link.request(request, DEADLINE).await.unwrap().into_body()).await
            }
        }
    }
}

async fn length<B: http_body::Body<Data = Bytes> + Unpin>(mut body: B) -> usize
where
    B::Error: std::fmt::Debug,
{
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().data_ref().map_or(0, Bytes::len);
    }
    bytes
}
