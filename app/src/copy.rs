//! The button that copies text, also on plain-http addresses, where a browser has no `navigator.clipboard`. It says
//! "Copied" only when the browser confirmed it; otherwise the text is selected and the user is told which keys to
//! press.

use crate::i18n::use_text;
use crate::icon::Icon;
use crate::reactive::effect;
use leptos::html;
use leptos::prelude::*;
#[cfg(feature = "hydrate")]
use std::time::Duration;

/// How long the button says "Copied".
#[cfg(feature = "hydrate")]
const COPIED_SHOWN: Duration = Duration::from_secs(3);

/// What came of the last press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyState {
    Idle,
    Copied,
    Refused,
}

/// Copies `text`. `shown_in` is the id of the element that shows exactly this text: it gets selected when the browser
/// does not let the text be copied. Without it the button brings a field of its own for that.
#[component]
pub fn CopyButton(
    /// What is copied.
    #[prop(into)]
    text: Signal<String>,
    /// Id of the element that shows the text.
    #[prop(optional, into)]
    shown_in: Option<String>,
    /// What the button does, for screen readers and as a tooltip, when "Copy" says too little.
    #[prop(optional, into)]
    label: Option<Signal<String>>,
    /// Id of the element that says what is copied, where several buttons say "Copy".
    #[prop(optional, into)]
    described_by: Option<String>,
    /// Only the icon.
    #[prop(optional)]
    compact: bool,
    /// It is what the page is for.
    #[prop(optional)]
    primary: bool,
) -> impl IntoView {
    let messages = use_text();
    let state = RwSignal::new(CopyState::Idle);
    let container = NodeRef::<html::Span>::new();
    let field = NodeRef::<html::Textarea>::new();
    let has_place = shown_in.is_some();
    effect(move || {
        text.track();
        state.set(CopyState::Idle);
    });
    effect(move || {
        if let Some(field) = field.get() {
            select_field(field);
        }
    });
    let word = move || {
        let copy = &messages.get().copy;
        if state.get() == CopyState::Copied { copy.copied } else { copy.copy }
    };
    let name = move || label.map(|label| label.get());
    let refused_field = move || {
        (!has_place).then(|| {
            view! {
                <textarea
                    class="input copy-field"
                    node_ref=field
                    readonly
                    rows="2"
                    aria-label=messages.of(|m| m.copy.selected_text)
                    prop:value=text.get_untracked()
                ></textarea>
            }
            .into_any()
        })
    };
    view! {
        <span class="copy" class:copy-compact=compact node_ref=container>
            <button
                type="button"
                class="button copy-button"
                class:primary=primary
                class:copied=move || state.get() == CopyState::Copied
                aria-label=name
                title=name
                aria-describedby=described_by
                on:click=move |_| start_copy(text.get_untracked(), container, shown_in.clone(), state)
            >
                {move || if state.get() == CopyState::Copied { Icon::Check.view() } else { Icon::Copy.view() }}
                <span class:visually-hidden=compact>{word}</span>
            </button>
            <span role="status" class:copy-hint=move || state.get() == CopyState::Refused>
                {move || match state.get() {
                    CopyState::Idle => ().into_any(),
                    CopyState::Copied => view! { <span class="visually-hidden">{messages.of(|m| m.copy.copied)}</span> }.into_any(),
                    CopyState::Refused => view! { <span>{messages.of(|m| m.copy.press_keys)}</span> {refused_field()} }.into_any(),
                }}
            </span>
        </span>
    }
    .into_any()
}

#[cfg(feature = "hydrate")]
fn start_copy(text: String, container: NodeRef<html::Span>, shown_in: Option<String>, state: RwSignal<CopyState>) {
    let Some(container) = container.get_untracked() else { return };
    // The browser lets the old command copy only while it handles the press itself, so no waiting before it.
    let Some(clipboard) = clipboard::trusted() else {
        let copied = clipboard::copy_by_command(&container, &text);
        finish_copy(copied, shown_in.as_deref(), state);
        return;
    };
    leptos::task::spawn_local(async move {
        let copied = clipboard::write(&clipboard, &text).await || clipboard::copy_by_command(&container, &text);
        finish_copy(copied, shown_in.as_deref(), state);
    });
}

