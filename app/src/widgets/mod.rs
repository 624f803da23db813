//! Small views that several pages share.

pub mod bars;
pub mod commands;
pub mod state;
pub mod time;

pub use bars::{DeviceBars, Meter, Metric};
pub use commands::NextStep;
pub use state::{SeverityIcon, StateBadge};
pub use time::{Moment, use_zone};
