//! All tunnels: what leads where, what of it works, and why not. The server draws it: see [`crate::drawn`].

#[cfg(feature = "ssr")]
pub mod agents;
#[cfg(feature = "ssr")]
mod forwards;
#[cfg(feature = "ssr")]
mod part;
#[cfg(feature = "ssr")]
mod query;
#[cfg(feature = "ssr")]
pub mod state;
#[cfg(feature = "ssr")]
mod topology;

use crate::drawn::{Drawn, Part};
use crate::frame::PageTitle;
use leptos::prelude::*;
#[cfg(feature = "ssr")]
pub use part::draw;

/// All tunnels.
#[component]
pub fn TunnelsPage() -> impl IntoView {
    view! {
        <PageTitle name=|m| m.frame.tunnels/>
        <Drawn part=Part::Tunnels/>
    }
    .into_any()
}
