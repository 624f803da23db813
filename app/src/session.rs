//! Who is logged in, and the one check that every server function makes first.

use crate::browser;
use crate::i18n::Messages;
use crate::model::Session;
use crate::paths;
use leptos::prelude::*;
use leptos::server_fn::codec::{Json, JsonEncoding};
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};

/// Why a server function gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UiError {
    /// Nobody is logged in; the browser is on its way to the login page.
    LoggedOut,
    /// The password must be changed first; the browser is on its way there.
    PasswordChangeRequired,
    /// What was asked for does not exist.
    NotFound,
    /// The server could not do it; its log has the cause under this request id.
    Failed {
        /// Names the request in the server's log.
        request_id: String,
    },
    /// The server was not reached, or something in between answered for it.
    Transport,
}

impl UiError {
    /// What to tell the user.
    pub fn text(&self, messages: &Messages) -> String {
        let frame = &messages.frame;
        match self {
            Self::LoggedOut => frame.logged_out.to_owned(),
            Self::PasswordChangeRequired => frame.password_change_required.to_owned(),
            Self::NotFound => frame.no_such_thing.to_owned(),
            Self::Failed { request_id } => (frame.backend_failed)(request_id),
            Self::Transport => frame.transport_failed.to_owned(),
        }
    }
}

impl UiError {
    /// In the browser, opens the page that has to come first: the client of server functions follows a redirect only
    /// where there is no error.
    pub fn lead_on(&self) {
        match self {
            Self::LoggedOut => browser::open_page(&paths::login_then(&browser::visited_page())),
            Self::PasswordChangeRequired => browser::open_page(paths::PASSWORD),
            Self::NotFound | Self::Failed { .. } | Self::Transport => {}
        }
    }
}

impl FromServerFnError for UiError {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(_: ServerFnErrorErr) -> Self {
        Self::Transport
    }
}

impl std::fmt::Display for UiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text(crate::i18n::Language::En.messages()))
    }
}

impl std::error::Error for UiError {}

#[cfg(feature = "ssr")]
impl From<crate::backend::BackendFailed> for UiError {
    fn from(failed: crate::backend::BackendFailed) -> Self {
        Self::Failed { request_id: failed.request_id }
    }
}

/// A request whose sender is logged in.
#[cfg(feature = "ssr")]
pub struct Authorised {
    /// Who sent it.
    pub session: Session,
    /// The server.
    pub backend: crate::backend::SharedBackend,
    /// The request.
    pub request: http::request::Parts,
}

/// Lets only a logged-in user with a password of their own pass; everybody else is sent to the login page or to the
/// change of password, and then back.
#[cfg(feature = "ssr")]
pub async fn authorised() -> Result<Authorised, UiError> {
    let authorised = logged_in().await?;
    if authorised.session.require_password_change {
        refuse(&authorised.request, http::StatusCode::FORBIDDEN, paths::PASSWORD);
        return Err(UiError::PasswordChangeRequired);
    }
    Ok(authorised)
}

/// Lets any logged-in user pass, whether or not the password must be changed.
#[cfg(feature = "ssr")]
pub async fn logged_in() -> Result<Authorised, UiError> {
    let (backend, request) = server_context()?;
    let Some(session) = backend.session(&request).await else {
        refuse(&request, http::StatusCode::UNAUTHORIZED, &paths::login_then(&visited_page(&request)));
        return Err(UiError::LoggedOut);
    };
    Ok(Authorised { session, backend, request })
}

/// Leads a page or a plain form to where the user must go first; tells scripts so by the status.
#[cfg(feature = "ssr")]
fn refuse(request: &http::request::Parts, status: http::StatusCode, lead_to: &str) {
    if crate::plain_form::is_plain_form(request) {
        leptos_axum::redirect(lead_to);
    } else if let Some(options) = use_context::<leptos_axum::ResponseOptions>() {
        options.set_status(status);
    }
}

/// What is asked about does not exist: told to scripts by the status, too.
#[cfg(feature = "ssr")]
pub fn not_found() -> UiError {
    let is_script =
        use_context::<http::request::Parts>().is_some_and(|request| !crate::plain_form::is_plain_form(&request));
    if let Some(options) = use_context::<leptos_axum::ResponseOptions>().filter(|_| is_script) {
        options.set_status(http::StatusCode::NOT_FOUND);
    }
    UiError::NotFound
}

/// The server and the request that is being answered.
#[cfg(feature = "ssr")]
pub fn server_context() -> Result<(crate::backend::SharedBackend, http::request::Parts), UiError> {
    let backend = use_context::<crate::backend::SharedBackend>();
    let request = use_context::<http::request::Parts>();
    backend.zip(request).ok_or(UiError::Transport)
}

/// The page that the user looks at: of the request itself, or, for a server function, where it was called from.
#[cfg(feature = "ssr")]
fn visited_page(request: &http::request::Parts) -> String {
    if request.method == http::Method::GET && !request.uri.path().starts_with("/api/") {
        return request.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    }
    request
        .headers
        .get(http::header::REFERER)
        .and_then(|value| value.to_str().ok())
        .and_then(|referer| referer.parse::<http::Uri>().ok())
        .and_then(|uri| uri.path_and_query().map(ToString::to_string))
        .unwrap_or_else(|| "/".to_owned())
}

/// Adds a `Set-Cookie` header to the answer.
#[cfg(feature = "ssr")]
pub fn send_cookie(set_cookie: &str) {
    let options = use_context::<leptos_axum::ResponseOptions>();
    if let Some((options, value)) = options.zip(http::HeaderValue::from_str(set_cookie).ok()) {
        options.append_header(http::header::SET_COOKIE, value);
    }
}

/// Who is logged in.
#[server(input = Json, endpoint = "current_session")]
pub async fn current_session() -> Result<Session, UiError> {
    Ok(logged_in().await?.session)
}

/// Ends the session and leads to the login page.
#[server(endpoint = "log_out")]
pub async fn log_out() -> Result<(), UiError> {
    let (backend, request) = server_context()?;
    send_cookie(&backend.logout(&request).await);
    leptos_axum::redirect(paths::LOGIN);
    Ok(())
}
