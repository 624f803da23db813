//! Which rows are shown, in which order, and which of them are in the window. Only the latter are in the document,
//! so that a thousand workers scroll smoothly.

use crate::ask::ask;
use crate::browser::{float, remember_scroll, remembered_scroll, scroll_to, set_pixels};
use crate::fleet::ask::AskOrder;
use crate::fleet::{Connection, Filter, Fleet, FleetPart, ListQuery, Sort, StateFilter, use_fleet};
use crate::order::sort;
use crate::reactive::{effect, memo};
use api::WorkerId;
use leptos::html::ElementType;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

/// The rows that pass the filter, in their order.
#[derive(Clone, Copy)]
pub struct Shown {
    /// They stay where they are while the user looks at them, whatever changes about the workers.
    pub ids: RwSignal<Vec<WorkerId>>,
    /// Whether a fresh look would show other rows.
    pub is_outdated: Memo<bool>,
    /// Takes a fresh look.
    pub refresh: Callback<()>,
}

/// All workers in the order that was asked for last. Those that have come since are at the end.
#[derive(Clone, Copy)]
struct Order {
    fleet: Fleet,
    ids: RwSignal<Vec<WorkerId>>,
    /// Counts questions, so that an answer to an earlier one is not taken for the last one's.
    asked: StoredValue<u64>,
    /// Whether the last question got no answer.
    is_owed: StoredValue<bool>,
}

impl Order {
    fn of(fleet: Fleet) -> Self {
        Self { fleet, ids: fleet.order(), asked: StoredValue::new(0), is_owed: StoredValue::new(false) }
    }

    /// The server has the figures by which workers are ordered; `then` runs when they are in their order.
    fn ask(self, query: ListQuery, then: impl Fn() + 'static) {
        let number = self.asked.try_update_value(|asked| {
            *asked += 1;
            *asked
        });
        leptos::task::spawn_local(async move {
            let answer = ask(AskOrder { query }).await;
            if self.asked.try_get_value() != number {
                return;
            }
            self.is_owed.set_value(answer.is_err());
            // The order stays when the server is not reached; the connection dot says so.
            if let Ok(ids) = answer {
                self.ids.set(ids);
            }
            // Nobody is missing who is not in the order: without an answer, the first one is empty.
            self.follow(&untrack(|| self.fleet.members()));
            then();
        });
    }

    /// Takes out who is gone and appends who is new; gives those that are new.
    fn follow(self, members: &[WorkerId]) -> Vec<WorkerId> {
        let mut known = self.ids.get_untracked();
        known.retain(|id| members.binary_search(id).is_ok());
        let mut by_id = known.clone();
        sort(&mut by_id, Ord::cmp);
        let new: Vec<WorkerId> = members.iter().copied().filter(|id| by_id.binary_search(id).is_err()).collect();
        known.extend(&new);
        self.ids.set(known);
        new
    }
}

/// The rows that a query shows. Filter and order are applied when the user changes them; afterwards workers that are
/// gone are taken out, and new ones are added at the end.
pub fn use_shown(fleet: Fleet, query: Memo<ListQuery>) -> Shown {
    let order = Order::of(fleet);
    let matching = move |among: &[WorkerId]| untrack(|| fleet.matching(among, &Filter::of(&query.get_untracked())));
    let of_part = untrack(|| fleet.part(|part| part.workers.iter().map(|worker| worker.id).collect()));
    let ids = RwSignal::new(of_part.unwrap_or_else(|| {
        order.follow(&untrack(|| fleet.members()));
        matching(&order.ids.read_untracked())
    }));
    let filter = memo(move || query.with(|query| (query.search.clone(), query.state)));
    let sort = memo(move || query.with(|query| (query.sort, query.reversed)));
    let look = move || {
        if fleet.is_whole_untracked() {
            ids.set(matching(&order.ids.read_untracked()));
        }
    };
    let ask_order = move || order.ask(query.get_untracked(), look);
    Effect::new(move |before: Option<((Sort, bool), bool)>| {
        let now = (sort.get(), fleet.is_whole());
        let is_reached_again = fleet.connection() == Connection::Live && order.is_owed.get_value();
        if now.1 && (before != Some(now) || is_reached_again) {
            untrack(ask_order);
        }
        now
    });
    Effect::new(move |before: Option<(String, Option<StateFilter>)>| {
        let now = filter.get();
        if before.is_some_and(|before| before != now) {
            untrack(look);
        }
        now
    });
    effect(move || {
        let members = fleet.members();
        // What the page was rendered with is shown until the first order has come.
        if !fleet.is_whole_untracked() || order.ids.read_untracked().is_empty() {
            return;
        }
        let fresh = matching(&order.follow(&members));
        let mut kept = ids.get_untracked();
        kept.retain(|id| members.binary_search(id).is_ok());
        kept.extend(fresh);
        if kept != *ids.read_untracked() {
            ids.set(kept);
        }
    });
    let is_outdated = memo(move || {
        if !fleet.is_whole() {
            return false;
        }
        let filter = query.with(Filter::of);
        let shown = ids.read();
        let still = fleet.matching(&shown, &filter).len();
        still != shown.len() || still != fleet.count_matching(&filter)
    });
    Shown { ids, is_outdated, refresh: Callback::new(move |()| ask_order()) }
}

