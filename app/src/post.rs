//! Forms whose answer comes without a new page where there is JavaScript. Without it the browser sends the same form
//! itself, and the server leads it on.

use crate::wire::Answer;
use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos::server_fn::error::FromServerFnError;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A server function that a form is sent to, and what it answered last.
#[derive(Debug)]
pub struct FormAction<T: 'static, E: 'static> {
    url: &'static str,
    answer: RwSignal<Option<Result<T, E>>>,
    is_pending: RwSignal<bool>,
}

impl<T, E> Clone for FormAction<T, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, E> Copy for FormAction<T, E> {}

impl<T, E> FormAction<T, E>
where
    T: DeserializeOwned + Send + Sync,
    E: FromServerFnError + DeserializeOwned + Send + Sync,
{
    /// Not sent yet.
    pub fn new<S: ServerFn<Output = T, Error = E>>() -> Self {
        Self { url: S::PATH, answer: RwSignal::new(earlier_error::<S>().map(Err)), is_pending: RwSignal::new(false) }
    }

    /// The last answer.
    pub fn answer(self) -> ReadSignal<Option<Result<T, E>>> {
        self.answer.read_only()
    }

    /// Whether an answer is on its way.
    pub fn is_pending(self) -> Signal<bool> {
        self.is_pending.into()
    }
}

/// What came of the form when it was sent without JavaScript: errors travel back to its page in the address.
#[cfg(feature = "ssr")]
fn earlier_error<S: ServerFn>() -> Option<S::Error> {
    use leptos::server::ServerActionError;
    use leptos::server_fn::error::ServerFnUrlError;

    let error = use_context::<ServerActionError>()?;
    (error.path() == S::PATH).then(|| ServerFnUrlError::<S::Error>::decode_err(error.err()))
}

#[cfg(not(feature = "ssr"))]
fn earlier_error<S: ServerFn>() -> Option<S::Error> {
    None
}

/// What a form needs of its [`FormAction`], whatever the answer is.
#[derive(Clone)]
pub struct Posting {
    url: &'static str,
    is_pending: RwSignal<bool>,
    take: Arc<dyn Fn(&Answer) + Send + Sync>,
}

impl<T, E> From<FormAction<T, E>> for Posting
where
    T: DeserializeOwned + Send + Sync,
    E: FromServerFnError + DeserializeOwned + Send + Sync,
{
    fn from(action: FormAction<T, E>) -> Self {
        // The page may have gone when the answer comes.
        let take = move |answer: &Answer| drop(action.answer.try_set(Some(answer.read())));
        Self { url: action.url, is_pending: action.is_pending, take: Arc::new(take) }
    }
}

impl Posting {
    #[cfg(feature = "hydrate")]
    fn send(&self, event: &leptos::ev::SubmitEvent) {
        use crate::exchange::{Body, exchange};

        if event.default_prevented() {
            return;
        }
        event.prevent_default();
        let Some(fields) = fields(event) else { return };
        self.is_pending.set(true);
        let posting = self.clone();
        leptos::task::spawn_local(async move {
            let reply = exchange(posting.url, Some(Body::form(fields))).await;
            (posting.take)(&Answer::of_reply(reply));
            posting.is_pending.try_set(false);
        });
    }

    #[cfg(not(feature = "hydrate"))]
    fn send<T>(&self, _: &T) {
        let _ = (&self.is_pending, &self.take);
    }
}

/// The fields of the form as the browser would send them.
#[cfg(feature = "hydrate")]
fn fields(event: &leptos::ev::SubmitEvent) -> Option<String> {
    use wasm_bindgen::JsCast;
    use web_sys::{FormData, HtmlFormElement, UrlSearchParams};

    let form = event.target()?.dyn_into::<HtmlFormElement>().ok()?;
    let data = FormData::new_with_form(&form).ok()?;
    let fields = UrlSearchParams::new_with_str_sequence_sequence(&data).ok()?;
    fields.to_string().as_string()
}

/// A form that is sent to a server function.
#[component]
pub fn PostForm(
    /// Where to.
    #[prop(into)]
    action: Posting,
    /// Its class in the stylesheet.
    #[prop(optional)]
    class: Option<&'static str>,
    /// What is in it.
    children: Children,
) -> impl IntoView {
    view! {
        <form method="post" action=action.url class=class on:submit=move |event| action.send(&event)>
            {children()}
        </form>
    }
    .into_any()
}
