//! All workers as the server knows them: from these it cuts the page that a list is rendered with, and orders.

use super::devices::Figures;
use super::filter::{Filter, Member};
use super::list::{ListQuery, Sort, natural_compare};
use super::store::FleetPart;
use super::trouble::{self, Counts, Trouble};
use api::{WorkerBrief, WorkerId, WorkerState, WorkerView};
use std::cmp::Ordering;

/// All workers at one moment.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// The server's clock, in milliseconds since 1970.
    pub server_time_ms: i64,
    /// In no order.
    pub workers: Vec<Listed>,
}

/// A worker in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// What is searched and counted.
    pub brief: WorkerBrief,
    /// What it can be ordered by.
    pub figures: Figures,
}

/// What is put together about each worker besides name, state and conditions. Of ten thousand workers with eight devices
/// each it is most of the work, and most questions need none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// [`WorkerBrief::search`], and [`WorkerBrief::os`] of those without trouble; empty otherwise.
    pub is_searched: bool,
    /// [`Listed::figures`], unknown otherwise.
    pub has_figures: bool,
}

impl Detail {
    /// What the rows of a query need.
    pub fn of_rows(query: &ListQuery) -> Self {
        Self { is_searched: !query.search.trim().is_empty(), ..Self::of_order(query) }
    }

    /// What a query's order needs.
    pub const fn of_order(query: &ListQuery) -> Self {
        Self { is_searched: false, has_figures: !matches!(query.sort, Sort::Name | Sort::State) }
    }
}

impl Roster {
    /// What is wrong.
    pub fn trouble(&self) -> Trouble {
        Trouble::of(self.briefs())
    }

    /// The ids of all in this order.
    pub fn order(mut self, query: &ListQuery) -> Vec<WorkerId> {
        self.workers.sort_by(|left, right| query.compare(left, right));
        self.workers.into_iter().map(|worker| worker.brief.id).collect()
    }

    /// The page that a query asks for; `views_of` tells everything about its rows.
    pub async fn page<F>(self, query: &ListQuery, views_of: impl FnOnce(Vec<WorkerId>) -> F) -> FleetPart
    where
        F: Future<Output = Vec<WorkerView>>,
    {
        let counts = Counts::of(self.briefs());
        let trouble = self.trouble();
        let server_time_ms = self.server_time_ms;
        let (matching, rows) = self.rows(query);
        FleetPart { server_time_ms, workers: views_of(rows).await, matching, counts, trouble }
    }

    /// How many pass the filter, and those of them that are on the page, in their order.
    fn rows(mut self, query: &ListQuery) -> (usize, Vec<WorkerId>) {
        if query.is_filtered() {
            let filter = Filter::of(query);
            self.workers.retain(|worker| filter.shows(&Member::new(worker.brief.clone())));
        }
        let matching = self.workers.len();
        let before = query.page.saturating_sub(1).saturating_mul(FleetPart::ROWS);
        let end = before.saturating_add(FleetPart::ROWS);
        if end < matching {
            // those behind the page need no order
            self.workers.select_nth_unstable_by(end, |left, right| query.compare(left, right));
            self.workers.truncate(end);
        }
        (matching, self.order(query).into_iter().skip(before).collect())
    }

    fn briefs(&self) -> impl Iterator<Item = &WorkerBrief> {
        self.workers.iter().map(|worker| &worker.brief)
    }
}

impl ListQuery {
    /// Order of two workers; equal ones are ordered by name, and a value that is not known comes last either way.
    fn compare(&self, left: &Listed, right: &Listed) -> Ordering {
        let flip = |order: Ordering| if self.reversed { order.reverse() } else { order };
        let by_name = || natural_compare(&left.brief.name, &right.brief.name);
        let largest_first = |value: fn(&Figures) -> Option<f64>| {
            known_first(value(&left.figures), value(&right.figures), |l, r| flip(r.total_cmp(l))).then_with(by_name)
        };
        match self.sort {
            Sort::Name => flip(by_name()),
            Sort::State => flip(state_rank(&left.brief).cmp(&state_rank(&right.brief))).then_with(by_name),
            Sort::Use => largest_first(|figures| figures.use_percent),
            Sort::Memory => largest_first(|figures| figures.memory_percent),
            Sort::Temperature => largest_first(|figures| figures.temperature_c),
            Sort::Heartbeat => {
                let (left_ms, right_ms) = (left.figures.heartbeat_ms, right.figures.heartbeat_ms);
                known_first(left_ms, right_ms, |l, r| flip(l.cmp(r))).then_with(by_name)
            }
            Sort::Clock => largest_first(|figures| figures.clock_offset_ms.map(|offset| offset.unsigned_abs() as f64)),
        }
    }
}

