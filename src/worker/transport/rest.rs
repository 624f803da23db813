//! The transport over REST: three requests, each authorised by a bearer secret.

mod classify;
mod tls;

pub(in crate::worker) use tls::client_config as client_tls;

use super::{HeartbeatAnswer, JoinError, Proof, Transport};
use crate::config::{Secret, ServerTrust};
use api::{HeartbeatRequest, RegisterRequest, RegisterResponse, ServerUrl, StatusReport};
use async_trait::async_trait;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use reqwest::{Client, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thiserror::Error;
use tokio::time::Instant;

const SESSIONS: &str = "/v1/worker-sessions";
const HEARTBEATS: &str = "/v1/worker-heartbeats";
const STATUS: &str = "/v1/worker-status";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(15);
/// Only tells the user what the server's clock says.
const DATE_TIMEOUT: Duration = Duration::from_secs(5);
/// Our server's answers are far smaller; of another service's page the title is enough.
const ANSWER_LIMIT_BYTES: usize = 64 * 1024;
const USER_AGENT: &str = concat!("gpustack-worker/", env!("CARGO_PKG_VERSION"));

/// Talks to the server over REST. Ignores proxies in the environment and follows no redirect: both would carry the
/// token to somebody else.
#[derive(Debug)]
pub struct RestTransport {
    client: Client,
    /// Trusts anybody and is shown no secret: it asks a server for its clock whose certificate the other refused.
    date_client: Client,
    server: ServerUrl,
    address: String,
}

/// Why the transport cannot be set up.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The file given with `--ca-file` cannot be read.
    #[error("cannot read the CA certificates in {path} (--ca-file): {source}")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls_pki_types::pem::Error,
    },
    /// It holds none, or one that is damaged.
    #[error("{path} (--ca-file) holds no usable CA certificate in PEM form")]
    NoCaCertificate {
        /// The file.
        path: PathBuf,
    },
    /// `https`, but nobody is trusted.
    #[error(
        "this host has no CA certificates, so no https server can be trusted; install the package ca-certificates or give --ca-file"
    )]
    NoRoots,
    /// The URL is good, but this transport cannot use it.
    #[error("the server URL {url} cannot be used: {source}")]
    Url {
        /// The URL.
        url: String,
        /// The cause.
        source: url_parse::Error,
    },
    /// The authorities.
    #[error("cannot set up the authorities of the server's certificate: {0}")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
    /// The TLS library.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The HTTP library.
    #[error("cannot set up the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

