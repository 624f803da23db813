//! Which workers are shown and in which order: read from the address, so that a view can be shared.

use crate::fleet::trouble;
use crate::paths::escape_query;
use api::{WorkerBrief, WorkerState};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// How workers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// A card for each.
    Cards,
    /// A row for each.
    Table,
}

impl Layout {
    /// More workers than this are shown as a table, unless the user chose cards.
    pub const MAX_CARDS_BY_DEFAULT: usize = 100;

    /// The value in address and cookie.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Cards => "cards",
            Self::Table => "table",
        }
    }

    /// Reads [`Layout::tag`].
    pub fn from_tag(tag: &str) -> Option<Self> {
        [Self::Cards, Self::Table].into_iter().find(|layout| layout.tag() == tag)
    }

    /// What suits so many workers.
    pub const fn for_count(workers: usize) -> Self {
        if workers > Self::MAX_CARDS_BY_DEFAULT { Self::Table } else { Self::Cards }
    }
}

/// Which workers a chip shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StateFilter {
    /// Those in this state.
    State(WorkerState),
    /// Those of which the banner speaks.
    Trouble,
}

impl StateFilter {
    /// All of them, in the order of the chips.
    pub const ALL: [Self; 6] = [
        Self::State(WorkerState::Ready),
        Self::State(WorkerState::NotReady),
        Self::State(WorkerState::Unreachable),
        Self::State(WorkerState::Maintenance),
        Self::State(WorkerState::Pending),
        Self::Trouble,
    ];

    /// The value in the address.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::State(state) => state_tag(state),
            Self::Trouble => "trouble",
        }
    }

    /// Reads [`StateFilter::tag`].
    pub fn from_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.tag() == tag)
    }

    /// Whether its chip shows this worker.
    pub fn shows(self, worker: &WorkerBrief) -> bool {
        match self {
            Self::State(state) => worker.state == state,
            Self::Trouble => trouble::concerns(worker),
        }
    }

    /// The state, when it is about one.
    pub const fn state(self) -> Option<WorkerState> {
        match self {
            Self::State(state) => Some(state),
            Self::Trouble => None,
        }
    }
}

/// A state's word in addresses, class names and the API.
pub const fn state_tag(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Ready => "ready",
        WorkerState::NotReady => "not_ready",
        WorkerState::Unreachable => "unreachable",
        WorkerState::Maintenance => "maintenance",
        WorkerState::Pending => "pending",
    }
}

/// What workers are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sort {
    /// Name, with numbers in it as numbers.
    #[default]
    Name,
    /// The worst first.
    State,
    /// The busiest first.
    Use,
    /// The fullest first.
    Memory,
    /// The hottest first.
    Temperature,
    /// The longest silent first.
    Heartbeat,
    /// The farthest from the server's clock first.
    Clock,
}

impl Sort {
    /// All of them, in the order of the menu.
    pub const ALL: [Self; 7] =
        [Self::Name, Self::State, Self::Use, Self::Memory, Self::Temperature, Self::Heartbeat, Self::Clock];

    /// The value in the address.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::State => "state",
            Self::Use => "use",
            Self::Memory => "memory",
            Self::Temperature => "temperature",
            Self::Heartbeat => "heartbeat",
            Self::Clock => "clock",
        }
    }

    /// Reads [`Sort::tag`].
    pub fn from_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.tag() == tag)
    }
}

/// What the address asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListQuery {
    /// Words that must all be found.
    pub search: String,
    /// Only these.
    pub state: Option<StateFilter>,
    /// Order.
    pub sort: Sort,
    /// The other way round.
    pub reversed: bool,
    /// Cards or table; absent for what suits the number of workers.
    pub layout: Option<Layout>,
    /// Counted from 1; only pages without JavaScript have pages.
    pub page: usize,
}

impl ListQuery {
    /// Reads the query's values; what it does not understand counts as not there.
    pub fn read(value_of: impl Fn(&str) -> Option<String>) -> Self {
        let sort_text = value_of("sort").unwrap_or_default();
        let (reversed, sort_tag) = sort_text.strip_prefix('-').map_or((false, sort_text.as_str()), |rest| (true, rest));
        Self {
            search: value_of("q").unwrap_or_default(),
            state: value_of("state").and_then(|tag| StateFilter::from_tag(&tag)),
            sort: Sort::from_tag(sort_tag).unwrap_or_default(),
            reversed,
            layout: value_of("view").and_then(|tag| Layout::from_tag(&tag)),
            page: value_of("page").and_then(|page| page.parse().ok()).filter(|page| *page > 0).unwrap_or(1),
        }
    }

