//! The forms. Each is whole in itself: in a dialog, or on the worker's page where there is no JavaScript.

use super::ask::{AllowReplacement, DeleteWorker, ManageError, ManageOutcome, SetLabels, SetMaintenance, fault_text};
use super::labels;
use crate::fleet::store::WorkerCell;
use crate::i18n::use_text;
use crate::post::{FormAction, PostForm};
use crate::reactive::effect;
use api::{Reason, WorkerView};
use leptos::prelude::*;

type Done = Option<Callback<()>>;

type ManageAction = FormAction<ManageOutcome, ManageError>;

/// Calls back once the server has done it.
fn when_done(action: ManageAction, done: Done) {
    effect(move || {
        let is_done = matches!(*action.answer().read(), Some(Ok(ManageOutcome::Done)));
        if let Some(done) = done.filter(|_| is_done) {
            done.run(());
        }
    });
}

#[component]
fn Answer(action: ManageAction) -> impl IntoView {
    let text = use_text();
    let fault = move || action.answer().with(|answer| fault_text(answer.as_ref()?, text.get()));
    view! { <div role="alert">{move || fault().map(|fault| view! { <p class="note error">{fault}</p> }.into_any())}</div> }
        .into_any()
}

#[component]
fn Buttons(
    #[prop(into)] word: Signal<&'static str>,
    #[prop(into)] pending: Signal<bool>,
    #[prop(into)] disabled: Signal<bool>,
    class: &'static str,
    cancel: Done,
) -> impl IntoView {
    let text = use_text();
    view! {
        <div class="form-buttons">
            {cancel.map(|cancel| view! {
                <button type="button" class="button" on:click=move |_| cancel.run(())>{text.of(|m| m.frame.cancel)}</button>
            }.into_any())}
            <button class=class disabled=move || pending.get() || disabled.get()>{move || word.get()}</button>
        </div>
    }
    .into_any()
}

fn name_of(worker: &WorkerCell) -> String {
    worker.with_untracked(|worker| worker.name.clone())
}

fn id_of(worker: &WorkerCell) -> String {
    worker.with_untracked(|worker| worker.id.to_string())
}

/// Edits the labels.
#[component]
pub fn LabelsForm(
    /// Of whom.
    worker: WorkerCell,
    /// Called when it is over, done or not; the form has a button to give up when it is there.
    #[prop(optional_no_strip)]
    over: Done,
) -> impl IntoView {
    let text = use_text();
    let action = ManageAction::new::<SetLabels>();
    when_done(action, over);
    let name = name_of(&worker);
    let lines = worker.with_untracked(|worker| labels::write(&worker.labels));
    view! {
        <PostForm action class="manage-form">
            <h2>{move || (text.get().workers.labels_title)(&name)}</h2>
            <input type="hidden" name="id" value=id_of(&worker)/>
            <label class="field">
                <span class="field-label">{text.of(|m| m.workers.labels_label)}</span>
                <textarea class="input mono" name="labels" rows="6" spellcheck="false" autofocus=over.is_some()>{lines}</textarea>
                <span class="field-hint">{text.of(|m| m.workers.labels_hint)}</span>
            </label>
            <Answer action/>
            <Buttons word=text.of(|m| m.frame.save) pending=action.is_pending() disabled=false class="button primary" cancel=over/>
        </PostForm>
    }
    .into_any()
}

