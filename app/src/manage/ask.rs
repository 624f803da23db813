//! What the forms ask of the server.

use crate::i18n::{Language, Messages};
use crate::session::UiError;
use api::WorkerId;
use leptos::prelude::*;
use leptos::server_fn::codec::JsonEncoding;
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::{manage::labels, paths, plain_form, session};

/// What every form gets.
pub type Answer = Result<ManageOutcome, ManageError>;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ManageOutcome {
    /// It is done.
    Done,
    /// This line is no label.
    NoLabel(String),
    /// The typed name is not the worker's.
    NameDiffers,
    /// No host asks to take the worker's place any more.
    NobodyAsks,
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ManageError {
    /// As with every server function.
    Ui(UiError),
    /// The form must be filled in otherwise. Only a form that was sent without JavaScript gets this as an error: errors
    /// travel back to its page in the address.
    Refused(ManageOutcome),
}

/// What to tell the user about an answer; nothing when it is done.
pub fn fault_text(answer: &Answer, messages: &Messages) -> Option<String> {
    let outcome = match answer {
        Err(ManageError::Ui(error)) => return Some(error.text(messages)),
        Ok(outcome) | Err(ManageError::Refused(outcome)) => outcome,
    };
    match outcome {
        ManageOutcome::Done => None,
        ManageOutcome::NoLabel(line) => Some((messages.workers.label_invalid)(line)),
        ManageOutcome::NameDiffers => Some(messages.workers.delete_name_differs.to_owned()),
        ManageOutcome::NobodyAsks => Some(messages.workers.replace_over.to_owned()),
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
        f.write_str(&fault_text(&Err(self.clone()), Language::En.messages()).unwrap_or_default())
    }
}

impl std::error::Error for ManageError {}

/// Refuses what the form says.
#[cfg(feature = "ssr")]
fn refuse(request: &http::request::Parts, outcome: ManageOutcome) -> Answer {
    if plain_form::is_plain_form(request) { Err(ManageError::Refused(outcome)) } else { Ok(outcome) }
}

#[cfg(feature = "ssr")]
fn exists(found: bool) -> Answer {
    if found { Ok(ManageOutcome::Done) } else { Err(crate::session::not_found().into()) }
}

/// Replaces a worker's labels.
#[server(endpoint = "set_labels")]
pub async fn set_labels(
    /// The worker.
    id: WorkerId,
    /// One a line, as `key=value`.
    labels: String,
) -> Answer {
    let caller = session::authorised().await?;
    match labels::read(&labels) {
        Ok(labels) => exists(caller.backend.set_labels(id, labels).await?),
        Err(line) => refuse(&caller.request, ManageOutcome::NoLabel(line)),
    }
}

/// Puts a worker into or out of maintenance.
#[server(endpoint = "set_maintenance")]
pub async fn set_maintenance(
    /// The worker.
    id: WorkerId,
    /// Into it.
    enabled: bool,
    /// Why; may be empty.
    #[server(default)]
    remark: String,
) -> Answer {
    let caller = session::authorised().await?;
    let remark = Some(remark.trim().to_owned()).filter(|remark| enabled && !remark.is_empty());
    exists(caller.backend.set_maintenance(id, enabled, remark).await?)
}

/// Deletes a worker whose name was typed, and leads to the list.
#[server(endpoint = "delete_worker")]
pub async fn delete_worker(
    /// The worker.
    id: WorkerId,
    /// What was typed.
    typed_name: String,
) -> Answer {
    let caller = session::authorised().await?;
    let (worker, _, _) = caller.backend.worker(id).await.ok_or_else(crate::session::not_found)?;
    if worker.name != typed_name.trim() {
        return refuse(&caller.request, ManageOutcome::NameDiffers);
    }
    let done = exists(caller.backend.delete_worker(id).await?)?;
    leptos_axum::redirect(paths::WORKERS);
    Ok(done)
}

/// Lets the host that asks for it take a worker's place.
#[server(endpoint = "allow_replacement")]
pub async fn allow_replacement(
    /// The worker.
    id: WorkerId,
) -> Answer {
    let caller = session::authorised().await?;
    if caller.backend.allow_replacement(id).await? {
        return Ok(ManageOutcome::Done);
    }
    refuse(&caller.request, ManageOutcome::NobodyAsks)
}
