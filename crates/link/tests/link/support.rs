//! A server with a list of tokens and keys, and workers.

use crate::chaos::{ChaosTransport, Plan};
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use http_body_util::BodyExt;
use link::{
    Acceptor, Admission, AllowedTargets, Applicant, CloseReason, DialConfig, DialError, Dialer, DirectTransport,
    Gatekeeper, JoinToken, KeyPair, Link, LinkBody, LinkEnd, LinkHandle, LinkObserver, OuterTls, PublicKey, Refusal,
    Registry, ServerAddress, ShownToken, Transport, Tuning,
};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Longer than anything takes on a busy machine, and shorter than a test run may hang.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for what must come.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("what was to come did not come")
}

/// Who may come in.
#[derive(Default)]
pub struct Gate {
    pub tokens: Mutex<Vec<JoinToken>>,
    pub known: Mutex<HashMap<PublicKey, Box<str>>>,
    pub revoked: Mutex<HashSet<PublicKey>>,
    /// Refuses every join request.
    pub declines: Mutex<Option<Refusal>>,
    /// Lets on whoever comes.
    pub lets_all_on: bool,
    pub join_requests: Mutex<Vec<Bytes>>,
}

impl Gate {
    pub fn with_token() -> Self {
        Self { tokens: Mutex::new(vec![JoinToken::new(TOKEN)]), ..Self::default() }
    }
}

#[async_trait]
impl Gatekeeper for Gate {
    async fn tokens(&self) -> Vec<JoinToken> {
        self.tokens.lock().unwrap().clone()
    }

    async fn recognise(&self, applicant: &Applicant) -> Result<(), Refusal> {
        if self.lets_all_on || self.known.lock().unwrap().contains_key(&applicant.worker_key) {
            return Ok(());
        }
        match applicant.token {
            ShownToken::Valid(_) => Ok(()),
            ShownToken::Wrong => Err(Refusal::WrongToken),
            ShownToken::None if self.revoked.lock().unwrap().contains(&applicant.worker_key) => Err(Refusal::Revoked),
            ShownToken::None => Err(Refusal::UnknownKey),
        }
    }

    async fn admit(&self, applicant: &Applicant, join_request: Bytes) -> Result<Admission, Refusal> {
        self.join_requests.lock().unwrap().push(join_request.clone());
        if let Some(question) = join_request.strip_prefix(b"?") {
            return Ok(Admission::Answer([b"about ", question].concat().into()));
        }
        if let Some(refusal) = self.declines.lock().unwrap().clone() {
            return Err(refusal);
        }
        let name = String::from_utf8_lossy(&join_request).into_owned().into_boxed_str();
        let id = self.known.lock().unwrap().entry(applicant.worker_key).or_insert(name).clone();
        Ok(Admission::Link { id, answer: Bytes::from_static(b"welcome") })
    }
}

/// Remembers what happened.
pub struct Events {
    opened: watch::Sender<Vec<LinkHandle>>,
    closed: watch::Sender<Vec<CloseReason>>,
}

impl LinkObserver for Events {
    fn opened(&self, link: &LinkHandle) {
        self.opened.send_modify(|opened| opened.push(link.clone()));
    }

    fn closed(&self, _link: &LinkHandle, reason: &CloseReason) {
        self.closed.send_modify(|closed| closed.push(reason.clone()));
    }
}

pub struct Server {
    pub address: SocketAddr,
    pub acceptor: Acceptor,
    pub gate: Arc<Gate>,
    pub keys: KeyPair,
    pub events: Arc<Events>,
    _serving: AbortOnDropHandle<()>,
}

