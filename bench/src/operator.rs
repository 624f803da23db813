//! The people's side: a browser that watches, and a program that lists.

use crate::client::Client;
use crate::latency::Latencies;
use crate::options::OperatorLogin;
use anyhow::{Context, Result, ensure};
use api::ServerUrl;
use flate2::write::GzDecoder;
use http::header::{CONTENT_ENCODING, SET_COOKIE};
use http::{HeaderValue, Method};
use http_body_util::BodyExt;
use std::io::Write;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

const LIMIT: Duration = Duration::from_secs(30);
const LIST: &str = "/v1/workers?perPage=100";
const EVENTS: &str = "/v1/events";
const FLEET: &str = "/v1/fleet";

/// Somebody who is logged in.
pub struct Operator {
    server: ServerUrl,
    proof: Proof,
}

enum Proof {
    Cookie(HeaderValue),
    ApiKey(String),
}

/// What a watching browser received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// The first page of data, compressed.
    pub snapshot_bytes: u64,
    /// Of the stream.
    pub events: u64,
    /// Of the stream.
    pub event_bytes: u64,
    /// Updates were lost and a new snapshot was asked for.
    pub resyncs: u64,
}

impl Operator {
    /// Proves who it is.
    pub async fn log_in(server: ServerUrl, login: OperatorLogin) -> Result<Self> {
        let proof = match login {
            OperatorLogin::ApiKey(key) => Proof::ApiKey(key),
            OperatorLogin::Password { user, password } => Proof::Cookie(cookie(&server, &user, &password).await?),
        };
        Ok(Self { server, proof })
    }

    /// Lists a page of workers each second and measures it.
    pub async fn list_every_second(
        self: std::sync::Arc<Self>,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<Latencies> {
        let mut client = self.client()?;
        let mut latencies = Latencies::default();
        let mut due = interval(Duration::from_secs(1));
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = stopped.changed() => return Ok(latencies),
                _ = due.tick() => {}
            }
            let begun = Instant::now();
            client.bytes(Method::GET, LIST, "application/json", Vec::new()).await?;
            latencies.push(begun.elapsed());
        }
    }

    /// Loads the fleet and follows what changes, as the admin UI does.
    pub async fn watch(self: std::sync::Arc<Self>, mut stopped: watch::Receiver<bool>) -> Result<Watched> {
        let mut watched = Watched::default();
        let mut snapshots = self.client()?;
        snapshots.accept_compressed();
        watched.snapshot_bytes = snapshot(&mut snapshots).await?;
        let mut events = self.client()?;
        events.accept_gzip();
        let response = events.send(Method::GET, EVENTS, "text/plain", Vec::new()).await?;
        ensure!(response.status().is_success(), "{EVENTS} was answered {}", response.status());
        let is_compressed = response.headers().contains_key(CONTENT_ENCODING);
        let mut body = response.into_body();
        let mut text = EventText::new(is_compressed);
        let mut line = Vec::new();
        loop {
            let frame = tokio::select! {
                _ = stopped.changed() => return Ok(watched),
                frame = body.frame() => frame.context("the server ended the stream of events")??,
            };
            let Some(data) = frame.data_ref() else { continue };
            watched.event_bytes += data.len() as u64;
            for byte in text.read(data)? {
                if byte != b'\n' {
                    line.push(byte);
                    continue;
                }
                let name = line.strip_prefix(b"event:").map(<[u8]>::trim_ascii);
                watched.events += u64::from(name == Some(b"update"));
                if name == Some(b"resync") {
                    watched.resyncs += 1;
                    snapshot(&mut snapshots).await?;
                }
                line.clear();
            }
        }
    }

    fn client(&self) -> Result<Client> {
        let mut client = Client::new(self.server.clone(), LIMIT);
        match &self.proof {
            Proof::Cookie(cookie) => client.set_cookie(cookie.clone()),
            Proof::ApiKey(key) => client.set_bearer(key)?,
        }
        Ok(client)
    }
}

/// The text of a stream that may be compressed.
enum EventText {
    Plain,
    Compressed(Box<GzDecoder<Vec<u8>>>),
}

impl EventText {
    fn new(is_compressed: bool) -> Self {
        if is_compressed { Self::Compressed(Box::new(GzDecoder::new(Vec::new()))) } else { Self::Plain }
    }

    fn read(&mut self, data: &[u8]) -> Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(data.to_vec()),
            Self::Compressed(decoder) => {
                // not flushed, which the decoder takes ill in the middle of a block: what it holds back comes with what follows
                decoder.write_all(data)?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }
}

async fn snapshot(client: &mut Client) -> Result<u64> {
    Ok(client.bytes(Method::GET, FLEET, "application/json", Vec::new()).await?.len() as u64)
}

async fn cookie(server: &ServerUrl, user: &str, password: &str) -> Result<HeaderValue> {
    let mut client = Client::new(server.clone(), LIMIT);
    let form = format!("username={}&password={}", form_encoded(user), form_encoded(password));
    let response =
        client.send(Method::POST, "/auth/login", "application/x-www-form-urlencoded", form.into_bytes()).await?;
    ensure!(response.status().is_success(), "the login as `{user}` was answered {}", response.status());
    let set_cookie = response.headers().get(SET_COOKIE).context("the login was answered without a cookie")?;
    let pair = set_cookie.to_str()?.split(';').next().unwrap_or_default();
    Ok(HeaderValue::try_from(pair)?)
}

/// As HTML forms are sent (URL standard, application/x-www-form-urlencoded).
fn form_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => encoded.push(char::from(byte)),
            other => {
                use std::fmt::Write;
                // writing to a string cannot fail
                let _ = write!(encoded, "%{other:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_survives_the_form() {
        assert_eq!(form_encoded("a b&c=ü+"), "a%20b%26c%3D%C3%BC%2B");
    }
}