/// How the room of the rows that are not in the document is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// As padding of the container.
    Padding,
    /// As height of the container's elements `.space-before` and `.space-after`.
    Elements,
}

/// Rows above and below the window that are in the document too, so that a quick scroll shows no gap.
const SPARE_ROWS: usize = 4;

/// The part of `ids` that is in the window. `container` holds all rows; `item` selects one of them to be measured.
pub fn use_visible<E>(
    container: NodeRef<E>,
    ids: RwSignal<Vec<WorkerId>>,
    item: &'static str,
    spacing: Spacing,
) -> Signal<Vec<WorkerId>>
where
    E: ElementType,
    E::Output: JsCast + Clone + AsRef<HtmlElement> + 'static,
{
    let range = RwSignal::new(START);
    // Where the list was left when one comes back to it. The browser would scroll there before there is room for it.
    let left_at = StoredValue::new(None::<f64>);
    effect(move || left_at.set_value(remembered_scroll()));
    let measure = move || {
        // An animation frame may come after its page was left.
        let Some(container) = container.try_get_untracked().flatten() else { return };
        let count = ids.with_untracked(Vec::len);
        let container: &HtmlElement = container.as_ref();
        let Some(geometry) = Geometry::measure(container, item) else { return };
        let fresh = geometry.visible(count);
        geometry.keep_room(container, fresh, count, spacing);
        if left_at.get_value().is_some_and(|top| top <= geometry.height(count)) {
            let top = left_at.try_update_value(Option::take).flatten();
            top.into_iter().for_each(scroll_to);
        }
        if fresh != range.get_untracked() {
            range.set(fresh);
        }
    };
    effect(move || {
        let count = ids.read().len();
        container.track();
        // Fewer rows than before may leave none in the document, and there would be nothing to measure.
        if range.read_untracked().first >= count {
            range.set(START);
        }
        request_animation_frame(measure);
    });
    let listen = move |event: &'static str| {
        let handle = window_event_listener_untyped(event, move |_| measure());
        on_cleanup(move || handle.remove());
    };
    // Listeners belong to the browser; the server has no window.
    effect(move || ["scroll", "resize"].into_iter().for_each(listen));
    let listen = move |event: &'static str, then: fn(StoredValue<Option<f64>>)| {
        let handle = window_event_listener_untyped(event, move |_| then(left_at));
        on_cleanup(move || handle.remove());
    };
    effect(move || {
        listen("scrollend", |left_at| {
            // what the browser does by itself before there is room is no place that somebody chose
            if left_at.get_value().is_none() {
                remember_scroll();
            }
        });
        // whoever scrolls before that knows where to
        for event in ["wheel", "touchmove", "keydown"] {
            listen(event, |left_at| left_at.set_value(None));
        }
    });
    let part = move |of: fn(Range) -> Range| {
        Signal::derive(move || {
            let Range { first, end } = of(range.get());
            ids.with(|ids| ids.iter().copied().skip(first).take(end.saturating_sub(first)).collect())
        })
    };
    use_fleet().look(part(Range::with_neighbours));
    part(|range| range)
}

/// What the server renders; the browser measures once it has taken over.
const START: Range = Range { first: 0, end: FleetPart::ROWS };

/// Places of items: from the first to before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: usize,
    end: usize,
}

impl Range {
    /// As much before and behind it: what a scroll shows next is known already.
    const fn with_neighbours(self) -> Self {
        let count = self.end.saturating_sub(self.first);
        Self { first: self.first.saturating_sub(count), end: self.end + count }
    }
}

/// Where the rows are, in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Geometry {
    /// Items beside one another.
    columns: usize,
    /// From one row to the next.
    row_height: f64,
    /// The first row's upper edge, measured from the window's.
    top: f64,
    window_height: f64,
}

