//! Questions that pages ask the server.

use crate::session::UiError;
use crate::wire::{Answer, Marked};
use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

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
    answer_to(Q::PATH, written(&question)).await
}

#[cfg(not(feature = "hydrate"))]
async fn answer<Q: Question>(question: Q) -> Answer {
    Answer::of(&question.run_body().await)
}

#[cfg(feature = "hydrate")]
async fn answer_to(path: &str, question: String) -> Answer {
    use crate::exchange::{Body, exchange};

    Answer::of_reply(exchange(path, Some(Body::json(question))).await)
}

fn written<Q: Question>(question: &Q) -> String {
    serde_json::to_string(question).unwrap_or_default()
}

/// Data that a page waits for before it is rendered, so that it is whole without JavaScript. Awaiting it reads it.
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

impl<T: DeserializeOwned + 'static> IntoFuture for PageData<T> {
    type Output = Result<T, UiError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let answer = self.answer.into_future();
        Box::pin(async move { answer.await.read() })
    }
}

/// Asks, and again when the question changes.
pub fn page_data<Q: Question>(question: impl Fn() -> Q + Send + Sync + 'static) -> PageData<Q::Output> {
    PageData { answer: resource(move || Some(question())), content: PhantomData }
}

/// Asks when there is a question.
pub fn page_data_if<Q: Question>(
    question: impl Fn() -> Option<Q> + Send + Sync + 'static,
) -> PageData<Option<Q::Output>> {
    PageData { answer: resource(question), content: PhantomData }
}

#[cfg(feature = "hydrate")]
fn resource<Q: Question>(question: impl Fn() -> Option<Q> + Send + Sync + 'static) -> Resource<Answer, Marked> {
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
                Some(question) => answer_to(path, question).await,
                None => Answer::nothing(),
            }
        })
    };
    Resource::new_with_options(question, fetch, true)
}

#[cfg(not(feature = "hydrate"))]
fn resource<Q: Question>(question: impl Fn() -> Option<Q> + Send + Sync + 'static) -> Resource<Answer, Marked> {
    let question = std::sync::Arc::new(question);
    let source = {
        let question = question.clone();
        move || question().map(|question| written(&question))
    };
    let fetch = move |_| {
        let question = question();
        async move {
            match question {
                Some(question) => answer(question).await,
                None => Answer::nothing(),
            }
        }
    };
    Resource::new_with_options(source, fetch, true)
}
