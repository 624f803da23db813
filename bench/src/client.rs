//! One keep-alive connection to the server, opened again when it was closed.

use anyhow::{Context, Result, bail};
use api::ServerUrl;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A connection that belongs to one player.
pub struct Client {
    server: ServerUrl,
    limit: Duration,
    headers: HeaderMap,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// Connects at the first request.
    pub fn new(server: ServerUrl, limit: Duration) -> Self {
        Self { server, limit, headers: HeaderMap::new(), sender: None }
    }

    /// Sends `Authorization: Bearer` with each request from now on.
    pub fn set_bearer(&mut self, secret: &str) -> Result<()> {
        let mut value = HeaderValue::try_from(format!("Bearer {secret}")).context("the secret fits in no header")?;
        value.set_sensitive(true);
        self.headers.insert(AUTHORIZATION, value);
        Ok(())
    }

    /// Lets the server compress what it answers, which comes as it is sent.
    pub fn accept_compressed(&mut self) {
        self.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("br, gzip"));
    }

    /// As a browser on a page without TLS.
    pub fn accept_gzip(&mut self) {
        self.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate"));
    }

    /// Sends this cookie with each request from now on.
    pub fn set_cookie(&mut self, cookie: HeaderValue) {
        self.headers.insert(COOKIE, cookie);
    }

    /// Wants success and reads the whole answer.
    pub async fn bytes(&mut self, method: Method, path: &str, content_type: &str, body: Vec<u8>) -> Result<Bytes> {
        let limit = self.limit;
        let exchange = async {
            let response = self.send(method, path, content_type, body).await?;
            read_success(path, response).await
        };
        let outcome = timeout(limit, exchange).await;
        // a request that was given up leaves the connection in the middle of an answer
        if outcome.is_err() {
            self.sender = None;
        }
        outcome.with_context(|| format!("{path} was not answered within {} s", limit.as_secs()))?
    }

    /// Sends and reads the head of the answer.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, format!("{}:{}", self.server.host(), self.server.port()))
            .header(CONTENT_TYPE, content_type)
            .body(Full::new(Bytes::from(body)))?;
        request.headers_mut().extend(self.headers.clone());
        let sender = self.sender().await?;
        sender.send_request(request).await.with_context(|| format!("{path} could not be sent"))
    }

    async fn sender(&mut self) -> Result<&mut SendRequest<Full<Bytes>>> {
        let mut open = None;
        if let Some(mut sender) = self.sender.take()
            && sender.ready().await.is_ok()
        {
            open = Some(sender);
        }
        let sender = match open {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        Ok(self.sender.insert(sender))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect((self.server.host(), self.server.port()))
            .await
            .with_context(|| format!("no connection to {}", self.server))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // ends with the connection; a failure reaches whoever waits for an answer on it
        tokio::spawn(connection);
        Ok(sender)
    }
}

async fn read_success(path: &str, response: Response<Incoming>) -> Result<Bytes> {
    let status = response.status();
    let body = response.into_body().collect().await.with_context(|| format!("{path} was cut off"))?.to_bytes();
    if !status.is_success() {
        let shown: String = String::from_utf8_lossy(&body).chars().take(300).collect();
        bail!("{path} was answered {status}: {shown}");
    }
    Ok(body)
}
