//! Settings.

use crate::i18n::use_text;
use leptos::prelude::*;
use leptos_meta::Title;

/// Settings.
#[component]
pub fn SettingsPage() -> impl IntoView {
    let text = use_text();
    view! {
        <Title text=text.of(|m| (m.frame.title)(m.settings.title, 0))/>
        <h1>{text.of(|m| m.settings.title)}</h1>
    }
}

/// The change of one's own password.
#[component]
pub fn PasswordPage() -> impl IntoView {
    let text = use_text();
    view! {
        <Title text=text.of(|m| (m.frame.title)(m.frame.change_password, 0))/>
        <h1>{text.of(|m| m.frame.change_password)}</h1>
    }
}
