//! What requests bring, with errors in the shape of ours.

use crate::server::error::ApiError;
use api::error_reason;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::StatusCode;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// A body, not read yet.
pub struct RawBody(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        Bytes::from_request(request, state).await.map(Self).map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                let message = "the request's body is too large";
                return ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error_reason::BAD_REQUEST, message);
            }
            ApiError::bad_request("the request's body did not arrive whole")
        })
    }
}

/// Reads JSON: 400 when it is none, 422 when a field is missing or has a bad value.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // serde would take a list for the fields in their order, and an empty one for an object without any
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(ApiError::invalid("a JSON object is expected here, not a list"));
    }
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Data => ApiError::invalid(error.to_string()),
        Category::Io | Category::Syntax | Category::Eof => ApiError::bad_request(format!("no JSON: {error}")),
    })
}

/// The query of the URL.
pub struct QueryOf<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(query)| Self(query)).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }
}

/// What the URL's path names.
pub struct PathOf<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(path)| Self(path)).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }
}
