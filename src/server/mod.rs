//! The server: registry of workers, judge of their state, REST API and admin UI.

pub mod error;
pub mod store;
