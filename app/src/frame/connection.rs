//! Whether what is shown is current.

use crate::fleet::{Connection, use_fleet};
use crate::format;
use crate::i18n::use_text;
use crate::reactive::memo;
use crate::widgets::use_zone;
use leptos::prelude::*;

/// A break shorter than this is a mere reconnection; afterwards what is shown counts as stale.
const STALE_AFTER_MS: i64 = 15_000;

/// Live, reconnecting, or stale since when.
#[component]
pub fn ConnectionDot() -> impl IntoView {
    let (text, zone, fleet) = (use_text(), use_zone(), use_fleet());
    let status = memo(move || match fleet.connection() {
        Connection::Connecting => Status::Connecting,
        Connection::Live => Status::Live,
        Connection::Broken(since_ms) if fleet.now_ms() - since_ms < STALE_AFTER_MS => Status::Reconnecting,
        Connection::Broken(since_ms) => Status::StaleSince(since_ms),
    });
    let word = move || {
        let frame = &text.get().frame;
        match status.get() {
            Status::Connecting => frame.connecting.to_owned(),
            Status::Live => frame.live.to_owned(),
            Status::Reconnecting => frame.reconnecting.to_owned(),
            Status::StaleSince(since_ms) => {
                (frame.stale_since)(&format::short_time(since_ms, fleet.now_ms(), zone.get()))
            }
        }
    };
    let tag = move || match status.get() {
        Status::Connecting => "connecting",
        Status::Live => "live",
        Status::Reconnecting => "reconnecting",
        Status::StaleSince(_) => "stale",
    };
    view! { <span class="connection with-script" role="status" data-connection=tag><span class="dot"></span><span class="connection-word">{word}</span></span> }
        .into_any()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Connecting,
    Live,
    Reconnecting,
    StaleSince(i64),
}
