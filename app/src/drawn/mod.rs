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

use crate::ask::{shown_data, written};
use crate::browser::zone_offset_minutes;
use crate::fleet::use_fleet;
use crate::format::Zone;
use crate::i18n::{Language, use_text};
use crate::pages::{Failure, answer_not_found};
use crate::session::UiError;
use crate::widgets::use_zone;
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
    /// What is known of a worker besides its state and its devices.
    Worker,
    /// All tunnels.
    Tunnels,
}

impl Part {
    /// Whether it has times, which are written in the reader's zone.
    fn has_times(self) -> bool {
        matches!(self, Self::Worker | Self::Tunnels)
    }
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
    /// How far the reader's zone is ahead of UTC, where that is known and matters.
    zone_minutes: Option<i32>,
) -> Result<String, UiError> {
    let backend = crate::session::authorised().await?.backend;
    let asked = Asked::new(backend, &address, language, zone_minutes);
    match part {
        Part::Devices => crate::pages::devices::draw(&asked).await,
        Part::Host => crate::pages::host::draw(&asked).await,
        Part::Worker => crate::pages::worker::draw(&asked).await,
        Part::Tunnels => crate::pages::tunnels::draw(&asked).await,
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
    let (zone, fleet) = (use_zone(), use_fleet());
    let question = move || {
        let address = url.with(|url| format!("{}?{}", url.path(), url.search()));
        let is_zone_known = part.has_times() && zone.get() == Zone::Browser;
        let zone_minutes = is_zone_known.then(|| zone_offset_minutes(untrack(|| fleet.now_ms()))).flatten();
        Draw { part, address, language: text.language(), zone_minutes }
    };
    // The server knows no zone yet, nor does a browser that takes its page over.
    let answered = written(&untrack(question));
    let first = shown_data(move || untrack(question));
    first.show(move |html| match html {
        Ok(html) => kept(html, answered.clone(), question),
        Err(error) => {
            if error == UiError::NotFound {
                answer_not_found();
            }
            view! { <Failure error/> }.into_any()
        }
    })
}

/// A place for the HTML, which is kept current while it is there.
fn kept(html: String, answered: String, question: impl Fn() -> Draw + Send + Sync + 'static) -> AnyView {
    let place = NodeRef::<html::Div>::new();
    #[cfg(feature = "hydrate")]
    renew::keep_current(place, answered, question);
    #[cfg(not(feature = "hydrate"))]
    let _ = (answered, question);
    view! { <div class="drawn" node_ref=place inner_html=html></div> }.into_any()
}
