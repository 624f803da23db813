//! A folder for each page.

mod add_worker;
pub(crate) mod devices;
pub(crate) mod host;
mod login;
mod not_found;
mod settings;
pub(crate) mod tunnels;
pub(crate) mod worker;
mod workers;

pub use add_worker::AddWorkerPage;
pub use devices::DevicesPage;
pub use host::HostPage;
pub use login::LoginPage;
pub use not_found::{NotFoundPage, answer_not_found};
pub use settings::{PasswordPage, SettingsPage};
pub use tunnels::TunnelsPage;
pub use worker::WorkerPage;
pub use workers::{Failure, WorkersPage};
