//! The UI's files for the browser, carried in this binary with their brotli and gzip forms.
//!
//! They lie in a folder that is named by a hash of them all, so a browser may keep what it has for ever.

use crate::random;
use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use rust_embed::{EmbeddedFile, RustEmbed};
use std::borrow::Cow;

#[derive(RustEmbed)]
#[cfg_attr(debug_assertions, folder = "target/site/dev")]
#[cfg_attr(not(debug_assertions), folder = "target/site/release")]
struct Site;

/// Where the files are below the server's root, as `pkg/<hash>`; None in a binary that was built without them.
pub fn browser_folder() -> Option<String> {
    let folder = Site::get("folder")?;
    let name = std::str::from_utf8(&folder.data).ok()?.trim();
    Some(format!("pkg/{name}"))
}

/// The handler of `/pkg/{*path}`.
pub async fn serve(Path(path): Path<String>, request: HeaderMap) -> Response {
    let Some(plain) = Site::get(&path) else { return StatusCode::NOT_FOUND.into_response() };
    let etag = etag(&plain);
    let mut response = if header_text(&request, &header::IF_NONE_MATCH).is_some_and(|known| known == etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        content(&path, plain, &request)
    };
    let headers = response.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn content(path: &str, plain: EmbeddedFile, request: &HeaderMap) -> Response {
    let accepted = header_text(request, &header::ACCEPT_ENCODING).unwrap_or_default();
    let compressed = [("br", "br"), ("gzip", "gz")].into_iter().find_map(|(encoding, extension)| {
        let file = if accepts(accepted, encoding) { Site::get(&format!("{path}.{extension}")) } else { None };
        file.map(|file| (encoding, file))
    });
    let mut response = match compressed {
        Some((encoding, file)) => {
            let mut response = body(file.data).into_response();
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
            response
        }
        None => body(plain.data).into_response(),
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    response
}

/// In a release the bytes lie in the binary and are not copied.
fn body(data: Cow<'static, [u8]>) -> Body {
    match data {
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    }
}

fn etag(file: &EmbeddedFile) -> String {
    format!("\"{}\"", random::hex(&file.metadata.sha256_hash()))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether `Accept-Encoding` names the encoding, and not with a weight of 0 (RFC 9110, section 12.5.3).
pub(super) fn accepts(accepted: &str, encoding: &str) -> bool {
    accepted.split(',').any(|choice| {
        let mut parts = choice.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        is_named && parts.all(|part| part.strip_prefix("q=").is_none_or(|q| q.parse::<f32>().is_ok_and(|q| q > 0.0)))
    })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("wasm") => "application/wasm",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_is_taken_only_when_it_is_wanted() {
        for (accepted, encoding, expected) in [
            ("gzip, deflate, br, zstd", "br", true),
            ("gzip;q=1.0, br;q=0.5", "br", true),
            ("BR", "br", true),
            ("br;q=0", "br", false),
            ("br;q=0.0, gzip", "br", false),
            ("brotli", "br", false),
            ("", "gzip", false),
        ] {
            assert_eq!(accepts(accepted, encoding), expected, "{accepted} {encoding}");
        }
    }

    #[tokio::test]
    async fn what_is_not_there_and_what_lies_outside_is_not_found() {
        for path in ["nothing.js", "../../Cargo.toml", "/etc/passwd", ""] {
            let response = serve(Path(path.to_owned()), HeaderMap::new()).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }
}
