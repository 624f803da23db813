//! A state as icon and word.

use crate::fleet::list::state_tag;
use crate::i18n::use_text;
use crate::icon::Icon;
use api::{ConditionStatus, DeviceHealth, Severity, WorkerState};
use leptos::prelude::*;

/// A state's icon; each has its own shape.
pub const fn state_icon(state: WorkerState) -> Icon {
    match state {
        WorkerState::Ready => Icon::Ready,
        WorkerState::NotReady => Icon::NotReady,
        WorkerState::Unreachable => Icon::Unreachable,
        WorkerState::Maintenance => Icon::Maintenance,
        WorkerState::Pending => Icon::Pending,
    }
}

/// The class of a device's health in the stylesheet.
pub const fn health_class(health: DeviceHealth) -> &'static str {
    match health {
        DeviceHealth::Ok => "health ok",
        DeviceHealth::Warning => "health warning",
        DeviceHealth::Critical => "health error",
        DeviceHealth::Unknown => "health unknown",
    }
}

/// A state as icon and word, in its colour.
#[component]
pub fn StateBadge(
    /// The state.
    #[prop(into)]
    state: Signal<WorkerState>,
) -> impl IntoView {
    let text = use_text();
    view! {
        <span class="state" data-state=move || state_tag(state.get())>
            {move || state_icon(state.get()).view()}
            <span>{move || text.get().state_word(state.get())}</span>
        </span>
    }
    .into_any()
}

/// Whether a condition holds and how much that matters, as an icon with a text for screen readers.
#[component]
pub fn SeverityIcon(
    /// How much it matters.
    severity: Severity,
    /// Whether it holds.
    status: ConditionStatus,
) -> impl IntoView {
    let text = use_text();
    let (class, icon) = match (status, severity) {
        // what does not hold and does not matter is no tick either
        (ConditionStatus::Unknown | ConditionStatus::False, Severity::Ok) => ("severity unknown", Icon::Pending),
        (_, Severity::Ok) => ("severity ok", Icon::Ready),
        (_, Severity::Warning) => ("severity warning", Icon::Warning),
        (_, Severity::Error) => ("severity error", Icon::NotReady),
    };
    let word = move || {
        let words = &text.get().words;
        match (status, severity) {
            (ConditionStatus::Unknown, Severity::Ok) => words.unknown,
            (_, Severity::Ok) => words.health_ok,
            (_, Severity::Warning) => words.warning,
            (_, Severity::Error) => words.error,
        }
    };
    view! { <span class=class>{icon.view()}<span class="visually-hidden">{word}</span></span> }.into_any()
}
