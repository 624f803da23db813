//! Times in the browser's zone.

use crate::fleet::use_fleet;
use crate::format::{self, Span, Zone};
use crate::i18n::use_text;
use crate::reactive::effect;
use leptos::prelude::*;

/// In which zone times are written, as a signal: UTC as the server renders them, then the browser's own.
#[derive(Clone, Copy, Debug)]
pub struct ZoneChoice(pub RwSignal<Zone>);

impl ZoneChoice {
    /// UTC until the browser has taken over.
    pub fn new() -> Self {
        let zone = RwSignal::new(Zone::Utc);
        effect(move || zone.set(Zone::Browser));
        Self(zone)
    }
}

impl Default for ZoneChoice {
    fn default() -> Self {
        Self::new()
    }
}

/// In which zone times are written.
pub fn use_zone() -> Signal<Zone> {
    use_context::<ZoneChoice>().map_or_else(|| Signal::stored(Zone::Utc), |choice| choice.0.into())
}

/// How long ago something was, the moment itself on hover.
#[component]
pub fn Moment(
    /// Milliseconds since 1970 by the server's clock.
    #[prop(into)]
    time_ms: Signal<i64>,
) -> impl IntoView {
    let (text, zone, fleet) = (use_text(), use_zone(), use_fleet());
    view! {
        <time
            datetime=move || format::machine_time(time_ms.get())
            title=move || format::full_time(time_ms.get(), zone.get())
        >
            {move || (text.get().words.ago)(Span::between(time_ms.get(), fleet.now_ms()))}
        </time>
    }
    .into_any()
}
