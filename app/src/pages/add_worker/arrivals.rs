//! The workers that arrive while the page is open.

use crate::i18n::use_text;
use leptos::prelude::*;

/// The workers that arrive while the page is open.
#[component]
pub fn Arrivals() -> impl IntoView {
    let text = use_text();
    view! {
        <section class="panel arrivals">
            <h2>{text.of(|m| m.add_worker.arrivals)}</h2>
            <p>{text.of(|m| m.add_worker.waiting)}</p>
        </section>
    }
}
