//! All workers: what is wrong, filters, and the list as cards or as a table.

mod banner;
mod card;
mod chip_tip;
mod rows;
mod table;
mod toolbar;

use crate::ask::page_data_if;
use crate::fleet::ask::AskPart;
use crate::fleet::{Layout, ListQuery, use_fleet};
use crate::frame::PageTitle;
use crate::i18n::use_text;
use crate::icon::Icon;
use crate::manage::{Manage, ManageDialog, WorkerMenu};
use crate::paths;
use crate::preferences::use_layout;
use crate::reactive::{each_worker, effect, memo};
use crate::session::UiError;
pub use banner::Banner;
pub use card::{DevicesLine, Labels};
pub use chip_tip::{ChipTip, ChipTipView};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use rows::{Shown, use_shown};
use table::WorkerTable;
use toolbar::Toolbar;

/// All workers.
#[component]
pub fn WorkersPage() -> impl IntoView {
    let text = use_text();
    let fleet = use_fleet();
    let query = use_list_query();
    let part = page_data_if(move || (!fleet.is_whole_untracked()).then(|| AskPart { query: query.get_untracked() }));
    view! {
        <PageTitle name=|m| m.workers.title/>
        <h1 class="visually-hidden">{text.of(|m| m.workers.title)}</h1>
        {part.show(move |part| match part {
            Ok(part) => {
                if let Some(part) = part {
                    fleet.show_part(part);
                }
                view! { <Content query/> }.into_any()
            }
            Err(error) => view! { <Failure error/> }.into_any(),
        })}
    }
    .into_any()
}

/// What the address asks for.
fn use_list_query() -> Memo<ListQuery> {
    let map = use_query_map();
    memo(move || map.with(|map| ListQuery::read(|key| map.get(key))))
}

/// Tells that the server gave nothing, and offers to ask again.
#[component]
pub fn Failure(
    /// Why.
    error: UiError,
) -> impl IntoView {
    let text = use_text();
    let seen = error.clone();
    effect(move || seen.lead_on());
    view! {
        <div class="lone">
            <p class="note error" role="alert">{move || error.text(text.get())}</p>
            <p><a class="button" href="" rel="external">{text.of(|m| m.frame.try_again)}</a></p>
        </div>
    }
    .into_any()
}

#[component]
fn Content(query: Memo<ListQuery>) -> impl IntoView {
    let fleet = use_fleet();
    let manage = Manage::provide();
    let tip = ChipTip::provide();
    let is_empty = memo(move || fleet.counts().all == 0);
    move || {
        if is_empty.get() {
            return view! { <NobodyYet/> }.into_any();
        }
        view! {
            <Banner/>
            <List query/>
            <WorkerMenu manage/>
            <ManageDialog manage/>
            <ChipTipView tip/>
        }
        .into_any()
    }
}

#[component]
fn NobodyYet() -> impl IntoView {
    let text = use_text();
    view! {
        <section class="empty panel">
            <span class="empty-icon">{Icon::Workers.view()}</span>
            <h2>{text.of(|m| m.workers.empty_title)}</h2>
            <p class="muted">{text.of(|m| m.workers.empty_text)}</p>
            <a class="button primary" href=paths::ADD_WORKER>{Icon::Add.view()}{text.of(|m| m.frame.add_worker)}</a>
        </section>
    }
    .into_any()
}

#[component]
fn List(query: Memo<ListQuery>) -> impl IntoView {
    let fleet = use_fleet();
    let remembered = use_layout();
    let layout =
        memo(move || query.read().layout.or(remembered.get()).unwrap_or_else(|| Layout::for_count(fleet.counts().all)));
    let shown = use_shown(fleet, query);
    let is_empty = memo(move || shown.ids.read().is_empty());
    view! {
        <Toolbar query layout shown/>
        {move || {
            if is_empty.get() {
                return view! { <NothingFound/> }.into_any();
            }
            match layout.get() {
                Layout::Cards => view! { <Cards shown/> }.into_any(),
                Layout::Table => view! { <WorkerTable query shown/> }.into_any(),
            }
        }}
        <Pager query/>
    }
    .into_any()
}

#[component]
fn Cards(shown: Shown) -> impl IntoView {
    let fleet = use_fleet();
    let grid = NodeRef::<leptos::html::Ul>::new();
    let visible = rows::use_visible(grid, shown.ids, ".card", rows::Spacing::Padding);
    view! {
        <ul class="cards" node_ref=grid>
            {each_worker(visible, move |id| fleet.view_of(id, card::whole, card::blank))}
        </ul>
    }
    .into_any()
}

#[component]
fn NothingFound() -> impl IntoView {
    let text = use_text();
    view! {
        <section class="empty panel">
            <span class="empty-icon">{Icon::Search.view()}</span>
            <h2>{text.of(|m| m.workers.no_result_title)}</h2>
            <p class="muted">{text.of(|m| m.workers.no_result_text)}</p>
            <a class="button" href=paths::WORKERS>{text.of(|m| m.workers.clear_filters)}</a>
        </section>
    }
    .into_any()
}

/// Leads through the pages while not every worker is known, as it stays without JavaScript.
#[component]
fn Pager(query: Memo<ListQuery>) -> impl IntoView {
    let text = use_text();
    let fleet = use_fleet();
    let pages = memo(move || fleet.part(crate::fleet::FleetPart::pages).unwrap_or(1));
    let to = move |page: usize| ListQuery { page, ..query.get() }.address();
    move || {
        let (page, last) = (query.read().page, pages.get());
        (last > 1).then(|| {
            view! {
                <nav class="pager">
                    {(page > 1).then(|| view! { <a class="button" href=to(page - 1) rel="prev">{text.of(|m| m.workers.previous_page)}</a> }.into_any())}
                    <span class="muted">{move || (text.get().workers.page_of)(page, last)}</span>
                    {(page < last).then(|| view! { <a class="button" href=to(page + 1) rel="next">{text.of(|m| m.workers.next_page)}</a> }.into_any())}
                </nav>
            }.into_any()
        })
    }
}