impl Geometry {
    fn measure(container: &HtmlElement, item: &str) -> Option<Self> {
        let item: HtmlElement = container.query_selector(item).ok()??.dyn_into().ok()?;
        let style = window().get_computed_style(container).ok()??;
        let columns = style.get_property_value("grid-template-columns").unwrap_or_default();
        let gap = style.get_property_value("row-gap").unwrap_or_default();
        let gap: f64 = gap.strip_suffix("px").and_then(float).unwrap_or(0.0);
        let columns = if columns.ends_with("px") { columns.split_whitespace().count() } else { 1 };
        let row_height = item.get_bounding_client_rect().height() + gap;
        (row_height > gap).then_some(Self {
            columns: columns.max(1),
            row_height,
            top: AsRef::<Element>::as_ref(container).get_bounding_client_rect().top(),
            window_height: window().inner_height().ok()?.as_f64()?,
        })
    }

    /// Of all items.
    fn height(&self, count: usize) -> f64 {
        self.rows(count) as f64 * self.row_height
    }

    fn rows(&self, count: usize) -> usize {
        count.div_ceil(self.columns)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded below by zero and above by the number of rows"
    )]
    fn visible(&self, count: usize) -> Range {
        let rows = self.rows(count);
        let at = |y: f64| ((y / self.row_height).floor().max(0.0) as usize).min(rows);
        let first = at(-self.top).saturating_sub(SPARE_ROWS);
        let end = (at(self.window_height - self.top) + 1 + SPARE_ROWS).min(rows);
        Range { first: first.min(end) * self.columns, end: (end * self.columns).min(count) }
    }

    fn keep_room(&self, container: &HtmlElement, range: Range, count: usize, spacing: Spacing) {
        let before = (range.first / self.columns) as f64 * self.row_height;
        let after = self.rows(count).saturating_sub(range.end.div_ceil(self.columns)) as f64 * self.row_height;
        match spacing {
            Spacing::Padding => {
                set_pixels(container, "padding-top", before);
                set_pixels(container, "padding-bottom", after);
            }
            Spacing::Elements => {
                for (selector, height) in [(".space-before", before), (".space-after", after)] {
                    if let Ok(Some(space)) = container.query_selector(selector)
                        && let Some(space) = space.dyn_ref::<HtmlElement>()
                    {
                        set_pixels(space, "height", height);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[i64]) -> Vec<WorkerId> {
        numbers.iter().copied().map(WorkerId).collect()
    }

    #[test]
    fn who_is_new_comes_last_and_who_is_gone_leaves() {
        Owner::new().with(|| {
            let order = Order::of(Fleet::default());
            order.ids.set(ids(&[3, 1, 2]));
            assert_eq!(order.follow(&ids(&[1, 3, 4])), ids(&[4]));
            assert_eq!(order.ids.get_untracked(), ids(&[3, 1, 4]));
            assert_eq!(order.follow(&ids(&[1, 3, 4])), ids(&[]));
        });
    }

    #[test]
    fn what_is_looked_at_covers_the_neighbours() {
        let near_the_top = Range { first: 10, end: 40 };
        assert_eq!(near_the_top.with_neighbours(), Range { first: 0, end: 70 });
        assert_eq!(Range { first: 100, end: 120 }.with_neighbours(), Range { first: 80, end: 140 });
    }

    const GEOMETRY: Geometry = Geometry { columns: 4, row_height: 100.0, top: 200.0, window_height: 900.0 };

    #[test]
    fn at_the_top_the_first_rows_are_visible() {
        assert_eq!(GEOMETRY.visible(500), Range { first: 0, end: 48 });
        assert_eq!(GEOMETRY.visible(5), Range { first: 0, end: 5 });
        assert_eq!(GEOMETRY.visible(0), Range { first: 0, end: 0 });
    }

    #[test]
    fn further_down_only_what_is_near_the_window_is_visible() {
        let scrolled = Geometry { top: -5_000.0, ..GEOMETRY };
        assert_eq!(scrolled.visible(500), Range { first: 46 * 4, end: 64 * 4 });
    }

    proptest::proptest! {
        #[test]
        fn the_window_is_always_covered(count in 0usize..2_000, columns in 1usize..7, scrolled_px in 0u16..60_000) {
            let geometry = Geometry { columns, top: -f64::from(scrolled_px), ..GEOMETRY };
            let Range { first, end } = geometry.visible(count);
            proptest::prop_assert!(first <= end && end <= count);
            let first_visible = usize::from(scrolled_px / 100) * columns;
            if first_visible < count {
                proptest::prop_assert!(first <= first_visible && first_visible < end);
            }
        }
    }
}
