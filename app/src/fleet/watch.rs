//! At which workers the page looks, and what the server knows of that.

use api::{WatchRequest, WorkerId};

/// What the server is told of what the page looks at.
#[derive(Debug, Default)]
pub struct Watch {
    /// The name of the stream; empty while there is none.
    pub stream: String,
    /// At which workers the page looks.
    pub wanted: Vec<WorkerId>,
    /// Which the server knows of. It tells everything about these.
    pub told: Vec<WorkerId>,
    /// Whether an answer is awaited: the next question waits for it, so that a quick scroll asks no more often than the
    /// server answers.
    pub is_asking: bool,
}

impl Watch {
    /// The stream is gone, and with it what the server knew.
    pub fn end(&mut self) {
        self.stream.clear();
        self.told.clear();
        self.is_asking = false;
    }

    /// What is to be told next; nothing while nothing has changed.
    pub fn next(&self) -> Option<WatchRequest> {
        let is_due = !self.stream.is_empty() && !self.is_asking && self.wanted != self.told;
        is_due.then(|| {
            let is_new = |id: &WorkerId| self.told.binary_search(id).is_err();
            WatchRequest { workers: self.wanted.clone(), show: self.wanted.iter().copied().filter(is_new).collect() }
        })
    }

    /// The server has answered about `asked`. What the page has looked away from meanwhile was forgotten with the answer, and
    /// has to be told again if it comes back.
    pub fn answered(&mut self, asked: Vec<WorkerId>, looked_at: &[WorkerId]) {
        self.is_asking = false;
        self.told = asked.into_iter().filter(|id| looked_at.binary_search(id).is_ok()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[i64]) -> Vec<WorkerId> {
        numbers.iter().copied().map(WorkerId).collect()
    }

    #[test]
    fn who_was_looked_away_from_while_an_answer_came_is_told_anew() {
        let mut watch = Watch { stream: "a".to_owned(), wanted: ids(&[1, 2]), ..Watch::default() };
        let asked = watch.next().unwrap();
        assert_eq!((&asked.workers, &asked.show), (&ids(&[1, 2]), &ids(&[1, 2])));
        watch.is_asking = true;
        // the page has moved on by one, and back before anybody was told of it
        watch.answered(asked.workers, &ids(&[2, 3]));
        assert_eq!(watch.next().map(|next| next.show), Some(ids(&[1])));
        watch.wanted = ids(&[2]);
        watch.answered(ids(&[2]), &ids(&[2]));
        assert!(watch.next().is_none());
        watch.end();
        assert!(watch.next().is_none() && watch.told.is_empty(), "there is nobody to ask");
    }
}
