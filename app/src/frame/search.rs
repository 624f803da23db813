//! The search field. It filters the list of workers as one types, and works as a plain form everywhere.

use crate::fleet::ListQuery;
use crate::i18n::use_text;
use crate::icon::Icon;
use crate::pages::use_list_query;
use crate::paths;
use crate::reactive::effect;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use wasm_bindgen::JsCast;

/// The search field; `/` puts the focus into it, Escape empties it.
#[component]
pub fn Search() -> impl IntoView {
    let text = use_text();
    let query = use_list_query();
    let path = use_location().pathname;
    let field = NodeRef::<html::Input>::new();
    let navigate = use_navigate();
    let is_on_list = move || path.with_untracked(|path| path == paths::WORKERS);
    let show = move |search: String| {
        // Elsewhere the words wait until the form is sent.
        if is_on_list() {
            let address = ListQuery { search, page: 1, ..query.get_untracked() }.address();
            navigate(&address, NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() });
        }
    };
    let (typed, escaped) = (show.clone(), show);
    effect(move || focus_on_slash(field));
    view! {
        <form class="search" role="search" method="get" action=paths::WORKERS on:submit=move |event| if is_on_list() { event.prevent_default() }>
            {Icon::Search.view()}
            <input
                node_ref=field
                class="input"
                type="search"
                name="q"
                autocomplete="off"
                spellcheck="false"
                placeholder=text.of(|m| m.frame.search_hint)
                aria-label=text.of(|m| m.frame.search)
                value=move || query.read().search.clone()
                prop:value=move || query.read().search.clone()
                on:input=move |event| typed(event_target_value(&event))
                on:keydown=move |event| {
                    if event.key() == "Escape" {
                        escaped(String::new());
                    }
                }
            />
            <kbd class="with-script" aria-hidden="true">"/"</kbd>
            <Others query/>
        </form>
    }
    .into_any()
}

/// Filter, order and layout survive a search without JavaScript.
#[component]
fn Others(query: Memo<ListQuery>) -> impl IntoView {
    move || {
        let query = query.get();
        let kept = [
            ("state", query.state.map(|state| state.tag().to_owned())),
            ("sort", Some(query.sort_value()).filter(|value| value != "name")),
            ("view", query.layout.map(|layout| layout.tag().to_owned())),
        ];
        kept.into_iter()
            .filter_map(|(name, value)| {
                value.map(|value| view! { <input type="hidden" name=name value=value/> }.into_any())
            })
            .collect_view()
    }
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
