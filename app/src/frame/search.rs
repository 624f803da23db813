//! The search field. It filters the list that is open as one types, and works as a plain form everywhere.

use crate::i18n::use_text;
use crate::icon::Icon;
use crate::paths::{self, escape_query};
use crate::reactive::{effect, memo};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate, use_query_map};
use leptos_router::params::ParamsMap;
use wasm_bindgen::JsCast;

/// The value of the address that holds what is searched for.
const SEARCH: &str = "q";
/// The page of a list, which a search starts anew.
const PAGE: &str = "page";

/// The search field; `/` puts the focus into it, Escape empties it.
#[component]
pub fn Search() -> impl IntoView {
    let text = use_text();
    let query = use_query_map();
    let path = use_location().pathname;
    let field = NodeRef::<html::Input>::new();
    let navigate = use_navigate();
    let is_on_devices = memo(move || *path.read() == paths::DEVICES);
    let list = move || if is_on_devices.get() { paths::DEVICES } else { paths::WORKERS };
    let is_on_list = move || path.with(|path| path == list());
    // Filter, order and layout survive a search.
    let others = move || {
        let query = if is_on_list() { query.get() } else { ParamsMap::new() };
        query.into_iter().filter(|(key, _)| key != SEARCH && key != PAGE)
    };
    let show = move |search: String| {
        // Elsewhere the words wait until the form is sent.
        if untrack(is_on_list) {
            let mut address = untrack(list).to_owned();
            let mut sign = "?";
            for (key, value) in untrack(others).chain([(SEARCH.into(), search)]) {
                if !value.is_empty() {
                    address.extend([sign, &key, "=", &escape_query(&value)]);
                    sign = "&";
                }
            }
            navigate(&address, NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() });
        }
    };
    let (typed, escaped) = (show.clone(), show);
    let hint = move || {
        let frame = &text.get().frame;
        if is_on_devices.get() { frame.search_hint_devices } else { frame.search_hint }
    };
    let value = Signal::derive(move || query.read().get(SEARCH).unwrap_or_default());
    effect(move || focus_on_slash(field));
    view! {
        <form class="search" role="search" method="get" action=list on:submit=move |event| if untrack(is_on_list) { event.prevent_default() }>
            {Icon::Search.view()}
            <input
                node_ref=field
                class="input"
                type="search"
                name=SEARCH
                autocomplete="off"
                spellcheck="false"
                placeholder=hint
                aria-label=text.of(|m| m.frame.search)
                value=value
                prop:value=value
                on:input=move |event| typed(event_target_value(&event))
                on:keydown=move |event| {
                    if event.key() == "Escape" {
                        escaped(String::new());
                    }
                }
            />
            <kbd class="with-script" aria-hidden="true">"/"</kbd>
            {move || {
                others()
                    .map(|(key, value)| view! { <input type="hidden" name=key.into_owned() value=value/> }.into_any())
                    .collect_view()
            }}
        </form>
    }
    .into_any()
}

fn focus_on_slash(field: NodeRef<html::Input>) {
    let keyed = window_event_listener(ev::keydown, move |event| {
        if event.key() != "/" || event.ctrl_key() || event.meta_key() || event.alt_key() || is_typing(&event) {
            return;
        }
        if let Some(field) = field.get_untracked() {
            event.prevent_default();
            // It fails for elements outside the page only.
            let _ = field.focus();
            field.select();
        }
    });
    on_cleanup(move || keyed.remove());
}

fn is_typing(event: &ev::KeyboardEvent) -> bool {
    let target = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    target.is_some_and(|element| matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT"))
}
