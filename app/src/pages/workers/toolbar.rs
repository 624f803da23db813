//! Filters by state with their counts, order, layout. All of it is in the address, as links and a form.

use super::rows::Shown;
use crate::fleet::trouble::Counts;
use crate::fleet::{Layout, ListQuery, Sort, StateFilter, use_fleet};
use crate::i18n::{Messages, use_text};
use crate::icon::Icon;
use crate::paths;
use crate::preferences::{choose_layout, use_layout};
use crate::reactive::{When, memo};
use crate::widgets::state::state_icon;
use api::WorkerState;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

/// Everything above the list.
#[component]
pub fn Toolbar(
    /// What the address asks for.
    query: Memo<ListQuery>,
    /// Cards or table.
    layout: Memo<Layout>,
    /// What is shown.
    shown: Shown,
) -> impl IntoView {
    let text = use_text();
    view! {
        <div class="toolbar">
            <StateChips query/>
            <div class="toolbar-right">
                <When holds=move || shown.is_outdated.get()>
                    <button class="button quiet outdated" on:click=move |_| shown.refresh.run(())>
                        {text.of(|m| m.workers.list_changed)}
                    </button>
                </When>
                <SortForm query/>
                <LayoutSwitch query layout/>
                <a class="button primary" href=paths::ADD_WORKER>{Icon::Add.view()}{text.of(|m| m.frame.add_worker)}</a>
            </div>
        </div>
    }
    .into_any()
}

#[component]
fn StateChips(query: Memo<ListQuery>) -> impl IntoView {
    let text = use_text();
    let fleet = use_fleet();
    let counts = memo(move || fleet.counts());
    let chip = move |filter: Option<StateFilter>| {
        let is_chosen = move || query.read().state == filter;
        let address = move || ListQuery { state: filter, page: 1, ..query.get() }.address();
        let count = move || count_of(counts.get(), filter);
        view! {
            <li hidden=move || !is_chosen() && may_be_left_out(filter) && count() == 0>
                <a
                    class="chip"
                    data-state=filter.map(StateFilter::tag)
                    href=address
                    aria-current=move || is_chosen().then_some("true")
                    class:zero=move || count() == 0
                >
                    {icon_of(filter).map(Icon::view)}
                    <span>{move || word_of(filter, text.get())}</span>
                    <strong>{count}</strong>
                </a>
            </li>
        }
        .into_any()
    };
    view! {
        <ul class="chips" aria-label=text.of(|m| m.workers.filter_by_state)>
            {std::iter::once(None).chain(StateFilter::ALL.map(Some)).map(chip).collect_view()}
        </ul>
    }
    .into_any()
}

/// Chips that say nothing while they count nobody.
const fn may_be_left_out(filter: Option<StateFilter>) -> bool {
    matches!(filter, Some(StateFilter::State(WorkerState::Pending) | StateFilter::Trouble))
}

const fn count_of(counts: Counts, filter: Option<StateFilter>) -> usize {
    match filter {
        None => counts.all,
        Some(StateFilter::Trouble) => counts.trouble,
        Some(StateFilter::State(WorkerState::Ready)) => counts.ready,
        Some(StateFilter::State(WorkerState::NotReady)) => counts.not_ready,
        Some(StateFilter::State(WorkerState::Unreachable)) => counts.unreachable,
        Some(StateFilter::State(WorkerState::Maintenance)) => counts.maintenance,
        Some(StateFilter::State(WorkerState::Pending)) => counts.pending,
    }
}

const fn icon_of(filter: Option<StateFilter>) -> Option<Icon> {
    match filter {
        None => None,
        Some(StateFilter::Trouble) => Some(Icon::Warning),
        Some(StateFilter::State(state)) => Some(state_icon(state)),
    }
}

