//! `gpustack`: one binary that unifies GPUs and NPUs which sit in networks that cannot reach one another.
//! `docs/ARCHITECTURE.md` has the map.

mod backoff;
pub mod commands;
pub mod config;
pub mod data_dir;
pub mod doctor;
pub mod fingerprint;
mod http_once;
pub mod random;
pub mod server;
pub mod ssh_authority;
pub mod tunnel;
pub mod worker;
