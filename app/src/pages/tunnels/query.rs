//! What the page's address asks for.

use super::state::{Seen, badness};
use crate::paths::{self, escape_query};
use api::{ForwardReport, TunnelAgent};
use std::cmp::Ordering;

/// Rows on a page.
pub const ROWS: usize = 100;

/// Which forwards to show, in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelQuery {
    /// Only those in trouble.
    pub only_trouble: bool,
    /// Of the agent with this name.
    pub agent: Option<String>,
    /// That name this worker.
    pub worker: Option<String>,
    /// The order.
    pub sort: TunnelSort,
    /// The other way round.
    pub reversed: bool,
    /// From 0.
    pub page: usize,
}

/// A column to order by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunnelSort {
    /// Worst first.
    #[default]
    State,
    /// By id.
    Forward,
    /// Slowest first.
    RoundTrip,
    /// Most often first.
    Reconnects,
    /// Least first.
    Availability,
}

impl TunnelSort {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::State, Self::Forward, Self::RoundTrip, Self::Reconnects, Self::Availability];

    const fn word(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Forward => "forward",
            Self::RoundTrip => "round_trip",
            Self::Reconnects => "reconnects",
            Self::Availability => "availability",
        }
    }
}

/// A forward, and who keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Who keeps it.
    pub agent: &'a TunnelAgent,
    /// The forward.
    pub forward: &'a ForwardReport,
}

impl Row<'_> {
    /// Its state, and whether that is of now.
    pub const fn seen(&self) -> Seen {
        Seen { state: self.forward.state, is_current: self.agent.is_connected }
    }
}

impl TunnelQuery {
    /// What is not understood is passed over.
    pub fn read(value: impl Fn(&str) -> Option<String>) -> Self {
        let named = |key: &str| value(key).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        let sort = value("sort").unwrap_or_default();
        Self {
            only_trouble: value("state").as_deref() == Some("trouble"),
            agent: named("agent"),
            worker: named("worker"),
            sort: TunnelSort::ALL.into_iter().find(|known| known.word() == sort).unwrap_or_default(),
            reversed: value("order").as_deref() == Some("reversed"),
            page: value("page").and_then(|page| page.parse::<usize>().ok()).map_or(0, |page| page.saturating_sub(1)),
        }
    }

    /// The address that asks for this.
    pub fn address(&self) -> String {
        let mut parts: Vec<String> = self.kept().map(|(key, value)| format!("{key}={value}")).collect();
        let named = [("agent", &self.agent), ("worker", &self.worker)];
        parts.extend(named.iter().filter_map(|(key, name)| Some(format!("{key}={}", escape_query(name.as_deref()?)))));
        if self.page > 0 {
            parts.push(format!("page={}", self.page + 1));
        }
        if parts.is_empty() { paths::TUNNELS.to_owned() } else { format!("{}?{}", paths::TUNNELS, parts.join("&")) }
    }

    /// What stays when another agent or worker is chosen, as fields of a form.
    pub fn kept(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let state = self.only_trouble.then_some(("state", "trouble"));
        let sort = (self.sort != TunnelSort::default()).then_some(("sort", self.sort.word()));
        let order = self.reversed.then_some(("order", "reversed"));
        [state, sort, order].into_iter().flatten()
    }

    /// Whether it leaves something out.
    pub fn is_filtered(&self) -> bool {
        self.only_trouble || self.agent.is_some() || self.worker.is_some()
    }