/// The error of [`reqwest::Url::parse`], whose crate this one does not depend on by name.
mod url_parse {
    pub type Error = <reqwest::Url as std::str::FromStr>::Err;
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl RestTransport {
    /// Sets it up; connects to nobody yet.
    pub fn new(server: ServerUrl, trust: &ServerTrust) -> Result<Self, TransportError> {
        let url = server.join(SESSIONS);
        Url::parse(&url).map_err(|source| TransportError::Url { url: server.to_string(), source })?;
        let client = client_builder().tls_backend_preconfigured(tls::client_config(&server, trust)?).build()?;
        let date_client =
            client_builder().tls_backend_preconfigured(tls::trust_anybody()?).timeout(DATE_TIMEOUT).build()?;
        let address = classify::host_and_port(&server);
        Ok(Self { client, date_client, server, address })
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &(impl Serialize + Sync),
        secret: &str,
        deadline: Duration,
    ) -> Result<T, RawError> {
        let url = self.server.join(path);
        let sent = async {
            let mut response = self
                .client
                .request(method, &url)
                .header(header::AUTHORIZATION, bearer(secret))
                .json(body)
                .timeout(deadline)
                .send()
                .await?;
            let (status, headers) = (response.status(), response.headers().clone());
            let mut body = Vec::new();
            while body.len() < ANSWER_LIMIT_BYTES {
                match response.chunk().await? {
                    Some(chunk) => body.extend_from_slice(&chunk),
                    None => break,
                }
            }
            Ok::<_, reqwest::Error>(Answer { status, headers, body })
        };
        let answer = sent.await.map_err(|error| RawError::NoAnswer { error, deadline })?;
        if !answer.status.is_success() {
            return Err(RawError::Answer { url, answer });
        }
        let parsed =
            if answer.body.is_empty() { serde_json::from_slice(b"null") } else { serde_json::from_slice(&answer.body) };
        parsed.map_err(|_| RawError::Answer { url, answer })
    }

    async fn join_error(&self, error: RawError, secret_was: SecretWas) -> JoinError {
        match error {
            RawError::NoAnswer { error, deadline } => {
                let cause = classify::no_answer(&error, &self.server, deadline);
                self.with_server_clock(cause).await
            }
            RawError::Answer { url, answer } => {
                classify::bad_answer(&url, &self.address, answer.status, &answer.headers, &answer.body, secret_was)
            }
        }
    }

    /// A certificate that is out of its time is a matter of two clocks: asks for the server's.
    async fn with_server_clock(&self, error: JoinError) -> JoinError {
        match error {
            JoinError::CertificateExpired { address, mut clocks } => {
                clocks.server_ms = self.server_clock_ms().await;
                JoinError::CertificateExpired { address, clocks }
            }
            JoinError::CertificateNotYetValid { address, mut clocks } => {
                clocks.server_ms = self.server_clock_ms().await;
                JoinError::CertificateNotYetValid { address, clocks }
            }
            other => other,
        }
    }

    async fn server_clock_ms(&self) -> Option<i64> {
        let response = self.date_client.head(self.server.join("/healthz")).send().await.ok()?;
        let date = response.headers().get(header::DATE)?.to_str().ok()?;
        Some(chrono::DateTime::parse_from_rfc2822(date).ok()?.timestamp_millis())
    }
}

#[async_trait]
impl Transport for RestTransport {
    async fn begin_session(&self, request: &RegisterRequest, proof: &Proof) -> Result<RegisterResponse, JoinError> {
        let (secret, secret_was) = match proof {
            Proof::JoinToken(token) => (token.expose(), SecretWas::JoinToken),
            Proof::Credential(credential) => (credential.expose(), SecretWas::Credential),
        };
        match self.call(Method::POST, SESSIONS, request, secret, TOTAL_TIMEOUT).await {
            Ok(response) => Ok(response),
            Err(error) => Err(self.join_error(error, secret_was).await),
        }
    }

    async fn heartbeat(
        &self,
        request: &HeartbeatRequest,
        credential: &Secret,
        deadline: Duration,
    ) -> Result<HeartbeatAnswer, JoinError> {
        let (sent_ms, sent_at) = (now_ms(), Instant::now());
        match self.call(Method::POST, HEARTBEATS, request, credential.expose(), deadline).await {
            Ok(response) => Ok(HeartbeatAnswer { response, sent_ms, answered_ms: now_ms(), took: sent_at.elapsed() }),
            Err(error) => Err(self.join_error(error, SecretWas::Credential).await),
        }
    }

    async fn report_status(&self, report: &StatusReport, credential: &Secret) -> Result<(), JoinError> {
        match self.call::<serde::de::IgnoredAny>(Method::PUT, STATUS, report, credential.expose(), TOTAL_TIMEOUT).await
        {
            Ok(_) => Ok(()),
            Err(error) => Err(self.join_error(error, SecretWas::Credential).await),
        }
    }
}

enum RawError {
    NoAnswer { error: reqwest::Error, deadline: Duration },
    Answer { url: String, answer: Answer },
}

/// What a 401 is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecretWas {
    JoinToken,
    Credential,
}

fn client_builder() -> reqwest::ClientBuilder {
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TOTAL_TIMEOUT)
        .user_agent(USER_AGENT)
        .pool_max_idle_per_host(2)
}

fn bearer(secret: &str) -> HeaderValue {
    // tokens and credentials are printable ASCII once they are parsed, so the value is always good
    let mut value =
        HeaderValue::try_from(format!("Bearer {secret}")).unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
    value.set_sensitive(true);
    value
}

fn now_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}
