//! The choices at the right end of the top bar. Each is a plain form, so that it works without JavaScript too.

use crate::ask::page_data;
use crate::i18n::{Language, use_text};
use crate::icon::Icon;
use crate::paths;
use crate::post::{FormAction, PostForm};
use crate::preferences::{SetLanguage, SetTheme, Theme, ThemeChoice, choose_language, choose_theme};
use crate::session::{CurrentSession, LogOut};
use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use wasm_bindgen::JsCast;

/// Switches to the next language; its label is that language's own name.
#[component]
pub fn LanguageSwitch() -> impl IntoView {
    let text = use_text();
    let other = move || Language::ALL.into_iter().find(|language| *language != text.language()).unwrap_or(Language::En);
    view! {
        <form
            method="post"
            action=SetLanguage::url()
            on:submit=move |event| {
                event.prevent_default();
                choose_language(text, other());
            }
        >
            <input type="hidden" name="language" value=move || other().tag()/>
            <button class="tool" lang=move || other().tag() title=text.of(|m| m.frame.language)>
                {Icon::Language.view()}
                <span>{move || other().own_name()}</span>
            </button>
        </form>
    }
    .into_any()
}

/// System, light or dark.
#[component]
pub fn ThemeMenu() -> impl IntoView {
    let text = use_text();
    let choice = use_context::<ThemeChoice>().unwrap_or_else(|| ThemeChoice(RwSignal::new(Theme::System)));
    let option = move |theme: Theme| {
        let label = move || {
            let frame = &text.get().frame;
            match theme {
                Theme::System => frame.theme_system,
                Theme::Light => frame.theme_light,
                Theme::Dark => frame.theme_dark,
            }
        };
        view! {
            <li>
                <form
                    method="post"
                    action=SetTheme::url()
                    on:submit=move |event| {
                        event.prevent_default();
                        choose_theme(choice, theme);
                    }
                >
                    <input type="hidden" name="theme" value=theme.tag()/>
                    <button class="menu-item" aria-pressed=move || (choice.0.get() == theme).to_string()>{label}</button>
                </form>
            </li>
        }.into_any()
    };
    view! {
        <details class="menu">
            <summary class="tool" title=text.of(|m| m.frame.theme) aria-label=text.of(|m| m.frame.theme)>{Icon::Theme.view()}</summary>
            <ul class="menu-list">{Theme::ALL.map(option).collect_view()}</ul>
        </details>
    }.into_any()
}

/// Who is logged in, and the way out.
#[component]
pub fn UserMenu() -> impl IntoView {
    let text = use_text();
    let log_out = FormAction::new::<LogOut>();
    let session = page_data(|| CurrentSession {});
    session.show_quietly(move |session| {
        let Ok(session) = session else { return ().into_any() };
        let (name, label_name) = (session.username.clone(), session.username);
        view! {
            <details class="menu">
                <summary class="tool" aria-label=move || (text.get().frame.user_menu)(&label_name)>
                    {Icon::User.view()}<span class="tool-word">{name}</span>
                </summary>
                <ul class="menu-list">
                    <li><a class="menu-item" href=paths::PASSWORD>{text.of(|m| m.frame.change_password)}</a></li>
                    <li>
                        <PostForm action=log_out>
                            <button class="menu-item">{text.of(|m| m.frame.log_out)}</button>
                        </PostForm>
                    </li>
                </ul>
            </details>
        }
        .into_any()
    })
}

/// Closes open menus when something else is pressed, and by Escape. A menu is a `<details>`, which works without
/// JavaScript but does not close by itself.
pub fn close_on_press_elsewhere() {
    let pressed = window_event_listener(leptos::ev::pointerdown, |event| {
        let target = event.target().and_then(|target| target.dyn_into::<web_sys::Node>().ok());
        close_menus(|menu| menu.contains(target.as_ref()));
    });
    let keyed = window_event_listener(leptos::ev::keydown, |event| {
        if event.key() == "Escape" {
            close_menus(|_| false);
        }
    });
    on_cleanup(move || {
        pressed.remove();
        keyed.remove();
    });
}

fn close_menus(stays: impl Fn(&web_sys::Node) -> bool) {
    let Ok(open) = document().query_selector_all("details.menu[open]") else { return };
    for menu in (0..open.length()).filter_map(|place| open.get(place)) {
        if !stays(&menu)
            && let Some(menu) = menu.dyn_ref::<web_sys::Element>()
        {
            // It fails for invalid names only, and ours is a literal.
            let _ = menu.remove_attribute("open");
        }
    }
}
