//! The server: registry of workers, judge of their state, REST API and admin UI.

pub mod assets;
pub mod auth;
pub mod error;
pub mod listen;
pub mod rest;
pub mod store;
