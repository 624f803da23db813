//! The page that gives the join command.

mod command;
mod form;

use crate::i18n::use_text;
use leptos::prelude::*;
use leptos_meta::Title;

/// The page that gives the join command.
#[component]
pub fn AddWorkerPage() -> impl IntoView {
    let text = use_text();
    view! {
        <Title text=text.of(|m| (m.frame.title)(m.add_worker.title, 0))/>
        <h1>{text.of(|m| m.add_worker.title)}</h1>
    }
}
