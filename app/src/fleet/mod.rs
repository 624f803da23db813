//! The fleet as the browser sees it: what is known of each worker, what is wrong, and how it stays current.

pub mod ask;
#[cfg(feature = "ssr")]
pub mod device_list;
pub mod devices;
pub mod filter;
pub mod list;
#[cfg(feature = "ssr")]
pub mod roster;
pub mod store;
pub mod trouble;

#[cfg(feature = "hydrate")]
mod stream;
#[cfg(any(feature = "hydrate", test))]
mod sync;
#[cfg(any(feature = "hydrate", test))]
mod watch;

pub use devices::{DeviceSummary, Figures, ModelCount};
pub use filter::{Filter, Member};
pub use list::{Layout, ListQuery, Sort, StateFilter};
pub use store::{Connection, Fleet, FleetPart, use_fleet};
#[cfg(feature = "hydrate")]
pub use stream::follow;
pub use trouble::{Counts, Trouble, TroubleLine};
