//! Questions that pages ask the server.

use crate::i18n::use_text;
use crate::session::UiError;
use crate::wire::{Answer, Marked};
use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::sync::Arc;

/// A server function that tells something. Its input is JSON: `#[server(input = Json)]`.
pub trait Question:
    ServerFn<Output: Serialize + DeserializeOwned + Send, Error = UiError> + Serialize + Send + 'static
{
}

impl<Q> Question for Q where
    Q: ServerFn<Output: Serialize + DeserializeOwned + Send, Error = UiError> + Serialize + Send + 'static
{
}

/// Asks once.
pub async fn ask<Q: Question>(question: Q) -> Result<Q::Output, UiError> {
    answer(question).await.read()
}

#[cfg(feature = "hydrate")]
async fn answer<Q: Question>(question: Q) -> Answer {
    ask_written(Q::PATH, written(&question)).await
}

#[cfg(not(feature = "hydrate"))]
async fn answer<Q: Question>(question: Q) -> Answer {
    Answer::of(&question.run_body().await)
}

/// Asks what is written already.
#[cfg(feature = "hydrate")]
pub async fn ask_written(path: &str, question: String) -> Answer {
    use crate::exchange::{Body, exchange};

    Answer::of_reply(exchange(path, Some(Body::json(question))).await)
}

/// A question as it is sent.
pub fn written<Q: Question>(question: &Q) -> String {
    serde_json::to_string(question).unwrap_or_default()
}

/// Data that a page waits for before it is rendered, so that it is whole without JavaScript.
#[derive(Debug)]
pub struct PageData<T> {
    answer: Resource<Answer, Marked>,
    content: PhantomData<fn() -> T>,
}

impl<T> Clone for PageData<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PageData<T> {}

impl<T: DeserializeOwned> PageData<T> {
    /// What is known by now.
    pub fn get_untracked(self) -> Option<Result<T, UiError>> {
        self.answer.get_untracked().map(|answer| answer.read())
    }
}

impl<T: DeserializeOwned + 'static> PageData<T> {
    /// What is shown when they are there; until then that they are on their way.
    pub fn show(self, view: impl Fn(Result<T, UiError>) -> AnyView + Send + Sync + 'static) -> AnyView {
        shown(self.answer, Arc::new(move |answer| view(answer.read())), Meanwhile::Word)
    }

    /// What is shown when they are there; until then nothing.
    pub fn show_quietly(self, view: impl Fn(Result<T, UiError>) -> AnyView + Send + Sync + 'static) -> AnyView {
        shown(self.answer, Arc::new(move |answer| view(answer.read())), Meanwhile::Nothing)
    }
}

/// What is shown while data are on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    /// That they are.
    Word,
    Nothing,
}

fn shown(
    answer: Resource<Answer, Marked>,
    view: Arc<dyn Fn(&Answer) -> AnyView + Send + Sync>,
    meanwhile: Meanwhile,
) -> AnyView {
    let text = use_text();
    let fallback = move || {
        let word = || view! { <p class="muted">{text.of(|m| m.frame.loading)}</p> }.into_any();
        (meanwhile == Meanwhile::Word).then(word)
    };
    let suspended = move || {
        let view = Arc::clone(&view);
        Suspend::new(async move { view(&answer.await) })
    };
    view! { <Suspense fallback>{suspended}</Suspense> }.into_any()
}

/// Asks, and again when the question changes.
pub fn page_data<Q: Question>(question: impl Fn() -> Q + Send + Sync + 'static) -> PageData<Q::Output> {
    PageData { answer: resource(move || Some(question()), Travel::BesideThePage), content: PhantomData }
}

/// Likewise, for a text that is in the server's page as it is: a browser that takes the page over reads an empty one.
pub fn shown_data<Q: Question<Output = String>>(question: impl Fn() -> Q + Send + Sync + 'static) -> PageData<String> {
    PageData { answer: resource(move || Some(question()), Travel::WithinThePage), content: PhantomData }
}

/// Asks when there is a question.
pub fn page_data_if<Q: Question>(
    question: impl Fn() -> Option<Q> + Send + Sync + 'static,
) -> PageData<Option<Q::Output>> {
    PageData { answer: resource(question, Travel::BesideThePage), content: PhantomData }
}

/// How an answer that the server renders a page with comes to the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Travel {
    /// As data, from which the browser makes the same view.
    BesideThePage,
    /// In the page alone.
    WithinThePage,
}

#[cfg(feature = "hydrate")]
fn resource<Q: Question>(
    question: impl Fn() -> Option<Q> + Send + Sync + 'static,
    _: Travel,
) -> Resource<Answer, Marked> {
    browser_resource(Q::PATH, Box::new(move || question().map(|question| written(&question))))
}

#[cfg(feature = "hydrate")]
fn browser_resource(
    path: &'static str,
    question: Box<dyn Fn() -> Option<String> + Send + Sync>,
) -> Resource<Answer, Marked> {
    let fetch = move |question: Option<String>| {
        send_wrapper::SendWrapper::new(async move {
            match question {
                Some(question) => ask_written(path, question).await,
                None => Answer::nothing(),
            }
        })
    };
    Resource::new_with_options(question, fetch, true)
}

#[cfg(not(feature = "hydrate"))]
fn resource<Q: Question>(
    question: impl Fn() -> Option<Q> + Send + Sync + 'static,
    travel: Travel,
) -> Resource<Answer, Marked> {
    let question = Arc::new(question);
    let source = {
        let question = question.clone();
        move || question().map(|question| written(&question))
    };
    let fetch = move |_| {
        let question = question();
        async move {
            match question {
                Some(question) if travel == Travel::WithinThePage => answer(question).await.within_the_page(),
                Some(question) => answer(question).await,
                None => Answer::nothing(),
            }
        }
    };
    Resource::new_with_options(source, fetch, true)
}