/// There is no button to press on the server.
#[cfg(not(feature = "hydrate"))]
fn start_copy(_: String, _: NodeRef<html::Span>, _: Option<String>, _: RwSignal<CopyState>) {}

#[cfg(feature = "hydrate")]
fn finish_copy(copied: bool, shown_in: Option<&str>, state: RwSignal<CopyState>) {
    if !copied {
        // the page may have been left while the browser asked for permission
        let _ = state.try_set(CopyState::Refused);
        if let Some(id) = shown_in {
            clipboard::select_contents(id);
        }
        return;
    }
    let _ = state.try_set(CopyState::Copied);
    set_timeout(
        move || {
            let _ = state.try_update(|state| {
                if *state == CopyState::Copied {
                    *state = CopyState::Idle;
                }
            });
        },
        COPIED_SHOWN,
    );
}

#[cfg(feature = "hydrate")]
fn select_field(field: web_sys::HtmlTextAreaElement) {
    // it has been made, but stands in the document only with the next frame
    request_animation_frame(move || {
        // it fails for elements that have left the document, and then nobody needs it
        let _ = field.focus();
        field.select();
    });
}

#[cfg(not(feature = "hydrate"))]
fn select_field<T>(_: T) {}

#[cfg(feature = "hydrate")]
mod clipboard {
    use leptos::prelude::{document, window};
    use wasm_bindgen::JsCast;
    use web_sys::{HtmlDocument, HtmlElement, HtmlTextAreaElement};

    /// The browser's clipboard; only pages from https or localhost get it.
    pub fn trusted() -> Option<web_sys::Clipboard> {
        let window = window();
        if !window.is_secure_context() {
            return None;
        }
        let clipboard = window.navigator().clipboard();
        (!clipboard.is_undefined()).then_some(clipboard)
    }

    /// True when the browser says that the text is in the clipboard.
    pub async fn write(clipboard: &web_sys::Clipboard, text: &str) -> bool {
        js_sys::futures::JsFuture::from(clipboard.write_text(text)).await.is_ok()
    }

    /// `document.execCommand("copy")` on a field beside the button: inside a dialog, a field outside of it could not
    /// be focused, and nothing would be copied. True only when the field was really selected and the command worked.
    pub fn copy_by_command(container: &HtmlElement, text: &str) -> bool {
        let document = document();
        let focused_before = document.active_element();
        let Some(field) = document.create_element("textarea").ok().and_then(|element| element.dyn_into().ok()) else {
            return false;
        };
        let field: HtmlTextAreaElement = field;
        field.set_class_name("copy-source");
        field.set_read_only(true);
        field.set_value(text);
        if container.append_child(&field).is_err() {
            return false;
        }
        let copied = is_selected(&field) && run_copy(&document);
        field.remove();
        if let Some(before) = focused_before.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
            let _ = before.focus();
        }
        copied
    }

    fn is_selected(field: &HtmlTextAreaElement) -> bool {
        if field.focus().is_err() {
            return false;
        }
        field.select();
        let has_focus = document().active_element().is_some_and(|element| element.is_same_node(Some(field)));
        let whole = field.selection_end().ok().flatten() == Some(field.text_length());
        has_focus && whole
    }

    fn run_copy(document: &web_sys::Document) -> bool {
        document.dyn_ref::<HtmlDocument>().is_some_and(|document| document.exec_command("copy").unwrap_or(false))
    }

    /// Selects what an element shows, for the user to copy.
    pub fn select_contents(id: &str) {
        let element = document().get_element_by_id(id);
        let selection = window().get_selection().ok().flatten();
        if let Some((element, selection)) = element.zip(selection) {
            // it fails for elements that are not in the document, and this one is
            let _ = selection.select_all_children(&element);
        }
    }
}
