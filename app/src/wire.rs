//! How a page's data travel from the server's rendering to the browser that takes it over.

use leptos::prelude::*;
use leptos::server::codee::{Decoder, Encoder};
use serde::{Deserialize, Serialize};
use std::future::Future;

/// JSON, read from bytes as the answers of server functions are: reading from text would bring a second copy of the
/// code for every type into the browser.
#[derive(Debug)]
pub struct PageJson;

impl<T: Serialize> Encoder<T> for PageJson {
    type Error = serde_json::Error;
    type Encoded = String;

    fn encode(value: &T) -> Result<String, serde_json::Error> {
        serde_json::to_string(value)
    }
}

impl<T: for<'de> Deserialize<'de>> Decoder<T> for PageJson {
    type Error = serde_json::Error;
    type Encoded = str;

    fn decode(text: &str) -> Result<T, serde_json::Error> {
        serde_json::from_slice(text.as_bytes())
    }
}

/// Data that a page waits for before it is rendered, so that it is whole without JavaScript.
pub fn page_data<S, T, Fut>(
    source: impl Fn() -> S + Send + Sync + 'static,
    fetch: impl Fn(S) -> Fut + Send + Sync + 'static,
) -> Resource<T, PageJson>
where
    S: PartialEq + Clone + Send + Sync + 'static,
    T: Serialize + for<'de> Deserialize<'de> + Send + Sync + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    Resource::new_with_options(source, fetch, true)
}