async fn link_route(
    State(acceptor): State<Acceptor>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> impl IntoResponse {
    acceptor.respond(request, peer).map(Body::new)
}

impl Server {
    pub async fn start() -> Self {
        Self::start_with(Gate::with_token(), KeyPair::generate().unwrap(), Tuning::default()).await
    }

    pub async fn start_tuned(tuning: Tuning) -> Self {
        Self::start_with(Gate::with_token(), KeyPair::generate().unwrap(), tuning).await
    }

    pub async fn start_with(gate: Gate, keys: KeyPair, tuning: Tuning) -> Self {
        let gate = Arc::new(gate);
        let events = Arc::new(Events { opened: watch::Sender::default(), closed: watch::Sender::default() });
        let acceptor = Acceptor::new(
            &keys,
            Arc::clone(&gate) as Arc<dyn Gatekeeper>,
            Arc::clone(&events) as Arc<dyn LinkObserver>,
            Registry::new(),
            tuning,
        )
        .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route(link::LINK_PATH, get(link_route)).with_state(acceptor.clone());
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let serving = tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        Self { address, acceptor, gate, keys, events, _serving: AbortOnDropHandle::new(serving) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn registry(&self) -> &Registry {
        self.acceptor.registry()
    }

    /// The `n`th link that ever stood.
    pub async fn opened(&self, n: usize) -> LinkHandle {
        let mut opened = self.events.opened.subscribe();
        let found = soon(opened.wait_for(|opened| opened.len() >= n)).await.unwrap();
        found[n - 1].clone()
    }

    pub fn opened_count(&self) -> usize {
        self.events.opened.borrow().len()
    }

    /// Waits until `n` links ended, and tells why.
    pub async fn closed(&self, n: usize) -> Vec<CloseReason> {
        let mut closed = self.events.closed.subscribe();
        soon(closed.wait_for(|closed| closed.len() >= n)).await.unwrap().clone()
    }
}

/// What a worker dials with; tests change what they are about.
pub struct Worker {
    pub url: String,
    pub keys: KeyPair,
    pub token: Option<&'static str>,
    pub server_key: Option<PublicKey>,
    pub tuning: Tuning,
    pub targets: AllowedTargets,
    pub plan: Arc<Plan>,
    pub outer_tls: OuterTls,
    pub name: &'static str,
}

pub fn no_outer_tls() -> OuterTls {
    OuterTls::with_roots(roots_with_one_that_signs_nothing(), Vec::new()).unwrap()
}

fn roots_with_one_that_signs_nothing() -> rustls::RootCertStore {
    let made = rcgen::generate_simple_self_signed(vec!["nobody".to_owned()]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    roots
}

impl Worker {
    pub fn of(server: &Server) -> Self {
        Self {
            url: server.url(),
            keys: KeyPair::generate().unwrap(),
            token: Some(TOKEN),
            server_key: None,
            tuning: Tuning::default(),
            targets: AllowedTargets::none(),
            plan: Arc::default(),
            outer_tls: no_outer_tls(),
            name: "worker",
        }
    }

    pub fn config(&self) -> DialConfig {
        let address = ServerAddress::try_from(&self.url.parse().unwrap()).unwrap();
        let inner = DirectTransport::new(address.clone(), self.outer_tls.clone(), PATIENCE);
        DialConfig {
            transport: Arc::new(ChaosTransport { inner, plan: Arc::clone(&self.plan) }) as Arc<dyn Transport>,
            address,
            keys: self.keys.clone(),
            server_key: self.server_key,
            token: self.token.map(JoinToken::new),
            targets: self.targets.clone(),
            tuning: self.tuning.clone(),
        }
    }

    pub fn dialer(&self) -> Dialer {
        Dialer::new(self.config())
    }

    pub async fn dial(&self) -> Result<Link, DialError> {
        soon(self.dialer().dial(Bytes::from_static(self.name.as_bytes()))).await
    }

    /// Dials and serves `router`.
    pub async fn serve(&self, router: Router) -> Serving {
        let link = self.dial().await.unwrap_or_else(|error| panic!("no link: {error}"));
        Serving::start(link, router)
    }
}

/// A worker that serves.
pub struct Serving {
    pub shutdown: CancellationToken,
    task: JoinHandle<LinkEnd>,
}

impl Serving {
    pub fn start(link: Link, router: Router) -> Self {
        let shutdown = CancellationToken::new();
        Self { task: tokio::spawn(link.serve(router, shutdown.clone())), shutdown }
    }

    pub async fn end(self) -> LinkEnd {
        soon(self.task).await.unwrap()
    }
}

/// `GET path` over the link.
pub async fn ask(link: &LinkHandle, path: &str) -> Result<http::Response<LinkBody>, link::RequestError> {
    link.request(http::Request::get(path).body(http_body_util::Empty::<Bytes>::new()).unwrap(), PATIENCE).await
}

pub async fn text(response: http::Response<LinkBody>) -> String {
    let body = soon(response.into_body().collect()).await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// Answers `hello`.
pub fn hello() -> Router {
    Router::new().route("/hello", get(|| async { "hello" }))
}
