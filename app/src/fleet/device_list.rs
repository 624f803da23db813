//! The devices of all workers in a list: what an address asks for, and what the server gives. The server cuts the page, since
//! tens of thousands of devices are too many for a browser.

use crate::paths::{self, escape_query};
use api::{GpuDevice, PciDevice, WorkerId, WorkerState};

/// What devices are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceSort {
    /// The worker's name, with numbers in it as numbers.
    #[default]
    Worker,
    /// The number on its worker.
    Device,
    /// Model.
    Model,
    /// The busiest first.
    Use,
    /// The fullest first, in percent.
    Memory,
    /// The hottest first.
    Temperature,
    /// The thirstiest first.
    Power,
    /// The sickest first.
    Health,
}

impl DeviceSort {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 8] = [
        Self::Worker,
        Self::Device,
        Self::Model,
        Self::Use,
        Self::Memory,
        Self::Temperature,
        Self::Power,
        Self::Health,
    ];

    /// The value in the address.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Device => "device",
            Self::Model => "model",
            Self::Use => "use",
            Self::Memory => "memory",
            Self::Temperature => "temperature",
            Self::Power => "power",
            Self::Health => "health",
        }
    }

    /// Reads [`DeviceSort::tag`].
    pub fn from_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.tag() == tag)
    }

    /// Whether the largest comes first unless the order is reversed.
    pub const fn is_largest_first(self) -> bool {
        !matches!(self, Self::Worker | Self::Device | Self::Model)
    }
}

/// What the address asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceQuery {
    /// Words that must all be found.
    pub search: String,
    /// Only this model.
    pub model: Option<String>,
    /// Only of this vendor.
    pub vendor: Option<String>,
    /// Only those that need somebody's attention.
    pub only_trouble: bool,
    /// Order.
    pub sort: DeviceSort,
    /// The other way round.
    pub reversed: bool,
    /// Counted from 1.
    pub page: usize,
}

/// The value of `health` in the address that leaves out what is well.
const TROUBLE: &str = "trouble";

impl DeviceQuery {
    /// Rows a page.
    pub const ROWS: usize = 100;

    /// Reads the query's values; what it does not understand counts as not there.
    pub fn read(value_of: impl Fn(&str) -> Option<String>) -> Self {
        let sort_text = value_of("sort").unwrap_or_default();
        let (reversed, sort_tag) = sort_text.strip_prefix('-').map_or((false, sort_text.as_str()), |rest| (true, rest));
        let sort = DeviceSort::from_tag(sort_tag);
        Self {
            search: value_of("q").unwrap_or_default(),
            model: value_of("model").filter(|model| !model.is_empty()),
            vendor: value_of("vendor").filter(|vendor| !vendor.is_empty()),
            only_trouble: value_of("health").is_some_and(|health| health == TROUBLE),
            sort: sort.unwrap_or_default(),
            reversed: reversed && sort.is_some(),
            page: value_of("page").and_then(|page| page.parse().ok()).filter(|page| *page > 0).unwrap_or(1),
        }
    }

    /// The address that asks for this.
    pub fn address(&self) -> String {
        let mut pairs: Vec<(&str, String)> = Vec::new();
        let texts = [("q", Some(&self.search)), ("model", self.model.as_ref()), ("vendor", self.vendor.as_ref())];
        for (key, text) in texts {
            pairs.extend(text.filter(|text| !text.is_empty()).map(|text| (key, escape_query(text))));
        }
        if self.only_trouble {
            pairs.push(("health", TROUBLE.to_owned()));
        }
        if self.sort != DeviceSort::default() || self.reversed {
            pairs.push(("sort", format!("{}{}", if self.reversed { "-" } else { "" }, self.sort.tag())));
        }
        if self.page > 1 {
            pairs.push(("page", self.page.to_string()));
        }
        let query: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        if query.is_empty() {
            return paths::DEVICES.to_owned();
        }
        format!("{}?{}", paths::DEVICES, query.join("&"))
    }

    /// Whether it leaves devices out.
    pub fn is_filtered(&self) -> bool {
        self.only_trouble || self.model.is_some() || self.vendor.is_some() || !self.search.trim().is_empty()
    }

    /// Whether the largest comes first.
    pub const fn is_descending(&self) -> bool {
        self.sort.is_largest_first() != self.reversed
    }
}

