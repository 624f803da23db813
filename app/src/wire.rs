//! What travels between server and browser, as text: answers are read where they are used, so that everything on the way
//! is compiled once and not again for each kind of answer.

use crate::json::from_json;
use leptos::server::codee::{Decoder, Encoder};
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::sync::Arc;

/// The answer of a server function, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What was asked for, or an error.
    is_done: bool,
    json: Arc<str>,
    /// Whether the page has it in it.
    #[cfg(not(feature = "hydrate"))]
    is_in_page: bool,
}

impl Answer {
    fn new(is_done: bool, json: Arc<str>) -> Self {
        Self {
            is_done,
            json,
            #[cfg(not(feature = "hydrate"))]
            is_in_page: false,
        }
    }

    /// Writes an answer.
    pub fn of<T: Serialize, E: Serialize>(result: &Result<T, E>) -> Self {
        let json = match result {
            Ok(done) => serde_json::to_string(done),
            Err(error) => serde_json::to_string(error),
        };
        Self::new(result.is_ok(), json.unwrap_or_default().into())
    }

    /// The answer where nothing was asked: it reads as `Ok(None)`.
    pub fn nothing() -> Self {
        Self::new(true, "null".into())
    }

    /// A text that the page has in it: what travels beside the page is an empty one. Errors travel as they are.
    #[cfg(not(feature = "hydrate"))]
    pub fn within_the_page(self) -> Self {
        Self { is_in_page: self.is_done, ..self }
    }

    /// What the server replied to a request; None when it was not reached.
    #[cfg(feature = "hydrate")]
    pub fn of_reply(reply: Option<crate::exchange::Reply>) -> Self {
        let is_done = reply.as_ref().is_some_and(crate::exchange::Reply::is_ok);
        Self::new(is_done, reply.map(|reply| reply.text).unwrap_or_default().into())
    }

    /// Reads it. What is no answer, as when something in between answered for the server, is a failure of transport.
    pub fn read<T: DeserializeOwned, E: DeserializeOwned + FromServerFnError>(&self) -> Result<T, E> {
        if self.is_done
            && let Some(done) = from_json(&self.json)
        {
            return Ok(done);
        }
        let error = if self.is_done { None } else { from_json(&self.json) };
        Err(error.unwrap_or_else(not_reached))
    }
}

fn not_reached<E: FromServerFnError>() -> E {
    E::from_server_fn_error(ServerFnErrorErr::Request(String::new()))
}

/// How the data of a page travel from the server's rendering to the browser that takes it over.
#[derive(Debug)]
pub struct Marked;

/// Stands before what was asked for.
const DONE: char = '+';
/// Stands before an error.
const FAILED: char = '-';

impl Encoder<Answer> for Marked {
    type Error = Infallible;
    type Encoded = String;

    fn encode(answer: &Answer) -> Result<String, Infallible> {
        #[cfg(not(feature = "hydrate"))]
        if answer.is_in_page {
            return Ok(format!("{DONE}\"\""));
        }
        Ok(format!("{}{}", if answer.is_done { DONE } else { FAILED }, answer.json))
    }
}

impl Decoder<Answer> for Marked {
    type Error = Infallible;
    type Encoded = str;

    fn decode(text: &str) -> Result<Answer, Infallible> {
        let done = text.strip_prefix(DONE);
        let json = done.or(text.strip_prefix(FAILED)).unwrap_or_default();
        Ok(Answer::new(done.is_some(), json.into()))
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::session::UiError;

    fn through_the_page(answer: &Answer) -> Answer {
        Marked::decode(&Marked::encode(answer).unwrap()).unwrap()
    }

    #[test]
    fn an_answer_reads_as_it_was_written() {
        let done: Result<Vec<u32>, UiError> = Ok(vec![1, 2]);
        let failed: Result<Vec<u32>, UiError> = Err(UiError::Failed { request_id: "r\"1".to_owned() });
        for result in [done, failed] {
            let answer = Answer::of(&result);
            assert_eq!(answer.read(), result);
            assert_eq!(through_the_page(&answer), answer);
        }
    }

    #[test]
    fn a_text_within_the_page_does_not_travel_beside_it_and_an_error_does() {
        let drawn: Result<String, UiError> = Ok("<p>".to_owned());
        let answer = Answer::of(&drawn).within_the_page();
        assert_eq!(answer.read(), drawn);
        assert_eq!(through_the_page(&answer).read::<String, UiError>(), Ok(String::new()));
        let failed: Result<String, UiError> = Err(UiError::NotFound);
        assert_eq!(through_the_page(&Answer::of(&failed).within_the_page()).read(), failed);
    }

    #[test]
    fn where_nothing_was_asked_there_is_none() {
        assert_eq!(through_the_page(&Answer::nothing()).read::<Option<u32>, UiError>(), Ok(None));
    }

    #[test]
    fn what_is_no_answer_is_a_failure_of_transport() {
        for text in ["", "+<html>", "+\"words\"", "-<html>", "1"] {
            let answer = Marked::decode(text).unwrap();
            assert_eq!(answer.read::<u32, UiError>(), Err(UiError::Transport), "{text}");
        }
    }
}
