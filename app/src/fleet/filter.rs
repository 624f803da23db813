//! Finds workers among very many, at every key that is pressed.

use crate::fleet::list::{ListQuery, StateFilter, lower, state_tag};
use crate::i18n::Language;
use api::{WorkerBrief, WorkerState};

/// One worker and what a search looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// What is known of it.
    pub brief: WorkerBrief,
    /// In lower case, once and not at every key.
    text: String,
}

impl Member {
    /// Of a worker as it is known now.
    pub fn new(brief: WorkerBrief) -> Self {
        let text = lower(&[brief.name.as_str(), &brief.os, &brief.search].join(" "));
        Self { brief, text }
    }
}

/// Which workers a query shows.
#[derive(Clone, Debug)]
pub struct Filter {
    state: Option<StateFilter>,
    words: Vec<Word>,
}

/// A word that must be found.
#[derive(Clone, Debug)]
struct Word {
    text: String,
    /// The states whose names have it, in any language.
    states: Vec<WorkerState>,
}

impl Filter {
    /// Of this query.
    pub fn of(query: &ListQuery) -> Self {
        Self { state: query.state, words: lower(&query.search).split_whitespace().map(Word::new).collect() }
    }

    /// Whether it shows this worker.
    pub fn shows(&self, worker: &Member) -> bool {
        self.state.is_none_or(|filter| filter.shows(&worker.brief)) && self.words.iter().all(|word| word.is_in(worker))
    }
}

impl Word {
    fn new(text: &str) -> Self {
        let is_named = |state: &WorkerState| {
            state_tag(*state).contains(text)
                || Language::ALL
                    .into_iter()
                    .any(|language| lower(language.messages().state_word(*state)).contains(text))
        };
        let states = StateFilter::ALL.into_iter().filter_map(StateFilter::state).filter(is_named).collect();
        Self { text: text.to_owned(), states }
    }

    fn is_in(&self, worker: &Member) -> bool {
        self.states.contains(&worker.brief.state) || worker.text.contains(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::list::tests::brief;

    fn finds(words: &str, worker: &WorkerBrief) -> bool {
        Filter::of(&ListQuery { search: words.to_owned(), ..ListQuery::default() }).shows(&Member::new(worker.clone()))
    }

    #[test]
    fn a_search_looks_at_everything_a_card_shows() {
        let worker = brief(1, "npu-198-97");
        for words in [
            "198-97",
            "NPU",
            "10.2.3",
            "rack=b07",
            "b07 910b",
            "openeuler",
            "ready",
            "就绪",
            "huawei",
            ":10150",
            "",
            " ",
        ] {
            assert!(finds(words, &worker), "{words}");
        }
        for words in ["npu rack=c", "310P", "unreachable", "不可达"] {
            assert!(!finds(words, &worker), "{words}");
        }
    }

    #[test]
    fn not_ready_is_not_found_by_the_word_of_another_state() {
        let lost = WorkerBrief { state: WorkerState::NotReady, ..brief(1, "a") };
        assert!(finds("not_ready", &lost));
        assert!(finds("未就绪", &lost));
        assert!(!finds("maintenance", &lost));
    }

    #[test]
    fn a_state_leaves_the_others_out() {
        let of = |state| Filter::of(&ListQuery { state: Some(StateFilter::State(state)), ..ListQuery::default() });
        let worker = Member::new(brief(1, "a"));
        assert!(of(WorkerState::Ready).shows(&worker) && !of(WorkerState::NotReady).shows(&worker));
    }
}
