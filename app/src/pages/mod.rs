//! A folder for each page.

mod add_worker;
mod login;
mod not_found;
mod settings;
mod worker;
mod workers;

pub use add_worker::AddWorkerPage;
pub use login::LoginPage;
pub use not_found::NotFoundPage;
pub use settings::{PasswordPage, SettingsPage};
pub use worker::WorkerPage;
pub use workers::{WorkersPage, use_list_query};
