//! The page of one worker: state, conditions, devices, which follow the stream; and tunnels, host, reach, events, which the
//! server draws.

mod ask;
mod conditions;
mod devices;
#[cfg(feature = "ssr")]
mod events;
#[cfg(feature = "ssr")]
mod facts;
#[cfg(feature = "ssr")]
mod part;
#[cfg(feature = "ssr")]
mod tunnels;

use crate::ask::{ask, page_data_if};
use crate::browser::while_visible;
use crate::copy::CopyButton;
use crate::drawn::{Drawn, Part};
use crate::fleet::store::WorkerCell;
use crate::fleet::use_fleet;
use crate::frame::{PageTitle, title};
use crate::i18n::use_text;
use crate::icon::Icon;
use crate::manage::{
    DeleteForm, LabelsForm, MaintenanceForm, Manage, ManageDialog, ReplaceForm, Task, asking_host, press_by_space,
};
use crate::pages::not_found::answer_not_found;
use crate::pages::workers::{Failure, Labels};
use crate::paths;
use crate::reactive::memo;
use crate::session::UiError;
use crate::widgets::StateBadge;
use api::{WorkerId, WorkerState};
use ask::{AskWorker, WorkerDetail};
use conditions::Conditions;
use devices::Devices;
use leptos::prelude::*;
use leptos_router::hooks::use_params_map;
#[cfg(feature = "ssr")]
pub use part::draw;
use std::time::Duration;

/// What the stream does not carry is asked for again this often while the page is looked at.
const DETAIL_INTERVAL: Duration = Duration::from_secs(15);

/// The page of one worker.
#[component]
pub fn WorkerPage() -> impl IntoView {
    let fleet = use_fleet();
    let params = use_params_map();
    let id = memo(move || params.with(|params| params.get("id").and_then(|id| id.parse().ok()).map(WorkerId)));
    let detail = page_data_if(move || id.get().map(|id| AskWorker { id }));
    detail.show(move |detail| match detail {
        Ok(Some(detail)) => {
            fleet.show_worker(detail.worker.clone(), detail.server_time_ms);
            let worker = fleet.worker(detail.worker.id).unwrap_or_else(|| ArcRwSignal::new(detail.worker.clone()));
            view! { <Content worker detail/> }.into_any()
        }
        Ok(None) | Err(UiError::NotFound) => {
            answer_not_found();
            view! { <Gone/> }.into_any()
        }
        Err(error) => view! { <Failure error/> }.into_any(),
    })
}

#[component]
fn Gone() -> impl IntoView {
    let text = use_text();
    view! {
        <PageTitle name=|m| m.frame.not_found_title/>
        <section class="empty panel">
            <h1>{text.of(|m| m.frame.no_such_thing)}</h1>
            <p class="muted">{text.of(|m| m.frame.not_found_text)}</p>
            <a class="button" href=paths::WORKERS>{text.of(|m| m.frame.to_workers)}</a>
        </section>
    }
    .into_any()
}

#[component]
fn Content(worker: WorkerCell, detail: WorkerDetail) -> impl IntoView {
    let fleet = use_fleet();
    let manage = Manage::provide();
    let id = detail.worker.id;
    fleet.look(Signal::derive(move || vec![id]));
    let detail = RwSignal::new(detail);
    let conditions = {
        let worker = worker.clone();
        memo(move || worker.with(|worker| (worker.state, worker.conditions.clone())))
    };
    follow_detail(id, detail, conditions);
    // A worker that is deleted while one looks at it stays readable, and says so.
    let is_gone = memo(move || fleet.is_whole() && !fleet.members().contains(&id));
    let networks = memo(move || detail.read().networks.clone());
    view! {
        <Head worker=worker.clone() is_gone/>
        <div class="worker-page">
            <Conditions worker=worker.clone()/>
            <Drawn part=Part::Worker/>
            <Devices worker=worker.clone() networks/>
            <section class="panel section manage without-script" id="manage">
                <LabelsForm worker=worker.clone()/>
                <MaintenanceForm worker=worker.clone()/>
                <ReplaceForm worker=worker.clone()/>
                <DeleteForm worker/>
            </section>
        </div>
        <ManageDialog manage/>
    }
    .into_any()
}