    /// The address that asks for this.
    pub fn address(&self) -> String {
        let mut pairs: Vec<(&str, String)> = Vec::new();
        if !self.search.is_empty() {
            pairs.push(("q", escape_query(&self.search)));
        }
        if let Some(state) = self.state {
            pairs.push(("state", state.tag().to_owned()));
        }
        if self.sort != Sort::default() || self.reversed {
            pairs.push(("sort", self.sort_value()));
        }
        if let Some(layout) = self.layout {
            pairs.push(("view", layout.tag().to_owned()));
        }
        if self.page > 1 {
            pairs.push(("page", self.page.to_string()));
        }
        let query: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        if query.is_empty() {
            return crate::paths::WORKERS.to_owned();
        }
        format!("{}?{}", crate::paths::WORKERS, query.join("&"))
    }

    /// The value of `sort` in the address.
    pub fn sort_value(&self) -> String {
        format!("{}{}", if self.reversed { "-" } else { "" }, self.sort.tag())
    }

    /// Whether it leaves workers out.
    pub fn is_filtered(&self) -> bool {
        self.state.is_some() || !self.search.trim().is_empty()
    }
}

/// Letter by letter: how a letter is written at the end of a word makes no difference to who searches.
pub fn lower(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Compares names so that `npu-2` comes before `npu-10`.
pub fn natural_compare(left: &str, right: &str) -> Ordering {
    let (mut left_rest, mut right_rest) = (left, right);
    loop {
        let (left_part, left_after) = next_part(left_rest);
        let (right_part, right_after) = next_part(right_rest);
        let order = compare_parts(left_part, right_part);
        if order != Ordering::Equal {
            return order;
        }
        if left_part.is_empty() {
            // `01` and `1` are equal as numbers; the order must still be total.
            return left.cmp(right);
        }
        (left_rest, right_rest) = (left_after, right_after);
    }
}

/// A text whose order among its like is that of [`natural_compare`], for those who compare very many.
pub fn natural_key(name: &str) -> String {
    let mut key = String::with_capacity(name.len() * 2 + 4);
    let mut rest = name;
    while !rest.is_empty() {
        let (part, after) = next_part(rest);
        if part.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = part.trim_start_matches('0');
            // Longer numbers are larger. The sign for the length stands where digits stand among other signs.
            let length = u8::try_from(digits.len()).unwrap_or(u8::MAX).min(b'@' - b'0');
            key.extend([char::from(b'0' + length)].into_iter().chain(digits.chars()));
        } else {
            // A text that ends comes before one that goes on.
            key.extend(part.chars().flat_map(char::to_lowercase).chain(['\0']));
        }
        rest = after;
    }
    key.extend(['\0'].into_iter().chain(name.chars()));
    key
}

/// Splits off the longest beginning that is all digits or has none.
fn next_part(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    text.split_at(end)
}

