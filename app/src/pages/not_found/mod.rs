//! The page for unknown addresses.

use crate::frame::PlainTitle;
use crate::i18n::use_text;
use crate::paths;
use leptos::prelude::*;

/// The page for unknown addresses; answers 404.
#[component]
pub fn NotFoundPage() -> impl IntoView {
    let text = use_text();
    answer_not_found();
    view! {
        <PlainTitle name=|m| m.frame.not_found_title/>
        <main class="lone">
            <h1>{text.of(|m| m.frame.not_found_title)}</h1>
            <p>{text.of(|m| m.frame.not_found_text)}</p>
            <p><a class="button" href=paths::WORKERS>{text.of(|m| m.frame.to_workers)}</a></p>
        </main>
    }
    .into_any()
}

/// Makes 404 the status of the answer that is being rendered.
pub fn answer_not_found() {
    #[cfg(feature = "ssr")]
    if let Some(options) = use_context::<leptos_axum::ResponseOptions>() {
        options.set_status(http::StatusCode::NOT_FOUND);
    }
}