    /// Of all forwards those that are asked for, in order.
    pub fn rows<'a>(&self, agents: &'a [TunnelAgent]) -> Vec<Row<'a>> {
        let all =
            agents.iter().flat_map(|agent| agent.report.forwards.iter().map(move |forward| Row { agent, forward }));
        let mut rows: Vec<Row<'a>> = all.filter(|row| self.asks_for(row)).collect();
        rows.sort_by(|left, right| {
            let order = self.order(left, right);
            if self.reversed { order.reverse() } else { order }
        });
        rows
    }

    fn asks_for(&self, row: &Row<'_>) -> bool {
        let names_worker = |worker: &String| row.forward.workers.iter().any(|name| name == worker);
        (!self.only_trouble || row.seen().is_trouble())
            && self.agent.as_ref().is_none_or(|agent| *agent == row.agent.name)
            && self.worker.as_ref().is_none_or(names_worker)
    }

    fn order(&self, left: &Row<'_>, right: &Row<'_>) -> Ordering {
        let name = |row: &Row<'_>| (row.forward.id.clone(), row.agent.name.clone());
        let by_column = match self.sort {
            TunnelSort::Forward => Ordering::Equal,
            TunnelSort::State => {
                let key = |row: &Row<'_>| (badness(row.forward.state), !row.agent.is_connected);
                key(right).cmp(&key(left))
            }
            TunnelSort::Reconnects => right.forward.reconnects.cmp(&left.forward.reconnects),
            // What is not known comes last.
            TunnelSort::RoundTrip => {
                let key = |row: &Row<'_>| row.forward.round_trip_ms.unwrap_or(-1.0);
                key(right).total_cmp(&key(left))
            }
            TunnelSort::Availability => {
                let key = |row: &Row<'_>| row.forward.availability.day.unwrap_or(2.0);
                key(left).total_cmp(&key(right))
            }
        };
        by_column.then_with(|| name(left).cmp(&name(right)))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use api::{ForwardState, TunnelAgentId, TunnelReport};

    /// An agent that is connected and has just told of these.
    pub fn agent(name: &str, forwards: Vec<ForwardReport>) -> TunnelAgent {
        TunnelAgent {
            id: TunnelAgentId(1),
            name: name.to_owned(),
            hostname: "bastion".to_owned(),
            version: "0.1.0".to_owned(),
            is_connected: true,
            since_ms: Some(1_764_504_000_000),
            reported_ms: Some(1_764_504_090_000),
            report: TunnelReport { forwards, ..TunnelReport::default() },
            created_ms: 1_764_000_000_000,
        }
    }

    fn ids(query: &TunnelQuery, agents: &[TunnelAgent]) -> Vec<String> {
        query.rows(agents).iter().map(|row| row.forward.id.clone()).collect()
    }

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for query in [
            TunnelQuery::default(),
            TunnelQuery { only_trouble: true, worker: Some("节点 &1".to_owned()), ..TunnelQuery::default() },
            TunnelQuery { agent: Some("a".to_owned()), reversed: true, page: 2, ..TunnelQuery::default() },
            TunnelQuery { sort: TunnelSort::Availability, ..TunnelQuery::default() },
        ] {
            let address = query.address();
            let pairs: Vec<(String, String)> =
                form_urlencoded::parse(address.split_once('?').map_or("", |(_, query)| query).as_bytes())
                    .into_owned()
                    .collect();
            let read =
                TunnelQuery::read(|key| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()));
            assert_eq!(read, query, "{address}");
        }
    }

    #[test]
    fn what_needs_to_be_looked_at_comes_first_and_filters_leave_out_the_rest() {
        let mut gone = agent("gone", vec![ForwardReport::example("known", ForwardState::Up)]);
        gone.is_connected = false;
        let other =
            ForwardReport { workers: vec!["npu-2".to_owned()], ..ForwardReport::example("b", ForwardState::Down) };
        let agents = [
            agent(
                "here",
                vec![
                    ForwardReport::example("a", ForwardState::Up),
                    other,
                    ForwardReport::example("c", ForwardState::Degraded),
                ],
            ),
            gone,
        ];
        let query = TunnelQuery::default();
        assert_eq!(ids(&query, &agents), ["b", "c", "known", "a"]);
        assert_eq!(ids(&TunnelQuery { reversed: true, ..query.clone() }, &agents), ["a", "known", "c", "b"]);
        assert_eq!(ids(&TunnelQuery { only_trouble: true, ..query.clone() }, &agents), ["b", "c", "known"]);
        assert_eq!(ids(&TunnelQuery { worker: Some("npu-2".to_owned()), ..query.clone() }, &agents), ["b"]);
        assert_eq!(ids(&TunnelQuery { agent: Some("gone".to_owned()), ..query }, &agents), ["known"]);
    }

    #[test]
    fn what_is_not_known_comes_last() {
        let slow = ForwardReport { round_trip_ms: Some(80.0), ..ForwardReport::example("slow", ForwardState::Up) };
        let fast = ForwardReport { round_trip_ms: Some(2.0), ..ForwardReport::example("fast", ForwardState::Up) };
        let agents = [agent("a", vec![ForwardReport::example("unknown", ForwardState::Up), fast, slow])];
        let query = TunnelQuery { sort: TunnelSort::RoundTrip, ..TunnelQuery::default() };
        assert_eq!(ids(&query, &agents), ["slow", "fast", "unknown"]);
    }
}
