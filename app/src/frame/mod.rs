//! What is around every page: navigation, search, connection, language, theme, user.

mod connection;
mod menus;
mod search;

use crate::fleet::use_fleet;
use crate::i18n::{Messages, use_text};
use crate::icon::{Icon, IconSprite};
use crate::paths;
use crate::reactive::effect;
use connection::ConnectionDot;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::components::{A, Outlet};
use leptos_router::hooks::use_location;
use menus::UserMenu;
pub use menus::{LanguageSwitch, ThemeMenu};
use search::Search;

/// The frame of all pages but the login page.
#[component]
pub fn Frame() -> impl IntoView {
    let text = use_text();
    let fleet = use_fleet();
    #[cfg(feature = "hydrate")]
    follow_once_allowed(fleet);
    effect(move || show_in_tab(fleet.troubled()));
    effect(menus::close_on_press_elsewhere);
    let is_stale = move || matches!(fleet.connection(), crate::fleet::Connection::Broken(_));
    view! {
        <IconSprite/>
        <a class="skip" href="#content">{text.of(|m| m.frame.skip_to_content)}</a>
        <div class="frame" class:stale-frame=is_stale>
            <Rail/>
            <header class="topbar">
                <p class="topbar-title"><Section/></p>
                <Search/>
                <div class="topbar-tools">
                    <ConnectionDot/>
                    <LanguageSwitch/>
                    <ThemeMenu/>
                    <UserMenu/>
                </div>
            </header>
            <main id="content" tabindex="-1"><Outlet/></main>
        </div>
    }
    .into_any()
}

/// Follows the fleet for as long as the frame is there. Not before the first password is changed: until then the server
/// gives nothing but the page for that.
#[cfg(feature = "hydrate")]
fn follow_once_allowed(fleet: crate::fleet::Fleet) {
    let path = use_location().pathname;
    let owner = Owner::current();
    Effect::new(move |follows: Option<bool>| {
        let is_allowed = *path.read() != paths::PASSWORD;
        if follows == Some(true) || !is_allowed {
            return follows == Some(true);
        }
        if let Some(owner) = &owner {
            // not the effect's own, which ends with each change of the path
            owner.with(|| crate::fleet::follow(fleet));
        }
        true
    });
}

#[component]
fn Rail() -> impl IntoView {
    let text = use_text();
    view! {
        <nav class="rail" aria-label=text.of(|m| m.frame.navigation)>
            <a class="brand" href=paths::WORKERS aria-hidden="true" tabindex="-1">"gpustack"</a>
            <A href=paths::WORKERS attr:class="rail-link">{Icon::Workers.view()}<span>{text.of(|m| m.frame.workers)}</span></A>
            <A href=paths::DEVICES attr:class="rail-link">{Icon::Device.view()}<span>{text.of(|m| m.words.devices)}</span></A>
            <A href=paths::TUNNELS attr:class="rail-link">{Icon::Probe.view()}<span>{text.of(|m| m.frame.tunnels)}</span></A>
            <A href=paths::SETTINGS attr:class="rail-link">{Icon::Settings.view()}<span>{text.of(|m| m.frame.settings)}</span></A>
        </nav>
    }.into_any()
}

/// The name of the part of the UI that the page belongs to.
#[component]
fn Section() -> impl IntoView {
    let text = use_text();
    let path = use_location().pathname;
    move || {
        let (messages, path) = (text.get(), path.read());
        match path.as_str() {
            paths::DEVICES => messages.words.devices,
            paths::TUNNELS => messages.frame.tunnels,
            path if path.starts_with(paths::SETTINGS) => messages.frame.settings,
            _ => messages.frame.workers,
        }
    }
}

/// A title. The server reads it when the page has been rendered and no signal can be read any more, which would fail the
/// whole answer, so there it is worded at once.
pub fn title(wording: impl Fn() -> String + Send + Sync + 'static) -> TextProp {
    #[cfg(feature = "ssr")]
    return untrack(wording).into();
    #[cfg(not(feature = "ssr"))]
    wording.into()
}

/// The title of the browser's tab: the page, and how many workers are in trouble.
#[component]
pub fn PageTitle(
    /// The name of the page.
    name: fn(&'static Messages) -> &'static str,
) -> impl IntoView {
    let text = use_text();
    let fleet = use_fleet();
    view! { <Title text=title(move || (text.get().frame.title)(name(text.get()), fleet.troubled()))/> }.into_any()
}

/// The title of a page that is there for those who are not logged in too, and says nothing of the fleet.
#[component]
pub fn PlainTitle(
    /// The name of the page.
    name: fn(&'static Messages) -> &'static str,
) -> impl IntoView {
    let text = use_text();
    view! { <Title text=title(move || (text.get().frame.title)(name(text.get()), 0))/> }.into_any()
}

fn show_in_tab(troubled: usize) {
    if let Some(icon) = document().get_element_by_id("favicon") {
        // It fails for invalid names only, and ours is a literal.
        let _ = icon.set_attribute("href", &favicon(troubled));
    }
}

/// The icon of the browser's tab, with the number of workers in trouble, as a `data:` URL.
pub fn favicon(troubled: usize) -> String {
    let (colour, label) = match troubled {
        0 => ("%232563eb", String::new()),
        1..=99 => ("%23c8321f", troubled.to_string()),
        _ => ("%23c8321f", "99".to_owned()),
    };
    let drawing = if label.is_empty() {
        "<path d='M8 10h16v5H8zm0 8h16v5H8z' fill='white'/>".to_owned()
    } else {
        format!(
            "<text x='16' y='22' font-family='sans-serif' font-weight='700' font-size='18' text-anchor='middle' fill='white'>{label}</text>"
        )
    };
    format!(
        "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'><rect width='32' height='32' rx='7' fill='{colour}'/>{drawing}</svg>"
    )
}