fn compare_parts(left: &str, right: &str) -> Ordering {
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    if is_number(left) && is_number(right) {
        let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
        return left.len().cmp(&right.len()).then_with(|| left.cmp(right));
    }
    lower(left).cmp(&lower(right))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use api::{
        Condition, ConditionKind, ConditionStatus, DeviceReadings, DeviceView, HostView, Maintenance, MemoryKind,
        Reason, Severity, WorkerId, WorkerUuid, WorkerView,
    };
    use std::collections::BTreeMap;

    pub fn device(index: u32) -> DeviceView {
        DeviceView {
            index,
            card: Some(index),
            chip: Some(0),
            name: "910B3".to_owned(),
            vendor: "Huawei".to_owned(),
            bus_id: None,
            driver_version: None,
            memory_total_bytes: Some(1 << 36),
            memory_kind: Some(MemoryKind::Hbm),
            health: None,
            readings: DeviceReadings {
                use_percent: Some(10.0),
                memory_used_bytes: Some(1 << 30),
                temperature_c: Some(40.0),
                power_w: None,
            },
        }
    }

    pub fn worker(id: i64, name: &str) -> WorkerView {
        WorkerView {
            id: WorkerId(id),
            uuid: serde_json::from_str::<WorkerUuid>("\"00000000-0000-4000-8000-000000000000\"").unwrap(),
            name: name.to_owned(),
            hostname: format!("{name}.example"),
            ip: "10.2.3.97".to_owned(),
            port: 10150,
            labels: BTreeMap::from([("rack".to_owned(), "b07".to_owned())]),
            os: "openEuler 22.03".to_owned(),
            state: WorkerState::Ready,
            conditions: Vec::new(),
            maintenance: Maintenance::default(),
            heartbeat_ms: Some(1_000),
            joined_ms: 0,
            clock_offset_ms: Some(20),
            direct_round_trip_ms: Some(0.8),
            link: None,
            version: None,
            devices: Some(vec![device(0), device(1)]),
            devices_stale_s: None,
            host: HostView::default(),
        }
    }

    pub fn condition(kind: ConditionKind, severity: Severity, reason: Reason) -> Condition {
        let status = if severity == Severity::Ok { ConditionStatus::True } else { ConditionStatus::False };
        Condition { kind, status, severity, reason, since_ms: Some(500) }
    }

    /// The same worker in a few words.
    pub fn brief(id: i64, name: &str) -> WorkerBrief {
        let WorkerView { id, name, state, os, .. } = worker(id, name);
        let search = format!("{name}.example 10.2.3.97:10150 rack=b07 Huawei 910B3");
        WorkerBrief { id, name, state, os, search, conditions: Vec::new() }
    }

    #[test]
    fn names_are_ordered_as_people_count() {
        let mut names = ["npu-10", "npu-2", "npu-1", "NPU-3", "gpu-01", "gpu-1", "npu", ""];
        names.sort_by(|l, r| natural_compare(l, r));
        assert_eq!(names, ["", "gpu-01", "gpu-1", "npu", "npu-1", "npu-2", "NPU-3", "npu-10"]);
    }

    #[test]
    fn what_an_address_does_not_mean_is_left_out() {
        let query = ListQuery::read(|key| match key {
            "state" => Some("asleep".to_owned()),
            "sort" => Some("-colour".to_owned()),
            "page" => Some("0".to_owned()),
            _ => None,
        });
        assert_eq!(query, ListQuery { reversed: true, page: 1, ..ListQuery::default() });
    }

    proptest::proptest! {
        #[test]
        fn an_address_reads_back(search in "\\PC{0,12}", state in 0usize..7, sort in 0usize..7, reversed: bool, layout in 0usize..3, page in 1usize..9) {
            let query = ListQuery {
                search,
                state: StateFilter::ALL.get(state).copied(),
                sort: Sort::ALL[sort],
                reversed,
                layout: [Layout::Cards, Layout::Table].get(layout).copied(),
                page,
            };
            let address = query.address();
            let pairs = address.split_once('?').map_or("", |(_, pairs)| pairs).to_owned();
            let read = ListQuery::read(|key| {
                pairs.split('&').filter_map(|pair| pair.split_once('=')).find(|(k, _)| *k == key).map(|(_, v)| unescape(v))
            });
            proptest::prop_assert_eq!(read, query);
        }

        #[test]
        fn keys_are_ordered_as_names_are(left in "[a-cA-C0-9. -]{0,6}", right in "[a-cA-C0-9. -]{0,6}") {
            proptest::prop_assert_eq!(natural_key(&left).cmp(&natural_key(&right)), natural_compare(&left, &right));
        }

        #[test]
        fn the_order_of_names_is_total(mut names in proptest::collection::vec("[a0-9]{0,4}", 3)) {
            names.sort_by(|l, r| natural_compare(l, r));
            proptest::prop_assert!(names.windows(2).all(|pair| natural_compare(&pair[0], &pair[1]) != Ordering::Greater));
            proptest::prop_assert!(natural_compare(&names[0], &names[2]) != Ordering::Greater);
        }
    }

    fn unescape(value: &str) -> String {
        let mut bytes = Vec::new();
        let mut rest = value.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'%' {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8(bytes).unwrap()
    }
}
