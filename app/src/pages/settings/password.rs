//! The change of one's own password.

use super::password_answer::{self, PasswordAnswer};
use crate::ask::page_data;
use crate::browser;
use crate::frame::PageTitle;
use crate::i18n::settings::SettingsMessages;
use crate::i18n::use_text;
use crate::model::{PASSWORD_MIN_CHARACTERS, PasswordOutcome, Session};
use crate::paths;
use crate::post::{FormAction, PostForm};
use crate::reactive::effect;
use crate::session::{CurrentSession, UiError};
use leptos::html;
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

/// Changes the caller's password.
#[server(endpoint = "change_password")]
async fn change_password(current: String, new: String, repeated: String) -> Result<PasswordAnswer, UiError> {
    use crate::plain_form::{is_plain_form, lead_to};

    let caller = crate::session::logged_in().await?;
    let answer = if new == repeated {
        PasswordAnswer::Outcome(caller.backend.change_password(&caller.request, &current, &new).await)
    } else {
        PasswordAnswer::RepeatDiffers
    };
    if is_plain_form(&caller.request) {
        let may_go_on = answer.is_changed() && caller.session.require_password_change;
        lead_to(&if may_go_on { paths::WORKERS.to_owned() } else { password_answer::path(&answer) });
    }
    Ok(answer)
}

/// The page with nothing but the change of password: where a user is led whose password somebody else set.
#[component]
pub fn PasswordPage() -> impl IntoView {
    let text = use_text();
    view! {
        <PageTitle name=|m| m.frame.change_password/>
        <div class="settings">
            <h1>{text.of(|m| m.frame.change_password)}</h1>
            <section class="panel settings-part"><PasswordForm/></section>
        </div>
    }
    .into_any()
}

/// The form.
#[component]
pub fn PasswordForm() -> impl IntoView {
    let text = use_text();
    let query = use_query_map();
    let action = FormAction::new::<ChangePassword>();
    let session = page_data(|| CurrentSession {});
    let current = NodeRef::<html::Input>::new();
    let new = NodeRef::<html::Input>::new();
    let repeated = NodeRef::<html::Input>::new();

    // The answer to a form sent without JavaScript stands in the query until the next attempt.
    let answer = move || match action.answer().get() {
        None => password_answer::of_query(|name| query.read().get(name)).map(Ok),
        answer => answer,
    };
    let is_changed = move || answer().is_some_and(|answer| answer.is_ok_and(|answer| answer.is_changed()));
    let answer_text = move || {
        let messages = text.get();
        answer().map(|answer| match answer {
            Ok(answer) => answer_text(&answer, &messages.settings),
            Err(error) => error.text(messages),
        })
    };
    effect(move || match action.answer().get() {
        Some(Ok(answer)) if answer.is_changed() => {
            for input in [current, new, repeated] {
                clear(input);
            }
            if session
                .get_untracked()
                .is_some_and(|session| session.is_ok_and(|session| session.require_password_change))
            {
                browser::open_page(paths::WORKERS);
            }
        }
        Some(Ok(PasswordAnswer::Outcome(PasswordOutcome::WrongCurrent))) => focus(current),
        Some(Ok(_)) => focus(new),
        Some(Err(_)) | None => {}
    });
    view! {
        <PostForm action class="password-form">
            {session.show_quietly(|session| session.ok().map(|session| view! { <PasswordOwner session/> }.into_any()).into_any())}
            <PasswordField
                id="password-current"
                name="current"
                autocomplete="current-password"
                label=|m| m.current_password
                node_ref=current
            />
            <PasswordField id="password-new" name="new" autocomplete="new-password" label=|m| m.new_password node_ref=new/>
            <PasswordField
                id="password-repeated"
                name="repeated"
                autocomplete="new-password"
                label=|m| m.repeat_password
                node_ref=repeated
            />
            <p class="password-rules muted" id="password-rules">
                {move || (text.get().settings.password_rules)(PASSWORD_MIN_CHARACTERS)}
            </p>
            <div id="password-answer" role="status">
                {move || answer_text().map(|answer| view! {
                    <p class="note" class:error=move || !is_changed() class:success=is_changed>{answer}</p>
                }.into_any())}
            </div>
            <button class="button primary" disabled=move || action.is_pending().get()>
                {move || {
                    let settings = &text.get().settings;
                    if action.is_pending().get() { settings.changing_password } else { settings.change_password }
                }}
            </button>
        </PostForm>
    }.into_any()
}

/// Whose password it is: for a password manager, and a word for a user who was led here.
#[component]
fn PasswordOwner(session: Session) -> impl IntoView {
    let text = use_text();
    view! {
        {session.require_password_change.then(|| view! {
            <p class="note warning">{text.of(|m| m.settings.password_forced)}</p>
        }.into_any())}
        <input
            class="visually-hidden"
            name="username"
            autocomplete="username"
            value=session.username
            readonly
            tabindex="-1"
            aria-hidden="true"
        />
    }
    .into_any()
}

#[component]
fn PasswordField(
    id: &'static str,
    name: &'static str,
    autocomplete: &'static str,
    label: fn(&'static SettingsMessages) -> &'static str,
    node_ref: NodeRef<html::Input>,
) -> impl IntoView {
    let text = use_text();
    let is_new = autocomplete == "new-password";
    view! {
        <div class="field">
            <label for=id>{move || label(&text.get().settings)}</label>
            <input
                class="input"
                id=id
                name=name
                type="password"
                autocomplete=autocomplete
                minlength=is_new.then(|| PASSWORD_MIN_CHARACTERS.to_string())
                aria-describedby=is_new.then_some("password-rules")
                required
                node_ref=node_ref
            />
        </div>
    }
    .into_any()
}

fn answer_text(answer: &PasswordAnswer, messages: &SettingsMessages) -> String {
    let outcome = match answer {
        PasswordAnswer::RepeatDiffers => return messages.password_repeat_differs.to_owned(),
        PasswordAnswer::Outcome(outcome) => outcome,
    };
    match outcome {
        PasswordOutcome::Changed => messages.password_changed.to_owned(),
        PasswordOutcome::WrongCurrent => messages.password_wrong_current.to_owned(),
        PasswordOutcome::TooShort(characters) => (messages.password_too_short)(*characters),
        PasswordOutcome::Same => messages.password_same.to_owned(),
        PasswordOutcome::LoggedOut => messages.password_logged_out.to_owned(),
        PasswordOutcome::TooMany { retry_after_s } => (messages.password_too_many)(*retry_after_s),
        PasswordOutcome::Failed => messages.password_failed.to_owned(),
    }
}

#[cfg(feature = "hydrate")]
fn clear(input: NodeRef<html::Input>) {
    if let Some(input) = input.get_untracked() {
        input.set_value("");
    }
}

#[cfg(not(feature = "hydrate"))]
fn clear(_: NodeRef<html::Input>) {}

#[cfg(feature = "hydrate")]
fn focus(input: NodeRef<html::Input>) {
    if let Some(input) = input.get_untracked() {
        // it fails for elements that are not in the document, and this one is
        let _ = input.focus();
    }
}

#[cfg(not(feature = "hydrate"))]
fn focus(_: NodeRef<html::Input>) {}
