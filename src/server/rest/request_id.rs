//! Every request has an id: in the log, in the answer's `x-request-id`, and in the body of an error.

use crate::server::error::{ApiError, PendingErrorBody};
use api::{ErrorBody, error_reason};
use axum::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const GIVEN_MAX_BYTES: usize = 64;

/// This request's id; in the extensions of every request.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// Gives each request its id and each error answer its body.
pub async fn assign(mut request: Request, next: Next) -> Response {
    let id = given(request.headers()).unwrap_or_else(|| Uuid::new_v4().simple().to_string());
    request.extensions_mut().insert(RequestId(id.clone()));
    let is_for_programs = is_for_programs(request.uri().path());
    let span = tracing::info_span!("request", id, method = %request.method(), path = logged(request.uri().path()));
    let begun = Instant::now();
    let mut response = next.run(request).instrument(span.clone()).await;
    span.in_scope(|| {
        tracing::debug!(status = response.status().as_u16(), ms = begun.elapsed().as_millis(), "answered");
    });
    if let Some(PendingErrorBody(body)) = response.extensions_mut().remove() {
        response = with_body(response, ErrorBody { request_id: id.clone(), ..body });
    } else if is_for_programs && response.status().as_u16() >= 400 && !is_json(response.headers()) {
        let body = unworded(response.status(), id.clone());
        response = with_body(response, body);
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    response
}

/// One that a proxy in front gave, so that both logs name it alike.
fn given(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(X_REQUEST_ID)?.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!id.is_empty() && id.len() <= GIVEN_MAX_BYTES && id.bytes().all(is_plain)).then(|| id.to_owned())
}

/// The compiler puts a number behind the name of a function that pages call; people know the name.
fn logged(path: &str) -> &str {
    let is_function = path.starts_with("/api/");
    if is_function { path.trim_end_matches(|c: char| c.is_ascii_digit()) } else { path }
}

fn is_for_programs(path: &str) -> bool {
    ["/v1", "/auth"]
        .into_iter()
        .any(|prefix| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kind| kind.starts_with("application/json"))
}

/// For errors that come from a layer with no words of its own.
fn unworded(status: StatusCode, request_id: String) -> ErrorBody {
    let (reason, message) = match status {
        StatusCode::NOT_FOUND => (error_reason::NOT_FOUND, "there is nothing at this path"),
        StatusCode::METHOD_NOT_ALLOWED => (error_reason::BAD_REQUEST, "this path does not take this method"),
        StatusCode::PAYLOAD_TOO_LARGE => (error_reason::BAD_REQUEST, "the request's body is too large"),
        status if status.is_server_error() => {
            (error_reason::INTERNAL, "the server failed; its log has the cause under this request id")
        }
        _ => (error_reason::BAD_REQUEST, "the request cannot be answered"),
    };
    ErrorBody { code: status.as_u16(), reason: reason.to_owned(), message: message.to_owned(), request_id }
}

fn with_body(response: Response, body: ErrorBody) -> Response {
    let (mut head, _) = response.into_parts();
    let (_, fresh) = Json(body).into_response().into_parts();
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.headers.remove(CONTENT_LENGTH);
    // the body that this one replaces may have been compressed on its way here
    head.headers.remove(CONTENT_ENCODING);
    Response::from_parts(head, fresh)
}

/// 404 for everything that is no page and no resource.
pub async fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, error_reason::NOT_FOUND, "there is nothing at this path")
}

/// 405.
pub async fn method_not_allowed() -> ApiError {
    let message = "this path does not take this method";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, error_reason::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::middleware::from_fn;
    use http::header::ACCEPT_ENCODING;
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    use tower_http::compression::CompressionLayer;

    #[test]
    fn the_log_names_a_function_without_its_number() {
        assert_eq!(logged("/api/join_defaults9215368521530158911"), "/api/join_defaults");
        assert_eq!(logged("/v1/workers/12"), "/v1/workers/12");
    }

    #[tokio::test]
    async fn an_error_is_readable_for_a_caller_that_takes_compressed_answers() {
        let router = Router::new().fallback(not_found).layer(CompressionLayer::new()).layer(from_fn(assign));
        let request =
            Request::builder().uri("/v1/nothing").header(ACCEPT_ENCODING, "br").body(axum::body::Body::empty());
        let response = router.oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.headers().get(CONTENT_ENCODING), None);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let error: ErrorBody = serde_json::from_slice(&body).unwrap();
        assert_eq!(error.reason, error_reason::NOT_FOUND);
    }
}
