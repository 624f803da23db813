//! One request to this server and its answer, in the browser.

use leptos::prelude::{set_timeout_with_handle, window};
use leptos::server_fn::redirect::{REDIRECT_HEADER, call_redirect_hook};
use std::time::Duration;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Headers, RequestInit, Response};

/// An answer that takes longer is given up.
const DEADLINE: Duration = Duration::from_secs(45);

/// What is sent along.
#[derive(Debug)]
pub struct Body {
    content_type: &'static str,
    text: String,
}

impl Body {
    /// JSON.
    pub fn json(text: String) -> Self {
        Self { content_type: "application/json", text }
    }

    /// The fields of a form, as a browser sends them itself.
    pub fn form(text: String) -> Self {
        Self { content_type: "application/x-www-form-urlencoded", text }
    }
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub text: String,
}

impl Reply {
    /// Whether the server did what it was asked.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Asks, with a body by POST, and follows where the server leads. None when the server is not reached in time.
pub async fn exchange(path: &str, body: Option<Body>) -> Option<Reply> {
    let abort = AbortController::new().ok();
    let deadline = abort.clone().and_then(|abort| set_timeout_with_handle(move || abort.abort(), DEADLINE).ok());
    let reply = request(path, body, abort.as_ref()).await.ok();
    if let Some(deadline) = deadline {
        deadline.clear();
    }
    reply
}

async fn request(path: &str, body: Option<Body>, abort: Option<&AbortController>) -> Result<Reply, JsValue> {
    let options = RequestInit::new();
    options.set_signal(abort.map(AbortController::signal).as_ref());
    if let Some(body) = body {
        let headers = Headers::new()?;
        headers.set("Content-Type", body.content_type)?;
        // The server takes who asks for HTML for a browser that shows the answer as a page.
        headers.set("Accept", "application/json")?;
        options.set_method("POST");
        options.set_headers(&headers);
        options.set_body(&JsValue::from_str(&body.text));
    }
    let response: Response = JsFuture::from(window().fetch_with_str_and_init(path, &options)).await?.dyn_into()?;
    let text = JsFuture::from(response.text()?).await?.as_string().unwrap_or_default();
    let reply = Reply { status: response.status(), text };
    let headers = response.headers();
    if reply.is_ok()
        && headers.has(REDIRECT_HEADER)?
        && let Some(location) = headers.get("Location")?
    {
        call_redirect_hook(&location);
    }
    Ok(reply)
}