/// The worst first; a ready worker with trouble before one without.
fn state_rank(worker: &WorkerBrief) -> (WorkerState, bool) {
    (worker.state, !trouble::concerns(worker))
}

fn known_first<T>(left: Option<T>, right: Option<T>, compare: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (left, right) {
        (Some(l), Some(r)) => compare(&l, &r),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::StateFilter;
    use crate::fleet::list::tests::{brief, condition, worker};
    use api::{ConditionKind, Reason, Severity};

    fn listed(brief: WorkerBrief) -> Listed {
        Listed { brief, figures: Figures::default() }
    }

    fn roster(workers: Vec<Listed>) -> Roster {
        Roster { server_time_ms: 1_000, workers }
    }

    fn page_of(roster: Roster, query: &ListQuery) -> FleetPart {
        let views = |ids: Vec<WorkerId>| {
            std::future::ready(ids.into_iter().map(|id| worker(id.0, &format!("npu-{id}"))).collect())
        };
        futures_now(roster.page(query, views))
    }

    /// Nothing here waits.
    fn futures_now<T>(future: impl Future<Output = T>) -> T {
        use std::task::{Context, Poll, Waker};

        let mut future = std::pin::pin!(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }

    fn order(workers: Vec<Listed>, sort: Sort, reversed: bool) -> Vec<i64> {
        let query = ListQuery { sort, reversed, ..ListQuery::default() };
        roster(workers).order(&query).into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn a_page_holds_its_rows_and_counts_all() {
        let workers = (1..=120).map(|id| listed(brief(id, &format!("npu-{id}")))).collect();
        let part = page_of(roster(workers), &ListQuery { page: 3, ..ListQuery::default() });
        assert_eq!((part.workers.len(), part.matching, part.pages(), part.counts.all), (20, 120, 3, 120));
        assert_eq!(part.workers[0].name, "npu-101");
    }

    #[test]
    fn pages_are_parts_of_the_whole_order() {
        let workers: Vec<Listed> = (1..=120).map(|id| listed(brief(id, &format!("npu-{}", id * 37 % 121)))).collect();
        for sort in [Sort::Name, Sort::State] {
            let query = |page| ListQuery { sort, page, ..ListQuery::default() };
            let rows = |page| roster(workers.clone()).rows(&query(page)).1;
            assert_eq!([1, 2, 3].map(rows).concat(), roster(workers.clone()).order(&query(1)));
            assert!(rows(4).is_empty() && rows(usize::MAX).is_empty());
        }
    }

    #[test]
    fn only_what_a_query_looks_at_is_put_together() {
        let query = |search: &str, sort| ListQuery { search: search.to_owned(), sort, ..ListQuery::default() };
        let detail = |is_searched, has_figures| Detail { is_searched, has_figures };
        assert_eq!(Detail::of_rows(&query(" ", Sort::State)), Detail::default());
        assert_eq!(Detail::of_rows(&query("npu", Sort::Name)), detail(true, false));
        assert_eq!(Detail::of_rows(&query("npu", Sort::Use)), detail(true, true));
        assert_eq!(Detail::of_order(&query("npu", Sort::Heartbeat)), detail(false, true));
    }

    #[test]
    fn a_filter_leaves_the_counts_alone() {
        let query = ListQuery { state: Some(StateFilter::State(WorkerState::NotReady)), ..ListQuery::default() };
        let part = page_of(roster(vec![listed(brief(1, "a"))]), &query);
        assert_eq!((part.matching, part.counts.ready), (0, 1));
    }

    #[test]
    fn unknown_values_come_last_in_both_directions() {
        let using = |id, use_percent| Listed {
            figures: Figures { use_percent, ..Figures::default() },
            ..listed(brief(id, &format!("w{id}")))
        };
        let workers = vec![using(3, None), using(2, Some(10.0)), using(1, Some(90.0))];
        assert_eq!(order(workers.clone(), Sort::Use, false), [1, 2, 3]);
        assert_eq!(order(workers, Sort::Use, true), [2, 1, 3]);
    }

    #[test]
    fn the_worst_state_comes_first() {
        let reason = Reason::ClockOffset { offset_ms: 2_000, error_ms: 1 };
        let warned = WorkerBrief {
            conditions: vec![condition(ConditionKind::Clock, Severity::Warning, reason)],
            ..brief(2, "b")
        };
        let lost = WorkerBrief { state: WorkerState::NotReady, ..brief(3, "c") };
        let workers = [brief(1, "a"), warned, lost].map(listed).into();
        assert_eq!(order(workers, Sort::State, false), [3, 2, 1]);
    }
}
