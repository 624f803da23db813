//! The one menu of a page, opened beside the button that was pressed.

use super::{Manage, OpenMenu, Task, press_by_space};
use crate::browser;
use crate::copy::CopyButton;
use crate::fleet::store::WorkerCell;
use crate::fleet::use_fleet;
use crate::i18n::use_text;
use crate::icon::Icon;
use crate::paths;
use crate::reactive::{When, effect};
use api::WorkerId;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, HtmlUListElement};

/// Opens the menu of a worker. Without JavaScript it leads to the forms on the worker's page.
#[component]
pub fn MenuButton(
    /// Whose.
    id: WorkerId,
    /// Its name.
    #[prop(into)]
    name: Signal<String>,
) -> impl IntoView {
    let text = use_text();
    let manage = use_context::<Manage>();
    let is_open = move || manage.is_some_and(|manage| manage.menu.get().is_some_and(|menu| menu.worker == id));
    let open = move |event: ev::MouseEvent| {
        let Some(manage) = manage else { return };
        event.prevent_default();
        manage.menu.set(if untrack(is_open) { None } else { menu_beside(&event, id) });
    };
    view! {
        <a
            class="menu-button"
            href=format!("{}#manage", paths::worker(id))
            role="button"
            data-menu-of=id.to_string()
            aria-expanded=move || is_open().to_string()
            aria-label=move || (text.get().workers.menu_of)(&name.read())
            on:click=open
            on:keydown=|event| press_by_space(&event)
        >
            {Icon::More.view()}
        </a>
    }
    .into_any()
}

fn menu_beside(event: &ev::MouseEvent, worker: WorkerId) -> Option<OpenMenu> {
    let button = event.current_target()?.dyn_into::<Element>().ok()?;
    let place = button.get_bounding_client_rect();
    Some(OpenMenu { worker, right: place.right(), bottom: place.bottom() })
}

/// Shows the menu that [`Manage`] has open.
#[component]
pub fn WorkerMenu(
    /// What is open.
    manage: Manage,
) -> impl IntoView {
    let fleet = use_fleet();
    let content = move || {
        let menu = manage.menu.get()?;
        let worker = fleet.worker(menu.worker)?;
        Some(view! { <Items manage menu worker/> }.into_any())
    };
    // Any press elsewhere, a scroll or Escape closes it.
    let close = move || manage.menu.set(None);
    view! {
        <When holds=move || manage.menu.read().is_some()>
            <div class="menu-shield" on:click=move |_| close() on:wheel=move |_| close() on:touchmove=move |_| close()></div>
        </When>
        {content}
    }
    .into_any()
}

#[component]
fn Items(manage: Manage, menu: OpenMenu, worker: WorkerCell) -> impl IntoView {
    let text = use_text();
    let list = NodeRef::<html::Ul>::new();
    effect(move || {
        if let Some(list) = list.get() {
            place(&list, menu);
        }
    });
    let is_in_maintenance = {
        let worker = worker.clone();
        move || worker.read().maintenance.enabled
    };
    let (name, address) = worker.with_untracked(|worker| (worker.name.clone(), worker.ip.clone()));
    let id = menu.worker;
    let copy = move |value: String, label: Signal<String>| view! { <li><CopyButton text=value label/></li> }.into_any();
    view! {
        <ul class="menu-list floating" node_ref=list on:keydown=move |event| move_focus(&event, manage)>
            {copy(name, Signal::derive(move || text.get().workers.copy_name.to_owned()))}
            {copy(address, Signal::derive(move || text.get().workers.copy_address.to_owned()))}
            <li>
                <button class="menu-item" on:click=move |_| manage.open(Task::Labels, id)>{text.of(|m| m.workers.edit_labels)}</button>
            </li>
            <li>
                <button class="menu-item" on:click=move |_| manage.open(Task::Maintenance, id)>
                    {move || {
                        let workers = &text.get().workers;
                        if is_in_maintenance() { workers.end_maintenance } else { workers.start_maintenance }
                    }}
                </button>
            </li>
            <li>
                <button class="menu-item danger" on:click=move |_| manage.open(Task::Delete, id)>{text.of(|m| m.workers.delete)}</button>
            </li>
        </ul>
    }
    .into_any()
}

/// Puts the menu under its button, or as high as it takes to be whole, and the focus on its first item.
fn place(list: &HtmlUListElement, menu: OpenMenu) {
    let size = list.get_bounding_client_rect();
    let window_height = window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or(f64::MAX);
    let left = (menu.right - size.width()).max(8.0);
    let top = (menu.bottom + 4.0).min(window_height - size.height() - 8.0).max(8.0);
    browser::set_pixels(list, "left", left);
    browser::set_pixels(list, "top", top);
    focus(list, 0);
}

/// Arrow keys move the focus, Escape and Tab close the menu.
fn move_focus(event: &ev::KeyboardEvent, manage: Manage) {
    let step = match event.key().as_str() {
        "ArrowDown" => 1,
        "ArrowUp" => -1,
        "Escape" | "Tab" => {
            event.prevent_default();
            manage.close_menu();
            return;
        }
        _ => return,
    };
    event.prevent_default();
    let Some(list) = event.current_target().and_then(|target| target.dyn_into::<HtmlUListElement>().ok()) else {
        return;
    };
    let focused = document().active_element();
    let items = items(&list);
    let place = items.iter().position(|item| focused.as_ref().is_some_and(|focused| focused.is_same_node(Some(item))));
    let count = i32::try_from(items.len()).unwrap_or(0);
    let next = place.and_then(|place| i32::try_from(place).ok()).map_or(0, |place| place + step);
    if count > 0 {
        focus(&list, usize::try_from(next.rem_euclid(count)).unwrap_or(0));
    }
}

fn items(list: &HtmlUListElement) -> Vec<HtmlElement> {
    let Ok(found) = list.query_selector_all("button") else { return Vec::new() };
    (0..found.length()).filter_map(|place| found.get(place)?.dyn_into().ok()).collect()
}

fn focus(list: &HtmlUListElement, place: usize) {
    if let Some(item) = items(list).get(place) {
        // Losing the race against a removal leaves the focus where it is.
        let _ = item.focus();
    }
}
