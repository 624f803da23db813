//! GPUStack 0.7.1's worker, played from a recording of its HTTP: the same bytes, on the same connections, over a cable.
//!
//! In a minute it beats twice, each time with three requests on a new connection, and two streams that it watches carry
//! an empty line every 15 s. The server's health checks were not recorded, and are not played.

use crate::Outpost;
use crate::bytes::BothWays;
use netlab::{Host, Process, until};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

const RECORDED: &str = include_str!("../../../../tests/fixtures/gpustack-0.7.1-worker-http.log");
/// The argument that makes a process the worker.
pub const PLAY_WORKER: &str = "play-recorded-worker";
/// The connections of the two streams that it watches.
const WATCHED: [u32; 2] = [2, 3];
/// The connections of two beats, which are a minute's.
const BEATS: [u32; 2] = [4, 5];
const EMPTY_LINES: u32 = 4;
/// An empty line as a chunk (RFC 9112, section 7.1).
const EMPTY_LINE: &[u8] = b"2\r\n\n\n\r\n";
/// Longer than TCP waits before it acknowledges, so that time that is left out saves no packets.
const PAUSE: Duration = Duration::from_millis(300);

/// A request and its answer, as they went over the wire.
struct Exchange {
    connection: u32,
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// What one minute takes.
pub fn minute(here: &Host) -> BothWays {
    let outpost = Outpost::new(here, 30);
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let server = SocketAddr::from((Ipv4Addr::new(198, 18, 30, 1), listener.local_addr().unwrap().port()));
    let mut command = outpost.host.command(std::env::current_exe().unwrap());
    command.args([PLAY_WORKER, &server.to_string()]).stdin(Stdio::null());
    let mut worker = Process::start(&mut command).unwrap();
    let mut watched: Vec<TcpStream> = WATCHED.map(|connection| answer(&listener, connection)).into();
    sleep(PAUSE);
    let before = BothWays::of(&outpost.cable);
    for _ in 0..EMPTY_LINES {
        for stream in &mut watched {
            stream.write_all(EMPTY_LINE).unwrap();
        }
        sleep(PAUSE);
    }
    for connection in BEATS {
        answer(&listener, connection);
        sleep(PAUSE);
    }
    let used = BothWays::of(&outpost.cable).since(before);
    drop(watched);
    until("the end of the played worker", || if worker.is_running() { Err("it runs") } else { Ok(()) });
    used.print("GPUStack 0.7.1, as recorded, no health checks");
    used
}

/// Takes the next connection and answers what comes there as was recorded.
fn answer(listener: &TcpListener, connection: u32) -> TcpStream {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    for Exchange { request, answer, .. } in exchanges(connection) {
        stream.read_exact(&mut vec![0; request.len()]).unwrap();
        stream.write_all(&answer).unwrap();
    }
    stream
}

/// The worker's part.
pub fn play_worker(server: SocketAddr) {
    let mut watched: Vec<TcpStream> = WATCHED.map(|connection| ask(server, connection)).into();
    for connection in BEATS {
        // the server closes it, as it closes idle ones
        ask(server, connection).read_to_end(&mut Vec::new()).unwrap();
    }
    for stream in &mut watched {
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

fn ask(server: SocketAddr, connection: u32) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_nodelay(true).unwrap();
    for Exchange { request, answer, .. } in exchanges(connection) {
        stream.write_all(&request).unwrap();
        stream.read_exact(&mut vec![0; answer.len()]).unwrap();
    }
    stream
}

fn exchanges(connection: u32) -> Vec<Exchange> {
    let mut all: Vec<Exchange> = Vec::new();
    for section in RECORDED.split("\n=== ").map(|section| section.trim_start_matches("=== ")) {
        let (title, content) = section.split_once('\n').unwrap();
        let mut words = title.split(' ');
        let kind = words.next().unwrap();
        match kind {
            "request" => {
                let connection = words.nth(2).unwrap().parse().unwrap();
                all.push(Exchange { connection, request: message(content, "> "), answer: Vec::new() });
            }
            "response" => all.last_mut().unwrap().answer = message(content, "< "),
            _ => {}
        }
    }
    all.retain(|exchange| exchange.connection == connection);
    all
}

/// Lines of the head begin with `mark`; what follows is the body.
fn message(content: &str, mark: &str) -> Vec<u8> {
    let mut head = String::new();
    let mut rest = content;
    while let Some(line) = rest.strip_prefix(mark) {
        let (line, after) = line.split_once('\n').unwrap();
        head.push_str(line);
        head.push_str("\r\n");
        rest = after;
    }
    head.push_str(rest.trim_end_matches('\n'));
    head.into_bytes()
}
