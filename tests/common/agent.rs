//! A tunnel agent that a test plays: a real link, over which it tells what the test makes up.

use super::TOKEN;
use api::{TunnelAgentRequest, TunnelAgentResponse, TunnelAgentUuid, TunnelReport};
use axum::Router;
use axum::body::Body;
use axum::routing::post;
use bytes::Bytes;
use futures_util::stream;
use link::{
    AllowedTargets, DialConfig, DialError, Dialer, DirectTransport, KeyPair, LinkEnd, OuterTls, PublicKey,
    ServerAddress, Tuning,
};
use report::tunnels::pack;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

/// Who a played agent is.
pub struct TestAgent {
    pub uuid: Uuid,
    pub name: &'static str,
    pub keys: KeyPair,
    /// What it shows when it joins.
    pub token: Option<&'static str>,
    /// The server's key from its first join on.
    pub server_key: Mutex<Option<PublicKey>>,
}

/// A played agent that has joined. Dropped, it vanishes without a word.
pub struct JoinedAgent {
    pub response: TunnelAgentResponse,
    /// What it tells.
    told: watch::Sender<Bytes>,
    /// Each time it is asked.
    pub asked: mpsc::UnboundedReceiver<()>,
    serving: AbortOnDropHandle<LinkEnd>,
}

impl TestAgent {
    pub fn new(name: &'static str) -> Self {
        Self {
            uuid: Uuid::new_v4(),
            name,
            keys: KeyPair::generate().unwrap(),
            token: Some(TOKEN),
            server_key: Mutex::default(),
        }
    }

    /// Joins, and tells this report when it is asked.
    pub async fn join(&self, server: SocketAddr, report: &TunnelReport) -> Result<JoinedAgent, DialError> {
        let address = ServerAddress::try_from(&format!("http://{server}").parse().unwrap()).unwrap();
        let config = DialConfig {
            transport: Arc::new(DirectTransport::new(
                address.clone(),
                OuterTls::anybody().unwrap(),
                Duration::from_secs(10),
            )),
            address,
            keys: self.keys.clone(),
            server_key: *self.server_key.lock().unwrap(),
            token: self.token.map(link::JoinToken::new),
            targets: AllowedTargets::none(),
            tuning: Tuning::default(),
        };
        let request = TunnelAgentRequest {
            protocol: api::PROTOCOL_VERSION,
            tunnel_agent: TunnelAgentUuid(self.uuid),
            version: "0.1.0".to_owned(),
            name: self.name.to_owned(),
            hostname: "bastion-host".to_owned(),
        };
        let link = Dialer::new(config).dial(serde_json::to_vec(&request).unwrap().into()).await?;
        *self.server_key.lock().unwrap() = Some(link.welcome().server_key);
        let response = serde_json::from_slice(&link.welcome().answer).unwrap();
        let (told, latest) = watch::channel(pack(report).unwrap());
        let (asking, asked) = mpsc::unbounded_channel();
        let router = Router::new().route(
            api::TUNNELS_PATH,
            post(async move || {
                let _ = asking.send(());
                answer(latest.clone())
            }),
        );
        let serving = AbortOnDropHandle::new(tokio::spawn(link.serve(router, CancellationToken::new())));
        Ok(JoinedAgent { response, told, asked, serving })
    }
}

fn answer(mut latest: watch::Receiver<Bytes>) -> Body {
    latest.mark_changed();
    Body::from_stream(stream::unfold(latest, async |mut latest| {
        latest.changed().await.ok()?;
        let frame = latest.borrow_and_update().clone();
        Some((Ok::<_, std::io::Error>(frame), latest))
    }))
}

impl JoinedAgent {
    pub fn id(&self) -> i64 {
        self.response.agent_id.0
    }

    pub fn report(&self, report: &TunnelReport) {
        self.told.send_replace(pack(report).unwrap());
    }

    /// Tells bytes that are a report or none.
    pub fn tell(&self, bytes: &'static [u8]) {
        self.told.send_replace(Bytes::from_static(bytes));
    }

    /// Waits until the link has ended.
    pub async fn ended(self) -> LinkEnd {
        self.serving.await.unwrap()
    }
}
