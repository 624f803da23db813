//! What travels between server and browser, as text: answers are read where they are used, so that everything on the way
//! is compiled once and not again for each kind of answer.

use leptos::server::codee::{Decoder, Encoder};
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::sync::Arc;

/// The answer of a server function: the JSON of its `Result`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(Arc<str>);

impl Answer {
    /// Writes an answer.
    pub fn of<T: Serialize, E: Serialize>(result: &Result<T, E>) -> Self {
        Self(serde_json::to_string(result).unwrap_or_default().into())
    }

    /// The answer where nothing was asked: it reads as `Ok(None)`.
    pub fn nothing() -> Self {
        Self(r#"{"Ok":null}"#.into())
    }

    /// What the server replied to a request; None when it was not reached.
    #[cfg(feature = "hydrate")]
    pub fn of_reply(reply: Option<crate::exchange::Reply>) -> Self {
        let text = reply.map(|reply| {
            let variant = if reply.is_ok() { "Ok" } else { "Err" };
            format!(r#"{{"{variant}":{}}}"#, reply.text)
        });
        Self(text.unwrap_or_default().into())
    }

    /// Reads it. What is no answer, as when something in between answered for the server, is a failure of transport.
    pub fn read<T: DeserializeOwned, E: DeserializeOwned + FromServerFnError>(&self) -> Result<T, E> {
        from_json(&self.0).unwrap_or_else(|| Err(not_readable()))
    }
}

fn not_readable<E: FromServerFnError>() -> E {
    E::from_server_fn_error(ServerFnErrorErr::Deserialization("this is no answer".to_owned()))
}

/// Reads JSON; None when it is not what was expected.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(text.as_bytes()).ok()
}

/// How the data of a page travel from the server's rendering to the browser that takes it over.
#[derive(Debug)]
pub struct AsItIs;

impl Encoder<Answer> for AsItIs {
    type Error = Infallible;
    type Encoded = String;

    fn encode(answer: &Answer) -> Result<String, Infallible> {
        Ok(answer.0.as_ref().to_owned())
    }
}

impl Decoder<Answer> for AsItIs {
    type Error = Infallible;
    type Encoded = str;

    fn decode(text: &str) -> Result<Answer, Infallible> {
        Ok(Answer(text.into()))
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::session::UiError;

    #[test]
    fn an_answer_reads_as_it_was_written() {
        let done: Result<Vec<u32>, UiError> = Ok(vec![1, 2]);
        assert_eq!(Answer::of(&done).read(), done);
        let failed: Result<Vec<u32>, UiError> = Err(UiError::Failed { request_id: "r\"1".to_owned() });
        assert_eq!(Answer::of(&failed).read(), failed);
    }

    #[test]
    fn where_nothing_was_asked_there_is_none() {
        assert_eq!(Answer::nothing().read::<Option<u32>, UiError>(), Ok(None));
    }

    #[test]
    fn what_is_no_answer_is_a_failure_of_transport() {
        for text in ["", r#"{"Ok":<html>}"#, r#"{"Ok":"words"}"#] {
            let answer = AsItIs::decode(text).unwrap();
            assert_eq!(answer.read::<u32, UiError>(), Err(UiError::Transport), "{text}");
        }
    }
}
