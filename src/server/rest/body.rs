//! Request bodies, refused with the same errors everywhere.

use crate::server::error::ApiError;
use axum::extract::rejection::{FormRejection, JsonRejection};
use axum::extract::{FromRequest, Request};
use axum::{Form, Json};
use http::StatusCode;
use serde::de::DeserializeOwned;

/// A JSON body.
pub struct JsonBody<T>(pub T);

/// A form-urlencoded body.
pub struct FormBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match Json::from_request(request, state).await {
            Ok(Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(refused_json(&rejection)),
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for FormBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match Form::from_request(request, state).await {
            Ok(Form(value)) => Ok(Self(value)),
            Err(rejection) => Err(refused_form(&rejection)),
        }
    }
}

fn refused_json(rejection: &JsonRejection) -> ApiError {
    refused(rejection.status(), rejection.body_text())
}

fn refused_form(rejection: &FormRejection) -> ApiError {
    refused(rejection.status(), rejection.body_text())
}

fn refused(status: StatusCode, message: String) -> ApiError {
    match status {
        StatusCode::UNPROCESSABLE_ENTITY => ApiError::invalid(message),
        status => ApiError::new(status, api::error_reason::BAD_REQUEST, message),
    }
}
