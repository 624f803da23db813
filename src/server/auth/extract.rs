//! What a handler asks for to say who may call it.

use super::{Auth, UserIdentity};
use crate::server::error::ApiError;
use api::error_reason;
use axum::extract::{FromRef, FromRequestParts};
use http::StatusCode;
use http::request::Parts;

/// Any user, also one who must change the password first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedIn(pub UserIdentity);

/// Any user who need not change the password first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveUser(pub UserIdentity);

/// An administrator who need not change the password first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminUser(pub UserIdentity);

/// A user who need not change the password first, or a worker of GPUStack 0.7.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A user.
    User(UserIdentity),
    /// A worker that holds the join token.
    LegacyWorker {
        /// What it calls its address; nothing vouches for it.
        address: String,
    },
}

impl<S> FromRequestParts<S> for LoggedIn
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Ok(Self(Auth::from_ref(state).prove(parts).await?.user))
    }
}

impl<S> FromRequestParts<S> for ActiveUser
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Caller::from_request_parts(parts, state).await? {
            Caller::User(user) => Ok(Self(user)),
            Caller::LegacyWorker { .. } => Err(ApiError::forbidden("this is for users, not for workers")),
        }
    }
}

impl<S> FromRequestParts<S> for AdminUser
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let ActiveUser(user) = ActiveUser::from_request_parts(parts, state).await?;
        if !user.is_admin {
            return Err(ApiError::forbidden("this is for administrators"));
        }
        Ok(Self(user))
    }
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let auth = Auth::from_ref(state);
        if let Some(worker) = auth.legacy_worker(parts) {
            return worker.map(|address| Self::LegacyWorker { address });
        }
        let user = auth.prove(parts).await?.user;
        if user.require_password_change {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                error_reason::PASSWORD_CHANGE_REQUIRED,
                "change the password first: in the UI, or by POST /auth/update-password",
            ));
        }
        Ok(Self::User(user))
    }
}
