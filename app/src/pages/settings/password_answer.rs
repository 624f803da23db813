//! What a change of password came to, as the browser learns it: as a value, or in the query of the next page.

use crate::model::PasswordOutcome;
#[cfg(feature = "ssr")]
use crate::paths;
use serde::{Deserialize, Serialize};

/// What a change of password came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PasswordAnswer {
    /// The two new passwords differ, so the server was not asked.
    RepeatDiffers,
    /// What the server said.
    Outcome(PasswordOutcome),
}

impl PasswordAnswer {
    /// Whether the password is another one now.
    pub fn is_changed(&self) -> bool {
        *self == Self::Outcome(PasswordOutcome::Changed)
    }
}

/// The page of the change with what came of it.
#[cfg(feature = "ssr")]
pub fn path(answer: &PasswordAnswer) -> String {
    let (word, number) = match answer {
        PasswordAnswer::RepeatDiffers => ("repeat", 0),
        PasswordAnswer::Outcome(outcome) => match outcome {
            PasswordOutcome::Changed => ("changed", 0),
            PasswordOutcome::WrongCurrent => ("wrong_current", 0),
            PasswordOutcome::TooShort(characters) => ("too_short", u64::from(*characters)),
            PasswordOutcome::Same => ("same", 0),
            PasswordOutcome::LoggedOut => ("logged_out", 0),
            PasswordOutcome::TooMany { retry_after_s } => ("too_many", *retry_after_s),
            PasswordOutcome::Failed => ("failed", 0),
        },
    };
    format!("{}?result={word}&number={number}", paths::PASSWORD)
}

/// Reads [`path`].
pub fn of_query(parameter: impl Fn(&str) -> Option<String>) -> Option<PasswordAnswer> {
    let number: u64 = parameter("number").and_then(|number| number.parse().ok()).unwrap_or(0);
    let outcome = match parameter("result")?.as_str() {
        "repeat" => return Some(PasswordAnswer::RepeatDiffers),
        "changed" => PasswordOutcome::Changed,
        "wrong_current" => PasswordOutcome::WrongCurrent,
        "too_short" => PasswordOutcome::TooShort(u32::try_from(number).ok()?),
        "same" => PasswordOutcome::Same,
        "logged_out" => PasswordOutcome::LoggedOut,
        "too_many" => PasswordOutcome::TooMany { retry_after_s: number },
        "failed" => PasswordOutcome::Failed,
        _ => return None,
    };
    Some(PasswordAnswer::Outcome(outcome))
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn every_answer_reads_back_from_the_address() {
        let outcomes = [
            PasswordOutcome::Changed,
            PasswordOutcome::WrongCurrent,
            PasswordOutcome::TooShort(8),
            PasswordOutcome::Same,
            PasswordOutcome::LoggedOut,
            PasswordOutcome::TooMany { retry_after_s: 90 },
            PasswordOutcome::Failed,
        ];
        for answer in outcomes.map(PasswordAnswer::Outcome).into_iter().chain([PasswordAnswer::RepeatDiffers]) {
            let path = path(&answer);
            let query = path.split_once('?').map_or("", |(_, query)| query);
            let parameter = |name: &str| {
                let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
            };
            assert_eq!(of_query(parameter), Some(answer), "{path}");
        }
    }

    #[test]
    fn an_address_without_an_answer_has_none() {
        assert_eq!(of_query(|_| None), None);
        assert_eq!(of_query(|name| (name == "result").then(|| "nonsense".to_owned())), None);
    }
}