/// Puts a worker into maintenance, or out of it.
#[component]
pub fn MaintenanceForm(
    /// Whom.
    worker: WorkerCell,
    /// Called when it is over, done or not; the form has a button to give up when it is there.
    #[prop(optional_no_strip)]
    over: Done,
) -> impl IntoView {
    let text = use_text();
    let action = ManageAction::new::<SetMaintenance>();
    when_done(action, over);
    let name = name_of(&worker);
    // As it was when the form was opened: it must not turn into its opposite under the user's hand.
    let is_on = worker.with_untracked(|worker| worker.maintenance.enabled);
    let title = move || {
        let workers = &text.get().workers;
        if is_on { (workers.maintenance_end_title)(&name) } else { (workers.maintenance_title)(&name) }
    };
    let word = text.of(move |m| if is_on { m.workers.end_maintenance } else { m.workers.start_maintenance });
    view! {
        <PostForm action class="manage-form">
            <h2>{title}</h2>
            <p>{text.of(move |m| if is_on { m.workers.maintenance_end_text } else { m.workers.maintenance_text })}</p>
            <input type="hidden" name="id" value=id_of(&worker)/>
            <input type="hidden" name="enabled" value=(!is_on).to_string()/>
            {(!is_on).then(|| view! {
                <label class="field">
                    <span class="field-label">{text.of(|m| m.workers.maintenance_remark)}</span>
                    <input class="input" name="remark" maxlength="200" autocomplete="off"/>
                </label>
            }.into_any())}
            <Answer action/>
            <Buttons word=word pending=action.is_pending() disabled=false class="button primary" cancel=over/>
        </PostForm>
    }
    .into_any()
}

/// Deletes a worker whose name is typed.
#[component]
pub fn DeleteForm(
    /// Whom.
    worker: WorkerCell,
    /// Called when it is over, done or not; the form has a button to give up when it is there.
    #[prop(optional_no_strip)]
    over: Done,
) -> impl IntoView {
    let text = use_text();
    let action = ManageAction::new::<DeleteWorker>();
    when_done(action, over);
    let name = name_of(&worker);
    let typed = RwSignal::new(String::new());
    // Without JavaScript nobody counts the letters: the server compares.
    let is_hydrated = RwSignal::new(false);
    effect(move || is_hydrated.set(true));
    let wanted = name.clone();
    let differs = Signal::derive(move || is_hydrated.get() && typed.read().trim() != wanted);
    let title_name = name.clone();
    view! {
        <PostForm action class="manage-form">
            <h2>{move || (text.get().workers.delete_title)(&title_name)}</h2>
            <p>{text.of(|m| m.workers.delete_text)}</p>
            <input type="hidden" name="id" value=id_of(&worker)/>
            <label class="field">
                <span class="field-label">{text.of(|m| m.workers.delete_label)}</span>
                <span class="mono typed-name">{name}</span>
                <input
                    class="input mono"
                    name="typed_name"
                    autocomplete="off"
                    spellcheck="false"
                    required
                    on:input=move |event| typed.set(event_target_value(&event))
                />
            </label>
            <Answer action/>
            <Buttons
                word=text.of(|m| m.workers.delete)
                pending=action.is_pending()
                disabled=differs
                class="button danger primary"
                cancel=over
            />
        </PostForm>
    }
    .into_any()
}

/// Lets the host that asks for it take a worker's place; nothing when nobody asks.
#[component]
pub fn ReplaceForm(
    /// Whose.
    worker: WorkerCell,
    /// Called when it is over, done or not; the form has a button to give up when it is there.
    #[prop(optional_no_strip)]
    over: Done,
) -> impl IntoView {
    let text = use_text();
    let action = ManageAction::new::<AllowReplacement>();
    when_done(action, over);
    let name = name_of(&worker);
    worker.with_untracked(asking_host).map(|hostname| view! {
        <PostForm action class="manage-form">
            <h2>{move || (text.get().workers.replace_title)(&name, &hostname)}</h2>
            <p>{text.of(|m| m.workers.replace_text)}</p>
            <input type="hidden" name="id" value=id_of(&worker)/>
            <Answer action/>
            <Buttons word=text.of(|m| m.workers.replace) pending=action.is_pending() disabled=false class="button primary" cancel=over/>
        </PostForm>
    }.into_any())
}

/// The host that asks to take a worker's place.
pub fn asking_host(worker: &WorkerView) -> Option<String> {
    worker.conditions.iter().find_map(|condition| match &condition.reason {
        Reason::ReplacementAsked { hostname, .. } => Some(hostname.clone()),
        _ => None,
    })
}
