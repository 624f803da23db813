//! Parts that the server draws. Their HTML is made on the server alone, so that neither their code nor their texts are
//! loaded by the browser, which only puts the HTML in its place and keeps it current. See
//! `docs/adr/0017-parts-the-server-draws.md`.
//!
//! To add a part: a variant of [`Part`], its line in [`draw`], a function that answers it, and `<Drawn part=…/>` where it
//! belongs. The function is behind the feature `ssr`, with its texts in a table of [`crate::i18n::Messages`] that is so too:
//! it looks up what it needs in [`Asked::backend`] and gives [`Asked::render`] a view. Filters, orders and pages are links
//! and stand in the address. What is one of many alike, as a row, has a `data-key`.

#[cfg(feature = "ssr")]
mod asked;
#[cfg(feature = "hydrate")]
mod renew;

#[cfg(feature = "ssr")]
pub use asked::{Asked, html_of};

use crate::ask::shown_data;
use crate::i18n::{Language, use_text};
use crate::pages::{Failure, answer_not_found};
use crate::session::UiError;
use leptos::html;
use leptos::prelude::*;
use leptos::server_fn::codec::Json;
use leptos_router::hooks::use_url;
use serde::{Deserialize, Serialize};

/// A part that the server draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The devices of all workers.
    Devices,
    /// A worker's host, point by point.
    Host,
}

/// The HTML of a part.
#[server(input = Json, endpoint = "draw")]
pub async fn draw(
    /// Which.
    part: Part,
    /// Path and query of the page that it is on.
    address: String,
    /// Of its texts.
    language: Language,
) -> Result<String, UiError> {
    let backend = crate::session::authorised().await?.backend;
    let asked = Asked::new(backend, &address, language);
    match part {
        Part::Devices => crate::pages::devices::draw(&asked).await,
        Part::Host => crate::pages::host::draw(&asked).await,
    }
}

/// A part that the server draws: in the server's page from the beginning, then kept current.
#[component]
pub fn Drawn(
    /// Which.
    part: Part,
) -> impl IntoView {
    let text = use_text();
    let url = use_url();
    let question = move || {
        let address = url.with(|url| format!("{}?{}", url.path(), url.search()));
        Draw { part, address, language: text.language() }
    };
    let first = shown_data(move || untrack(question));
    first.show(move |html| match html {
        Ok(html) => kept(html, question),
        Err(error) => {
            if error == UiError::NotFound {
                answer_not_found();
            }
            view! { <Failure error/> }.into_any()
        }
    })
}

/// A place for the HTML, which is kept current while it is there.
fn kept(html: String, question: impl Fn() -> Draw + Send + Sync + 'static) -> AnyView {
    let place = NodeRef::<html::Div>::new();
    #[cfg(feature = "hydrate")]
    renew::keep_current(place, question);
    #[cfg(not(feature = "hydrate"))]
    let _ = question;
    view! { <div class="drawn" node_ref=place inner_html=html></div> }.into_any()
}