/// Asks again for what the stream does not carry: now and then, and when a condition has changed.
fn follow_detail<T: PartialEq + Send + Sync + 'static>(id: WorkerId, detail: RwSignal<WorkerDetail>, changes: Memo<T>) {
    let ask_again = move || {
        leptos::task::spawn_local(async move {
            // What is shown stays when the server is not reached; the connection dot says so.
            if let Ok(fresh) = ask(AskWorker { id }).await {
                detail.try_set(fresh);
            }
        });
    };
    Effect::new(move |before: Option<()>| {
        changes.track();
        if before.is_some() {
            ask_again();
        }
    });
    while_visible(DETAIL_INTERVAL, ask_again);
}

#[component]
fn Head(worker: WorkerCell, is_gone: Memo<bool>) -> impl IntoView {
    let text = use_text();
    let name = {
        let worker = worker.clone();
        memo(move || worker.with(|worker| worker.name.clone()))
    };
    let state = {
        let worker = worker.clone();
        memo(move || worker.with(|worker| worker.state))
    };
    let place = {
        let worker = worker.clone();
        memo(move || worker.with(|worker| (worker.ip.clone(), worker.os.clone())))
    };
    let asked_by = {
        let worker = worker.clone();
        memo(move || worker.with(asking_host))
    };
    let address = Signal::derive(move || place.get().0);
    view! {
        <TitleOfWorker worker=worker.clone()/>
        <div class="worker-head">
            <p class="breadcrumb"><a href=paths::WORKERS>{Icon::Back.view()}{text.of(|m| m.worker.back)}</a></p>
            <div class="worker-title">
                <h1 class="mono">{name}</h1>
                <CopyButton text=Signal::derive(move || name.get()) compact=true label=Signal::derive(move || text.get().workers.copy_name.to_owned())/>
                <StateBadge state/>
                <Actions worker=worker.clone() state asked_by/>
            </div>
            <div class="worker-place">
                <span class="mono">{address}</span>
                <CopyButton text=address compact=true label=Signal::derive(move || text.get().workers.copy_address.to_owned())/>
                <span>{move || place.get().1}</span>
                <Labels worker/>
            </div>
            {move || is_gone.get().then(|| view! { <p class="note warning">{text.of(|m| m.frame.no_such_thing)}</p> }.into_any())}
        </div>
    }
    .into_any()
}

#[component]
fn TitleOfWorker(worker: WorkerCell) -> impl IntoView {
    let text = use_text();
    let fleet = use_fleet();
    view! { <leptos_meta::Title text=title(move || (text.get().frame.title)(&worker.read().name, fleet.troubled()))/> }
        .into_any()
}

/// Buttons that open dialogs; without JavaScript they lead to the forms at the page's end.
#[component]
fn Actions(worker: WorkerCell, state: Memo<WorkerState>, asked_by: Memo<Option<String>>) -> impl IntoView {
    let text = use_text();
    let manage = use_context::<Manage>();
    let id = worker.with_untracked(|worker| worker.id);
    let open = move |task: Task| {
        move |event: leptos::ev::MouseEvent| {
            if let Some(manage) = manage {
                event.prevent_default();
                manage.open(task, id);
            }
        }
    };
    let maintenance_word = move || {
        let workers = &text.get().workers;
        if state.get() == WorkerState::Maintenance { workers.end_maintenance } else { workers.start_maintenance }
    };
    view! {
        <div class="worker-actions">
            {move || asked_by.read().is_some().then(|| view! {
                <a class="button primary" role="button" href="#manage" on:click=open(Task::Replace) on:keydown=|event| press_by_space(&event)>{text.of(|m| m.workers.replace)}</a>
            }.into_any())}
            <a class="button" role="button" href="#manage" on:click=open(Task::Labels) on:keydown=|event| press_by_space(&event)>{text.of(|m| m.workers.edit_labels)}</a>
            <a class="button" role="button" href="#manage" on:click=open(Task::Maintenance) on:keydown=|event| press_by_space(&event)>{maintenance_word}</a>
            <a class="button danger" role="button" href="#manage" on:click=open(Task::Delete) on:keydown=|event| press_by_space(&event)>{text.of(|m| m.workers.delete)}</a>
        </div>
    }
    .into_any()
}
