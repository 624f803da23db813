//! The REST API.

pub mod api_keys;
mod body;
pub mod login;
pub mod users;
