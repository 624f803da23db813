//! The played workers' hosts: each has a loopback address of its own, where it answers the server's probe.

use anyhow::{Context, Result};
use api::WorkerUuid;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

/// Hosts in one block of 127.0.0.0/8; the first and the last address of a block look odd and are left out.
const BLOCK: u32 = 250;
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// Who and where a played worker is.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Who.
    pub uuid: WorkerUuid,
    /// Where.
    pub address: Ipv4Addr,
    /// Where.
    pub port: u16,
}

/// Makes so many hosts. One listener serves all: which of them was meant is told by the address that was connected to.
pub async fn listen(count: u32) -> Result<Vec<Host>> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.context("no port to listen on")?;
    let port = listener.local_addr()?.port();
    let hosts: Vec<Host> =
        (0..count).map(|number| Host { uuid: WorkerUuid(Uuid::new_v4()), address: address_of(number), port }).collect();
    let uuids = hosts.iter().map(|host| (host.address, host.uuid)).collect();
    tokio::spawn(answer_probes(listener, uuids));
    Ok(hosts)
}

fn address_of(number: u32) -> Ipv4Addr {
    let block = number / BLOCK;
    let [_, _, high, low] = block.to_be_bytes();
    let [_, _, _, host] = (number % BLOCK + 1).to_be_bytes();
    Ipv4Addr::new(127, high + 1, low, host)
}

async fn answer_probes(listener: TcpListener, uuids: HashMap<Ipv4Addr, WorkerUuid>) {
    while let Ok((stream, _)) = listener.accept().await {
        let known = stream.local_addr().ok().and_then(|address| match address.ip() {
            IpAddr::V4(ip) => uuids.get(&ip).copied(),
            IpAddr::V6(_) => None,
        });
        if let Some(uuid) = known {
            tokio::spawn(answer_probe(stream, uuid));
        }
    }
}

async fn answer_probe(stream: TcpStream, uuid: WorkerUuid) {
    let service = service_fn(move |request: Request<Incoming>| async move {
        let (status, body) = match request.uri().path() {
            "/healthz" => (StatusCode::OK, format!(r#"{{"status":"ok","worker_uuid":"{uuid}"}}"#)),
            _ => (StatusCode::NOT_FOUND, String::new()),
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        Ok::<_, Infallible>(response)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PROBE_LIMIT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // a prober that hangs up early has its answer, or wants none
    let _ = tokio::time::timeout(PROBE_LIMIT, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn fifty_thousand_hosts_have_as_many_loopback_addresses() {
        let all: HashSet<Ipv4Addr> = (0..50_000).map(address_of).collect();
        assert_eq!(all.len(), 50_000);
        assert!(all.iter().all(Ipv4Addr::is_loopback));
        assert!(!all.contains(&Ipv4Addr::LOCALHOST));
    }
}
