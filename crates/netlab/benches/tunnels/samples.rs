//! Whether something is answered through the tunnel, once a second.
//!
//! A question through a tunnel that is down is a connection to the listener of a dead session, and keeps sshd from missing the
//! session: it looks whether its client lives (`ClientAliveInterval`) only after a time in which nothing else happened. So
//! where nothing is answered for a while, the next question waits until sshd has heard something of that session, or another
//! session listens.

use netlab::{Host, Process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Said to this program, on a worker's host.
pub const ASK: &str = "--ask";
const EVERY: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(1);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
/// So long after the last answer it is asked each second whatever happens.
const PERSISTENT_FOR: Duration = Duration::from_secs(10);
/// Later there is no longer pause between two questions: a path may have healed of which sshd heard nothing yet.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// Prints `1` or `0` each second.
pub fn ask_for_ever() {
    let begun = Instant::now();
    let (mut answered_at, mut asked_at, mut heard) = (begun, begun, String::new());
    for number in 1.. {
        let is_waiting = answered_at.elapsed() > PERSISTENT_FOR && asked_at.elapsed() < LONGEST_PAUSE;
        let is_answered = (!is_waiting || heard_by_sshd() != heard) && {
            asked_at = Instant::now();
            let is_answered = is_answered();
            heard = heard_by_sshd();
            is_answered
        };
        if is_answered {
            answered_at = Instant::now();
        }
        println!("{}", u8::from(is_answered));
        sleep((EVERY * number).saturating_sub(begun.elapsed()));
    }
}

/// Which session of sshd listens for the tunnel, and how many bytes it has received.
fn heard_by_sshd() -> String {
    let listening = sockets(&["-tlnpHO", "sport = :8090"]);
    let Some(session) = listening.split_once("pid=").and_then(|(_, rest)| rest.split_once(',')).map(|(pid, _)| pid)
    else {
        return String::new();
    };
    let all = sockets(&["-tnipHO", "state", "established", "sport = :22"]);
    let own = all.lines().filter(|line| line.contains(&format!("pid={session},")));
    let received = own.flat_map(str::split_whitespace).filter(|word| word.starts_with("bytes_received:"));
    std::iter::once(session).chain(received).collect::<Vec<_>>().join(" ")
}

/// What `ss` says of this host's sockets.
fn sockets(words: &[&str]) -> String {
    let output = Command::new("ss").args(words).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn is_answered() -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&SERVER, DEADLINE)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}

/// What was seen from a worker's host so far.
pub struct Samples {
    seen: Arc<Mutex<Vec<(Instant, bool)>>>,
    _asking: Process,
}

impl Samples {
    pub fn begin(host: &Host) -> Self {
        let mut command = host.command(std::env::current_exe().unwrap());
        let mut asking = Process::start(command.arg(ASK).stdin(Stdio::null()).stdout(Stdio::piped())).unwrap();
        let lines = BufReader::new(asking.take_stdout().unwrap()).lines();
        let seen: Arc<Mutex<Vec<(Instant, bool)>>> = Arc::default();
        let noted = Arc::clone(&seen);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                noted.lock().unwrap().push((Instant::now(), line == "1"));
            }
        });
        Self { seen, _asking: asking }
    }

    pub fn last(&self) -> Option<bool> {
        self.seen.lock().unwrap().last().map(|(_, is_answered)| *is_answered)
    }

    /// Of this time: whether it worked, each second.
    pub fn between(&self, from: Instant, to: Instant) -> Vec<bool> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, is_answered)| *is_answered).collect()
    }
}
