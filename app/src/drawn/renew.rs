//! Keeps a drawn part current in the browser, without disturbing who reads it or works in it.

use super::Draw;
use crate::ask::{ask_written, written};
use crate::browser::while_visible;
use crate::reactive::{effect, memo};
use crate::session::UiError;
use leptos::html;
use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use std::time::Duration;
use wasm_bindgen::JsCast;
use web_sys::{Element, FocusOptions, HtmlElement, Node};

/// A part is asked for again this often.
const INTERVAL: Duration = Duration::from_secs(10);
/// Tells alike elements apart, as rows.
const KEY: &str = "data-key";
/// What the reader has unfolded stays so.
const READERS_OWN: &str = "open";
/// While it is there, what is shown is not what was asked for last.
const OUTDATED: &str = "aria-busy";

/// Asks again when the question is another than the one that is answered already, and now and then.
pub fn keep_current(place: NodeRef<html::Div>, answered: String, question: impl Fn() -> Draw + Send + Sync + 'static) {
    let question = memo(move || written(&question()));
    let is_asking = StoredValue::new(false);
    let ask_again = move || {
        // not there when the page has been left
        if is_asking.try_get_value() == Some(false) {
            is_asking.set_value(true);
            leptos::task::spawn_local(async move {
                while ask(place, question).await == Asking::Again {}
                is_asking.try_set_value(false);
            });
        }
    };
    let mut last = answered;
    effect(move || {
        let before = std::mem::replace(&mut last, question.get());
        if before != last {
            if let Some(place) = place.get_untracked() {
                // It fails for invalid names only.
                let _ = place.set_attribute(OUTDATED, "true");
            }
            ask_again();
        }
    });
    while_visible(INTERVAL, ask_again);
}

#[derive(PartialEq)]
enum Asking {
    /// The question has changed meanwhile.
    Again,
    Done,
}

async fn ask(place: NodeRef<html::Div>, question: Memo<String>) -> Asking {
    let Some(asked) = question.try_get_untracked() else { return Asking::Done };
    let answer = ask_written(Draw::PATH, asked.clone()).await.read::<String, UiError>();
    let Some(is_current) = question.try_with_untracked(|question| *question == asked) else { return Asking::Done };
    match answer {
        Ok(_) if !is_current => return Asking::Again,
        Ok(html) => {
            if let Some(place) = place.get_untracked() {
                renew(&place, &html);
                let _ = place.remove_attribute(OUTDATED);
            }
        }
        // What is shown stays when the server is not reached; the connection dot says so.
        Err(error) => error.lead_on(),
    }
    Asking::Done
}

/// Makes what is shown the same as what was drawn, and touches only what differs: so focus, selection, scrolling and what
/// is unfolded stay.
fn renew(shown: &HtmlElement, html: &str) {
    // It fails for documents only.
    let Ok(drawn) = shown.clone_node() else { return };
    let drawn: Element = drawn.unchecked_into();
    drawn.set_inner_html(html);
    let focused = document().active_element();
    renew_children(shown, &drawn);
    // A row that came to another place has lost it.
    if let Some(focused) = focused
        && document().active_element().as_ref() != Some(&focused)
    {
        let options = FocusOptions::new();
        options.set_prevent_scroll(true);
        let _ = focused.unchecked_into::<HtmlElement>().focus_with_options(&options);
    }
}

fn renew_children(shown: &Node, drawn: &Node) {
    let (mut old, new) = (children(shown), children(drawn));
    // What is gone first: then what follows it stays where it is.
    old.retain(|old| {
        let stays = new.iter().any(|new| new.identity == old.identity);
        if !stays {
            remove(shown, &old.node);
        }
        stays
    });
    for new in new {
        let place = old.iter().position(|old| old.identity == new.identity);
        let same = place.map(|place| old.remove(place).node);
        if place != Some(0) {
            insert(shown, same.as_ref().unwrap_or(&new.node), old.first().map(|next| &next.node));
        }
        if let Some(same) = same {
            renew_node(shown, &same, &new.node);
        }
    }
    for old in old {
        remove(shown, &old.node);
    }
}

struct Child {
    node: Node,
    /// What tells an element apart from those beside it; a text from elements only.
    identity: Option<String>,
}

fn children(parent: &Node) -> Vec<Child> {
    let mut children = Vec::new();
    let mut next = parent.first_child();
    while let Some(node) = next {
        next = node.next_sibling();
        let identity = node
            .dyn_ref::<Element>()
            .map(|element| element.tag_name() + &element.get_attribute(KEY).unwrap_or_default());
        children.push(Child { node, identity });
    }
    children
}

/// It fails only when `before` is no child of `parent`.
fn insert(parent: &Node, node: &Node, before: Option<&Node>) {
    let _ = parent.insert_before(node, before);
}

/// It fails only when `node` is no child of `parent`.
fn remove(parent: &Node, node: &Node) {
    let _ = parent.remove_child(node);
}

fn renew_node(parent: &Node, old: &Node, new: &Node) {
    if old.is_equal_node(Some(new)) {
        return;
    }
    if let (Some(old_element), Some(new_element)) = (old.dyn_ref::<Element>(), new.dyn_ref::<Element>()) {
        renew_attributes(old_element, new_element);
        renew_children(old, new);
    } else {
        insert(parent, new, Some(old));
        remove(parent, old);
    }
}

fn renew_attributes(old: &Element, new: &Element) {
    for name in attribute_names(new) {
        let value = new.get_attribute(&name).unwrap_or_default();
        if old.get_attribute(&name).as_ref() != Some(&value) {
            let _ = old.set_attribute(&name, &value);
        }
    }
    for name in attribute_names(old) {
        if new.get_attribute(&name).is_none() {
            let _ = old.remove_attribute(&name);
        }
    }
}

fn attribute_names(element: &Element) -> Vec<String> {
    let names = element.get_attribute_names();
    names.iter().filter_map(|name| name.as_string()).filter(|name| name != READERS_OWN).collect()
}
