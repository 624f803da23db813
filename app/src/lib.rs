//! The admin UI, compiled twice: into the server (feature `ssr`) and to WebAssembly (feature `hydrate`).
//!
//! `pages/` has a folder for each page, `frame/` what is around them, `i18n/` every text.

// Views are types: a page nests deeper than the compiler's default allows.
#![recursion_limit = "512"]

// rustdoc takes no flags from there, and needs none.
#[cfg(not(any(erase_components, doc, doctest)))]
compile_error!(
    "the flag `--cfg erase_components` is missing: `.cargo/config.toml` sets it, but a RUSTFLAGS variable replaces what \
     is set there, so add it to that variable"
);

pub mod ask;
#[cfg(feature = "ssr")]
pub mod backend;
pub mod browser;
pub mod copy;
pub mod drawn;
#[cfg(feature = "hydrate")]
mod exchange;
pub mod fleet;
pub mod format;
pub mod frame;
pub mod i18n;
pub mod icon;
mod json;
pub mod manage;
pub mod model;
mod order;
pub mod pages;
pub mod paths;
#[cfg(feature = "ssr")]
mod plain_form;
pub mod post;
pub mod preferences;
pub mod reactive;
pub mod session;
pub mod widgets;
pub mod wire;

use crate::fleet::{Fleet, Layout};
use crate::frame::Frame;
use crate::i18n::Text;
use crate::pages::{
    AddWorkerPage, DevicesPage, HostPage, LoginPage, NotFoundPage, PasswordPage, SettingsPage, TunnelsPage, WorkerPage,
    WorkersPage,
};
use crate::preferences::{LayoutChoice, Preferences, ThemeChoice};
use crate::widgets::time::ZoneChoice;
use leptos::prelude::*;
use leptos_meta::{MetaTags, provide_meta_context};
use leptos_router::components::{ParentRoute, Redirect, Route, Router, Routes};
use leptos_router::{SsrMode, path};

/// Stands for the sources that this half of the UI was compiled from. HTML of one build and code of another do not fit
/// together, and the code would fail on it in ways that do not tell why.
const SOURCES: &str = env!("APP_SOURCES");

/// Where the built browser files lie, as a folder below the site's root; the server provides it as a context.
/// Without it the pages still work as plain HTML.
#[derive(Clone, Debug, Default)]
pub struct BrowserFiles(pub Option<String>);

/// The HTML document around the app. What only the server knows belongs here, never into [`App`], which the browser
/// must be able to render likewise.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    let folder = use_context::<BrowserFiles>().and_then(|files| files.0);
    let preferences = Preferences::current();
    view! {
        <!DOCTYPE html>
        <html
            lang=preferences.language.tag()
            data-theme=preferences.theme.tag()
            data-layout=preferences.layout.map(Layout::tag)
            data-sources=SOURCES
        >
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <link rel="icon" id="favicon" type="image/svg+xml" href=frame::favicon(0)/>
                {folder.map(|folder| {
                    let mut options = options;
                    options.site_pkg_dir = folder.as_str().into();
                    view! {
                        <link rel="stylesheet" href=format!("/{folder}/app.css")/>
                        <HydrationScripts options=options/>
                    }.into_any()
                })}
                <MetaTags/>
            </head>
            <body><App/></body>
        </html>
    }
}

/// All pages.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    let preferences = Preferences::current();
    provide_context(Text::new(preferences.language));
    provide_context(ThemeChoice(RwSignal::new(preferences.theme)));
    provide_context(LayoutChoice(RwSignal::new(preferences.layout)));
    provide_context(ZoneChoice::new());
    provide_context(Fleet::default());
    // Every page waits for its data, so that it is whole without JavaScript and its status code is right.
    view! {
        <Router>
            <Routes fallback=NotFoundPage>
                <Route path=path!("/login") view=page(|| view! { <LoginPage/> }.into_any()) ssr=SsrMode::Async/>
                <ParentRoute path=path!("") view=page(|| view! { <Frame/> }.into_any()) ssr=SsrMode::Async>
                    <Route path=path!("/") view=page(|| view! { <Redirect path=paths::WORKERS/> }.into_any()) ssr=SsrMode::Async/>
                    <Route path=path!("/workers") view=page(|| view! { <WorkersPage/> }.into_any()) ssr=SsrMode::Async/>
                    <Route path=path!("/workers/add") view=page(|| view! { <AddWorkerPage/> }.into_any()) ssr=SsrMode::Async/>
                    <Route path=path!("/workers/:id") view=page(|| view! { <WorkerPage/> }.into_any()) ssr=SsrMode::Async/>
                    <Route path=path!("/workers/:id/host") view=page(|| view! { <HostPage/> }.into_any()) ssr=SsrMode::Async/>
                    <Route path=path!("/devices") view=page(|| view! { <DevicesPage/> }.into_any()) ssr=SsrMode::Async/>
                    <Route path=path!("/tunnels") view=page(|| view! { <TunnelsPage/> }.into_any()) ssr=SsrMode::Async/>
                    <Route path=path!("/settings") view=page(|| view! { <SettingsPage/> }.into_any()) ssr=SsrMode::Async/>
                    <Route path=path!("/settings/password") view=page(|| view! { <PasswordPage/> }.into_any()) ssr=SsrMode::Async/>
                </ParentRoute>
            </Routes>
        </Router>
    }.into_any()
}

/// A page as the router takes it. All have one type, so that the router's code is compiled once for all of them.
fn page(page: fn() -> AnyView) -> fn() -> AnyView {
    page
}

/// Takes the server's HTML over in the browser. Leaves it as it is, which is usable, when it is of another build.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    if browser::html_attribute("data-sources").as_deref() != Some(SOURCES) {
        leptos::logging::error!("the server and its browser files were built from different sources: build both anew");
        return;
    }
    leptos::mount::hydrate_body(App);
    browser::set_html_attribute("data-hydrated", "1");
}
