//! The one dialog of a page.

use super::{DeleteForm, LabelsForm, MaintenanceForm, Manage, ReplaceForm, Task};
use crate::fleet::use_fleet;
use crate::reactive::effect;
use leptos::html;
use leptos::prelude::*;

/// Shows the form for what [`Manage`] has open. The browser keeps the focus inside, and closes it by Escape.
#[component]
pub fn ManageDialog(
    /// What is open.
    manage: Manage,
) -> impl IntoView {
    let fleet = use_fleet();
    let element = NodeRef::<html::Dialog>::new();
    let over = Callback::new(move |()| manage.close_dialog());
    effect(move || {
        let Some(dialog) = element.get() else { return };
        if manage.dialog.read().is_none() {
            dialog.close();
        } else if !dialog.open() {
            // It fails when the dialog is open already or not in the page; neither is the case.
            let _ = dialog.show_modal();
        }
    });
    let form = move || {
        let (task, id) = manage.dialog.get()?;
        let worker = fleet.worker(id)?;
        Some(match task {
            Task::Labels => view! { <LabelsForm worker over=Some(over)/> }.into_any(),
            Task::Maintenance => view! { <MaintenanceForm worker over=Some(over)/> }.into_any(),
            Task::Delete => view! { <DeleteForm worker over=Some(over)/> }.into_any(),
            Task::Replace => view! { <ReplaceForm worker over=Some(over)/> }.into_any(),
        })
    };
    view! {
        <dialog class="dialog" node_ref=element on:close=move |_| over.run(())>
            {form}
        </dialog>
    }
    .into_any()
}
