//! The page that gives the join command: three choices, one command, and below it the worker as it arrives.

mod arrivals;
mod command;
mod commands;
mod fields;
mod form;

use crate::ask::page_data;
use crate::frame::PageTitle;
use crate::i18n::use_text;
use crate::pages::Failure;
use crate::paths;
use crate::reactive::{When, effect, memo};
use crate::session::UiError;
use arrivals::Arrivals;
use commands::{CommandStep, TunnelStep};
use fields::{PackagingTabs, TextField, Tiles};
use form::{Defaults, Field, JoinForm, Network, Plan};
use leptos::html;
use leptos::prelude::*;
use leptos::server_fn::codec::Json;
use leptos_router::hooks::use_query_map;

/// What the page knows without being told.
#[server(input = Json, endpoint = "join_defaults")]
async fn join_defaults() -> Result<Defaults, UiError> {
    let authorised = crate::session::authorised().await?;
    let join = authorised.backend.join_info(&authorised.request).await;
    Ok(Defaults::new(join))
}

/// What all parts of the page share.
#[derive(Clone, Copy)]
struct JoinPage {
    /// What was chosen and typed.
    form: RwSignal<JoinForm>,
    /// What is known without being told.
    defaults: RwSignal<Defaults>,
    /// What becomes of both.
    plan: Memo<Plan>,
}

/// The page that gives the join command.
#[component]
pub fn AddWorkerPage() -> impl IntoView {
    let text = use_text();
    let defaults = page_data(|| JoinDefaults {});
    view! {
        <PageTitle name=|m| m.add_worker.title/>
        <header class="join-head">
            <h1>{text.of(|m| m.add_worker.title)}</h1>
            <p class="muted">{text.of(|m| m.add_worker.lead)}</p>
        </header>
        {defaults.show(move |defaults| match defaults {
            Ok(defaults) => view! { <Join defaults/> }.into_any(),
            Err(error) => view! { <Failure error/> }.into_any(),
        })}
    }
    .into_any()
}

/// A plain form whose fields are the address's query, so that the page does its job without JavaScript too. With it,
/// every key and click reads the whole form anew.
#[component]
fn Join(defaults: Defaults) -> impl IntoView {
    let text = use_text();
    let query = use_query_map().get_untracked();
    let form = RwSignal::new(JoinForm::from_query(|name| query.get(name)));
    let newest = defaults.join.newest_worker;
    let defaults = RwSignal::new(defaults);
    let plan = memo(move || form.read().plan(&defaults.read()));
    let page = JoinPage { form, defaults, plan };
    let element = NodeRef::<html::Form>::new();
    effect(move || {
        if let Some(element) = element.get() {
            adopt_browser_state(page, &element);
        }
    });
    let read = move || {
        if let Some(filled) = element.get_untracked().and_then(|element| filled_in(&element)) {
            form.set(filled);
        }
    };
    view! {
        // autocomplete="off": Firefox would otherwise fill in what was there before a reload
        <form
            class="join"
            method="get"
            action=paths::ADD_WORKER
            autocomplete="off"
            node_ref=element
            on:input=move |_| read()
            on:submit=|event| event.prevent_default()
        >
            <div class="join-choices">
                <fieldset class="panel join-step">
                    <legend><span class="step-number">"1"</span>{text.of(|m| m.add_worker.step_devices)}</legend>
                    <Tiles name="vendor" chosen=form.read_untracked().vendor words=fields::vendor_words/>
                    <TextField page field=Field::Devices/>
                </fieldset>
                <fieldset class="panel join-step">
                    <legend><span class="step-number">"2"</span>{text.of(|m| m.add_worker.step_network)}</legend>
                    <Tiles name="network" chosen=form.read_untracked().network words=fields::network_words/>
                    <TextField page field=Field::Server/>
                    <LoopbackWarning page/>
                    <TextField page field=Field::WorkerLogin/>
                    <TextField page field=Field::ServerLogin/>
                    <TextField page field=Field::ServerPort/>
                    <TextField page field=Field::Bastion/>
                </fieldset>
                <button class="button without-script">{text.of(|m| m.add_worker.update)}</button>
            </div>
            <div class="join-result">
                <fieldset class="panel join-step">
                    <legend><span class="step-number">"3"</span>{text.of(|m| m.add_worker.step_command)}</legend>
                    <PackagingTabs chosen=form.read_untracked().packaging/>
                    <div class="join-options">
                        <TextField page field=Field::Name/>
                        <TextField page field=Field::Port/>
                        <TextField page field=Field::Image/>
                    </div>
                    <When holds=move || form.read().network == Network::BehindTunnels>
                        <TunnelStep page/>
                    </When>
                    <CommandStep page/>
                </fieldset>
                <Arrivals newest page/>
            </div>
        </form>
    }
    .into_any()
}

#[component]
fn LoopbackWarning(page: JoinPage) -> impl IntoView {
    let text = use_text();
    let loopback = move || page.plan.read().host.as_ref().is_some_and(|host| host.server_is_loopback);
    view! {
        <div role="status">
            <When holds=loopback>
                <p class="note warning">{text.of(|m| m.add_worker.server_loopback)}</p>
            </When>
        </div>
    }
    .into_any()
}

/// What stands in the form now.
#[cfg(feature = "hydrate")]
fn filled_in(form: &web_sys::HtmlFormElement) -> Option<JoinForm> {
    let data = web_sys::FormData::new_with_form(form).ok()?;
    Some(JoinForm::from_query(|name| data.get(name).as_string()))
}

#[cfg(not(feature = "hydrate"))]
fn filled_in<T>(_: &T) -> Option<JoinForm> {
    None
}

/// Takes over what was typed before the page came alive, and the server's address as the browser knows it: a proxy
/// may have told the server another one.
#[cfg(feature = "hydrate")]
fn adopt_browser_state(page: JoinPage, form: &web_sys::HtmlFormElement) {
    use wasm_bindgen::JsCast;
    let Some(mut filled) = filled_in(form) else { return };
    let origin = window().location().origin().unwrap_or_default();
    let told = page.defaults.read_untracked().join.server_url.clone();
    let input = document().get_element_by_id(&Field::Server.id());
    let input = input.and_then(|element| element.dyn_into::<web_sys::HtmlInputElement>().ok());
    if let Some(input) = input.filter(|input| input.value() == told && origin.starts_with("http") && origin != told) {
        input.set_value(&origin);
        page.defaults.update(|defaults| defaults.join.server_url = origin);
        filled = filled_in(form).unwrap_or(filled);
    }
    page.form.set(filled);
}

#[cfg(not(feature = "hydrate"))]
fn adopt_browser_state<T>(_: JoinPage, _: &T) {}
