//! The one place that turns a failure into an answer: an outside message for the caller, an inside cause for the
//! log, logged once, here.

use api::{ErrorBody, error_reason};
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use std::error::Error;

/// What a request handler fails with.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    reason: &'static str,
    message: String,
    retry_after_s: Option<u64>,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

/// The answer carries its error body here until the request's id is known and put in (see `rest::request_id`).
#[derive(Clone, Debug)]
pub struct PendingErrorBody(pub ErrorBody);

impl ApiError {
    /// An error that the caller can do something about.
    pub fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into(), retry_after_s: None, cause: None }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error_reason::BAD_REQUEST, message)
    }

    /// 401.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, error_reason::UNAUTHORIZED, message)
    }

    /// 403.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, error_reason::FORBIDDEN, message)
    }

    /// 404, e.g. `not_found("worker")`.
    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, error_reason::NOT_FOUND, format!("{what} not found"))
    }

    /// 409.
    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error_reason::ALREADY_EXISTS, message)
    }

    /// 422.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error_reason::INVALID, message)
    }

    /// 500: the caller learns nothing of the cause, the log all of it.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let message = "the server failed; its log has the cause under this request id";
        let mut error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, error_reason::INTERNAL, message);
        error.cause = Some(cause.into());
        error
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>, retry_after_s: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error_reason::UNAVAILABLE, message).retry_after(retry_after_s)
    }

    /// Tells the caller when to try again.
    pub fn retry_after(mut self, retry_after_s: u64) -> Self {
        self.retry_after_s = Some(retry_after_s);
        self
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// One of [`error_reason`].
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// The sentence that the caller reads.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Logs the inside cause, if there is one. For failures that are not answered as an error of the API.
    pub fn log_cause(&self) {
        let Some(cause) = &self.cause else { return };
        let mut chain = cause.to_string();
        let mut next = cause.source();
        while let Some(source) = next {
            chain.push_str(": ");
            chain.push_str(&source.to_string());
            next = source.source();
        }
        tracing::error!(status = self.status.as_u16(), cause = chain, "request failed");
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        if matches!(error, sqlx::Error::PoolTimedOut) {
            let mut busy = Self::unavailable("the database is busy; try again", 2);
            busy.cause = Some(error.into());
            return busy;
        }
        Self::internal(error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log_cause();
        let body = ErrorBody {
            code: self.status.as_u16(),
            reason: self.reason.to_owned(),
            message: self.message,
            request_id: String::new(),
        };
        let mut response = (self.status, Json(&body)).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(PendingErrorBody(body));
        response
    }
}
