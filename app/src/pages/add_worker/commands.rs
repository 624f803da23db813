//! Step 3: what to run where, each with its own copy button.

use super::JoinPage;
use super::command::Packaging;
use super::form::{HEALTH_CHECK, TunnelPlan};
use crate::copy::CopyButton;
use crate::i18n::add_worker::AddWorkerMessages;
use crate::i18n::use_text;
use crate::reactive::{When, memo};
use leptos::prelude::*;

/// What an agent does with its file.
const AGENT_COMMANDS: &str = "gpustack tunnel plan --config tunnels.yaml\ngpustack tunnel trust --config tunnels.yaml\ngpustack tunnel run --config tunnels.yaml";

/// What to run on the bastion.
#[component]
pub fn TunnelStep(page: JoinPage) -> impl IntoView {
    let text = use_text();
    let part = move |pick: fn(&TunnelPlan) -> Option<String>| {
        memo(move || page.plan.read().tunnels.as_ref().and_then(pick).unwrap_or_default())
    };
    let is_complete = move || page.plan.read().tunnels.is_some();
    let is_loopback = move || page.plan.read().tunnels.as_ref().is_some_and(|tunnels| tunnels.logins_are_loopback);
    let yaml = part(|tunnels| Some(tunnels.yaml.clone()));
    let health_check = page.form.read_untracked().health_check;
    let login = part(|tunnels| tunnels.bastion_login.clone());
    let there = [
        (
            part(|tunnels| Some(tunnels.commands.server_to_bastion.clone())),
            "join-tunnel-1",
            (|m| m.server_to_bastion) as Pick,
        ),
        (part(|tunnels| Some(tunnels.commands.bastion_to_worker.clone())), "join-tunnel-2", |m| m.bastion_to_worker),
    ];
    let back = [
        (
            part(|tunnels| Some(tunnels.commands.worker_to_bastion.clone())),
            "join-tunnel-3",
            (|m| m.worker_to_bastion) as Pick,
        ),
        (part(|tunnels| Some(tunnels.commands.bastion_to_server.clone())), "join-tunnel-4", |m| m.bastion_to_server),
    ];
    let forward = move |(command, id, caption): (Memo<String>, &'static str, Pick)| {
        view! { <li class="join-forward"><CommandBlock id command>{move || caption(&text.get().add_worker)}</CommandBlock></li> }.into_any()
    };
    view! {
        <section class="join-part">
            <h2>{text.of(|m| m.add_worker.on_bastion)}</h2>
            <When holds=is_loopback>
                <p class="note warning">{text.of(|m| m.add_worker.tunnels_loopback)}</p>
            </When>
            <When holds=is_complete otherwise=move || view! { <p class="note">{text.of(|m| m.add_worker.tunnels_incomplete)}</p> }.into_any()>
                <CommandBlock id="join-agent-file" command=yaml>{text.of(|m| m.add_worker.agent_file)}</CommandBlock>
                <label><input type="checkbox" name=HEALTH_CHECK checked=health_check/>" "{text.of(|m| m.add_worker.health_check)}</label>
                <CommandBlock id="join-agent" command=Signal::stored(AGENT_COMMANDS.to_owned())>{text.of(|m| m.add_worker.agent_run)}</CommandBlock>
                <details class="join-back">
                <summary>{text.of(|m| m.add_worker.by_hand)}</summary>
                <p class="muted">{text.of(|m| m.add_worker.on_bastion_text)}</p>
                <ol class="join-tunnels">
                    <When holds=move || !login.read().is_empty()>
                        <li><CommandBlock id="join-bastion" command=login>{text.of(|m| m.add_worker.bastion_login)}</CommandBlock></li>
                    </When>
                    {there.map(forward).collect_view()}
                </ol>
                <details class="join-way-back">
                    <summary>{text.of(|m| m.add_worker.way_back)}</summary>
                    <p class="muted">{move || (text.get().add_worker.way_back_text)(page.defaults.read().worker_port)}</p>
                    <ol class="join-tunnels">{back.map(forward).collect_view()}</ol>
                </details>
                </details>
            </When>
        </section>
    }
    .into_any()
}

/// What to run on the worker's host.
#[component]
pub fn CommandStep(page: JoinPage) -> impl IntoView {
    let text = use_text();
    let check = memo(move || page.plan.read().host.as_ref().map(|host| host.check.clone()).unwrap_or_default());
    let join = memo(move || page.plan.read().host.as_ref().map(|host| host.join.clone()).unwrap_or_default());
    let join_text = move || {
        let messages = &text.get().add_worker;
        let version = &page.defaults.read().join.version;
        match page.form.read().packaging {
            Packaging::Container => messages.join_text_container.to_owned(),
            Packaging::Binary => (messages.join_text_binary)(version),
            Packaging::Systemd => (messages.join_text_systemd)(version),
        }
    };
    let missing = move || {
        let messages = &text.get().add_worker;
        if page.plan.read().token_is_unusable() { messages.fault_token } else { messages.no_command }
    };
    view! {
        <When holds=move || page.plan.read().host.is_some() otherwise=move || view! { <p class="note error" role="alert">{missing}</p> }.into_any()>
            <CommandBlock id="join-check" command=check>
                <h2>{text.of(|m| m.add_worker.check)}</h2>
                <p class="muted">{text.of(|m| m.add_worker.check_text)}</p>
            </CommandBlock>
            <CommandBlock id="join-command" command=join primary=true>
                <h2>{text.of(|m| m.add_worker.join)}</h2>
                <p class="muted">{join_text}</p>
            </CommandBlock>
        </When>
    }
    .into_any()
}

/// A text of the page.
type Pick = fn(&'static AddWorkerMessages) -> &'static str;

/// A command, what it does, and the button that copies it.
#[component]
fn CommandBlock(
    id: &'static str,
    #[prop(into)] command: Signal<String>,
    #[prop(optional)] primary: bool,
    children: Children,
) -> impl IntoView {
    let caption_id = format!("{id}-caption");
    view! {
        <figure class="command">
            <figcaption id=caption_id.clone()>{children()}</figcaption>
            <CopyButton text=command shown_in=id described_by=caption_id primary/>
            // can be scrolled by keyboard
            <pre id=id tabindex="0">{command}</pre>
        </figure>
    }
    .into_any()
}
