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

    /// Opens a dialog.
    pub fn open(self, task: Task, worker: WorkerId) {
        self.menu.set(None);
        self.dialog.set(Some((task, worker)));
    }
}
