//! What an operator can do to a worker: labels, maintenance, deletion, replacement. One dialog and one menu for a
//! whole page; the same forms work without JavaScript on the worker's page.

mod ask;
mod dialog;
mod forms;
mod labels;
mod menu;

pub use dialog::ManageDialog;
pub use forms::{DeleteForm, LabelsForm, MaintenanceForm, ReplaceForm, asking_host};
pub use menu::{MenuButton, WorkerMenu};

use api::WorkerId;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

/// Something to do to a worker that needs a dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Edit its labels.
    Labels,
    /// Into or out of maintenance.
    Maintenance,
    /// Delete it.
    Delete,
    /// Let another host take its place.
    Replace,
}

/// A menu that is open.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OpenMenu {
    worker: WorkerId,
    /// Where the button ends, in CSS pixels of the window.
    right: f64,
    bottom: f64,
}

/// Which menu and which dialog are open. A context of the pages that have workers to act on.
#[derive(Clone, Copy, Debug)]
pub struct Manage {
    menu: RwSignal<Option<OpenMenu>>,
    dialog: RwSignal<Option<(Task, WorkerId)>>,
}

impl Manage {
    /// Provides it to the pages below.
    pub fn provide() -> Self {
        let manage = Self { menu: RwSignal::new(None), dialog: RwSignal::new(None) };
        provide_context(manage);
        manage
    }

    /// Closes the menu and gives the focus back to its button.
    fn close_menu(self) {
        if let Some(menu) = self.menu.get_untracked() {
            self.menu.set(None);
            focus_button(menu.worker);
        }
    }

    /// Closes the dialog and gives the focus back to the button of the worker's menu, if it has one.
    fn close_dialog(self) {
        if let Some((_, worker)) = self.dialog.get_untracked() {
            self.dialog.set(None);
            focus_button(worker);
        }
    }

    /// Opens a dialog.
    pub fn open(self, task: Task, worker: WorkerId) {
        self.menu.set(None);
        self.dialog.set(Some((task, worker)));
    }
}

fn focus_button(worker: WorkerId) {
    let button = document().query_selector(&format!("[data-menu-of=\"{worker}\"]")).ok().flatten();
    if let Some(button) = button.and_then(|button| button.dyn_into::<HtmlElement>().ok()) {
        // A button that has just been removed cannot have the focus.
        let _ = button.focus();
    }
}

/// A link that acts as a button is pressed by the space bar too.
pub fn press_by_space(event: &leptos::ev::KeyboardEvent) {
    if event.key() != " " {
        return;
    }
    if let Some(link) = event.current_target().and_then(|target| target.dyn_into::<HtmlElement>().ok()) {
        event.prevent_default();
        link.click();
    }
}
