//! What the forms ask of the server.

use crate::session::UiError;
use api::WorkerId;
use leptos::prelude::*;
use leptos::server_fn::codec::JsonEncoding;
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::{manage::labels, paths, session};

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ManageError {
    /// As with every server function.
    Ui(UiError),
    /// This line is no label.
    NoLabel(String),
    /// The typed name is not the worker's.
    NameDiffers,
    /// No host asks to take the worker's place any more.
    NobodyAsks,
}

impl ManageError {
    /// What to tell the user.
    pub fn text(&self, messages: &crate::i18n::Messages) -> String {
        match self {
            Self::Ui(error) => error.text(messages),
            Self::NoLabel(line) => (messages.workers.label_invalid)(line),
            Self::NameDiffers => messages.workers.delete_name_differs.to_owned(),
            Self::NobodyAsks => messages.workers.replace_over.to_owned(),
        }
    }
}

impl From<UiError> for ManageError {
    fn from(error: UiError) -> Self {
        Self::Ui(error)
    }
}

#[cfg(feature = "ssr")]
impl From<crate::backend::BackendFailed> for ManageError {
    fn from(failed: crate::backend::BackendFailed) -> Self {
        Self::Ui(failed.into())
    }
}

impl FromServerFnError for ManageError {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        Self::Ui(UiError::from_server_fn_error(error))
    }
}

impl std::fmt::Display for ManageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text(crate::i18n::Language::En.messages()))
    }
}

impl std::error::Error for ManageError {}

#[cfg(feature = "ssr")]
fn exists(found: bool) -> Result<(), ManageError> {
    if found { Ok(()) } else { Err(UiError::NotFound.into()) }
}

/// Replaces a worker's labels.
#[server]
pub async fn set_labels(
    /// The worker.
    id: WorkerId,
    /// One a line, as `key=value`.
    labels: String,
) -> Result<(), ManageError> {
    let caller = session::authorised().await?;
    let labels = labels::read(&labels).map_err(ManageError::NoLabel)?;
    exists(caller.backend.set_labels(id, labels).await?)
}

/// Puts a worker into or out of maintenance.
#[server]
pub async fn set_maintenance(
    /// The worker.
    id: WorkerId,
    /// Into it.
    enabled: bool,
    /// Why; may be empty.
    #[server(default)]
    remark: String,
) -> Result<(), ManageError> {
    let caller = session::authorised().await?;
    let remark = Some(remark.trim().to_owned()).filter(|remark| enabled && !remark.is_empty());
    exists(caller.backend.set_maintenance(id, enabled, remark).await?)
}

/// Deletes a worker whose name was typed, and leads to the list.
#[server]
pub async fn delete_worker(
    /// The worker.
    id: WorkerId,
    /// What was typed.
    typed_name: String,
) -> Result<(), ManageError> {
    let caller = session::authorised().await?;
    let (worker, _, _) = caller.backend.worker(id).await.ok_or(UiError::NotFound)?;
    if worker.name != typed_name.trim() {
        return Err(ManageError::NameDiffers);
    }
    exists(caller.backend.delete_worker(id).await?)?;
    leptos_axum::redirect(paths::WORKERS);
    Ok(())
}

/// Lets the host that asks for it take a worker's place.
#[server]
pub async fn allow_replacement(
    /// The worker.
    id: WorkerId,
) -> Result<(), ManageError> {
    let caller = session::authorised().await?;
    if caller.backend.allow_replacement(id).await? { Ok(()) } else { Err(ManageError::NobodyAsks) }
}