const fn word_of(filter: Option<StateFilter>, messages: &Messages) -> &'static str {
    match filter {
        None => messages.workers.all,
        Some(StateFilter::Trouble) => messages.workers.trouble,
        Some(StateFilter::State(state)) => messages.state_word(state),
    }
}

const fn sort_word(sort: Sort, messages: &Messages) -> &'static str {
    match sort {
        Sort::Name => messages.workers.by_name,
        Sort::State => messages.workers.by_state,
        Sort::Use => messages.workers.by_use,
        Sort::Memory => messages.workers.by_memory,
        Sort::Temperature => messages.workers.by_temperature,
        Sort::Heartbeat => messages.workers.by_heartbeat,
        Sort::Clock => messages.workers.by_clock,
    }
}

/// The order as a plain form, which sends itself when something is chosen and there is JavaScript.
#[component]
fn SortForm(query: Memo<ListQuery>) -> impl IntoView {
    let text = use_text();
    let navigate = use_navigate();
    let chosen = move |event: leptos::ev::Event| {
        let Some(sort) = Sort::from_tag(&event_target_value(&event)) else { return };
        let address = ListQuery { sort, reversed: false, page: 1, ..query.get_untracked() }.address();
        navigate(&address, NavigateOptions { scroll: false, ..NavigateOptions::default() });
    };
    let option = move |sort: Sort| {
        view! {
            <option value=sort.tag() selected=move || query.read().sort == sort>{move || sort_word(sort, text.get())}</option>
        }.into_any()
    };
    let reversed = move || ListQuery { reversed: !query.read().reversed, page: 1, ..query.get() }.address();
    view! {
        <form class="sort-form" method="get" action=paths::WORKERS>
            <label>
                <span class="visually-hidden">{text.of(|m| m.workers.sort)}</span>
                <select class="input" name="sort" prop:value=move || query.read().sort.tag() on:change=chosen>
                    {Sort::ALL.map(option).collect_view()}
                </select>
            </label>
            <OtherParameters query/>
            <button class="button without-script">{text.of(|m| m.workers.apply)}</button>
            <a
                class="button quiet reverse"
                class:reversed=move || query.read().reversed
                href=reversed
                title=text.of(|m| m.workers.reverse)
                aria-label=text.of(|m| m.workers.reverse)
            >
                {Icon::Down.view()}
            </a>
        </form>
    }
    .into_any()
}

/// What a form that sets one parameter keeps of the others.
#[component]
fn OtherParameters(query: Memo<ListQuery>) -> impl IntoView {
    move || {
        let query = query.get();
        let kept = [
            ("q", Some(query.search).filter(|search| !search.is_empty())),
            ("state", query.state.map(|state| state.tag().to_owned())),
            ("view", query.layout.map(|layout| layout.tag().to_owned())),
        ];
        kept.into_iter()
            .filter_map(|(name, value)| {
                value.map(|value| view! { <input type="hidden" name=name value=value/> }.into_any())
            })
            .collect_view()
    }
}

#[component]
fn LayoutSwitch(query: Memo<ListQuery>, layout: Memo<Layout>) -> impl IntoView {
    let text = use_text();
    let remembered = use_layout();
    let choice = move |choice: Layout, icon: Icon, word: fn(&Messages) -> &'static str| {
        let address = move || ListQuery { layout: Some(choice), page: 1, ..query.get() }.address();
        view! {
            <a
                href=address
                aria-current=move || (layout.get() == choice).then_some("true")
                title=move || word(text.get())
                on:click=move |_| choose_layout(remembered, choice)
            >
                {icon.view()}
                <span class="visually-hidden">{move || word(text.get())}</span>
            </a>
        }
        .into_any()
    };
    view! {
        <div class="switch" role="group" aria-label=text.of(|m| m.workers.layout)>
            {choice(Layout::Cards, Icon::Cards, |m| m.workers.cards)}
            {choice(Layout::Table, Icon::Table, |m| m.workers.table)}
        </div>
    }
    .into_any()
}
