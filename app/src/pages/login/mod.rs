//! The login page. A plain form that also works without JavaScript; with it, problems show without a new page.

mod answer;

use crate::ask::page_data;
use crate::browser;
use crate::frame::{LanguageSwitch, PlainTitle, ThemeMenu};
use crate::i18n::use_text;
use crate::icon::{Icon, IconSprite};
use crate::post::{FormAction, PostForm};
use crate::reactive::effect;
use crate::session::UiError;
use answer::{LoginAnswer, LoginProblem};
use leptos::html;
use leptos::prelude::*;
use leptos::server_fn::codec::Json;
use leptos_router::hooks::use_query_map;

/// Where the server keeps the first password.
const FIRST_PASSWORD_FILE: &str = "/var/lib/gpustack/initial_admin_password";
/// Sets a new password on the server's host.
const RESET_COMMAND: &str = "gpustack reset-admin-password";

/// Checks a password and, when it is right, sends the session's cookie.
#[server(endpoint = "log_in")]
async fn log_in(username: String, password: String, next: String) -> Result<LoginAnswer, UiError> {
    use crate::model::LoginOutcome;
    use crate::paths;
    use crate::plain_form::{is_plain_form, lead_to};
    use crate::session::{send_cookie, server_context};

    let (backend, request) = server_context()?;
    let answer = match backend.login(&request, username.trim(), &password).await {
        LoginOutcome::LoggedIn { set_cookie, require_password_change } => {
            send_cookie(&set_cookie);
            let next = if require_password_change { paths::PASSWORD } else { paths::after_login(Some(&next)) };
            LoginAnswer::LoggedIn { check: answer::check_path(next) }
        }
        LoginOutcome::Wrong => LoginAnswer::Refused(LoginProblem::Wrong),
        LoginOutcome::TooMany { retry_after_s } => LoginAnswer::Refused(LoginProblem::TooMany { retry_after_s }),
        LoginOutcome::Failed => LoginAnswer::Refused(LoginProblem::Failed),
    };
    if is_plain_form(&request) {
        match &answer {
            LoginAnswer::LoggedIn { check } => lead_to(check),
            LoginAnswer::Refused(problem) => lead_to(&answer::problem_path(*problem, &next)),
        }
    }
    Ok(answer)
}

/// Whether the browser has sent a session; then it is on its way to `next`.
#[server(input = Json, endpoint = "session_arrived")]
async fn session_arrived(next: String) -> Result<bool, UiError> {
    let (backend, request) = crate::session::server_context()?;
    let arrived = backend.session(&request).await.is_some();
    if arrived {
        crate::plain_form::lead_to(crate::paths::after_login(Some(&next)));
    }
    Ok(arrived)
}

/// The login page.
#[component]
pub fn LoginPage() -> impl IntoView {
    let text = use_text();
    view! {
        <PlainTitle name=|m| m.login.title/>
        <IconSprite/>
        <div class="login">
            <header class="login-tools">
                <LanguageSwitch/>
                <ThemeMenu/>
            </header>
            <main class="login-main">
                <h1 class="login-brand">"gpustack"</h1>
                <p class="muted">{text.of(|m| m.login.tagline)}</p>
                <LoginForm/>
                <details class="login-help">
                    <summary>{Icon::Down.view()}{text.of(|m| m.login.first_time)}</summary>
                    <p>{text.of(|m| m.login.first_time_text)}</p>
                    <code class="login-code">{FIRST_PASSWORD_FILE}</code>
                    <p>{text.of(|m| m.login.lost_password)}</p>
                    <code class="login-code">{RESET_COMMAND}</code>
                </details>
            </main>
        </div>
    }
    .into_any()
}

#[component]
fn LoginForm() -> impl IntoView {
    let text = use_text();
    let query = use_query_map();
    let next = move || query.read().get("next").unwrap_or_default();
    let action = FormAction::new::<LogIn>();
    let password = NodeRef::<html::Input>::new();
    let arrived = page_data(move || SessionArrived { next: next() });

    // Problems of a form sent without JavaScript stand in the query until the next attempt.
    let problem = move || match action.answer().get() {
        None => answer::problem_of_query(|name| query.read().get(name)),
        Some(Ok(LoginAnswer::LoggedIn { .. })) => None,
        Some(Ok(LoginAnswer::Refused(problem))) => Some(problem),
        Some(Err(_)) => Some(LoginProblem::NotReached),
    };
    let problem_text = move || {
        let messages = text.get();
        problem().map(|problem| match problem {
            LoginProblem::Wrong => messages.login.wrong.to_owned(),
            LoginProblem::TooMany { retry_after_s } => (messages.login.too_many)(retry_after_s),
            LoginProblem::Failed => messages.login.failed.to_owned(),
            LoginProblem::NotReached => messages.frame.transport_failed.to_owned(),
        })
    };
    let is_busy =
        move || action.is_pending().get() || matches!(action.answer().get(), Some(Ok(LoginAnswer::LoggedIn { .. })));
    effect(move || match action.answer().get() {
        // a page loaded afresh shows whether the cookie came along
        Some(Ok(LoginAnswer::LoggedIn { check })) => browser::open_page(&check),
        Some(_) => focus_and_select(password),
        None => {}
    });
    view! {
        {arrived.show_quietly(move |arrived| {
            let was_right = answer::is_check(|name| query.read_untracked().get(name));
            (was_right && !arrived.unwrap_or(true)).then(|| view! { <NoCookie/> }.into_any()).into_any()
        })}
        <PostForm action class="panel login-form">
            <input type="hidden" name="next" value=next/>
            <div class="field">
                <label for="username">{text.of(|m| m.login.username)}</label>
                <input
                    class="input"
                    id="username"
                    name="username"
                    autocomplete="username"
                    autocapitalize="off"
                    spellcheck="false"
                    required
                    autofocus
                />
            </div>
            <div class="field">
                <label for="password">{text.of(|m| m.login.password)}</label>
                <input
                    class="input"
                    id="password"
                    name="password"
                    type="password"
                    autocomplete="current-password"
                    required
                    aria-describedby="login-problem"
                    aria-invalid=move || (problem() == Some(LoginProblem::Wrong)).to_string()
                    node_ref=password
                />
            </div>
            <div id="login-problem" role="alert">
                {move || problem_text().map(|problem| view! { <p class="note error">{problem}</p> }.into_any())}
            </div>
            <button class="button primary" disabled=is_busy>
                {move || if is_busy() { text.get().login.checking } else { text.get().login.submit }}
            </button>
        </PostForm>
    }
    .into_any()
}

/// The password was right, but the browser came back without the session's cookie.
#[component]
fn NoCookie() -> impl IntoView {
    let text = use_text();
    view! {
        <div class="note warning login-no-cookie" role="alert">
            <p><strong>{text.of(|m| m.login.no_cookie_title)}</strong></p>
            <ul>
                <li>{text.of(|m| m.login.no_cookie_blocked)}</li>
                <li>{text.of(|m| m.login.no_cookie_secure)}</li>
            </ul>
        </div>
    }
    .into_any()
}

#[cfg(feature = "hydrate")]
fn focus_and_select(input: NodeRef<html::Input>) {
    if let Some(input) = input.get_untracked() {
        // it fails for elements that are not in the document, and this one is
        let _ = input.focus();
        input.select();
    }
}

#[cfg(not(feature = "hydrate"))]
fn focus_and_select(_: NodeRef<html::Input>) {}
