//! The doctor's look at a worker's host. The server draws it: see [`crate::drawn`].

#[cfg(feature = "ssr")]
mod checklist;

use crate::drawn::{Drawn, Part};
use crate::frame::PageTitle;
#[cfg(feature = "ssr")]
pub use checklist::draw;
use leptos::prelude::*;

/// A worker's host, point by point.
#[component]
pub fn HostPage() -> impl IntoView {
    view! {
        <PageTitle name=|m| m.worker.check_host/>
        <Drawn part=Part::Host/>
    }
    .into_any()
}