/// A page of devices, and what there is in all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceList {
    /// How many workers there are.
    pub workers: usize,
    /// How many devices there are, whatever is filtered.
    pub all: usize,
    /// How many of them need somebody's attention.
    pub trouble: usize,
    /// Of each vendor, most first.
    pub vendors: Vec<(String, usize)>,
    /// Of each model, most first.
    pub models: Vec<ModelTotals>,
    /// How many pass the filter.
    pub matching: usize,
    /// Which page the rows are, counted from 1: the last when a later one was asked for.
    pub page: usize,
    /// The rows of the page, in their order.
    pub rows: Vec<DeviceRow>,
}

impl DeviceList {
    /// How many pages the rows fill; at least one.
    pub const fn pages(&self) -> usize {
        let pages = self.matching.div_ceil(DeviceQuery::ROWS);
        if pages == 0 { 1 } else { pages }
    }

    /// How many rows are on the pages before.
    pub const fn before(&self) -> usize {
        (self.page - 1) * DeviceQuery::ROWS
    }
}

/// What the devices of one model amount to. Who is neither busy nor free has no current reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelTotals {
    /// The model.
    pub name: String,
    /// How many there are.
    pub count: usize,
    /// Somebody computes on them.
    pub busy: usize,
    /// Nobody does.
    pub free: usize,
    /// Their vendor's tool calls them anything but healthy.
    pub unhealthy: usize,
    /// In use on those that tell, in bytes.
    pub memory_used_bytes: Option<u64>,
    /// All memory of those that tell how much is in use; of all devices when none does. In bytes.
    pub memory_total_bytes: Option<u64>,
}

/// A device in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRow {
    /// Where it is.
    pub worker: WorkerId,
    /// That worker's name.
    pub worker_name: String,
    /// That worker's state.
    pub worker_state: WorkerState,
    /// What it is.
    pub device: ListedDevice,
    /// Of when its readings are.
    pub readings: ReadingsTime,
}

/// What is in the list.
#[derive(Clone, Debug, PartialEq)]
pub enum ListedDevice {
    /// Its driver tells what it is.
    Driven(Box<GpuDevice>),
    /// No driver has taken it.
    Undriven(PciDevice),
}

/// Of when readings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingsTime {
    /// Of now.
    Current,
    /// The vendor's tool does not answer.
    ToolSilent {
        /// How old they are, in seconds.
        age_s: u64,
    },
    /// The worker is not heard.
    WorkerSilent {
        /// How long ago it was heard last, in seconds; None when that is not known.
        age_s: Option<u64>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> DeviceQuery {
        DeviceQuery::read(|key| {
            form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == key).map(|(_, value)| value.into_owned())
        })
    }

    #[test]
    fn what_an_address_does_not_mean_is_left_out() {
        let nothing = DeviceQuery { page: 1, ..DeviceQuery::default() };
        for query in [
            "",
            "page=0",
            "page=-1",
            "page=x",
            "page=99999999999999999999999",
            "sort=colour",
            "sort=-colour",
            "sort=-",
            "sort=",
            "health=ok",
            "health=",
            "model=&vendor=&q=",
            "=&&&%ff",
        ] {
            assert_eq!(read(query), nothing, "{query}");
        }
    }

    #[test]
    fn an_order_says_which_end_comes_first() {
        for (query, sort, is_descending) in [
            ("", DeviceSort::Worker, false),
            ("sort=-worker", DeviceSort::Worker, true),
            ("sort=use", DeviceSort::Use, true),
            ("sort=-use", DeviceSort::Use, false),
        ] {
            let query = read(query);
            assert_eq!((query.sort, query.is_descending()), (sort, is_descending), "{query:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn an_address_reads_back(
            search in "\\PC{0,8}",
            model in proptest::option::of("\\PC{1,8}"),
            vendor in proptest::option::of("\\PC{1,8}"),
            only_trouble: bool,
            sort in 0usize..8,
            reversed: bool,
            page in 1usize..9,
        ) {
            let query = DeviceQuery { search, model, vendor, only_trouble, sort: DeviceSort::ALL[sort], reversed, page };
            let address = query.address();
            proptest::prop_assert_eq!(read(address.split_once('?').map_or("", |(_, pairs)| pairs)), query);
        }
    }
}
