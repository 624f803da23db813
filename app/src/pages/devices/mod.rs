//! All devices of all workers. The server draws the list: see [`crate::drawn`].

#[cfg(feature = "ssr")]
mod list;
#[cfg(feature = "ssr")]
mod models;
#[cfg(feature = "ssr")]
mod rows;

use crate::drawn::{Drawn, Part};
use crate::frame::PageTitle;
use leptos::prelude::*;
#[cfg(feature = "ssr")]
pub use list::draw;

/// All devices.
#[component]
pub fn DevicesPage() -> impl IntoView {
    view! {
        <PageTitle name=|m| m.words.devices/>
        <Drawn part=Part::Devices/>
    }
    .into_any()
}
