//! A tunnel agent that exists only on the wire: it tells what stands in a file, and again whenever the file changes.

use crate::options::Options;
use crate::traffic::CountedTransport;
use anyhow::{Context, Result};
use api::{PROTOCOL_VERSION, ServerUrl, TUNNELS_PATH, TunnelAgentRequest, TunnelAgentUuid, TunnelReport};
use axum::Router;
use axum::body::Body;
use axum::routing::post;
use bytes::Bytes;
use futures_util::stream;
use link::{
    AllowedTargets, DialConfig, DialError, Dialer, JoinToken, KeyPair, LinkEnd, LinkUser, Next, ServerAddress, Tuning,
    Welcome,
};
use report::tunnels::pack;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The file is looked at this often.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// What stands in the file.
#[derive(Debug, Deserialize)]
struct Script {
    name: String,
    hostname: String,
    report: TunnelReport,
}

impl Script {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} holds no report of a tunnel agent", path.display()))
    }
}

/// Plays the agent for ever. Its key is kept beside the file, so that it is the same agent the next time.
pub async fn play(options: &Options, server: &ServerUrl, file: PathBuf) -> Result<()> {
    let script = Script::read(&file)?;
    let keys = KeyPair::load_or_make(&file.with_extension("key"))?;
    let identity = u128::from_str_radix(&keys.public().fingerprint(), 16)?;
    let dialing = DialConfig {
        transport: Arc::new(CountedTransport::new(server, Arc::default())),
        address: ServerAddress::try_from(&server.to_string().parse()?)?,
        keys,
        server_key: None,
        token: Some(JoinToken::new(options.token.as_str())),
        targets: AllowedTargets::none(),
        tuning: Tuning::default(),
    };
    let user = Player {
        request: TunnelAgentRequest {
            protocol: PROTOCOL_VERSION,
            tunnel_agent: TunnelAgentUuid(Uuid::from_u128(identity)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: script.name,
            hostname: script.hostname,
        },
    };
    let (told, latest) = watch::channel(pack(&script.report)?);
    let router = Router::new().route(TUNNELS_PATH, post(async move || answer(latest.clone())));
    let dialer = Dialer::new(dialing);
    tokio::select! {
        () = dialer.run(&user, router, CancellationToken::new()) => Ok(()),
        failed = follow(&file, &told) => failed,
    }
}

/// The report of now, then each that follows.
fn answer(mut latest: watch::Receiver<Bytes>) -> Body {
    latest.mark_changed();
    Body::from_stream(stream::unfold(latest, async |mut latest| {
        latest.changed().await.ok()?;
        let frame = latest.borrow_and_update().clone();
        Some((Ok::<_, std::io::Error>(frame), latest))
    }))
}

async fn follow(file: &Path, told: &watch::Sender<Bytes>) -> Result<()> {
    let mut look = interval(LOOK_INTERVAL);
    loop {
        look.tick().await;
        // one that is being written is read whole the next time
        if let Ok(script) = Script::read(file) {
            let frame = pack(&script.report)?;
            told.send_if_modified(|before| {
                let is_new = *before != frame;
                *before = frame;
                is_new
            });
        }
    }
}

struct Player {
    request: TunnelAgentRequest,
}

impl LinkUser for Player {
    fn join_request(&self) -> Bytes {
        serde_json::to_vec(&self.request).unwrap_or_default().into()
    }

    fn joined(&self, _: &Welcome) {
        eprintln!("the tunnel agent {} has joined", self.request.name);
    }

    fn ended(&self, end: &LinkEnd, _: Duration) -> Next {
        eprintln!("the link of the tunnel agent {} has ended: {end:?}", self.request.name);
        Next::Retry
    }

    fn failed(&self, error: &DialError, _: Duration) -> Next {
        eprintln!("the tunnel agent {} is not let in: {error}", self.request.name);
        Next::Retry
    }
}
