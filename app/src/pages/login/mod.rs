//! The login page.

use crate::i18n::use_text;
use leptos::prelude::*;
use leptos_meta::Title;

/// The login page.
#[component]
pub fn LoginPage() -> impl IntoView {
    let text = use_text();
    view! {
        <Title text=text.of(|m| (m.frame.title)(m.login.title, 0))/>
        <h1>{text.of(|m| m.login.title)}</h1>
    }
}
