//! The server: registry of workers, judge of their state, REST API and admin UI.

pub mod assets;
pub mod auth;
pub mod error;
pub mod listen;
pub mod rest;
pub mod store;

use crate::config::ServerConfig;
use auth::{Auth, AuthOpenError};
use listen::{Tls, TlsError};
use store::{OpenError, Store};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A server that is ready to answer.
pub struct Server {
    auth: Auth,
    tls: Option<Tls>,
    store: Store,
}

/// Why a server cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Logins cannot be set up.
    #[error(transparent)]
    Auth(#[from] AuthOpenError),
}

impl Server {
    /// Reads everything that a server needs.
    pub async fn open(config: &ServerConfig) -> Result<Self, ServerError> {
        let tls = config.tls.as_ref().map(Tls::load).transpose()?;
        let store = Store::open(&config.database).await?;
        let auth = Auth::open(store.clone(), config).await?;
        Ok(Self { auth, tls, store })
    }

    /// Who may do what.
    pub fn auth(&self) -> &Auth {
        &self.auth
    }

    /// Answers until `shutdown`.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), ServerError> {
        let router = axum::Router::<Auth>::from(rest::login::router())
            .merge(axum::Router::from(rest::users::router()))
            .merge(axum::Router::from(rest::api_keys::router()))
            .with_state(self.auth);
        listen::serve(listener, router, self.tls, shutdown).await;
        self.store.close().await;
        Ok(())
    }
}
