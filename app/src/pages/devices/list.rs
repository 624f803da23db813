//! The page from above: filters, totals, list, pages.

use super::models::models;
use super::rows::rows;
use crate::drawn::Asked;
use crate::fleet::device_list::{DeviceList, DeviceQuery};
use crate::format::grouped;
use crate::i18n::Messages;
use crate::icon::Icon;
use crate::paths;
use crate::session::UiError;
use leptos::prelude::*;

/// The list that the address asks for.
pub async fn draw(asked: &Asked) -> Result<String, UiError> {
    let query = DeviceQuery::read(|key| asked.value(key));
    let list = asked.backend.devices(&query).await;
    Ok(asked.render(|| page(&Page { query, list, messages: asked.messages() })))
}

/// What everything on the page is drawn from.
pub struct Page {
    /// What is asked for.
    pub query: DeviceQuery,
    /// The answer.
    pub list: DeviceList,
    /// In the reader's language.
    pub messages: &'static Messages,
}

impl Page {
    /// The address of the same list, filtered or ordered otherwise, from its beginning.
    pub fn address(&self, change: impl FnOnce(&mut DeviceQuery)) -> String {
        let mut query = DeviceQuery { page: 1, ..self.query.clone() };
        change(&mut query);
        query.address()
    }
}

/// A count as people read it.
pub fn count(count: usize) -> String {
    grouped(u64::try_from(count).unwrap_or(u64::MAX))
}

fn page(page: &Page) -> AnyView {
    let title = page.messages.words.devices;
    let content = match &page.list {
        DeviceList { workers: 0, .. } => nobody_yet(page.messages),
        DeviceList { all: 0, .. } => none_yet(page.messages),
        _ => view! { {filters(page)} {models(page)} {found(page)} }.into_any(),
    };
    view! {
        <h1 class="visually-hidden">{title}</h1>
        {content}
    }
    .into_any()
}

fn found(page: &Page) -> AnyView {
    if page.list.matching == 0 {
        return no_result(page.messages);
    }
    view! { {rows(page)} {pager(page)} }.into_any()
}

/// Everything, each vendor, what needs attention; and how much is shown.
fn filters(page: &Page) -> AnyView {
    let Page { query, list, messages } = page;
    let is_all = query.vendor.is_none() && query.model.is_none() && !query.only_trouble;
    let all = page.address(|query| {
        query.vendor = None;
        query.model = None;
        query.only_trouble = false;
    });
    let vendor = |(vendor, devices): &(String, usize)| {
        let is_chosen = query.vendor.as_ref() == Some(vendor);
        let address = page.address(|query| query.vendor = (!is_chosen).then(|| vendor.clone()));
        chip(Chip { key: vendor, word: vendor, icon: None, devices: *devices, address, is_chosen })
    };
    let trouble = (list.trouble > 0 || query.only_trouble).then(|| {
        let address = page.address(|query| query.only_trouble = !query.only_trouble);
        let (word, icon) = (messages.workers.trouble, Some(Icon::Warning));
        chip(Chip { key: "", word, icon, devices: list.trouble, address, is_chosen: query.only_trouble })
    });
    let vendors =
        (list.vendors.len() > 1 || query.vendor.is_some()).then(|| list.vendors.iter().map(vendor).collect_view());
    view! {
        <div class="toolbar">
            <ul class="chips" aria-label=messages.devices.filters>
                {chip(Chip { key: " ", word: messages.workers.all, icon: None, devices: list.all, address: all, is_chosen: is_all })}
                {vendors}
                {trouble}
            </ul>
            <div class="toolbar-right">
                {query.is_filtered().then(|| view! { <a href=clear(query)>{messages.workers.clear_filters}</a> }.into_any())}
                {(list.matching > 0).then(|| view! { <span class="muted">{range(page)}</span> }.into_any())}
            </div>
        </div>
    }
    .into_any()
}

struct Chip<'a> {
    key: &'a str,
    word: &'a str,
    icon: Option<Icon>,
    devices: usize,
    address: String,
    is_chosen: bool,
}

fn chip(chip: Chip<'_>) -> AnyView {
    let Chip { key, word, icon, devices, address, is_chosen } = chip;
    let state = icon.is_some().then_some("trouble");
    view! {
        <li data-key=key.to_owned()>
            <a class="chip" data-noscroll="" data-state=state href=address aria-current=is_chosen.then_some("true")>
                {icon.map(Icon::view)}
                <span>{word.to_owned()}</span>
                <strong>{count(devices)}</strong>
            </a>
        </li>
    }
    .into_any()
}

/// The order stays.
fn clear(query: &DeviceQuery) -> String {
    DeviceQuery { sort: query.sort, reversed: query.reversed, ..DeviceQuery::default() }.address()
}

fn range(page: &Page) -> String {
    let list = &page.list;
    let end = (list.before() + DeviceQuery::ROWS).min(list.matching);
    (page.messages.devices.range)(&count(list.before() + 1), &count(end), &count(list.matching))
}

fn pager(page: &Page) -> Option<AnyView> {
    let (list, messages) = (&page.list, page.messages);
    let to = |number: usize| page.address(|query| query.page = number);
    let (number, pages) = (list.page, list.pages());
    let before = (number > 1).then(|| {
        view! { <a class="button" href=to(number - 1) rel="prev">{messages.workers.previous_page}</a> }.into_any()
    });
    let after = (number < pages).then(|| {
        view! { <a class="button" href=to(number + 1) rel="next">{messages.workers.next_page}</a> }.into_any()
    });
    (pages > 1).then(|| {
        view! {
            <nav class="pager" aria-label=messages.devices.pages>
                {before}
                <span class="muted">{range(page)}</span>
                {after}
            </nav>
        }
        .into_any()
    })
}

fn nobody_yet(messages: &'static Messages) -> AnyView {
    let link = view! {
        <a class="button primary" href=paths::ADD_WORKER>{Icon::Add.view()}{messages.frame.add_worker}</a>
    };
    empty(Icon::Workers, messages.workers.empty_title, messages.workers.empty_text, link.into_any())
}

fn none_yet(messages: &'static Messages) -> AnyView {
    let link = view! { <a class="button" href=paths::WORKERS>{messages.frame.to_workers}</a> };
    empty(Icon::Device, messages.devices.none_title, messages.devices.none_text, link.into_any())
}

fn no_result(messages: &'static Messages) -> AnyView {
    let link = view! { <a class="button" href=paths::DEVICES>{messages.workers.clear_filters}</a> };
    empty(Icon::Search, messages.devices.no_result_title, messages.devices.no_result_text, link.into_any())
}

fn empty(icon: Icon, title: &'static str, text: &'static str, link: AnyView) -> AnyView {
    view! {
        <section class="empty panel">
            <span class="empty-icon">{icon.view()}</span>
            <h2>{title}</h2>
            <p class="muted">{text}</p>
            {link}
        </section>
    }
    .into_any()
}
