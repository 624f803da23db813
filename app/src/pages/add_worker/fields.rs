//! The choices and fields of the form. What is in them is the document's business; the page reads it from there.

use super::JoinPage;
use super::command::{MAX_DEVICE_COUNT, Packaging, SshTargetError, Vendor};
use super::form::{Choice, Fault, Field, Network};
use crate::i18n::add_worker::AddWorkerMessages;
use crate::i18n::use_text;
use leptos::prelude::*;

/// Title and text of a tile.
type Words = (&'static str, &'static str);

/// What stands on the tile of a vendor. Product names are the same in every language.
pub fn vendor_words(vendor: Vendor, messages: &'static AddWorkerMessages) -> Words {
    match vendor {
        Vendor::Ascend910b => ("Ascend 910B", messages.ascend_910b_text),
        Vendor::Ascend310p => ("Ascend 310P", messages.ascend_310p_text),
        Vendor::AscendA3 => ("Ascend A3 (910C)", messages.ascend_a3_text),
        Vendor::Cpu => (messages.cpu, messages.cpu_text),
    }
}

/// What stands on the tile of a network.
pub fn network_words(network: Network, messages: &'static AddWorkerMessages) -> Words {
    match network {
        Network::LinkOnly => (messages.link_only, messages.link_only_text),
        Network::Direct => (messages.direct, messages.direct_text),
        Network::BehindTunnels => (messages.tunnels, messages.tunnels_text),
    }
}

/// One choice among few, each on a tile.
#[component]
pub fn Tiles<C: Choice>(
    name: &'static str,
    chosen: C,
    words: fn(C, &'static AddWorkerMessages) -> Words,
) -> impl IntoView {
    let text = use_text();
    let tile = |choice: C| {
        view! {
            <label class="tile">
                <input type="radio" name=name value=choice.word() checked=choice == chosen/>
                <span class="tile-title">{move || words(choice, &text.get().add_worker).0}</span>
                <span class="tile-text">{move || words(choice, &text.get().add_worker).1}</span>
            </label>
        }
        .into_any()
    };
    view! { <div class="tiles">{C::all().iter().copied().map(tile).collect_view()}</div> }.into_any()
}

/// Container, binary or systemd.
#[component]
pub fn PackagingTabs(chosen: Packaging) -> impl IntoView {
    let text = use_text();
    let word = move |packaging| {
        let messages = &text.get().add_worker;
        match packaging {
            Packaging::Container => messages.container,
            Packaging::Binary => messages.binary,
            Packaging::Systemd => messages.systemd,
        }
    };
    let segment = |packaging: Packaging| {
        view! {
            <label class="segment">
                <input type="radio" name="form" value=packaging.word() checked=packaging == chosen/>
                <span>{move || word(packaging)}</span>
            </label>
        }
        .into_any()
    };
    view! {
        <div class="segments" role="radiogroup" aria-label=text.of(|m| m.add_worker.packaging)>
            {Packaging::ALL.map(segment).collect_view()}
        </div>
    }
    .into_any()
}

/// A field with its label, hint and fault. It stays in the document while it is hidden, so that nothing typed is lost.
#[component]
pub fn TextField(page: JoinPage, field: Field) -> impl IntoView {
    let text = use_text();
    let default = move || page.form.read().default_text(field, &page.defaults.read()).unwrap_or_default();
    let placeholder = move || {
        let messages = &text.get().add_worker;
        match (field, default()) {
            (Field::Name, _) => messages.name_placeholder.to_owned(),
            (Field::Bastion, _) => (messages.example)("ops@bastion-01"),
            (Field::WorkerLogin, _) => (messages.example)("user@10.20.0.97"),
            (Field::ServerLogin, default) if default.is_empty() => (messages.example)("root@10.10.0.5"),
            (_, default) => default,
        }
    };
    let fault = move || page.plan.read().fault(field).map(|fault| fault_text(fault, &text.get().add_worker));
    let hint = move || hint(field, &text.get().add_worker);
    let initial = initial_value(page, field);
    let (hint_id, fault_id) = (format!("{}-hint", field.id()), format!("{}-fault", field.id()));
    let described_by = format!("{hint_id} {fault_id}");
    view! {
        <div class="field" hidden=move || !page.form.read().uses(field)>
            <label for=field.id()>
                {move || label(field, &text.get().add_worker)}
                {(field == Field::Bastion).then(|| view! { " " <span class="muted">"(" {text.of(|m| m.add_worker.optional)} ")"</span> }.into_any())}
            </label>
            <input
                class="input mono"
                id=field.id()
                name=field.word()
                value=initial
                placeholder=placeholder
                inputmode=input_mode(field)
                spellcheck="false"
                autocapitalize="off"
                autocomplete="off"
                aria-invalid=move || fault().is_some().to_string()
                aria-describedby=described_by
            />
            <p class="field-hint" id=hint_id hidden=move || hint().is_none()>{hint}</p>
            <p class="field-fault" id=fault_id role="status">{fault}</p>
        </div>
    }
    .into_any()
}

/// What the field holds at first. The server's address is there to be looked at; other defaults are placeholders.
fn initial_value(page: JoinPage, field: Field) -> String {
    let form = page.form.read_untracked();
    let typed = form.text(field);
    if typed.is_empty() && field == Field::Server {
        return page.defaults.read_untracked().join.server_url.clone();
    }
    typed.to_owned()
}

fn input_mode(field: Field) -> &'static str {
    match field {
        Field::Server => "url",
        Field::Port | Field::Devices | Field::ServerPort => "numeric",
        Field::Name | Field::Image | Field::Bastion | Field::ServerLogin | Field::WorkerLogin => "text",
    }
}

fn label(field: Field, messages: &AddWorkerMessages) -> &'static str {
    match field {
        Field::Server => messages.server,
        Field::Name => messages.name,
        Field::Port => messages.port,
        Field::Devices => messages.devices,
        Field::Image => messages.image,
        Field::Bastion => messages.bastion,
        Field::ServerLogin => messages.server_login,
        Field::WorkerLogin => messages.worker_login,
        Field::ServerPort => messages.server_port,
    }
}

fn hint(field: Field, messages: &AddWorkerMessages) -> Option<&'static str> {
    match field {
        Field::Server => Some(messages.server_hint),
        Field::Devices => Some(messages.devices_hint),
        Field::WorkerLogin => Some(messages.login_hint),
        _ => None,
    }
}

fn fault_text(fault: &Fault, messages: &AddWorkerMessages) -> String {
    match fault {
        Fault::Url(error) => (messages.fault_url)(error),
        Fault::DeviceCount => (messages.fault_device_count)(MAX_DEVICE_COUNT),
        Fault::ControlCharacter => messages.fault_control_character.to_owned(),
        Fault::Image => messages.fault_image.to_owned(),
        Fault::Port | Fault::Login(SshTargetError::Port) => messages.fault_port.to_owned(),
        Fault::Login(SshTargetError::User) => messages.fault_login_user.to_owned(),
        Fault::Login(SshTargetError::Host | SshTargetError::Empty) => messages.fault_login_host.to_owned(),
    }
}
