//! The page of one worker.

use crate::i18n::use_text;
use leptos::prelude::*;
use leptos_meta::Title;

/// The page of one worker.
#[component]
pub fn WorkerPage() -> impl IntoView {
    let text = use_text();
    view! {
        <Title text=text.of(|m| (m.frame.title)(m.frame.workers, 0))/>
        <h1>{text.of(|m| m.frame.workers)}</h1>
    }
}
