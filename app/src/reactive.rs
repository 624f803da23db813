//! Reactive building blocks that are compiled once, and not again for every closure that is handed to them: the
//! browser has to load each copy.

use api::WorkerId;
use leptos::prelude::*;
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

/// A view for each key; those of keys that stay are kept. For lists of few different keys: all that were ever there are
/// remembered.
pub fn each<K: Copy + PartialEq + Send + Sync + 'static>(
    keys: Signal<Vec<K>>,
    view: impl Fn(K) -> AnyView + Send + Sync + 'static,
) -> AnyView {
    let known: StoredValue<Vec<K>> = StoredValue::new(Vec::new());
    let places = move || keys.with(|keys| known.try_update_value(|known| places(known, keys)).unwrap_or_default());
    let of_place = move |place: i64| {
        let key = usize::try_from(place).ok().and_then(|place| known.with_value(|known| known.get(place).copied()));
        key.map(&view).into_any()
    };
    each_number(Box::new(places), Arc::new(of_place))
}

/// Where the keys stand among all that are known; those that are new are added.
fn places<K: Copy + PartialEq>(known: &mut Vec<K>, keys: &[K]) -> Vec<i64> {
    let mut place = |key: &K| {
        known.iter().position(|other| other == key).unwrap_or_else(|| {
            known.push(*key);
            known.len() - 1
        })
    };
    keys.iter().filter_map(|key| i64::try_from(place(key)).ok()).collect()
}

/// A view for each worker; those of workers that stay are kept.
pub fn each_worker(ids: Signal<Vec<WorkerId>>, view: impl Fn(WorkerId) -> AnyView + Send + Sync + 'static) -> AnyView {
    let numbers = move || ids.with(|ids| ids.iter().map(|id| id.0).collect());
    each_number(Box::new(numbers), Arc::new(move |number| view(WorkerId(number))))
}

fn each_number(
    numbers: Box<dyn Fn() -> Vec<i64> + Send + Sync>,
    view: Arc<dyn Fn(i64) -> AnyView + Send + Sync>,
) -> AnyView {
    view! { <For each=numbers key=|number| *number children=move |number| view(number)/> }.into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_place() {
        let mut known = Vec::new();
        assert_eq!(places(&mut known, &["a", "b"]), [0, 1]);
        assert_eq!(places(&mut known, &["c", "b"]), [2, 1]);
        assert_eq!(places(&mut known, &["b", "a"]), [1, 0]);
    }
}
