//! Reactive building blocks that are compiled once, and not again for every closure that is handed to them: the
//! browser has to load each copy.

use leptos::prelude::*;
use std::hash::Hash;
use std::sync::Arc;

/// A value that is computed when what it reads has changed.
pub fn memo<T: PartialEq + Send + Sync + 'static>(compute: impl Fn() -> T + Send + Sync + 'static) -> Memo<T> {
    let compute: Box<dyn Fn() -> T + Send + Sync> = Box::new(compute);
    Memo::new(move |_| compute())
}

/// Runs in the browser, and again when what it reads has changed.
pub fn effect(run: impl FnMut() + 'static) {
    let mut run: Box<dyn FnMut()> = Box::new(run);
    Effect::new(move |_| run());
}

/// Shows its children while a condition holds.
#[component]
pub fn When(
    /// The condition.
    #[prop(into)]
    holds: Signal<bool>,
    /// What is shown when it does not hold.
    #[prop(optional, into)]
    otherwise: ViewFn,
    /// What is shown.
    children: ChildrenFn,
) -> impl IntoView {
    let holds = memo(move || holds.get());
    (move || if holds.get() { children() } else { otherwise.run() }).into_any()
}

/// A view for each key; those of keys that stay are kept.
pub fn each<K: Copy + Eq + Hash + Send + Sync + 'static>(
    keys: Signal<Vec<K>>,
    view: impl Fn(K) -> AnyView + Send + Sync + 'static,
) -> AnyView {
    let view: Arc<dyn Fn(K) -> AnyView + Send + Sync> = Arc::new(view);
    view! { <For each=move || keys.get() key=|key| *key children=move |key| view(key)/> }.into_any()
}
